"""Clients that follow facts: on a connection of their own over the socket, and inside a daemon."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hiboss.routing.facts import Facts
from hiboss.routing.subscriptions import Interest, Subscription
from hiboss.testing.running_daemon import RunningDaemon

Event = dict[str, Any]


class Follower:
    """A raw connection: calls and notifications. Notifications that come during a call are kept."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._stream = connection.makefile("rb")
        self.kept: list[Event] = []
        self._calls = 0

    def call(self, method: str, **params: Any) -> Any:
        """Call an operation and return its answer, with `result` or `error`."""
        self._calls += 1
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": self._calls}
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = self._line()
            if answer.get("id") == self._calls:
                return answer
            self.kept.append(answer["params"])

    def subscribe(self, token: str, **params: Any) -> Any:
        """Subscribe, and return the result."""
        return self.call("event.subscribe", token=token, **params)["result"]

    def next(self, *topics: str) -> Event:
        """Return the next notification, of one of these topics if any are named."""
        while True:
            line = {"params": self.kept.pop(0)} if self.kept else self._line()
            if "params" in line and (not topics or line["params"]["topic"] in topics):
                event: Event = line["params"]
                return event

    def until(self, text: str, token: str, to: str = "agent:nex") -> list[Event]:
        """Send a message on this connection, and return the facts before its arrival."""
        sent = self.call("envelope.send", token=token, to=to, text=text)["result"]
        found: list[Event] = []
        while True:
            event = self.next()
            if event.get("message") == sent["message"] and event["topic"] == "envelope.arrived":
                return found
            found.append(event)

    def _line(self) -> Event:
        line = self._stream.readline()
        if not line:
            raise EOFError("the daemon closed the connection")
        event: Event = json.loads(line)
        return event

    def close(self) -> None:
        self._stream.close()
        self.connection.close()


@contextmanager
def following(daemon: RunningDaemon) -> Iterator[Follower]:
    with daemon.connect() as connection:
        follower = Follower(connection)
        try:
            yield follower
        finally:
            follower.close()


class Listener:
    """A reader inside the process of a daemon: it follows everything, as the boss does."""

    def __init__(self, facts: Facts, *topics: str, after: int | None = None) -> None:
        self.ready = True
        self._heard: list[Event] = []
        self._news = asyncio.Event()
        self.subscription = Subscription(facts, 1, Interest(None, topics), self, lambda: None)
        self.subscriptions = [self.subscription]
        self.gap = facts.subscribe(self.subscription, None if after is None else facts.boot, after)

    def notify(self, lines: bytes) -> None:
        self._heard += [json.loads(line)["params"] for line in lines.splitlines()]
        self._news.set()

    def read_on(self) -> None:
        """Be ready again."""
        self.ready = True
        self.subscription.resume()

    async def hear(self) -> Event:
        async with asyncio.timeout(30):
            while not self._heard:
                self._news.clear()
                await self._news.wait()
        return self._heard.pop(0)
