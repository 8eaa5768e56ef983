"""The breaker in a running daemon: end all runs when it is pulled, and obey the flag of the command line.

It is stored by hiboss/store/breaker.py, in one transaction. What follows is done after its COMMIT, and again
after a crash: the next daemon ends what is left of runs. If it cannot be stored, all runs end all the same,
and none starts before it is stored. The flag is a file in the home. The command line leaves it when this
daemon does not answer (hiboss/daemon/end_runs.py), and no run starts before it is obeyed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ..core import clock
from ..core.crashpoint import BREAKER_OBEYED, BREAKER_PULLED, BREAKER_RELEASED, crashpoint
from ..core.errors import BreakerNotStored, Busy, HibossError, HomeUnusable, StoreError
from ..core.paths import Home
from ..core.stop_flag import StopFlag
from ..store import breaker
from ..store.connection import Row
from ..store.group_commit import Tx
from ..store.store import Store

log = logging.getLogger(__name__)
Write = Callable[[Callable[[Tx], bool]], Awaitable[bool]]  # runs a change in the writer, until COMMIT


class Pull(NamedTuple):
    """One pull of the breaker."""

    id: str  # what releases it names this one, so it never undoes a later one
    by: int | None
    reason: str | None


class Breaker:
    """Use it on the event loop's thread only."""

    def __init__(
        self, store: Store, home: Home, end_told: Callable[[], None], end_all: Callable[[str], None]
    ) -> None:
        self._store = store
        self._flag = StopFlag(home)
        self._end_told = end_told  # the runner's: ends those that were told to end
        self._end_all = end_all  # the runner's: ends all, for a reason
        self._unstored: Pull | None = None  # the last one, if it could not be stored
        self._lock = asyncio.Lock()  # the flag is not obeyed while it is taken back
        # Set in hiboss/daemon/wiring.py: schedules and posts go on.
        self.released: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Get ready for a full disk."""
        self._flag.keep_spare()

    async def pull(self, write: Write, by: int | None, reason: str | None) -> bool:
        """Pull it, and end all runs; return False if it was pulled before. It does not wait for their end.

        Raise BreakerNotStored if the store cannot be used now: then all runs end too, and it is stored as
        soon as that is possible.
        """
        one = Pull(breaker.new_pull(), by, reason)
        try:
            changed = await self._pull(write, one)
        except (Busy, StoreError, HomeUnusable) as error:
            self._unstored = one
            log.error("The breaker was pulled, and not stored: %s", error, extra={"action": "breaker"})
            self._end_all(breaker.ended_for(reason))
            raise BreakerNotStored(why=error.message) from error
        self._unstored = None  # this one counts instead
        return changed

    async def _pull(self, write: Write, one: Pull) -> bool:
        now = clock.now()
        changed = await write(lambda tx: breaker.pull(tx, one.by, one.reason, now, one.id))
        crashpoint(BREAKER_PULLED)
        log.info("The breaker was pulled: all runs end.", extra={"action": "breaker"})
        self._end_told()
        return changed

    def latest(self, row: Row | None) -> str | None:
        """Return the id of the last pull: as the flag says, or what was not stored, or the stored one."""
        if (flag := self._flag.read()) is not None:
            return flag.pull
        if self._unstored is not None:
            return self._unstored.id
        return None if row is None else str(row["pull"])

    async def release(self, write: Write, by: int | None, pull: str | None = None) -> bool:
        """Release it, and wake everything; return False if it was not pulled.

        `pull`: the one that is meant, by its id; empty: none. Raise PulledAgain if another one is the last.
        """
        async with self._lock:
            await self._obey(self._store.write)  # all is in the store then, and only there
            now = clock.now()
            changed = await write(lambda tx: breaker.release(tx, by, now, pull))
            crashpoint(BREAKER_RELEASED)
            await self._obey(self._store.write_until_done)  # it may have been left meanwhile
        if changed:
            log.info("The breaker was released.", extra={"action": "breaker"})
        self.released()
        return changed

    async def obey_flag(self) -> None:
        """Pull the breaker if the command line has left its flag. Nearly free if it has not."""
        if self._unstored is None and not self._flag.is_there():
            return
        async with self._lock:
            try:
                await self._obey(self._store.write_until_done)
            except HibossError as error:  # it is obeyed; who releases the breaker hears of it
                log.error("The flag of the breaker stays: %s", error, extra={"action": "breaker"})

    async def _obey(self, write: Write) -> None:
        """Store what was pulled and is not stored: by this daemon, then by the command line."""
        if (one := self._unstored) is not None:
            await self._pull(write, one)
            self._unstored = None
        if (flag := self._flag.read()) is not None:
            await self._pull(write, Pull(flag.pull, None, flag.reason))
            crashpoint(BREAKER_OBEYED)
            self._flag.take()
