"""The HTTP side: connections that stay open, requests read whole, answers in one piece. Loopback only."""

from __future__ import annotations

import select
import socket
import socketserver
import sys
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from .call_handling import CallHandler, Reply
from .files import MEGABYTE, UPLOAD_LIMIT
from .params import Params
from .refusals import Refusal, not_found

HOST = "127.0.0.1"
_LARGEST_BODY = UPLOAD_LIMIT + MEGABYTE  # a form around a file of the largest size
_PIECE = 64 * 1024
_SLOW_FROM = 16 * 1024  # what is smaller is no file

Control = Callable[[str, Params], Any]


class HttpServer(ThreadingHTTPServer):
    """Listens on one port, in threads of its own. `defects` are mistakes of this server itself."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, port: int, handler: CallHandler, control: Control | None) -> None:
        self.handler = handler
        self.control = control
        self.defects: list[str] = []
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        # Not HTTPServer's own, which asks the DNS for the name of this machine.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def close(self) -> None:
        """Stop listening, and cut all connections."""
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                _cut(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a connection that broke is the caller's business
            self.defects.append(traceback.format_exc())


class _Handler(BaseHTTPRequestHandler):
    """One connection. The paths hold tokens, so nothing is logged."""

    server: HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one piece

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def version_string(self) -> str:
        return "nginx/1.18.0"

    def _answer(self) -> None:
        try:
            reply = self._reply(self._read_body())
        except Refusal as refusal:
            reply = Reply.json(refusal.as_json(), refusal.code)
        if reply.drop or self.server.closing.is_set():
            self.close_connection = True
            _cut(self.connection)
            return
        if reply.call is not None:
            self.server.handler.answering(reply.call, caller_is_gone=self._caller_is_gone())
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if reply.bytes_per_second is None:
            self.wfile.write(reply.body)
        else:
            self._trickle(reply.body, reply.bytes_per_second)
        self.wfile.flush()

    def _caller_is_gone(self) -> bool:
        """Return whether the other side closed the connection while it was to wait for the answer."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _reply(self, body: bytes) -> Reply:
        url = urlsplit(self.path)
        parts = unquote(url.path).lstrip("/").split("/")
        control = parts[0] == "control"  # it takes JSON, whatever curl calls it
        kind = "application/json" if control else self.headers.get("Content-Type", "")
        params = Params.read(url.query, kind, body)
        if parts[0].startswith("bot") and len(parts) == 2:
            return self.server.handler.call(parts[0][3:], parts[1], params)
        if parts[0] == "file" and len(parts) > 2 and parts[1].startswith("bot"):
            return self.server.handler.download(parts[1][3:], "/".join(parts[2:]))
        if control and len(parts) == 2 and self.server.control is not None:
            return Reply.json({"ok": True, "result": self.server.control(parts[1], params)})
        raise not_found()

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        left = int(self.headers.get("Content-Length") or 0)
        if left <= _LARGEST_BODY:
            return self._read_paced(left)
        while left > 0:  # read it all the same, or the caller does not hear the answer
            left -= len(self.rfile.read(min(left, _PIECE))) or left
        raise Refusal(413, "Request Entity Too Large")

    def _read_paced(self, size: int) -> bytes:
        """Read what is as large as a file no faster than the test wants, until the server stops."""
        pieces: list[bytes] = []
        if size > _SLOW_FROM:
            while size > 0 and (pace := self.server.handler.upload_pace):
                if self.server.closing.wait(0.05):
                    break
                pieces.append(self.rfile.read(min(size, max(1, int(pace * 0.05)))))
                size -= len(pieces[-1]) or size
        return b"".join([*pieces, self.rfile.read(size)])

    def _read_chunks(self) -> bytes:
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _trickle(self, data: bytes, bytes_per_second: float) -> None:
        """Write slowly, ten times a second, until the server stops."""
        size = max(1, int(bytes_per_second / 10))
        for start in range(0, len(data), size):
            self.wfile.write(data[start : start + size])
            self.wfile.flush()
            if self.server.closing.wait(size / bytes_per_second):
                return


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other side was quicker
