"""Delivery to channels: claim an envelope, hand it to the adapter, settle it.

One envelope at a time in a lane, many lanes at once. An envelope is marked as held before it is
handed over (`handover`). Settling one and claiming the next is one transaction. The class of an error
decides what happens; adapters never retry. Lanes of agents are served by hiboss/agents/runner.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from ..channels.supervisor import Supervisor
from ..core import bounded_calls, clock
from ..core.contracts.failures import Failure
from ..core.crashpoint import CLAIMED, SETTLED, crashpoint
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.paths import Home
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import bindings, due_envelopes, lane_failures, lanes
from ..store.envelope_rows import EnvelopeRow
from ..store.group_commit import Tx
from ..store.store import Store
from .binding_endings import BindingEndings
from .handover import Handover, Settle, Settled
from .live_posts import LivePosts
from .pace_windows import Rank
from .pacing import Pacing

log = logging.getLogger(__name__)
STOP_SECONDS = 5.0  # for deliveries that were cancelled
BURST = 50  # envelopes of one lane before another lane gets its place


class Delivery:
    """Serves the lanes of channels, at most `delivery.parallel_lanes` of one binding at once."""

    def __init__(self, store: Store, home: Home, settings: Settings, supervisor: Supervisor) -> None:
        self._store = store
        self._settings = settings
        self._supervisor = supervisor
        self._queue: WorkQueue[Lane] = WorkQueue(
            lambda: settings.parallel_lanes, self._serve, group=lambda lane: lane.binding
        )
        self.pacing = Pacing(store, settings, supervisor)
        self.live = LivePosts(store, settings, supervisor, self.pacing, lambda at: self.nudge(at))
        self.handover = Handover(store, home, settings, supervisor, self.live, self.pacing)
        self.endings = BindingEndings(store, supervisor, self.live.endings)
        # Set in hiboss/daemon/wiring.py.
        self.nudge: Callable[[int], None]  # the scheduler's
        self.moved: Callable[[int], None] = lambda binding: None  # a chat of a binding has another id now
        self.decided: Callable[[int], None] = lambda message: None  # its posts need their buttons no more
        # Called when envelopes of a binding may have been settled; set there too.
        self.settled: Callable[[int | None], None] = lambda binding: None
        # An envelope was posted, so many milliseconds after it arrived.
        self.delivered: Callable[[int | None, int], None] = lambda binding, milliseconds: None

    async def start(self) -> None:
        """Free what an earlier daemon held. Lanes are woken later, when their adapters run."""
        now = clock.now()
        freed = await self._store.write(lambda tx: lanes.free_after_crash(tx, now))
        if freed:
            log.warning(
                "%d envelopes were being delivered when the daemon ended; they are redelivered.", freed
            )
        await self.live.endings.start()
        await self.endings.finish()

    async def resume(self, binding: int) -> None:
        """Wake all lanes of a binding. Called when its adapter runs, for the first time or again.

        Nobody would do it later, so it is repeated until the store works.
        """
        await self._store.timed_write_until_done(lambda tx, now: lanes.reopen_binding(tx, binding, now))
        self.wake([Lane(0, binding)])
        self.live.endings.look(binding)

    async def account_failed(self, binding: int, failure: Failure) -> None:
        """Let all lanes of a binding wait, because its adapter does not run; the boss is told once."""
        until = await self._store.timed_write_until_done(
            lambda tx, now: lane_failures.account_failed(tx, binding, failure, now)
        )
        if until is not None:
            self.nudge(until)

    def wake(self, found: Iterable[Lane], *, eager: bool = False) -> None:
        """Look what is due in these lanes. `eager`: it is new, so try a waiting lane at once."""
        for lane in found:
            if not self._supervisor.is_starting(lane.binding):  # `resume` wakes them when it runs
                self._queue.wake(lane, eager=eager)

    async def close(self) -> None:
        """Let deliveries finish for a limited time. The others are redelivered after the next start."""
        self.pacing.close()
        self.handover.closing = True
        tasks = [*self._queue.close(), *self.endings.tasks, asyncio.create_task(self.live.close())]
        await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        await bounded_calls.end(tasks, "A delivery", STOP_SECONDS)
        try:
            freed = await self._store.write(lanes.free_all)
        except HibossError as error:  # the next start does it
            log.error("Envelopes being delivered could not be freed: %s", error, extra={"action": "stop"})
            return
        if freed:
            log.warning("%d envelopes were being delivered at the stop; they are redelivered.", freed)

    async def _serve(self, lane: Lane, eager: bool) -> None:
        """Deliver what is due in a lane; or wake all lanes of a binding in which something is due."""
        try:
            if lane.address:
                await (self._deliver_paced if self.pacing.applies(lane) else self._deliver)(lane, eager)
                await self._forget_if_removed(lane)
            else:
                self.wake(await self._with_work(lane), eager=eager)
        except Exception as error:  # a defect of ours: what the lane holds must be freed
            log.exception("Delivery in a lane failed.", extra={"action": "deliver"})
            await self._break_off(
                lane, Failure("broke_off", f"hiboss failed to deliver it: {type(error).__name__}")
            )

    async def _forget_if_removed(self, lane: Lane) -> None:
        """Finish the end of a binding that was removed while this lane was posting."""
        binding = lane.binding or 0
        if binding not in self._supervisor.slots:
            await self._store.write_until_done(lambda tx: bindings.forget_if_empty(tx, binding))

    async def _break_off(self, lane: Lane, failure: Failure) -> None:
        """Free what the lane holds and let the lane wait, as after any other error."""
        later = await self._store.timed_write_until_done(
            lambda tx, now: lane_failures.retry_held_later(tx, lane, failure, now)
        )
        if later.until is not None:
            self.nudge(later.until)

    async def _with_work(self, account: Lane) -> list[Lane]:
        binding = account.binding or 0
        while True:
            try:
                return await self._store.read_in_thread(lambda c: lanes.with_work(c, binding))
            except HibossError as error:
                log.error("The lanes of b%d are woken later: %s", binding, error, extra={"action": "deliver"})
                await asyncio.sleep(1.0)

    async def _deliver(self, lane: Lane, eager: bool) -> None:
        settle: Settle | None = None
        for number in range(BURST + 1):
            last = number == BURST or self._queue.closed
            claimed = await self._settle_and_claim(lane, settle, eager=eager, claims=not last)
            if claimed is None:
                if number == BURST:
                    self._queue.once_more(lane)  # more may be due; other lanes come first
                return
            crashpoint(CLAIMED)
            settle = await self.handover.hand_over(lane, claimed)
            eager = False

    async def _deliver_paced(self, lane: Lane, eager: bool) -> None:
        """Deliver what is due in a lane, no faster than its platform allows.

        Nothing is claimed before it may go: what waits can be cancelled, and a crash is no fault of it.
        """
        self._queue.set_aside(lane)  # permits limit how many lanes deliver at the same time
        while self.pacing.applies(lane):
            permit = await self.pacing.permit(lane, self._rank(lane))
            if permit is None:
                return
            with permit:
                claimed = await self._settle_and_claim(
                    lane, None, eager=eager, claims=True, answers_first=True
                )
                if claimed is None:
                    permit.give_back()
                    return
                crashpoint(CLAIMED)
                settle = await self.handover.hand_over(lane, claimed)
            await self._settle_and_claim(lane, settle, eager=False, claims=False)
            eager = False
        self._queue.once_more(lane)  # pacing was switched off, or the adapter has stopped

    def _rank(self, lane: Lane) -> Rank:
        """Return how soon the next envelope of a lane goes, among the lanes of its account: answers first."""
        try:
            answer = self._store.read(lambda c: due_envelopes.first_answer(c, lane, clock.now()))
        except HibossError:
            return Rank.POST
        return Rank.POST if answer is None else Rank.FINAL

    async def _settle_and_claim(
        self,
        lane: Lane,
        settle: Settle | None,
        *,
        eager: bool,
        claims: bool,
        answers_first: bool = False,
    ) -> EnvelopeRow | None:
        """Settle the last envelope and claim the next, in one transaction, repeated until the store works."""
        claim = partial(
            lanes.claim, lane=lane, boot=self._store.boot, eager=eager, answers_first=answers_first
        )

        def change(tx: Tx, now: int) -> tuple[Settled | None, EnvelopeRow | None]:
            settled = settle(tx, now) if settle is not None else None
            return settled, claim(tx, now=now) if claims else None

        settled, claimed = await self._store.timed_write_until_done(change)
        crashpoint(SETTLED)
        self.settled(lane.binding)
        if settled is not None:
            await self._follow(lane, settled)
        return claimed

    async def _follow(self, lane: Lane, settled: Settled) -> None:
        """Do what follows from what was written."""
        if settled.took is not None:
            self.delivered(lane.binding, settled.took)
        if settled.wake_at is not None:
            self.nudge(settled.wake_at)
        if settled.opened:
            self.wake([lane.account])
        if (
            settled.goes_on is not None and settled.goes_on != lane
        ):  # its chat became one with another meanwhile
            self.wake([settled.goes_on])
        if settled.moved and lane.binding is not None:
            self.moved(lane.binding)
        if settled.decided is not None:
            self.decided(settled.decided)
        self.live.endings.look(lane.binding)
        if settled.gives_up is not None:
            failing, failure = settled.gives_up
            while await self._store.timed_write_until_done(
                lambda tx, now: lane_failures.give_up(tx, failing, failure, now)
            ):
                pass  # in slices: other writes go between them
