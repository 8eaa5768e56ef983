"""The daemon's end of the unix socket.

Each connection answers in the order it was asked, so that an error about a line that
could not be read (which has no id) is found by its place. A client that does not read
its answers is not read from either; nothing of it piles up here.
"""

from __future__ import annotations

import asyncio
import os

from ..core.settings import Settings
from .connection import Connection, Dispatcher


class Server:
    """Listens on a unix socket; `close` stops listening, lets answers out and hangs up."""

    def __init__(self, dispatcher: Dispatcher, settings: Settings) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self.connections: set[Connection] = set()
        self._listener: asyncio.AbstractServer | None = None

    async def listen(self, path: str) -> None:
        """Only for the holder of the daemon's lock: a path left behind by a dead daemon is taken over."""
        if os.path.exists(path):
            os.unlink(path)
        loop = asyncio.get_running_loop()
        old = os.umask(0o177)  # the socket is never, not even briefly, open to others
        try:
            self._listener = await loop.create_unix_server(self._connect, path, backlog=1024)
        finally:
            os.umask(old)

    def _connect(self) -> Connection:
        return Connection(self._dispatcher, self._settings, self.connections)

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
