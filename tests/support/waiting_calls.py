"""Calls that wait (envelope.wait, watch, poll), each on a connection of its own; known to have begun."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hiboss.core import clock
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import code, line
from tests.support.parties import Party

WAIT = "30s"  # a limit for what must come; not an assertion about speed


class Line:
    """A connection; its answers may come in any order."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._stream = connection.makefile("rb")
        self._pings = 0

    def ask(self, method: str, id_: Any, **params: Any) -> None:
        self.connection.sendall(line(method, id_, **params))

    def next(self) -> Any:
        """Return the next answer; {} when the daemon has closed the connection."""
        text = self._stream.readline()
        return json.loads(text) if text else {}

    def settled(self) -> None:
        """Assert that the calls made before have begun and none of them was answered."""
        self._pings += 1
        ping = f"ping-{self._pings}"
        self.ask("daemon.ping", ping)
        answer = self.next()
        assert answer.get("id") == ping, answer

    def close(self) -> None:
        self._stream.close()
        self.connection.close()


class Wait(Line):
    """One waiting call on a connection of its own."""

    def quiet(self) -> bool:
        """Return True if it still waits. A wake for an earlier COMMIT would have been answered before."""
        self.settled()
        return True

    def answer(self) -> Any:
        """Return its result; an error fails the test."""
        found = self.next()
        assert "result" in found, found
        return found["result"]

    def texts(self) -> list[str]:
        return texts(self.answer())

    def refusal(self) -> str:
        return code(self.next())


@contextmanager
def connected(daemon: RunningDaemon) -> Iterator[Line]:
    with daemon.connect() as connection:
        one = Line(connection)
        try:
            yield one
        finally:
            one.close()


@contextmanager
def begun(party: Party, method: str = "envelope.wait", **params: Any) -> Iterator[Wait]:
    """Start a call that waits: it has looked, found nothing, and is not answered yet."""
    limit = {} if {"timeout", "wait"} & params.keys() else {_limit(method): WAIT}
    with party.daemon.connect() as connection:
        one = Wait(connection)
        try:
            one.ask(method, "wait", token=party.token, **limit, **params)
            one.settled()
            yield one
        finally:
            one.close()


@contextmanager
def many_begun(parties: list[Party]) -> Iterator[list[Wait]]:
    with ExitStack() as stack:
        yield [stack.enter_context(begun(one)) for one in parties]


def _limit(method: str) -> str:
    return "wait" if method == "envelope.poll" else "timeout"


def texts(result: Any) -> list[str]:
    return [one["text"] for one in result["envelopes"]]


def waited(party: Party, **params: Any) -> Any:
    """Call envelope.wait with a timeout of 1 ms: for what must be there already, or must not."""
    return party.call("envelope.wait", **{"timeout": "0.001s", **params})


def soon() -> str:
    """Return a time 50 ms from now."""
    return clock.iso(time.time_ns() // 1_000_000 + 50)
