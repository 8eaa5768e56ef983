"""The scheduler wakes what is due at a time: one timer job, set to the smallest `wake_at` of the store.

The job only sets an event. A loop then asks the store for what is overdue, in chunks, and sets the
job again. A lost event only costs time: a heartbeat looks anyway. That also covers a machine that
was suspended and a clock that was changed. What to do with a woken row is decided in
hiboss/daemon/wiring.py.
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
from ..store import overdue, quiet_hours
from ..store.group_commit import Tx
from ..store.overdue import Woken
from ..store.schedule_firing import MaySend
from ..store.store import Store
from . import ask_wakes
from .clock_watch import ClockWatch

log = logging.getLogger(__name__)
RETRY_MS = 1_000  # after the store could not be used
CLOCK_SECONDS = 1.0  # how often to see whether somebody set the clock


class Scheduler:
    """Wakes rows of the store at their `wake_at`, and runs a task at every heartbeat."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        on_wake: Callable[[Woken], None],
        on_heartbeat: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._on_wake = on_wake
        self._on_heartbeat = on_heartbeat
        self.may_send: MaySend = lambda tx, owner: None  # set in hiboss/daemon/lifecycle.py
        self._timer_at: int | None = None  # when the job runs; milliseconds UTC
        self._clock_watch = ClockWatch(store)
        self._look = asyncio.Event()
        self._busy = False
        self._loop_task: asyncio.Task[None] | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._clock_task: asyncio.Task[None] | None = None
        self._jobs = AsyncIOScheduler(
            timezone=UTC,
            # No grace time: an overdue job runs at once. Many instances: a job that is set again while
            # the last one still counts as running would otherwise be dropped.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 100},
        )

    @property
    def next_wake(self) -> int | None:
        """When the timer is set to; milliseconds UTC."""
        return self._timer_at

    async def look_at_clock(self) -> None:
        """Correct what waits if somebody has set the clock while no daemon ran. Call it before `start`."""
        await self._clock_watch.look()

    def start(self) -> None:
        self._jobs.start()
        self._loop_task = asyncio.create_task(self._loop())
        self._heartbeat_task = asyncio.create_task(self._heartbeat())
        self._clock_task = asyncio.create_task(self._watch_clock())
        self._look.set()  # what became due while no daemon ran

    async def close(self) -> None:
        tasks = [
            task for task in (self._loop_task, self._heartbeat_task, self._clock_task) if task is not None
        ]
        if tasks:
            self._jobs.pause()
            # A job that has begun ends here; cancelled, it would be logged as an error.
            await asyncio.sleep(0)
            self._jobs.shutdown(wait=False)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def nudge(self, at: int) -> None:
        """Set the timer to `at` (milliseconds UTC), unless it is set to an earlier time."""
        if self._timer_at is None or at < self._timer_at:
            self._set_timer(at)

    def wakeup(self) -> None:
        """Look at the store now: the clock may have changed."""
        self._jobs.wakeup()
        self._look.set()

    def look(self) -> None:
        """Look at the store now: a setting or the boss's zone may have changed."""
        self._look.set()

    async def _heartbeat(self) -> None:
        # By the event loop's clock and not as a job. A job runs by the wall clock: set back by a day, no
        # job would run for a day; set forward, every missed heartbeat would be counted.
        while True:
            await asyncio.sleep(self._settings.heartbeat_seconds)
            try:
                self.wakeup()
                if self._on_heartbeat is not None:
                    await self._on_heartbeat()
            except Exception as error:  # whatever it is, the next heartbeat must come
                log.error(
                    "A task of the heartbeat failed and is repeated at the next one: %s",
                    error,
                    exc_info=None if isinstance(error, HibossError) else error,
                    extra={"action": "wake"},
                )

    async def _watch_clock(self) -> None:
        while True:
            await asyncio.sleep(CLOCK_SECONDS)
            if self._clock_watch.was_set():
                self.wakeup()

    async def settle(self) -> None:
        """Return when nothing is overdue any more. For tests that move the clock."""
        while self._look.is_set() or self._busy or self._overdue():  # noqa: ASYNC110 - there is no single event for this
            await asyncio.sleep(0.001)

    def _overdue(self) -> bool:
        nearest, now = self._store.read(overdue.next_wake), clock.now()
        digest = self._digest_at(now)
        return any(at is not None and at <= now for at in (nearest, digest))

    def _digest_at(self, now: int) -> int | None:
        return self._store.read(lambda c: quiet_hours.digest_at(c, self._settings, now))

    async def _timer(self) -> None:
        self._look.set()

    def _set_timer(self, at: int) -> None:
        self._timer_at = at
        trigger = DateTrigger(run_date=clock.from_ms(at), timezone=UTC)
        self._jobs.add_job(self._timer, trigger, id="next-wake", replace_existing=True)

    async def _loop(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            self._timer_at, self._busy = None, True
            try:
                await self.catch_up()
            except HibossError as error:
                log.error("Waking is tried again in a second: %s", error, extra={"action": "wake"})
                self.nudge(clock.now() + RETRY_MS)
            except Exception:  # a defect: waking must go on
                log.exception("Waking failed; it is tried again in a second.", extra={"action": "wake"})
                self.nudge(clock.now() + RETRY_MS)
            self._busy = False

    async def catch_up(self) -> None:
        """Wake everything that is overdue, then set the timer for what comes next."""
        if self._clock_watch.was_set():
            await self._clock_watch.look()
        while True:
            now, following = clock.now(), self._store.read(overdue.next_times)
            if following.row is not None and following.row <= now:
                await self._wake(lambda tx: overdue.wake(tx, now))  # noqa: B023 - awaited here
            elif following.ask is not None and following.ask <= now:
                await ask_wakes.wake(self._store, now)
            # Apart from the rest and after it: if firing fails, mail and lanes are woken all the same. One
            # slice at a time: nor do they wait for schedules that make up for a long downtime.
            elif following.slot is not None and following.slot <= now:
                await self._wake(lambda tx: overdue.fire(tx, now, self.may_send))  # noqa: B023 - awaited here
            elif (digest := self._digest_at(now)) is not None and digest <= now:
                await self._wake(lambda tx: overdue.send_digest(tx, now))  # noqa: B023 - awaited here
            else:
                break
        for at in (following.nearest, digest):
            if at is not None:
                self.nudge(at)  # unless an earlier row came in meanwhile

    async def _wake(self, wake: Callable[[Tx], Woken]) -> None:
        """Wake a chunk of what is overdue, in one transaction."""
        crashpoint(ARRIVING)
        woken = await self._store.write(wake)
        crashpoint(ARRIVED)
        self._on_wake(woken)
