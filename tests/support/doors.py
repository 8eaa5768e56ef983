"""The doors of one daemon, each asked in the same words: the unix socket, a WebSocket, REST.

A `DoorDaemon` is a daemon whose calls go through one of them, so that whatever a test tells of parties can
be told through each. What only reads, and what is refused, is asked through all of them: it must be the same.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hiboss.api import dispatch  # noqa: F401 - it declares the operations
from hiboss.api.operation import REGISTRY, Level
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, line
from tests.support.waits import wait_until
from tests.support.web_clients import RestClient, WebSocketClient, open_websocket
from tests.support.web_daemons import WebDaemon

Answer = dict[str, Any]  # with `result` or `error`
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
# What differs from one call to the next, whoever asks: the age of the daemon, what it has counted.
MOVES = {
    "daemon.status": {"uptime_seconds", "connections", "memory_bytes", "subscriptions"},
    "daemon.metrics": {"families"},
    "turn.preview": {"turn"},
}


class Door(Protocol):
    name: str

    def answer(self, method: str, params: dict[str, Any]) -> Answer: ...


class SocketDoor:
    name = "socket"

    def __init__(self, daemon: RunningDaemon) -> None:
        self._daemon = daemon

    def answer(self, method: str, params: dict[str, Any]) -> Answer:
        with self._daemon.connect() as connection:
            connection.sendall(line(method, **params))
            (found,) = answers(connection, 1)
        return {key: found[key] for key in ("result", "error") if key in found}


class WebSocketDoor:
    """One connection for each thread."""

    name = "websocket"

    def __init__(self, daemon: WebDaemon) -> None:
        self._daemon = daemon
        self._opened: dict[int, WebSocketClient] = {}

    @property
    def client(self) -> WebSocketClient:
        own = threading.get_ident()
        if own not in self._opened:
            self._opened[own] = open_websocket(self._daemon.url)
        return self._opened[own]

    def answer(self, method: str, params: dict[str, Any]) -> Answer:
        if method == "auth.login":  # it would log in whoever names no token later
            with self._daemon.websocket() as client:
                found = client.ask(method, **params)
        else:
            found = self.client.ask(method, **params)
        return {key: found[key] for key in ("result", "error") if key in found}

    def close(self) -> None:
        for one in self._opened.values():
            one.close()


class RestDoor:
    name = "rest"

    def __init__(self, daemon: WebDaemon) -> None:
        self._daemon = daemon
        self._opened: dict[int, RestClient] = {}

    @property
    def client(self) -> RestClient:
        own = threading.get_ident()
        if own not in self._opened:
            self._opened[own] = self._daemon.rest()
        return self._opened[own]

    def answer(self, method: str, params: dict[str, Any]) -> Answer:
        given, client = dict(params), self.client
        client.token = None
        if in_header(given.get("token")):
            client.token = given.pop("token")
        reply = client.operation(method, given)
        if reply.status < 400:
            return {"result": reply.json}
        found: Answer = reply.json
        assert set(found) == {"error"}, found
        return found

    def close(self) -> None:
        for one in self._opened.values():
            one.close()


def in_header(token: Any) -> bool:
    """Whether a token can be given in a header; odd ones are given in the body, as any parameter."""
    return isinstance(token, str) and 0 < len(token) < 1_000 and token.isprintable()


def masked(method: str, answer: Answer) -> Answer:
    """An answer without what differs by nature."""
    if "result" in answer and method in MOVES:
        answer = {"result": {key: one for key, one in answer["result"].items() if key not in MOVES[method]}}
    return json.loads(TIME.sub("time", json.dumps(answer)))


class DoorDaemon(RunningDaemon):
    """A daemon whose calls go through one door. What that door refuses goes through the socket then."""

    def __init__(self, daemon: WebDaemon, through: Door, others: list[Door]) -> None:
        super().__init__(daemon.home)
        self.process = daemon.process
        self.through = through
        self._others = others
        self._socket = SocketDoor(daemon)
        self.asked: set[str] = set()  # operations that were called through this door

    def call(self, method: str, **params: Any) -> Any:
        if "from_" in params:
            params["from"] = params.pop("from_")
        answer = self._ask(method, params)
        if "error" in answer:
            raise Answered(answer["error"])
        return answer["result"]

    def exchange(self, *lines: Any, answers: int) -> list[Any]:
        """Send a batch of requests; through REST one after the other."""
        (batch,) = lines
        if isinstance(self.through, WebSocketDoor):
            self.asked |= {one["method"] for one in batch}
            return self.through.client.exchange(batch, answers=answers)
        return [[self._ask(one["method"], one["params"]) | {"id": one["id"]} for one in batch]]

    def _ask(self, method: str, params: dict[str, Any]) -> Answer:
        self.asked.add(method)
        if refused_by_web(method, params, self.through.name):
            assert code_of(self.through.answer(method, params)) == "door_refused"
            return self._socket.answer(method, params)
        if REGISTRY[method].level is Level.OPEN and not params.get("token"):
            assert code_of(self.through.answer(method, params)) == "no_token"
            params = {**params, "token": self.token("boss")}
        answer = self.through.answer(method, params)
        if "error" in answer or REGISTRY[method].effect == "read":
            self._compare(method, params, answer)
        return answer

    def _compare(self, method: str, params: dict[str, Any], first: Answer) -> None:
        """Ask through the other doors too. Something else may happen in between: then ask all of them again."""
        found = [first, *(one.answer(method, params) for one in self._others)]

        def same() -> bool:
            if all(masked(method, one) == masked(method, found[0]) for one in found):
                return True
            found[:] = [one.answer(method, params) for one in (self.through, *self._others)]
            return False

        try:
            wait_until(same)
        except AssertionError:
            raise AssertionError(f"{method}: not the same through all doors: {found}") from None


def refused_by_web(method: str, params: dict[str, Any], door: str) -> bool:
    """Whether a request is for other doors than this one."""
    operation = REGISTRY[method]
    if "web" not in operation.doors or (operation.follows and door == "rest"):
        return True
    return any(params.get(name) for name in operation.socket_only)


def code_of(answer: Answer) -> str:
    return str(answer["error"]["data"]["code"]) if "error" in answer else "ok"


@contextmanager
def doors_of(daemon: WebDaemon) -> Iterator[dict[str, DoorDaemon]]:
    """The daemon through the WebSocket, and through REST."""
    unix, websocket, rest = SocketDoor(daemon), WebSocketDoor(daemon), RestDoor(daemon)
    try:
        yield {
            "websocket": DoorDaemon(daemon, websocket, [unix, rest]),
            "rest": DoorDaemon(daemon, rest, [unix, websocket]),
        }
    finally:
        websocket.close()
        rest.close()
