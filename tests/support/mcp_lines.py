"""MCP by hand, line by line, on the socket of the worker: what the official client does not do, or too many."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import urlsplit

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.web_clients import Reply, bearer
from tests.support.web_daemons import WebDaemon

SECONDS = 30
OLD, NEW = "2025-06-18", "2026-07-28"
ABOUT = {"name": "by-hand", "version": "1"}


class WorkerLine:
    """One connection to the worker."""

    def __init__(self, path: str, greeting: dict[str, Any]) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.socket.connect(path)
        self._stream = self.socket.makefile("rb")
        self._number = 0
        self._kept: list[dict[str, Any]] = []
        try:
            self.write(json.dumps(greeting).encode())
            answer = self.next()
            if "error" in answer:
                raise Answered(answer["error"])
            assert answer == {"ok": True}
        except BaseException:
            self.close()
            raise

    @classmethod
    @contextmanager
    def of(cls, daemon: RunningDaemon, token: str | None, **greeting: Any) -> Iterator[WorkerLine]:
        path = daemon.call("mcp.start")["socket"]
        line = cls(path, {"token": token, "agent": None, "dotted": False, **greeting})
        try:
            yield line
        finally:
            line.close()

    def write(self, data: bytes) -> None:
        self.socket.sendall(data + b"\n")

    def next(self) -> dict[str, Any]:
        """Return the next line; {} at the end."""
        text = self._stream.readline()
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def send(self, method: str, **params: Any) -> int:
        """Send a request of the era of this connection, and return its id."""
        self._number += 1
        self.write(json.dumps(self.request(method, self._number, params)).encode())
        return self._number

    def request(self, method: str, number: int, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; notices are kept."""
        while True:
            found = self.next()
            assert found, "the worker hung up"
            if found.get("id") == number and "method" not in found:
                return found
            self._kept.append(found)

    def ask(self, method: str, **params: Any) -> Any:
        """Make a request and return its result."""
        found = self.answer(self.send(method, **params))
        assert "error" not in found, found
        return found["result"]

    def notice(self, uri: str) -> Any:
        """Return the next notice about a resource."""
        while True:
            found = self._kept.pop(0) if self._kept else self.next()
            assert found, "the worker hung up"
            if found.get("method") == "notifications/resources/updated" and found["params"]["uri"] == uri:
                return found["params"]

    def initialize(self) -> None:
        found = self.ask("initialize", protocolVersion=OLD, capabilities={}, clientInfo=ABOUT)
        assert found["protocolVersion"] == OLD
        self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


class NewWorkerLine(WorkerLine):
    """One of the new era: each request says what the client is."""

    capabilities: ClassVar[dict[str, Any]] = {}

    def request(self, method: str, number: int, params: dict[str, Any]) -> dict[str, Any]:
        about = {
            "io.modelcontextprotocol/protocolVersion": NEW,
            "io.modelcontextprotocol/clientInfo": ABOUT,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        return super().request(method, number, {**params, "_meta": about})


class HttpLine:
    """A session of the old era over HTTP."""

    def __init__(self, daemon: WebDaemon, token: str) -> None:
        self.daemon, self.rest = daemon, daemon.rest(token)
        self.headers = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": OLD}
        asked = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": ABOUT}
        answer = self.post("initialize", **asked)
        assert answer.status == 200, answer
        self.headers["Mcp-Session-Id"] = str(answer.headers["mcp-session-id"])
        told = self.rest.request(
            "POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers
        )
        assert told.status == 202, told

    def post(self, method: str, **params: Any) -> Reply:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.rest.request("POST", "/mcp", asked, self.headers)

    def delete(self) -> Reply:
        return self.rest.request("DELETE", "/mcp", None, self.headers)

    @contextmanager
    def stream(self) -> Iterator[http.client.HTTPResponse]:
        """Open the stream of notices."""
        place = urlsplit(self.daemon.url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=SECONDS)
        try:
            connection.request("GET", "/mcp", None, {**dict(bearer(self.rest.token)), **self.headers})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield answer
        finally:
            connection.close()


def notices(stream: http.client.HTTPResponse) -> Iterator[Any]:
    """Yield the notices of a stream, until it ends."""
    for line in stream:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])["params"]
