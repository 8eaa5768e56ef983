"use strict";
// Shows the state of the daemon to a person who is logged in, and keeps it current over the WebSocket.
const byId = (id) => document.getElementById(id);
const tab = sessionStorage.getItem("tab");
const FACTS = [
  ["version", "Version"],
  ["started_at", "Running since"],
  ["agents", "Agents"],
  ["due", "Due now"],
  ["deferred", "Deferred"],
  ["failed", "Given up"],
];
let pause = 500;

function show(status) {
  const list = byId("facts");
  list.replaceChildren();
  for (const [name, label] of FACTS) {
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = label;
    value.textContent = String(status[name]);
    list.append(term, value);
  }
}

function loggedOut() {
  sessionStorage.removeItem("tab");
  byId("message").textContent = "Run `hiboss web` to log in.";
  byId("facts").replaceChildren();
  byId("logout").hidden = true;
}

function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  const ask = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  socket.onopen = () => {
    socket.send(JSON.stringify({ tab }));
    ask(1, "daemon.status", {});
    ask(2, "event.subscribe", { topics: ["envelope.arrived", "envelope.settled", "run.ended"] });
  };
  let asked = false;
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    pause = 500;
    if (message.id === 1 && message.result) {
      asked = false;
      byId("message").textContent = "This daemon is running. You are logged in.";
      byId("logout").hidden = false;
      show(message.result);
    } else if (message.method === "event" && !asked) {
      asked = true;
      setTimeout(() => socket.readyState === WebSocket.OPEN && ask(1, "daemon.status", {}), 500);
    }
  };
  socket.onclose = (event) => {
    if (event.code === 4401) {
      loggedOut();
      return;
    }
    byId("message").textContent = "The daemon does not answer. Trying again…";
    setTimeout(connect, pause);
    pause = Math.min(pause * 2, 10000);
  };
}

byId("logout").addEventListener("click", async () => {
  await fetch("/logout", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Hiboss-Tab": tab },
    body: "{}",
  });
  loggedOut();
});

if (tab) {
  connect();
} else {
  loggedOut();
}
