"""Delivery to channels: claim an envelope, hand it to the adapter, settle it.

One envelope at a time in a lane, many lanes at once. An envelope is marked as held before it is
handed over. Settling one and claiming the next is one transaction. The class of an error decides what
happens (EnvelopeError: this one fails; LaneError: the lane waits); adapters never retry. Lanes of
agents are served by hiboss/agents/runner.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ..channels.supervisor import Supervisor, is_our_cancellation
from ..core import backoff, clock
from ..core.contracts.adapter import File, Letter
from ..core.contracts.failures import EnvelopeError, Failure, LaneError
from ..core.crashpoint import CLAIMED, POSTED, SETTLED, crashpoint
from ..core.envelope import Kind, Lane
from ..core.errors import HibossError
from ..core.events import Bus, EnvelopeSettled, Event, LaneWaits
from ..core.paths import Home
from ..core.quoting import redact
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import envelopes, lanes, posts
from ..store.envelope_rows import EnvelopeRow
from ..store.group_commit import Tx
from ..store.store import Store

log = logging.getLogger(__name__)
LONGEST_ID = 500  # characters of a platform's message id
BURST = 50  # envelopes of one lane before another lane gets its place
T = TypeVar("T")


class Posted(NamedTuple):
    """A chunk that was posted."""

    number: int  # of the chunk, from 0
    chunk: str
    platform_id: str


class Settle(NamedTuple):
    """What to write after a hand-over, and what follows when it is written."""

    write: Callable[[Tx], None]
    event: Event
    wake_at: int | None = None


class Delivery:
    """Serves the lanes of channels, at most `delivery.parallel_lanes` of one binding at once."""

    def __init__(
        self, store: Store, home: Home, settings: Settings, supervisor: Supervisor, bus: Bus
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._supervisor = supervisor
        self._bus = bus
        self._queue: WorkQueue[Lane] = WorkQueue(
            lambda: settings.parallel_lanes, self._serve, group=lambda lane: lane.binding
        )
        self.nudge: Callable[[int], None]  # the scheduler's, set in hiboss/daemon/wiring.py

    async def start(self) -> None:
        """Free what an earlier daemon held. Lanes are woken later, when their adapters run."""
        now = clock.now()
        freed = await self._store.write(lambda tx: lanes.free_after_crash(tx, now))
        if freed:
            log.warning(
                "%d envelopes were being delivered when the daemon ended; they are redelivered.", freed
            )

    async def resume(self, binding: int) -> None:
        """Wake all lanes of a binding. Called when its adapter runs, for the first time or again."""
        now = clock.now()
        await self._store.write(lambda tx: lanes.reopen_binding(tx, binding, now))
        self.wake(await self._store.read_in_thread(lambda c: lanes.with_work(c, binding)))

    def wake(self, found: Iterable[Lane], *, eager: bool = False) -> None:
        """Look what is due in these lanes. `eager`: it is new, so try a waiting lane at once."""
        for lane in found:
            if not self._supervisor.is_starting(lane.binding):  # `resume` wakes them when it runs
                self._queue.wake(lane, eager=eager)

    async def close(self) -> None:
        """Let deliveries finish for a limited time. The others are redelivered after the next start."""
        tasks = self._queue.close()
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            freed = await self._store.write(envelopes.free_all)
        except HibossError as error:  # the next start does it
            log.error("Envelopes being delivered could not be freed: %s", error, extra={"action": "stop"})
            return
        if freed:
            log.warning("%d envelopes were being delivered at the stop; they are redelivered.", freed)

    async def _serve(self, lane: Lane, eager: bool) -> None:
        """Deliver what is due in a lane."""
        try:
            await self._deliver(lane, eager)
        except Exception as error:  # a defect of ours: what the lane holds must be freed
            log.exception("Delivery in a lane failed.", extra={"action": "deliver"})
            await self._break_off(
                lane, Failure("broke_off", f"hiboss failed to deliver it: {type(error).__name__}")
            )

    async def _break_off(self, lane: Lane, failure: Failure) -> None:
        """Free what the lane holds and let the lane wait, as after any other error."""
        now = clock.now()
        until = now + backoff.delays_ms()[1]

        def write(tx: Tx) -> None:
            lanes.retry_held_later(tx, lane, failure, until, now)

        await self._store.write_until_done(write)
        self.nudge(until)

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

    async def _settle_and_claim(
        self, lane: Lane, settle: Settle | None, *, eager: bool, claims: bool
    ) -> EnvelopeRow | None:
        """Settle the last envelope and claim the next, in one transaction, repeated until the store works."""
        boot = self._store.boot

        def change(tx: Tx) -> EnvelopeRow | None:
            if settle is not None:
                settle.write(tx)
            return lanes.claim(tx, lane, clock.now(), boot, eager=eager) if claims else None

        claimed = await self._store.write_until_done(change)
        crashpoint(SETTLED)
        if settle is not None:
            self._bus.publish(settle.event)
            if settle.wake_at is not None:
                self.nudge(settle.wake_at)
        return claimed

    async def _hand_over(self, lane: Lane, claimed: EnvelopeRow) -> Settle:
        """Post an envelope, and return what to write about it."""
        number = int(claimed["id"])
        try:
            adapter = self._supervisor.adapter(lane.binding)
            return await self._post(adapter, lane, _letter(claimed, self._home), claimed)
        except EnvelopeError as error:
            return self._failed(lane, number, Failure(error.kind, redact(error.text)))
        except LaneError as error:
            return self._waits(lane, claimed, Failure(error.kind, redact(error.text)), error.retry_after)
        except TimeoutError:
            text = f"no answer within {self._settings.post_seconds:g} seconds"
            return self._waits(lane, claimed, Failure("timed_out", text), None)
        except HibossError as error:  # the chunks could not be planned; nothing was posted
            return self._waits(lane, claimed, Failure(error.code, error.message), None)
        except BaseException as error:  # a defect of an adapter, also SystemExit, stops its own lane only
            if is_our_cancellation(error):
                raise
            log.exception("Posting e%d failed.", number, extra={"action": "deliver"})
            failure = Failure("adapter_failed", f"the adapter failed: {type(error).__name__}")
            return self._waits(lane, claimed, failure, None)

    async def _post(self, adapter: Any, lane: Lane, letter: Letter, claimed: EnvelopeRow) -> Settle:
        number, planned = int(claimed["id"]), claimed["posted"]
        chunks = [row["content"] for row in planned] or adapter.chunks(letter)
        if not chunks:
            raise EnvelopeError("nothing_to_post", "the adapter has nothing to post for it")
        sent = {row["chunk"] for row in planned if row["posted_at"] is not None}
        if len(chunks) > 1 and not planned:
            await self._store.write(lambda tx: posts.plan(tx, number, chunks))
        posted: list[Posted] = []
        for index, chunk in enumerate(chunks):
            if index in sent:
                continue
            async with asyncio.timeout(
                self._settings.post_seconds
            ):  # each chunk: one that gets through is progress
                platform_id = await adapter.post(letter, index, chunk)
            crashpoint(POSTED)
            # The chunk is posted: an odd id of an adapter must not make the recording fail.
            id_ = str(platform_id).encode("utf-8", "replace").decode()[:LONGEST_ID]
            posted.append(Posted(index, chunk, id_))
            if index < len(chunks) - 1:  # the last one is recorded when the envelope is settled
                await self._record(number, posted.pop())
        return self._done(lane, number, posted)

    async def _record(self, number: int, chunk: Posted) -> None:
        """Record a posted chunk, however long the store cannot be used: else it would be posted again."""
        now = clock.now()
        await self._store.write_until_done(lambda tx: posts.note_post(tx, number, *chunk, now))

    # --- what is written afterwards --------------------------------------------------

    def _done(self, lane: Lane, number: int, posted: list[Posted]) -> Settle:
        now = clock.now()

        def write(tx: Tx) -> None:
            for chunk in posted:
                posts.note_post(tx, number, *chunk, now)
            lanes.done(tx, lane, number, now)

        return Settle(write, EnvelopeSettled(at=now, envelope=number, status="done"))

    def _failed(self, lane: Lane, number: int, failure: Failure) -> Settle:
        now = clock.now()
        log.warning("e%d failed: %s", number, failure.text, extra={"action": "deliver"})
        event = EnvelopeSettled(at=now, envelope=number, status="failed", error=failure.text)

        def write(tx: Tx) -> None:
            lanes.fail(tx, [number], failure, now, tried=True)
            lanes.recovered(tx, lane)

        return Settle(write, event)

    def _waits(self, lane: Lane, claimed: EnvelopeRow, failure: Failure, retry_after: float | None) -> Settle:
        now, number, address = clock.now(), int(claimed["id"]), str(claimed["to_address"])
        failing = self._store.read(lambda connection: lanes.failing_seconds(connection, lane, now))
        delay, told = backoff.next_wait(failing, retry_after)
        log.warning("%s waits %.0f s: %s", address, delay, failure.text, extra={"action": "deliver"})
        until = now + int(delay * 1000)
        event = LaneWaits(at=now, address=address, error=failure.text, until=until)

        def write(tx: Tx) -> None:
            lanes.retry_later(tx, lane, number, failure, until, now, told=told)

        return Settle(write, event, until)


def _letter(claimed: EnvelopeRow, home: Home) -> Letter:
    """Return an envelope in the form an adapter gets it."""
    files = json.loads(claimed["attachments"]) if claimed["attachments"] else []
    return Letter(
        id=f"e{claimed['id']}",
        place=claimed["to_address"].split(":", 2)[2],
        text=claimed["text"],
        type=Kind(claimed["type"]).word,
        subject=claimed["subject"],
        sender=claimed["from_address"],
        sender_name=claimed["from_name"],
        files=tuple(File(one["name"], os.path.join(home.media, one["file"]), one["mime"]) for one in files),
        reply_to=claimed["platform_reply_to"],
    )
