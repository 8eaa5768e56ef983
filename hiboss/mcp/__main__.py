"""The life of the MCP worker: listen on two sockets, say so, serve, and end when idle or with the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from mcp.server.context import ServerRequestContext

from ..core import clock
from ..core.paths import MCP_HTTP_SOCKET, MCP_SOCKET, Home
from ..core.settings import Configuration
from . import server
from .caller import Caller
from .daemon_connection import Daemon
from .http_clients import HttpClients
from .stdio_clients import StdioClients

CHECK_SECONDS = 30.0  # between two looks whether it is idle


class Worker:
    def __init__(self, home: Home, paths: tuple[str, str]) -> None:
        settings = Configuration(home.config, os.environ).settings
        self._paths = paths
        self._idle_seconds = settings.mcp_idle_seconds
        self._daemon = Daemon(home.socket)
        most, longest = settings.mcp_clients, settings.frame_bytes
        self._http = HttpClients(self._daemon, most=most, body_bytes=longest, idle_seconds=self._idle_seconds)
        self._server = server.build(self._caller_of)
        self._stdio = StdioClients(self._server, self._daemon, most=most, line_bytes=longest)
        self.stopping = asyncio.Event()

    def _caller_of(self, context: ServerRequestContext[Any, Any]) -> Caller:
        if context.request is not None:
            return self._http.caller_of(context)
        caller: Caller = context.lifespan_context
        return caller

    async def serve(self) -> None:
        """Serve until it is stopped or idle."""
        for path in self._paths:
            with suppress(FileNotFoundError):
                os.unlink(path)
        await self._stdio.listen(self._paths[0])
        await self._http.listen(self._server, self._paths[1])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        try:
            await self._until_idle()
        finally:
            await self._close()

    async def _until_idle(self) -> None:
        pause = min(CHECK_SECONDS, self._idle_seconds)
        last_used = clock.elapsed()
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.stopping.wait()
            self._daemon.close_idle()
            if self._stdio.connected or self._http.requests:
                last_used = clock.elapsed()
            last_used = max(last_used, self._http.last_request)
            if clock.elapsed() - last_used >= self._idle_seconds * 1000:
                return

    async def _close(self) -> None:
        """Take no new clients first: they are refused, and ask the daemon for another worker."""
        for path in self._paths:
            with suppress(FileNotFoundError):
                os.unlink(path)
        self._stdio.close()
        await self._http.close()
        self._daemon.close()


async def main() -> None:
    """Run a worker for the home and the sockets that the environment names."""
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    worker = Worker(Home(), (os.environ[MCP_SOCKET], os.environ[MCP_HTTP_SOCKET]))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stopping.set)

    def daemon_gone() -> None:
        loop.remove_reader(sys.stdin.fileno())
        worker.stopping.set()

    # The daemon never writes there: what can be read is the end, which comes when the daemon is gone.
    loop.add_reader(sys.stdin.fileno(), daemon_gone)
    await worker.serve()


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)  # streams of clients that do not go need not be waited for
