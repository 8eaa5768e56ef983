"""Waits under way in the tests: each on a connection of its own, known to have begun."""

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
from tests.support.office import Party

WAIT = "30s"  # a bound for what must come; never a claim about speed


class Line:
    """A connection on which answers come in any order."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._stream = connection.makefile("rb")
        self._pings = 0

    def ask(self, method: str, id_: Any, **params: Any) -> None:
        self.connection.sendall(line(method, id_, **params))

    def next(self) -> Any:
        """The next answer; {} when the daemon has hung up."""
        text = self._stream.readline()
        return json.loads(text) if text else {}

    def settled(self) -> None:
        """What was asked before has begun, and nothing of it was answered."""
        self._pings += 1
        ping = f"ping-{self._pings}"
        self.ask("daemon.ping", ping)
        answer = self.next()
        assert answer.get("id") == ping, answer

    def close(self) -> None:
        self._stream.close()
        self.connection.close()


class Wait(Line):
    """One wait on a connection of its own."""

    def quiet(self) -> bool:
        """Whether it goes on: a wake for what was committed before would be answered before this."""
        self.settled()
        return True

    def answer(self) -> Any:
        """What it ends with; an error is raised as an assertion."""
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
    """A wait that has not been answered yet, but looked and found nothing."""
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
    """Wait and answer at once: for what must lie there, or must not."""
    return party.call("envelope.wait", **{"timeout": "0.001s", **params})


def soon() -> str:
    """A time a moment from now."""
    return clock.iso(time.time_ns() // 1_000_000 + 50)
