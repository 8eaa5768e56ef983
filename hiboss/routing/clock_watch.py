"""Notice that somebody set the clock, and correct what waits for a length of time.

The wall clock is compared with a clock that nobody sets. The difference is also stored, so that a
change while no daemon ran is noticed at the next start (until the machine itself restarts).
"""

from __future__ import annotations

import logging

from ..core import clock
from ..store import clock_steps, envelopes, schedules
from ..store.store import Store

log = logging.getLogger(__name__)
STEP_MS = 1_000  # less is the fine adjustment of the clock
CHUNK = 500  # waits moved in one transaction


class ClockWatch:
    """Call `look` before anything is decided by the wall clock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._boot = clock.machine_boot()
        self._offset: int | None = None  # by how much the wall clock is ahead of the elapsed time

    def was_set(self) -> bool:
        """Return whether the clock was set since the last `look`."""
        return self._offset is not None and abs(_offset_now() - self._offset) > STEP_MS

    async def look(self) -> None:
        """Correct the store if the clock was set since the last call."""
        if self._offset is None:
            known = self._store.read(lambda c: clock_steps.known_offset(c, self._boot))
            first = _offset_now() if known is None else known
            if known is None:
                await self._note(first, 0)
            self._offset = first
            if not self.was_set():  # perhaps before: since the machine restarted, nobody knows by how much
                await self._continue_schedules(0)
        offset = _offset_now()
        if self.was_set():
            await self._correct(offset, offset - self._offset)

    async def _correct(self, offset: int, step: int) -> None:
        log.info("The clock was set by %+.1f s; waits are corrected.", step / 1000, extra={"action": "wake"})
        # What ends earlier was begun after the clock was set back: it is right already.
        since = clock.now() - step - STEP_MS
        waits = await self._store.read_in_thread(lambda c: envelopes.timed_waits(c, since))
        await self._note(offset, step)
        self._offset = offset
        for start in range(0, len(waits), CHUNK):
            chunk = waits[start : start + CHUNK]
            await self._store.write_until_done(lambda tx: envelopes.move_waits(tx, chunk, step))  # noqa: B023 - awaited here
        await self._continue_schedules(-step)

    async def _note(self, offset: int, step: int) -> None:
        await self._store.write(lambda tx: clock_steps.note_offset(tx, self._boot, offset, step))

    async def _continue_schedules(self, back: int) -> None:
        now = clock.now()
        after: int | None = 0
        while after is not None:
            after = await self._store.write_until_done(
                lambda tx: schedules.after_clock_step(tx, now, back, after)  # noqa: B023 - awaited here
            )


def _offset_now() -> int:
    """Return by how much the wall clock is ahead of the elapsed time, in milliseconds."""
    return clock.now() - clock.elapsed()
