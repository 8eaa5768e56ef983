"use strict";
// The code is in the fragment, which no server and no log sees. It is used once.
const say = (text) => { document.getElementById("message").textContent = text; };

async function logIn() {
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!code) {
    say("Run `hiboss web` and open the link that it shows.");
    return;
  }
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  const body = await answer.json();
  if (!answer.ok) {
    say("Not logged in: " + body.error.message + ".");
    return;
  }
  sessionStorage.setItem("tab", body.tab);
  location.replace("/");
}

logIn().catch(() => say("Not logged in: hiboss does not answer. Try the link again."));
