"""One connection of a client, as an API answers on it: JSON, or a stream of server-sent events."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from .holds import Holds


class ClientGone(Exception):
    """The client closed the connection."""


class Wire:
    """Where the answer to one request is written."""

    def __init__(self, handler: BaseHTTPRequestHandler, holds: Holds) -> None:
        self._handler = handler
        self._holds = holds
        self._hold: threading.Event | None = None
        self._at_end = False

    def json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        data = json.dumps(body).encode()
        self._handler.send_response(status)
        self._handler.send_header("Content-Type", "application/json")
        self._handler.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def open_stream(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a stream of events."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self._handler.send_header("Transfer-Encoding", "chunked")
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def event(self, data: Mapping[str, Any]) -> None:
        """Send one event, named by its type."""
        chunk = f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self._handler.wfile.flush()

    def close_stream(self) -> None:
        """End the stream as it should end."""
        self._handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection where it is."""
        self._handler.close_connection = True
        connection: socket.socket = self._handler.connection
        connection.shutdown(socket.SHUT_RDWR)

    def enter_hold(self, *, at_end: bool = False) -> None:
        """Say that `stay` will come: do this before the client hears something."""
        self._hold, self._at_end = self._holds.enter(), at_end

    def stay(self, *, at_end: bool = False) -> None:
        """Wait until the test says go on, if a hold was entered for this place. Raises ClientGone."""
        if at_end != self._at_end:
            return
        if self._hold is not None and not self._holds.stay(self._hold, self._is_gone):
            raise ClientGone
        self._hold = None

    def leave(self) -> None:
        """Forget a hold that was entered and not reached."""
        if self._hold is not None:
            self._hold.set()
            self._holds.stay(self._hold, lambda: True)

    def _is_gone(self) -> bool:
        connection: socket.socket = self._handler.connection
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and not connection.recv(1, socket.MSG_PEEK)
