"""Delivery to channels: claim an envelope, hand it to the adapter, settle it.

One envelope at a time in a lane, many lanes at once. An envelope is marked as held before it is
handed over. Settling one and claiming the next is one transaction. The class of an error decides what
happens (EnvelopeError: this one fails; LaneError: the lane waits; AccountError: all lanes of the
binding wait); adapters never retry. Lanes of agents are served by hiboss/agents/runner.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..channels.supervisor import Supervisor
from ..core import bounded_calls, clock
from ..core.contracts.adapter import Button, Letter, Posted
from ..core.contracts.failures import (
    TOPIC_CLOSED,
    TOPIC_NOT_FOUND,
    AccountError,
    ChatMoved,
    EnvelopeError,
    Failure,
    LaneError,
)
from ..core.crashpoint import CLAIMED, MOVED, POSTED, SETTLED, crashpoint
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.paths import Home
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import (
    bindings,
    buttons,
    chat_moves,
    gone_topics,
    lane_failures,
    lanes,
    live_posts,
    notices,
    posted_files,
    posts,
)
from ..store.envelope_rows import EnvelopeRow
from ..store.group_commit import Tx
from ..store.lane_failures import Scope
from ..store.store import Store
from . import gone_lines, letters
from .binding_endings import BindingEndings
from .live_endings import ChatWaits
from .live_posts import LivePosts
from .pace_windows import Rank
from .pacing import Pacing

log = logging.getLogger(__name__)
STOP_SECONDS = 5.0  # for deliveries that were cancelled
LARGEST_PLAN = 10_000  # chunks: they are stored in one transaction, for which others wait
BURST = 50  # envelopes of one lane before another lane gets its place
T = TypeVar("T")


class PostedChunk(NamedTuple):
    """A chunk that was posted."""

    number: int  # of the chunk, from 0
    chunk: str
    posted: Posted
    grew: int | None  # the run whose live post became this chunk
    overtakes: bool  # there are live posts in its place, which are not the last post there any more


class Settled(NamedTuple):
    """What was written after a hand-over, and what follows from it."""

    wake_at: int | None = None
    opened: bool = False  # the account works again: all its lanes go on
    gives_up: tuple[Lane, Failure] | None = None  # more envelopes there are to be given up
    goes_on: Lane | None = None  # the envelope is due again, there
    moved: bool = False  # the chat has another id now


Settle = Callable[[Tx, int], Settled]  # writes about an envelope, now


class Delivery:
    """Serves the lanes of channels, at most `delivery.parallel_lanes` of one binding at once."""

    def __init__(self, store: Store, home: Home, settings: Settings, supervisor: Supervisor) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._supervisor = supervisor
        self._queue: WorkQueue[Lane] = WorkQueue(
            lambda: settings.parallel_lanes, self._serve, group=lambda lane: lane.binding
        )
        self.pacing = Pacing(store, settings, supervisor)
        self.live = LivePosts(store, settings, supervisor, self.pacing, lambda at: self.nudge(at))
        self.endings = BindingEndings(store, supervisor, self.live.endings)
        # Set in hiboss/daemon/wiring.py.
        self.nudge: Callable[[int], None]  # the scheduler's
        self.moved: Callable[[int], None] = lambda binding: None  # a chat of a binding has another id now
        # Called when envelopes of a binding may have been settled; set there too.
        self.settled: Callable[[int | None], None] = lambda binding: None

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
            settle = await self._hand_over(lane, claimed)
            eager = False

    async def _deliver_paced(self, lane: Lane, eager: bool) -> None:
        """Deliver what is due in a lane, no faster than its platform allows.

        Nothing is claimed before it may go: what waits can be cancelled, and a crash is no fault of it.
        """
        self._queue.set_aside(lane)  # permits limit how many lanes deliver at the same time
        while self.pacing.applies(lane):
            permit = await self.pacing.permit(lane, Rank.FINAL)
            if permit is None:
                return
            with permit:
                claimed = await self._settle_and_claim(lane, None, eager=eager, claims=True)
                if claimed is None:
                    permit.give_back()
                    return
                crashpoint(CLAIMED)
                settle = await self._hand_over(lane, claimed)
            await self._settle_and_claim(lane, settle, eager=False, claims=False)
            eager = False
        self._queue.once_more(lane)  # pacing was switched off, or the adapter has stopped

    async def _settle_and_claim(
        self, lane: Lane, settle: Settle | None, *, eager: bool, claims: bool
    ) -> EnvelopeRow | None:
        """Settle the last envelope and claim the next, in one transaction, repeated until the store works."""
        boot = self._store.boot

        def change(tx: Tx, now: int) -> tuple[Settled | None, EnvelopeRow | None]:
            settled = settle(tx, now) if settle is not None else None
            return settled, lanes.claim(tx, lane, now, boot, eager=eager) if claims else None

        settled, claimed = await self._store.timed_write_until_done(change)
        crashpoint(SETTLED)
        self.settled(lane.binding)
        if settled is not None:
            await self._follow(lane, settled)
        return claimed

    async def _follow(self, lane: Lane, settled: Settled) -> None:
        """Do what follows from what was written."""
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
        self.live.endings.look(lane.binding)
        if settled.gives_up is not None:
            failing, failure = settled.gives_up
            while await self._store.timed_write_until_done(
                lambda tx, now: lane_failures.give_up(tx, failing, failure, now)
            ):
                pass  # in slices: other writes go between them

    async def _hand_over(self, lane: Lane, claimed: EnvelopeRow) -> Settle:
        """Post an envelope, and return what to write about it."""
        number = int(claimed["id"])
        try:
            adapter = self._supervisor.adapter(lane.binding)
            return await self._post(adapter, lane, self._letter(lane, claimed), claimed)
        except ChatWaits:  # for the live post that becomes this one: nothing of it was tried
            return self._goes_on_later(lane, number)
        except EnvelopeError as error:
            return self._failed(lane, number, Failure.reported(error.kind, error.text))
        except ChatMoved as error:
            crashpoint(MOVED)
            return self._moved(lane, claimed, error)
        except LaneError as error:
            scope = Scope.ACCOUNT if isinstance(error, AccountError) else Scope.LANE
            failure = Failure.reported(error.kind, error.text)
            return self._waits(lane, claimed, failure, scope, error.retry_after)
        except (bounded_calls.TookTooLong, TimeoutError):
            text = f"no answer within {self._settings.post_seconds:g} seconds"
            return self._waits(lane, claimed, Failure("timed_out", text))
        except HibossError as error:  # the chunks could not be planned; nothing was posted
            return self._waits(lane, claimed, Failure(error.code, error.message))
        except BaseException as error:  # a defect of an adapter, also SystemExit, stops its own lane only
            if bounded_calls.is_our_cancellation(error):
                raise
            log.exception("Posting e%d failed.", number, extra={"action": "deliver"})
            failure = Failure("adapter_failed", f"the adapter failed: {type(error).__name__}")
            return self._waits(lane, claimed, failure)

    def _letter(self, lane: Lane, claimed: EnvelopeRow) -> Letter:
        under: tuple[Button, ...] = ()
        known: list[str | None] = []
        if claimed["has_buttons"]:
            under = self._store.read(lambda c: buttons.of_message(c, claimed["message"]))
        if files := letters.attachments(claimed):
            known = self._store.read(lambda c: posted_files.known(c, lane.binding, files))
        return letters.of_envelope(claimed, self._store.epoch, self._home.media, under, known)

    async def _post(self, adapter: Any, lane: Lane, letter: Letter, claimed: EnvelopeRow) -> Settle:
        number, planned = int(claimed["id"]), await gone_lines.planned(self._store, adapter, letter, claimed)
        chunks = [row["content"] for row in planned] or await letters.chunks(adapter, letter)
        if not chunks:
            raise EnvelopeError("nothing_to_post", "the adapter has nothing to post for it")
        if len(chunks) > LARGEST_PLAN:
            text = f"it has {len(chunks)} chunks there, and the limit is {LARGEST_PLAN}"
            raise EnvelopeError("too_many_chunks", text)
        sent = {row["chunk"] for row in planned if row["posted_at"] is not None}
        if len(chunks) > 1 and not planned:
            await self._store.write(lambda tx: posts.plan(tx, number, chunks))
        for index, chunk in enumerate(chunks):
            if index in sent:
                continue
            live = None
            if not index:
                await self.live.end_drafts(claimed["run"], lane, claimed["message"])
                live = await self.live.endings.become(adapter, lane, claimed, letter, chunk)
            given = live or await bounded_calls.call(
                adapter.post(letter, index, chunk),
                f"A post of {letter.id} to {letter.place}",
                self._settings.post_seconds,  # for each chunk: one that gets through is progress
            )
            crashpoint(POSTED)
            grew, overtakes = (
                (None, self.live.endings.is_in(lane)) if live is None else (claimed["run"], False)
            )
            posted = PostedChunk(index, chunk, letters.posted(given), grew, overtakes)
            self.pacing.posted(lane, len(posted.posted.ids))
            if index == len(chunks) - 1:
                return self._done(lane, claimed, posted)  # it is recorded when the envelope is settled
            may_go_on = await self._record(lane, claimed, posted)
            if not may_go_on or self._queue.closed or self.pacing.applies(lane):  # each needs a permit
                return self._goes_on_later(lane, number)
        return self._done(lane, claimed, None)

    async def _record(self, lane: Lane, claimed: EnvelopeRow, chunk: PostedChunk) -> bool:
        """Record a posted chunk, however long the store cannot be used: else it would be posted again.

        Return whether the next one may be posted now.
        """

        number = int(claimed["id"])

        def write(tx: Tx, now: int) -> bool:
            _note(tx, lane, claimed, chunk, now)
            present = lanes.present(tx, lane, number)
            lanes.note_partly_posted(tx, present, number)
            return lanes.may_go_on(tx, present, number, now)

        return await self._store.timed_write_until_done(write)

    # --- what is written afterwards --------------------------------------------------

    def _done(self, lane: Lane, claimed: EnvelopeRow, last: PostedChunk | None) -> Settle:
        def write(tx: Tx, now: int) -> Settled:
            if last is not None:
                _note(tx, lane, claimed, last, now)
            return Settled(opened=lanes.done(tx, lane, int(claimed["id"]), now))

        return write

    def _goes_on_later(self, lane: Lane, number: int) -> Settle:
        def write(tx: Tx, now: int) -> Settled:
            present = lanes.present(tx, lane, number)
            return Settled(opened=lane_failures.put_back(tx, present, number, now), goes_on=present)

        return write

    def _failed(self, lane: Lane, number: int, failure: Failure) -> Settle:
        log.warning("e%d failed: %s", number, failure.text, extra={"action": "deliver"})

        def write(tx: Tx, now: int) -> Settled:
            gone = failure.kind in (TOPIC_NOT_FOUND, TOPIC_CLOSED)
            lost = gone_topics.lost(tx, lane, number, now) if gone else None
            if lost is not None:
                return Settled(lost.until, lane_failures.put_back(tx, lane, number, now), goes_on=lane)
            return Settled(opened=lanes.refused(tx, lane, number, failure, now))

        return write

    def _moved(self, lane: Lane, claimed: EnvelopeRow, error: ChatMoved) -> Settle:
        number, failure = int(claimed["id"]), Failure.reported(error.kind, error.text)
        old, new = str(claimed["to_address"]).split(":", 2)[2].partition("/")[0], str(error.chat)
        log.info("The chat %s is %s now.", old, new, extra={"action": "deliver"})

        def write(tx: Tx, now: int) -> Settled:
            if not chat_moves.moved(tx, lane.binding or 0, old, new, now):
                return self._waits(lane, claimed, failure, Scope.LANE)(tx, now)
            present = lanes.present(tx, lane, number)
            opened = lane_failures.put_back(tx, present, number, now)
            return Settled(opened=opened, goes_on=present, moved=True)

        return write

    def _waits(
        self,
        lane: Lane,
        claimed: EnvelopeRow,
        failure: Failure,
        scope: Scope = Scope.UNKNOWN,
        retry_after: object = None,
    ) -> Settle:
        number, address = int(claimed["id"]), str(claimed["to_address"])
        log.warning("e%d to %s waits: %s", number, address, failure.text, extra={"action": "deliver"})

        def write(tx: Tx, now: int) -> Settled:
            present = lanes.present(tx, lane, number)
            later = lane_failures.retry_later(
                tx, present, number, failure, now, scope=scope, retry_after=retry_after
            )
            gives_up = None if later.gives_up is None else (later.gives_up, failure)
            return Settled(later.until, later.opened, gives_up)

        return write


def _note(tx: Tx, lane: Lane, claimed: EnvelopeRow, chunk: PostedChunk, now: int) -> None:
    """Record a posted chunk, and what it means for its files and for the live posts in its place."""
    posted = chunk.posted
    posts.note_post(tx, int(claimed["id"]), chunk.number, chunk.chunk, posted.ids, now)
    if posted.files:
        posted_files.note(tx, lane.binding, letters.attachments(claimed), posted.files, now)
    if posted.notes:
        notices.tell_sender_of_rest(tx, claimed, posted.notes, now)
    if chunk.grew is not None:
        live_posts.forget(tx, live_posts.Key(chunk.grew, lane))
    if chunk.overtakes:
        live_posts.overtake(tx, lane)
