"""Clients of the HTTP door of a daemon: REST, WebSocket and server-sent events."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from websockets.sync.client import ClientConnection, connect

from hiboss.testing.running_daemon import Answered

Headers = dict[str, str]
Given = Sequence[tuple[str, str]]
Fact = dict[str, Any]
SECONDS = 30.0  # for whatever a test waits for


def bearer(token: str | None) -> list[tuple[str, str]]:
    return [] if token is None else [("Authorization", f"Bearer {token}")]


# --- REST ------------------------------------------------------------------------------


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of the error; 'ok' when there is none."""
        return str(self.json["error"]["data"]["code"]) if self.status >= 400 else "ok"


class RestClient:
    """A client that keeps its connection."""

    def __init__(self, url: str, token: str | None = None) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self._connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
        self.token = token

    def request(
        self, method: str, path: str, body: Any = None, headers: Headers | None = None, **query: Any
    ) -> Reply:
        """Make a request. A body that is not bytes is sent as JSON, and an iterator of bytes in chunks."""
        given = {**dict(bearer(self.token)), **(headers or {})}
        if body is not None and not isinstance(body, (bytes, Iterator)):
            body = json.dumps(body).encode()
            given = {"Content-Type": "application/json", **given}
        where = f"{path}?{urlencode(query, doseq=True)}" if query else path
        try:
            self._connection.request(method, where, body, given)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()  # it was kept for too long, or the daemon was started again
            self._connection.request(method, where, body, given)
            answer = self._connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())

    def operation(self, name: str, params: Any = None, headers: Headers | None = None) -> Reply:
        return self.request("POST", f"/api/op/{name}", {} if params is None else params, headers)

    def call(self, name: str, **params: Any) -> Any:
        """Call an operation; return its result, or raise Answered. Write `from_` for `from`."""
        if "from_" in params:
            params["from"] = params.pop("from_")
        reply = self.operation(name, params)
        if reply.status >= 400:
            raise Answered(reply.json["error"])
        return reply.json

    def close(self) -> None:
        self._connection.close()


# --- WebSocket -------------------------------------------------------------------------


class WebSocketClient:
    """JSON-RPC over a WebSocket. Notifications that come during a call are kept."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.kept: list[Fact] = []
        self._calls = 0

    def send(self, message: str | bytes | dict[str, Any] | list[Any]) -> None:
        self.connection.send(json.dumps(message) if isinstance(message, (dict, list)) else message)

    def receive(self, seconds: float = SECONDS) -> Any:
        """Return the next message: an answer or a notification."""
        return json.loads(self.connection.recv(timeout=seconds))

    def ask(self, method: str, **params: Any) -> Any:
        """Call an operation and return its answer, with `result` or `error`. Write `from_` for `from`."""
        if "from_" in params:
            params["from"] = params.pop("from_")
        self._calls += 1
        self.send({"jsonrpc": "2.0", "method": method, "params": params, "id": self._calls})
        while True:
            answer = self.receive()
            if isinstance(answer, dict) and answer.get("method") == "event":
                self.kept.append(answer["params"])
            elif answer["id"] in (self._calls, None):
                return answer

    def call(self, method: str, **params: Any) -> Any:
        """Call an operation; return its result, or raise Answered."""
        answer = self.ask(method, **params)
        if "error" in answer:
            raise Answered(answer["error"])
        return answer["result"]

    def exchange(self, *messages: Any, answers: int) -> list[Any]:
        """Send messages, and return so many answers."""
        for message in messages:
            self.send(message)
        return [self.receive() for _ in range(answers)]

    def next(self, *topics: str) -> Fact:
        """Return the next notification, of one of these topics if any are named."""
        while True:
            fact: Fact = self.kept.pop(0) if self.kept else self.receive()["params"]
            if not topics or fact["topic"] in topics:
                return fact

    def close(self) -> None:
        with suppress(OSError):
            self.connection.close()


def open_websocket(url: str, token: str | None = None, path: str = "/ws", **more: Any) -> WebSocketClient:
    """Connect; `more` as for websockets.sync.client.connect."""
    headers = {**dict(bearer(token)), **more.pop("headers", {})}
    where = f"ws{url.removeprefix('http')}{path}"
    given = {"proxy": None, "open_timeout": SECONDS, "max_size": None, "close_timeout": 5, **more}
    given.setdefault("ping_interval", None)  # the daemon pings
    return WebSocketClient(connect(where, additional_headers=headers, **given).__enter__())


# --- server-sent events ------------------------------------------------------------------


class Event(NamedTuple):
    name: str
    data: dict[str, Any]
    id: str | None


class EventReader:
    """Reads a stream of events, as a browser does: `last` is the id of the last one that was read."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.headers = answer.headers
        self.last: str | None = None
        self.comments = 0
        self.retry: int | None = None

    def next(self, *names: str) -> Event:
        """Return the next event, of one of these names if any are given. Raises EOFError at the end."""
        while True:
            found = self._read()
            if found is not None and (not names or found.name in names):
                return found

    def until(self, holds: Callable[[Event], Any]) -> list[Event]:
        """Return the events up to the first for which this holds."""
        found = [self.next()]
        while not holds(found[-1]):
            found.append(self.next())
        return found

    def rest(self) -> list[Event]:
        """Return the events up to the end of the stream."""
        found: list[Event] = []
        with suppress(EOFError):
            while True:
                found.append(self.next())
        return found

    def wait_for_comment(self) -> None:
        """Read until a comment has come."""
        before = self.comments
        while self.comments == before:
            self._read()

    def _read(self) -> Event | None:
        """Return the next block as an event; None: it is none."""
        fields: dict[str, str] = {}
        while True:
            try:
                line = self._answer.readline()
            except (http.client.IncompleteRead, ConnectionResetError):
                line = b""
            if not line:
                raise EOFError("the stream has ended")
            if line == b"\n":
                break
            name, _, value = line.decode().rstrip("\n").partition(":")
            if not name:
                self.comments += 1
            else:
                fields[name] = value.removeprefix(" ")
        if "retry" in fields:
            self.retry = int(fields["retry"])
        self.last = fields.get("id", self.last)
        if "data" not in fields:
            return None
        return Event(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def open_events(
    url: str, token: str | None, last: str | None = None, *, small: bool = False, **query: Any
) -> EventReader:
    """Open the stream of events; raises Answered when it is refused. `small`: take little unless it is read."""
    place = urlsplit(url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
    headers = {**dict(bearer(token)), **({} if last is None else {"Last-Event-ID": last})}
    if small:
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.sock.settimeout(SECONDS)
        connection.sock.connect((place.hostname, place.port))
    where = f"/api/events?{urlencode(query, doseq=True)}" if query else "/api/events"
    try:
        connection.request("GET", where, headers=headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise Answered(json.loads(answer.read())["error"])
    except BaseException:
        connection.close()
        raise
    return EventReader(connection, answer)
