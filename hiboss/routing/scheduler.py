"""The scheduler wakes: one job, set to the least `wake_at` of the store.

The job only rings; a pump asks the store what is overdue, in chunks, and sets the job
again. Losing a ring costs only time: a heartbeat looks anyway, which also covers a machine
that slept and a clock that was set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from ..core import clock
from ..core.crashpoint import ARRIVED, ARRIVING, crashpoint
from ..core.errors import HibossError
from ..core.settings import Settings
from ..store import lanes, wakeups
from ..store.store import Store
from ..store.wakeups import Woken

log = logging.getLogger(__name__)
AGAIN_MS = 1_000  # when the store could not be used
STEP_MS = 1_000  # backwards: more than clocks are slewed by


class Scheduler:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        woken: Callable[[Woken], None],
        chore: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._woken = woken
        self._chore = chore  # done at every heartbeat
        self._armed: int | None = None
        self._latest = 0  # when we looked last
        self._bell = asyncio.Event()
        self._busy = False
        self._pumping: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._jobs = AsyncIOScheduler(
            timezone=UTC,
            # No grace: what is overdue runs at once. Many instances: a bell set anew while the
            # last ring is still being counted as running would otherwise be dropped.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 100},
        )

    @property
    def next_wake(self) -> int | None:
        return self._armed

    def start(self) -> None:
        self._jobs.start()
        self._pumping = asyncio.create_task(self._pump())
        self._beating = asyncio.create_task(self._beat())
        self._bell.set()  # what became overdue while no daemon ran

    async def close(self) -> None:
        if self._pumping is not None and self._beating is not None:
            self._jobs.shutdown(wait=False)
            self._pumping.cancel()
            self._beating.cancel()
            await asyncio.gather(self._pumping, self._beating, return_exceptions=True)

    def nudge(self, at: int) -> None:
        """A row must be looked at by then: be there in time."""
        if self._armed is None or at < self._armed:
            self._arm(at)

    def wakeup(self) -> None:
        """The clock may have moved: look again."""
        self._jobs.wakeup()
        self._bell.set()

    async def _beat(self) -> None:
        # By the loop's clock and not as a job: a job's time is the wall clock's, which can be set
        # back for a day, or forward, and then every beat missed would be counted through.
        while True:
            await asyncio.sleep(self._settings.heartbeat_seconds)
            self.wakeup()
            try:
                if self._chore is not None:
                    await self._chore()
            except HibossError as error:
                log.error("A chore waits for the next time: %s", error, extra={"action": "wake"})

    async def settle(self) -> None:
        """Return when nothing overdue is left to wake; for tests that move the clock."""
        while self._bell.is_set() or self._busy or self._overdue():  # noqa: ASYNC110 - no event is all of these
            await asyncio.sleep(0.001)

    def _overdue(self) -> bool:
        nearest = self._store.read(wakeups.next_wake)
        return nearest is not None and nearest <= clock.now()

    async def _ring(self) -> None:
        self._bell.set()

    def _arm(self, at: int) -> None:
        self._armed = at
        trigger = DateTrigger(run_date=clock.from_ms(at), timezone=UTC)
        self._jobs.add_job(self._ring, trigger, id="next-wake", replace_existing=True)

    async def _pump(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            self._armed, self._busy = None, True
            try:
                await self.catch_up()
            except HibossError as error:
                log.error("Waking waits a moment: %s", error, extra={"action": "wake"})
                self.nudge(clock.now() + AGAIN_MS)
            except Exception:  # a defect must not end all waking
                log.exception("Waking failed; it is tried again.", extra={"action": "wake"})
                self.nudge(clock.now() + AGAIN_MS)
            self._busy = False

    async def _notice_step(self, now: int) -> None:
        """A clock that was set back: lanes that wait would wait for the length of the step."""
        before, self._latest = self._latest, now
        if now < before - STEP_MS:
            found = await self._store.write(lambda tx: lanes.reopen_early(tx, now))
            self._woken(Woken(lanes=set(found)))

    async def catch_up(self) -> None:
        """Wake everything overdue, then set the bell for what comes next."""
        await self._notice_step(clock.now())
        while True:
            now = clock.now()
            nearest = self._store.read(wakeups.next_wake)
            if nearest is None or nearest > now:
                break
            crashpoint(ARRIVING)
            woken = await self._store.write(lambda tx: wakeups.wake(tx, now))  # noqa: B023 - awaited here
            crashpoint(ARRIVED)
            self._woken(woken)
        if nearest is not None:
            self.nudge(nearest)  # unless a nearer row came in meanwhile
