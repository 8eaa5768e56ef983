"""Notice that somebody set the clock, and correct what waits for a length of time.

The wall clock is compared with a clock that nobody sets. The difference is also stored, so that a
change while no daemon ran is noticed at the next start (until the machine itself restarts).
"""

from __future__ import annotations

import logging

from ..core import clock
from ..core.errors import HibossError
from ..store import clock_steps, schedules
from ..store.group_commit import Tx
from ..store.store import Store

log = logging.getLogger(__name__)
STEP_MS = 1_000  # less is the fine adjustment of the clock


class ClockWatch:
    """Call `look` at the start, and whenever `was_set` returns True."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._boot = clock.machine_boot()
        self._offset: int | None = None  # by how much the daemon's clock is ahead of the elapsed time

    def was_set(self) -> bool:
        """Return whether the clock was set since the last `look`; follow its fine adjustment."""
        offset = _offset_now()
        if self._offset is None or abs(offset - self._offset) > STEP_MS:
            return True
        self._offset = offset
        clock.follow(offset)
        return False

    async def look(self) -> None:
        """Go over to what the wall clock shows, and correct the store if somebody has set it."""
        if self._offset is None:
            await self._begin()
        elif self.was_set():
            await self._correct()

    async def _begin(self) -> None:
        self._offset = self._store.read(lambda c: clock_steps.known_offset(c, self._boot))
        if self._offset is not None and self.was_set():
            await self._correct()
            return
        self._offset = offset = _offset_now()
        clock.follow(offset)
        await self._store.write(lambda tx: clock_steps.note_offset(tx, self._boot, offset))
        # It may have been set before the machine was restarted: nobody knows by how much.
        await self._continue_schedules(0)

    async def _correct(self) -> None:
        assert self._offset is not None
        offset = _offset_now()
        step, before = offset - self._offset, clock.elapsed() + self._offset
        log.info("The clock was set by %+.1f s; waits are corrected.", step / 1000, extra={"action": "wake"})

        def move(tx: Tx) -> None:
            clock_steps.move_waits(tx, self._boot, offset, step, before)

        # The clock changes in the same moment as the change is submitted. So everything that was
        # written by the old clock is moved, and nothing that is written by the new one.
        moved = self._store.write(move)
        self._offset = offset
        clock.follow(offset)
        try:
            await moved
        except HibossError:
            await self._store.write_until_done(move)
        await self._continue_schedules(-step)

    async def _continue_schedules(self, back: int) -> None:
        now = clock.now()
        after: int | None = 0
        while after is not None:
            after = await self._store.write_until_done(
                lambda tx: schedules.after_clock_step(tx, now, back, after)  # noqa: B023 - awaited here
            )


def _offset_now() -> int:
    """Return by how much the wall clock is ahead of the elapsed time, in milliseconds."""
    return clock.wall() - clock.elapsed()
