"""The MCP worker: a process of its own, started for the first client, ended when idle and with the daemon.

The SDK takes a second to import and 60 MB of memory; the daemon pays neither. The worker ends by itself, with
status 0, when it had no client for a while (`mcp.idle_seconds`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any

from ..api.mcp_sockets import McpSockets
from ..core.errors import HibossError, McpUnavailable, Stopping
from ..core.paths import Home
from . import mcp_process
from .mcp_process import McpProcess

log = logging.getLogger(__name__)
COMMAND = (sys.executable, "-P", "-m", "hiboss.mcp")  # -P: nothing is imported from the home
START_SECONDS = 30.0  # from the start of the process until it takes clients
MOST_DEATHS = 3  # within DEATH_SECONDS; then it is not started again before the first of them is so old
DEATH_SECONDS = 60.0


class McpSupervisor:
    """Holds the worker: at most one takes clients at a time. Implements `api.mcp_sockets.McpWorker`."""

    def __init__(self, home: Home, command: Sequence[str] = COMMAND) -> None:
        self._home = home
        self.command = command
        self._worker: McpProcess | None = None
        self._starting: asyncio.Task[McpSockets] | None = None
        self._stopping = asyncio.Event()
        self._watching: set[asyncio.Task[None]] = set()
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)  # when, by the event loop's clock
        self._last_death = ""

    @property
    def running(self) -> McpSockets | None:
        worker = self._worker
        return None if worker is None or worker.status is not None else worker.sockets

    async def start(self) -> McpSockets:
        if self._stopping.is_set():
            raise Stopping()
        if self._starting is None:
            if self._worker is not None and self._worker.takes_clients():
                return self._worker.sockets
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)  # the others who wait want it too

    def stop_starting(self) -> None:
        """Start no worker any more. Whoever waits for one is told so."""
        self._stopping.set()

    async def close(self) -> None:
        """End the worker; it takes a few seconds at most."""
        self.stop_starting()
        if self._starting is not None:
            await asyncio.wait([self._starting])
        self._dismiss()
        if self._watching:
            await asyncio.wait(self._watching)

    # --- starting --------------------------------------------------------------------

    async def _start(self) -> McpSockets:
        self._dismiss()
        self._check_deaths()
        try:
            worker = await mcp_process.launch(self.command, self._home)
        except (OSError, HibossError) as error:
            self._note_death(str(error))
            raise McpUnavailable(why=f"the worker cannot be started: {error}") from error
        problem = await self._wait_until_ready(worker)
        if problem is None:
            self._worker = worker
            self._watch(self._attend(worker))
            log.info("The MCP worker has started (pid %d).", worker.sockets.pid, extra={"action": "mcp"})
            return worker.sockets
        self._watch(worker.end())
        if self._stopping.is_set():
            raise Stopping()
        self._note_death(problem)
        log.error("The MCP worker did not start: %s.", problem, extra={"action": "mcp"})
        raise McpUnavailable(why=f"the worker did not start: {problem}")

    def _started(self, starting: asyncio.Task[McpSockets]) -> None:
        self._starting = None
        if not starting.cancelled():
            starting.exception()  # perhaps nobody waits for it any more

    async def _wait_until_ready(self, worker: McpProcess) -> str | None:
        """Return why it does not take clients; None: it does."""
        ready, stopping = asyncio.create_task(worker.ready()), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((ready, stopping), timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                return f"it was not ready after {START_SECONDS:g} seconds"
            if ready.result():
                return None
            await asyncio.wait((worker.ended, stopping), return_when=asyncio.FIRST_COMPLETED)
            return worker.end_in_words
        finally:
            for task in (ready, stopping):
                task.cancel()
            await asyncio.gather(ready, stopping, return_exceptions=True)

    # --- ending ----------------------------------------------------------------------

    def _dismiss(self) -> None:
        """End the worker that runs: it takes no clients any more, or nobody wants it any more."""
        if self._worker is not None:
            self._watch(self._worker.end())
            self._worker = None

    async def _attend(self, worker: McpProcess) -> None:
        """Wait until a worker ends, and note how."""
        await asyncio.wait([worker.ended])
        if self._worker is worker:
            self._worker = None
        if worker.is_unwanted or worker.status == 0:
            log.info("The MCP worker has ended (pid %d).", worker.sockets.pid, extra={"action": "mcp"})
            return
        self._note_death(worker.end_in_words)
        log.error("The MCP worker died: %s.", worker.end_in_words, extra={"action": "mcp"})

    def _note_death(self, how: str) -> None:
        self._deaths.append(asyncio.get_running_loop().time())
        self._last_death = how

    def _check_deaths(self) -> None:
        """Raise if a worker died too often lately: the next one would die too, and each costs a second."""
        if len(self._deaths) < MOST_DEATHS:
            return
        left = self._deaths[0] + DEATH_SECONDS - asyncio.get_running_loop().time()
        if left > 0:
            raise McpUnavailable(
                why=f"the worker died {MOST_DEATHS} times within a minute, the last time because"
                f" {self._last_death}; it is started again in {left:.0f} seconds at the earliest"
            )

    def _watch(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(what)
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
