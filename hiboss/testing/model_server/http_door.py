"""The HTTP side of the model server: paths, credentials, JSON; one thread for each connection."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from . import messages_api, messages_checks, responses_api, responses_checks
from .request import Refusal, Request
from .script import Cut, Fail, Hold, Step, StreamFail, default_answer
from .state import ServerState
from .wire import ClientGone, Wire

MOST_BYTES = 32 * 1024 * 1024  # of a request, as the Messages API has it
MODELS = ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5", "gpt-5.5", "gpt-6.1-sol")
GONE = (ClientGone, OSError)  # what a client that goes away causes, here or in the socket


class HttpDoor(ThreadingHTTPServer):
    """Listens on the port of the server until it is closed."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, state: ServerState) -> None:
        self.state = state
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        with self._lock:
            for connection in self._connections:
                _shut(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep a defect of this server for the test; a client may go away at any moment."""
        if isinstance(defect := sys.exception(), Exception) and not isinstance(defect, GONE):
            self.state.defects.append(defect)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpDoor

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the tests look at `ModelServer.requests`."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_HEAD(self) -> None:  # Claude Code looks whether the server is there
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, method: Any) -> None:
        self._names = {name.lower(): value for name, value in self.headers.items()}
        self._api = messages_api if self._is_anthropic() else responses_api
        path = urlsplit(self.path).path
        server = self.server.state
        server.paths.append(f"{self.command} {path}")
        wire = Wire(self, server.holds)
        try:
            method(path, self._body(), wire)
        except Refusal as refusal:
            server.refused.append(refusal)
            self._refuse(refusal, wire)
        except GONE:
            self.close_connection = True
        finally:
            wire.leave()

    def _is_anthropic(self) -> bool:
        return "anthropic-version" in self._names or "/messages" in self.path

    def _body(self) -> bytes:
        length = int(self._names.get("content-length") or 0)
        if length > MOST_BYTES:
            self.close_connection = True
            raise Refusal(413, "request_too_large", "Request exceeds the maximum size")
        return self.rfile.read(length)

    def _refuse(self, refusal: Refusal, wire: Wire) -> None:
        if self._api is messages_api:
            wire.json(refusal.status, messages_api.error(refusal.kind, refusal.message))
        else:
            code = responses_api.ERRORS.get(refusal.status, ("", None))[1]
            wire.json(refusal.status, responses_api.error(refusal.kind, code, refusal.message))

    def _check_key(self) -> None:
        bearer = self._names.get("authorization", "").removeprefix("Bearer ").strip()
        given = self._names.get("x-api-key", "") if self._api is messages_api else ""
        given = given or bearer
        right = self.server.state.key
        if given and (not right or given == right):
            return
        if self._api is messages_api:
            raise Refusal(
                401, "authentication_error", "invalid x-api-key" if given else "x-api-key header is required"
            )
        raise Refusal(
            401,
            "invalid_request_error",
            "Incorrect API key provided." if given else "Missing bearer authentication in header",
        )

    def _get(self, path: str, _: bytes, wire: Wire) -> None:
        if path != "/v1/models":
            raise Refusal(404, "not_found_error", "Not Found")
        self._check_key()
        kind = {"type": "model"} if self._api is messages_api else {"object": "model"}
        wire.json(200, {"object": "list", "data": [{"id": one, **kind} for one in MODELS], "has_more": False})

    def _post(self, path: str, data: bytes, wire: Wire) -> None:
        if path not in ("/v1/messages", "/v1/messages/count_tokens", "/v1/responses"):
            raise Refusal(404, "not_found_error", "Not Found")
        self._check_key()
        body = _json(data)
        if path == "/v1/messages/count_tokens":
            messages_checks.check({"max_tokens": 1, **body}, self._names)
            wire.json(200, {"input_tokens": len(data) // 4})
            return
        checks: ModuleType = messages_checks if path == "/v1/messages" else responses_checks
        try:
            checks.check(body, self._names)
            request = self._api.read(body, self._names)
        except (AttributeError, KeyError, TypeError) as error:  # a field is missing or of another type
            raise Refusal(400, "invalid_request_error", f"malformed: {error!r}") from None
        self._follow(self.server.state.accept(request), request, wire)

    def _follow(self, step: Step, request: Request, wire: Wire) -> None:
        """Do what the step says."""
        answer = self._api.Answer(request, wire)
        if isinstance(step, Hold):
            wire.enter_hold()
            wire.stay()
            step = step.then or default_answer(request)
        if isinstance(step, Fail):
            wire.json(step.status, self._api.fail(step), _headers(step))
        elif isinstance(step, StreamFail):
            answer.stream_fail(step)
        elif isinstance(step, Cut):
            answer.cut(step)
        else:
            answer.give(step)


def _json(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "invalid_request_error", "The request body is not valid JSON")
    return body


def _headers(step: Fail) -> Mapping[str, str]:
    wait = {} if step.retry_after is None else {"Retry-After": str(step.retry_after)}
    return {**wait, **step.headers}


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
