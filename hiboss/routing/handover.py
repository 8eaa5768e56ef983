"""Hand an envelope to its adapter: make its letter, post its chunks, and say what to write about it.

The class of an error decides what happens (EnvelopeError: this one fails; LaneError: the lane waits;
AccountError: all lanes of the binding wait; ChatMoved: it goes to the same chat under another id).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ..channels.supervisor import Supervisor
from ..core import bounded_calls
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
from ..core.crashpoint import MOVED, POSTED, crashpoint
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.paths import Home
from ..core.settings import Settings
from ..store import (
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
from .live_endings import ChatWaits
from .live_posts import LivePosts
from .pacing import Pacing

log = logging.getLogger(__name__)
LARGEST_PLAN = 10_000  # chunks: they are stored in one transaction, for which others wait


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
    took: int | None = None  # milliseconds from its arrival until it was posted; None: it was not
    decided: int | None = None  # the message whose buttons were decided about while they were posted


Settle = Callable[[Tx, int], Settled]  # writes about an envelope, now


class Handover:
    """Posts envelopes, one call for each chunk. `hand_over` raises only when it is cancelled."""

    def __init__(
        self,
        store: Store,
        home: Home,
        settings: Settings,
        supervisor: Supervisor,
        live: LivePosts,
        pacing: Pacing,
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._supervisor = supervisor
        self._live = live
        self._pacing = pacing
        self.closing = False  # no further chunk is begun
        self.measured: Callable[[Any, Any], Any] = lambda adapter, post: post  # set by the wiring

    async def hand_over(self, lane: Lane, claimed: EnvelopeRow) -> Settle:
        """Post an envelope, and return what to write about it."""
        number = int(claimed["id"])
        try:
            adapter = self._supervisor.adapter(lane.binding)
            return await self._post(adapter, lane, self._letter(lane, claimed), claimed)
        except ChatWaits:  # for the live post that becomes this one: nothing of it was tried
            return _goes_on_later(lane, number)
        except EnvelopeError as error:
            return _failed(lane, number, Failure.reported(error.kind, error.text))
        except ChatMoved as error:
            crashpoint(MOVED)
            return _moved(lane, claimed, error)
        except LaneError as error:
            scope = Scope.ACCOUNT if isinstance(error, AccountError) else Scope.LANE
            failure = Failure.reported(error.kind, error.text)
            return _waits(lane, claimed, failure, scope, error.retry_after)
        except (bounded_calls.TookTooLong, TimeoutError):
            text = f"no answer within {self._settings.post_seconds:g} seconds"
            return _waits(lane, claimed, Failure("timed_out", text))
        except HibossError as error:  # the chunks could not be planned; nothing was posted
            return _waits(lane, claimed, Failure(error.code, error.message))
        except BaseException as error:  # a defect of an adapter, also SystemExit, stops its own lane only
            if bounded_calls.is_our_cancellation(error):
                raise
            log.exception("Posting e%d failed.", number, extra={"action": "deliver"})
            failure = Failure("adapter_failed", f"the adapter failed: {type(error).__name__}")
            return _waits(lane, claimed, failure)

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
                await self._live.end_drafts(claimed["run"], lane, claimed["message"])
                live = await self._live.endings.become(adapter, lane, claimed, letter, chunk)
            given = live or await bounded_calls.call(
                self.measured(adapter, adapter.post(letter, index, chunk)),
                f"A post of {letter.id} to {letter.place}",
                self._settings.post_seconds,  # for each chunk: one that gets through is progress
            )
            crashpoint(POSTED)
            grew, overtakes = (
                (None, self._live.endings.is_in(lane)) if live is None else (claimed["run"], False)
            )
            posted = PostedChunk(index, chunk, letters.posted(given), grew, overtakes)
            self._pacing.posted(lane, len(posted.posted.ids))
            if index == len(chunks) - 1:
                return _done(lane, letter, claimed, posted)  # it is recorded when the envelope is settled
            may_go_on = await self._record(lane, claimed, posted)
            if not may_go_on or self.closing or self._pacing.applies(lane):  # each needs a permit
                return _goes_on_later(lane, number)
        return _done(lane, letter, claimed, None)

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


# --- what is written afterwards ------------------------------------------------------


def _done(lane: Lane, letter: Letter, claimed: EnvelopeRow, last: PostedChunk | None) -> Settle:
    message = int(claimed["message"])

    def write(tx: Tx, now: int) -> Settled:
        if last is not None:
            _note(tx, lane, claimed, last, now)
        # Whoever decided before this COMMIT found no post to take the buttons from.
        late = bool(letter.buttons) and not buttons.of_message(tx, message)
        opened = lanes.done(tx, lane, int(claimed["id"]), now)
        return Settled(opened=opened, took=now - claimed["arrived_at"], decided=message if late else None)

    return write


def _goes_on_later(lane: Lane, number: int) -> Settle:
    def write(tx: Tx, now: int) -> Settled:
        present = lanes.present(tx, lane, number)
        return Settled(opened=lane_failures.put_back(tx, present, number, now), goes_on=present)

    return write


def _failed(lane: Lane, number: int, failure: Failure) -> Settle:
    log.warning("e%d failed: %s", number, failure.text, extra={"action": "deliver"})

    def write(tx: Tx, now: int) -> Settled:
        gone = failure.kind in (TOPIC_NOT_FOUND, TOPIC_CLOSED)
        lost = gone_topics.lost(tx, lane, number, now) if gone else None
        if lost is not None:
            return Settled(lost.until, lane_failures.put_back(tx, lane, number, now), goes_on=lane)
        return Settled(opened=lanes.refused(tx, lane, number, failure, now))

    return write


def _moved(lane: Lane, claimed: EnvelopeRow, error: ChatMoved) -> Settle:
    number, failure = int(claimed["id"]), Failure.reported(error.kind, error.text)
    old, new = str(claimed["to_address"]).split(":", 2)[2].partition("/")[0], str(error.chat)
    log.info("The chat %s is %s now.", old, new, extra={"action": "deliver"})

    def write(tx: Tx, now: int) -> Settled:
        if not chat_moves.moved(tx, lane.binding or 0, old, new, now):
            return _waits(lane, claimed, failure, Scope.LANE)(tx, now)
        present = lanes.present(tx, lane, number)
        opened = lane_failures.put_back(tx, present, number, now)
        return Settled(opened=opened, goes_on=present, moved=True)

    return write


def _waits(
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
