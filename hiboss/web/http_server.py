"""Serves an app on a listening socket, with uvicorn's protocols as they are in protocols.py.

`uvicorn.Server` is not used: it takes over signals, and wakes ten times a second to see whether to end.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from ..core.settings import Settings
from . import protocols
from .protocols import HttpProtocol, IncompleteBytes, WebSocketProtocol

HEADER_BYTES = 64 * 1024
KEEP_ALIVE_SECONDS = 75.0
PING_SECONDS = 20.0
BACKLOG = 1024


class HttpServer:
    """Serves an app on one listening socket."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._settings = settings
        self._config = uvicorn.Config(
            app,
            http=HttpProtocol,
            ws=WebSocketProtocol,
            ws_max_size=settings.frame_bytes,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,  # type: ignore[arg-type] # any number
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        self._config.load()
        # It would log every WebSocket, with its path, and everybody who sends what is no HTTP. Whoever
        # connects could fill the log. What matters to us we say ourselves.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._state = ServerState()
        # Bytes of incomplete messages of all WebSockets, for protocols.WebSocketProtocol.
        self._incomplete = IncompleteBytes(settings.waiting_bytes)
        self._listener: asyncio.Server | None = None

    async def listen(self, opened: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        within = None if tls is None else protocols.HEADER_SECONDS
        self._listener = await loop.create_server(
            self._connect, sock=opened, ssl=tls, ssl_handshake_timeout=within, backlog=BACKLOG
        )

    def _connect(self) -> HttpProtocol:
        made = HttpProtocol(
            config=self._config, server_state=self._state, app_state={"incomplete": self._incomplete}
        )
        made.limit = self._settings.web_connections
        return made

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._state.connections)

    def stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def close(self) -> None:
        """Answer the requests under way, for some seconds, then disconnect everybody."""
        self.stop_listening()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=self._settings.stop_seconds)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
