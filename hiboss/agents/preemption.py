"""Give runs what people say while they work, and end them for what cannot wait.

Critical mail ends a run. What a person writes in its conversation is given to the run where its provider
takes that (busy policies `steer` and `interrupt`); else it waits, or ends the run (`interrupt`).

A wake has no data, so what it is about is found in the store, after a lost wake as well. Whether a run is set
aside is decided and stored in one transaction (hiboss/store/preemption.py); only then is its execution ended.
A daemon that dies in between ends it at its next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from ..core import clock
from ..core.contracts.provider import STEER
from ..core.crashpoint import RUN_SET_ASIDE, STEER_GIVEN, STEER_HELD, crashpoint
from ..core.errors import HibossError
from ..core.paths import Home
from ..store import preemption, steering
from ..store.boss import boss_timezone
from ..store.preemption import Found
from ..store.store import Store
from . import turn_input
from .run_execution import Execution

log = logging.getLogger(__name__)
# A run gets so long before a person's next words end it. So words that come in quick succession end one run.
GATHER_SECONDS = 1.0
# So long after a run has begun its provider may be too early for words, so they are offered again.
EARLY_SECONDS, AGAIN_SECONDS = 5.0, 0.5
RETRY_SECONDS = 1.0  # after the store could not be used


class Preemption:
    """Looks at agents that have a turn now. Use it on the event loop's thread only."""

    def __init__(
        self,
        store: Store,
        home: Home,
        begun: Callable[[int], Awaitable[Execution | None]],
        end_told: Callable[[], None],
    ) -> None:
        self._store = store
        self._home = home
        self._begun = begun  # returns the execution of a run that is stored as running
        self._end_told = end_told  # ends the executions of runs that are stored as about to end
        self._looking: dict[int, asyncio.Task[None]] = {}  # by agent
        self._again: set[int] = set()  # agents with news while they are looked at
        self._timers: dict[int, asyncio.TimerHandle] = {}  # by agent: when it is looked at again
        self._closed = False
        # A run has taken envelopes into its turn; that is stored. Set in hiboss/daemon/wiring.py.
        self.on_taken: Callable[[list[int]], None] = lambda envelopes: None

    def look(self, agent: int) -> None:
        """Look whether the run of an agent is to be set aside. Never waits."""
        if self._closed:
            return
        if agent in self._looking:
            self._again.add(agent)
            return
        try:
            found = self._find(agent)
        except HibossError as error:
            self._retry(agent, error)
            return
        if found is not None:
            task = asyncio.get_running_loop().create_task(self._set_aside(found))
            self._looking[agent] = task
            task.add_done_callback(partial(self._looked, agent))

    async def close(self) -> None:
        """Set nothing aside any more; wait for what is being written."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        if self._looking:
            await asyncio.wait(list(self._looking.values()))

    def _find(self, agent: int) -> Found | None:
        now = clock.now()
        return self._store.read(lambda c: preemption.find(c, agent, now))

    def _looked(self, agent: int, task: asyncio.Task[None]) -> None:
        del self._looking[agent]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._retry(agent, error)
        elif agent in self._again:
            self._again.discard(agent)
            self.look(agent)

    def _retry(self, agent: int, error: BaseException) -> None:
        log.error("An agent is looked at again in a second: %s", error, extra={"action": "run"})
        self._look_later(agent, RETRY_SECONDS)

    def _look_later(self, agent: int, seconds: float) -> None:
        if agent not in self._timers and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[agent] = loop.call_later(seconds, self._look_now, agent)

    def _look_now(self, agent: int) -> None:
        self._timers.pop(agent, None)
        self.look(agent)

    async def _set_aside(self, found: Found) -> None:
        """Give the run what a person said, if its provider can take that; else end it, or let that wait."""
        if not found.critical:
            if await self._steer(found):
                return
            lasted = clock.now() / 1000 - found.started_at / 1000
            early = GATHER_SECONDS if found.ends else EARLY_SECONDS
            if 0 <= lasted < early:  # not if the clock was set back
                wait = GATHER_SECONDS - lasted if found.ends else AGAIN_SECONDS
                self._look_later(found.agent, wait + 0.01)
                return
        if not found.ends:
            return  # for the next turn
        done = await self._store.timed_write_until_done(
            lambda tx, now: preemption.for_news(tx, found.agent, now)
        )
        if done is not None:
            log.info("r%d is set aside for e%d.", done.run, done.envelope, extra={"action": "run"})
            crashpoint(RUN_SET_ASIDE)
            self._end_told()

    async def _steer(self, found: Found) -> bool:
        """Give a run what people have said to it since it began. Return whether its turn has taken it.

        Not while it waits for a person, if it may end: their words may mean that it is to do something else.
        """
        execution = await self._begun(found.run)
        if execution is None or not execution.can(STEER) or execution.paused:
            return False
        if found.ends and execution.silent_seconds is None:
            return False
        numbers = await self._store.write_until_done(
            lambda tx: steering.hold(tx, found.run, found.agent, self._store.boot)
        )
        crashpoint(STEER_HELD)
        if not numbers:
            return False
        taken = False
        try:
            taken = await execution.steer(*await self._words(found.agent, numbers))
        finally:
            crashpoint(STEER_GIVEN)
            await self._store.timed_write_until_done(
                lambda tx, now: (
                    steering.taken(tx, found.run, numbers, now)
                    if taken
                    else steering.give_back(tx, found.run, numbers)
                )
            )
        if taken:
            self.on_taken(numbers)
        return taken

    async def _words(self, agent: int, numbers: list[int]) -> tuple[str, str]:
        """Render mail for an agent in its turn; return that, and what those who follow its run see of it."""
        zone = clock.zone(self._store.read(boss_timezone))
        return await self._store.read_in_thread(
            lambda c: turn_input.words(c, self._home, agent, numbers, zone)
        )
