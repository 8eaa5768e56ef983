"""The breaker in a running daemon: end all runs when it is pulled, and obey the flag of the command line.

It is stored by hiboss/store/breaker.py, in one transaction. What follows is done after its COMMIT, and again
after a crash: the next daemon ends what is left of runs. The flag is a file in the home. The command line
leaves it when this daemon does not answer (hiboss/daemon/end_runs.py), and no run starts before it is obeyed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..core import clock
from ..core.crashpoint import BREAKER_OBEYED, BREAKER_PULLED, BREAKER_RELEASED, crashpoint
from ..core.errors import HibossError
from ..core.paths import Home
from ..store import breaker
from ..store.group_commit import Tx
from ..store.store import Store

log = logging.getLogger(__name__)
Write = Callable[[Callable[[Tx], bool]], Awaitable[bool]]  # runs a change in the writer, until COMMIT


class Breaker:
    """Use it on the event loop's thread only."""

    def __init__(self, store: Store, home: Home, end_runs: Callable[[], None]) -> None:
        self._store = store
        self._home = home
        self._end_runs = end_runs  # the runner's: ends those that were told to end
        self._lock = asyncio.Lock()  # the flag is not obeyed while it is taken back
        # Set in hiboss/daemon/wiring.py: schedules and posts go on.
        self.released: Callable[[], None] = lambda: None

    async def pull(self, write: Write, by: int | None, reason: str | None) -> bool:
        """Pull it, and end all runs; return False if it was pulled before. It does not wait for their end."""
        now = clock.now()
        changed = await write(lambda tx: breaker.pull(tx, by, reason, now))
        crashpoint(BREAKER_PULLED)
        log.info("The breaker was pulled: all runs end.", extra={"action": "breaker"})
        self._end_runs()
        return changed

    async def release(self, write: Write, by: int | None) -> bool:
        """Release it, and wake everything; return False if it was not pulled."""
        async with self._lock:
            now = clock.now()
            changed = await write(lambda tx: breaker.release(tx, by, now))
            crashpoint(BREAKER_RELEASED)
            flagged = self._home.take_stop_flag()
        if changed or flagged:
            log.info("The breaker was released.", extra={"action": "breaker"})
        self.released()
        return changed or flagged

    async def obey_flag(self) -> None:
        """Pull the breaker if the command line has left its flag. Nearly free if it has not."""
        if not self._home.has_stop_flag():
            return
        async with self._lock:
            flag = self._home.stop_flag()
            if flag is None:
                return
            await self.pull(self._store.write_until_done, None, flag.get("reason"))
            crashpoint(BREAKER_OBEYED)
            try:
                self._home.take_stop_flag()
            except HibossError as error:  # it is obeyed; who releases the breaker hears of it
                log.error("The flag of the breaker stays: %s", error, extra={"action": "breaker"})
