"""Delivery: claim, hand over, settle. One envelope at a time in a lane, many lanes at once.

What a lane has in hand is marked before it is handed over. Settling one and claiming the
next are one transaction. The type of an error decides what happens; adapters never retry.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
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
from ..store import lanes, posts
from ..store.envelopes import EnvelopeRow
from ..store.group_commit import Tx
from ..store.store import Store

log = logging.getLogger(__name__)
LONGEST_WAIT_SECONDS = 24 * 3600.0  # whatever a platform says
LONGEST_ID = 500
BURST = 50  # envelopes of one lane before others get its place


T = TypeVar("T")


class Settle(NamedTuple):
    """What to write about a hand-over, and what follows once it is written."""

    write: Callable[[Tx], None]
    event: Event
    wake_at: int | None = None


class Delivery:
    def __init__(
        self, store: Store, home: Home, settings: Settings, supervisor: Supervisor, bus: Bus
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._supervisor = supervisor
        self._bus = bus
        self._queue: WorkQueue[Lane] = WorkQueue(lambda: settings.parallel_lanes, self._work)
        self.nudge: Callable[[int], None]  # the scheduler's, set by the assembly

    async def start(self) -> None:
        """What another daemon had in hand comes back; lanes are woken when their adapters run."""
        freed = await self._store.write(lanes.free_holds)
        if freed:
            log.warning("%d envelopes were in hand when the daemon ended; they come again.", freed)

    async def resume(self, binding: int) -> None:
        """An adapter runs, for the first time or again: all its lanes go on."""
        await self._store.write(lambda tx: lanes.reopen_binding(tx, binding))
        self.wake(await self._store.read_in_thread(lambda c: lanes.with_work(c, binding)))

    def wake(self, found: Iterable[Lane], *, eager: bool = False) -> None:
        """Look into these lanes. `eager`: something new came, so try also one that waits."""
        for lane in found:
            if not self._supervisor.is_starting(lane.binding):  # it wakes its lanes itself
                self._queue.wake(lane, eager=eager)

    async def close(self) -> None:
        """Let what is in hand be settled, for a bounded time; the rest comes back at the next start."""
        tasks = self._queue.close()
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            freed = await self._store.write(lanes.free_holds)
        except HibossError as error:  # the next start does it
            log.error("What is in hand stays marked: %s", error, extra={"action": "stop"})
            return
        if freed:
            log.warning("%d envelopes were still in hand at the stop; they come again.", freed)

    async def _work(self, lane: Lane, eager: bool) -> None:
        try:
            await self._deliver(lane, eager)
        except Exception as error:  # a defect of ours must not strand what the lane has in hand
            log.exception("A lane broke off.", extra={"action": "deliver"})
            await self._break_off(lane, Failure("broke_off", f"hiboss failed here: {type(error).__name__}"))

    async def _break_off(self, lane: Lane, failure: Failure) -> None:
        """What it had in hand waits with the lane, as after any error, and is tried again."""
        now = clock.now()
        until = now + int(backoff.delay_seconds(1) * 1000)

        def write(tx: Tx) -> None:
            lanes.broke_off(tx, lane, failure, until, now)

        await self._store.write_until_done(write)
        self.nudge(until)

    async def _deliver(self, lane: Lane, eager: bool) -> None:
        settle: Settle | None = None
        for turn in range(BURST + 1):
            last = turn == BURST or self._queue.closed
            claimed = await self._settle_and_claim(lane, settle, eager=eager, claims=not last)
            if claimed is None:
                if turn == BURST:
                    self._queue.once_more(lane)  # stand in line again
                return
            crashpoint(CLAIMED)
            settle = await self._hand_over(lane, claimed)
            eager = False

    async def _settle_and_claim(
        self, lane: Lane, settle: Settle | None, *, eager: bool, claims: bool
    ) -> EnvelopeRow | None:
        """One transaction. While the store cannot be used, what came of a hand-over is not forgotten."""
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
        """Post it, and say what to write about that."""
        number = int(claimed["id"])
        try:
            adapter = self._supervisor.adapter(lane.binding)
            letter = _letter(claimed, self._home)
            async with asyncio.timeout(self._settings.post_seconds):
                return await self._post(adapter, lane, letter, claimed)
        except EnvelopeError as error:
            return self._failed(lane, number, Failure(error.kind, redact(error.text)))
        except LaneError as error:
            return self._waits(lane, claimed, Failure(error.kind, redact(error.text)), error.retry_after)
        except TimeoutError:
            text = f"no answer within {self._settings.post_seconds:g} seconds"
            return self._waits(lane, claimed, Failure("timed_out", text), None)
        except HibossError as error:  # a chunk could not be noted
            return self._waits(lane, claimed, Failure(error.code, error.message), None)
        except BaseException as error:  # a defect of the adapter's stops its own lane only, also sys.exit
            if is_our_cancellation(error):
                raise
            log.exception("Posting e%d failed.", number, extra={"action": "deliver"})
            failure = Failure("adapter_failed", f"the adapter failed: {type(error).__name__}")
            return self._waits(lane, claimed, failure, None)

    async def _post(self, adapter: Any, lane: Lane, letter: Letter, claimed: EnvelopeRow) -> Settle:
        number, kept = int(claimed["id"]), claimed["posted"]
        chunks = [row["content"] for row in kept] or adapter.chunks(letter)
        if not chunks:
            raise EnvelopeError("nothing_to_post", "the adapter found nothing in it to post")
        sent = {row["chunk"] for row in kept if row["posted_at"] is not None}
        if len(chunks) > 1 and not kept:
            await self._store.write(lambda tx: posts.plan(tx, number, chunks))
        notes: list[tuple[int, str, str]] = []
        for place, chunk in enumerate(chunks):
            if place in sent:
                continue
            posted = await adapter.post(letter, place, chunk)
            crashpoint(POSTED)
            # Whatever an adapter calls an id: it is posted, and must not fail at our noting it.
            notes.append((place, chunk, str(posted).encode("utf-8", "replace").decode()[:LONGEST_ID]))
            if place < len(chunks) - 1:  # the last one is noted with the settling
                await self._note(number, notes.pop())
        return self._done(lane, number, notes)

    async def _note(self, number: int, note: tuple[int, str, str]) -> None:
        now = clock.now()
        await self._store.write(lambda tx: posts.note_post(tx, number, *note, now))

    # --- what is written about it ----------------------------------------------------

    def _done(self, lane: Lane, number: int, notes: list[tuple[int, str, str]]) -> Settle:
        now = clock.now()

        def write(tx: Tx) -> None:
            for note in notes:
                posts.note_post(tx, number, *note, now)
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
        failures = self._store.read(lambda connection: lanes.failures(connection, lane))
        delay = backoff.delay_seconds(failures)
        if retry_after is not None and math.isfinite(retry_after):
            delay = min(max(retry_after, 0.05), LONGEST_WAIT_SECONDS)
        log.warning("%s waits %.0f s: %s", address, delay, failure.text, extra={"action": "deliver"})
        until = now + int(delay * 1000)
        event = LaneWaits(at=now, address=address, error=failure.text, until=until)
        return Settle(lambda tx: lanes.waits(tx, lane, number, failure, until, now), event, until)


def _letter(claimed: EnvelopeRow, home: Home) -> Letter:
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
