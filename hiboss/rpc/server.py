"""The listener of the unix socket, and the sessions of all clients that speak JSON-RPC.

A connection answers in the order of its requests: an error about a line that could not be
parsed has no id, and is found by its place. Operations that wait are answered when they are
ready. No more requests are read from a client that does not read its answers, so that nothing
piles up in memory; what waits for all clients together has a limit too (`waiting_bytes`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from ..core.paths import private_socket
from ..core.settings import Settings
from .connection import Connection
from .contracts import Dispatcher
from .session import Session
from .waiting_bytes import WaitingBytes
from .websocket import Receive, Send, WebSocketSession


class Server:
    """Listens on a unix socket. `close` stops listening, answers the running requests and disconnects."""

    def __init__(self, dispatcher: Dispatcher, settings: Settings) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self.connections: set[Session] = set()
        self.waiting_bytes = WaitingBytes(settings)
        self._listener: asyncio.AbstractServer | None = None

    async def listen(self, path: str) -> None:
        """Start listening. The caller holds the daemon's lock: a socket at this path is a dead daemon's."""
        if os.path.exists(path):
            os.unlink(path)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(self._connect, sock=private_socket(path), backlog=1024)

    def _connect(self) -> Connection:
        return Connection(self._dispatcher, self._settings, self.connections, self.waiting_bytes)

    async def serve_websocket(
        self,
        receive: Receive,
        send: Send,
        abort: Callable[[], None],
        token: str | None,
        shown: Callable[[], None],
    ) -> None:
        """Serve a WebSocket that is accepted, until it ends. `token`: of requests that name none.

        `shown` is called when a request has a valid token.
        """
        session = WebSocketSession(
            self._dispatcher, self._settings, self.connections, self.waiting_bytes, token
        )
        session.shown = shown
        await session.serve(receive, send, abort)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.stop_reading()
        waiting = [connection.finished for connection in self.connections]
        if waiting:
            await asyncio.wait(waiting, timeout=self._settings.stop_seconds)
        for connection in list(self.connections):
            connection.hang_up()
