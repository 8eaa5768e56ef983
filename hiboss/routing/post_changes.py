"""Bring what is posted in line with messages that were edited or deleted.

The steps are stored before the first is done (hiboss/store/post_changes.py), and each is removed when it is
done. So a crash at any moment only repeats a step, which changes nothing: an edit gives a post the text it
has, a deletion finds nothing. Only a chunk that is posted in addition can be doubled, as any post.
EnvelopeError gives a step up, and who edited or deleted the message is told.
"""

from __future__ import annotations

import logging
from typing import Any

from ..core.chunk_alignment import align
from ..core.contracts.adapter import Letter, Posted
from ..core.contracts.failures import EnvelopeError
from ..core.crashpoint import CHANGE_MADE, CHANGE_NOTED, CHANGE_PLANNED, crashpoint
from ..core.paths import Home
from ..core.quoting import storable
from ..core.settings import Settings
from ..store import lanes, live_posts, notices, post_changes, posted_files
from ..store.connection import Connection
from ..store.envelope_rows import EnvelopeRow
from ..store.group_commit import Tx
from ..store.post_changes import Change, Step
from ..store.store import Store
from . import letters
from .change_queue import ChatCalls, Failing, Job

log = logging.getLogger(__name__)
KIND = "posts"
CALL_SECONDS = 10.0  # for an edit or a deletion
MOST_CHUNKS = 10_000  # of a message: they are stored in one transaction, for which others wait
WHY_CHARACTERS = 500
_UNBOUND = "this account is not bound any more"
_CANCELLED = "it was cancelled, and needs other posts than those that are there"
_OTHER_CHAT = "the chat has another id now, and what was posted before cannot be changed"


class PostChanges:
    """The kind of change that edits, deletes and adds posts of envelopes."""

    def __init__(self, store: Store, home: Home, settings: Settings, calls: ChatCalls) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._calls = calls

    def stored(self, connection: Connection) -> tuple[list[Job], bool]:
        """Return the envelopes whose posts can be changed now, and whether there are others."""
        found = post_changes.ready(connection)
        return [Job(KIND, one.envelope, one.binding) for one in found.ready], found.others

    def failed(self, tx: Tx, job: Job, why: str, now: int) -> Failing | None:
        """Write that a change failed."""
        change = post_changes.get(tx, job.number)
        if change is None:
            return None
        given_up = post_changes.failed(tx, job.number, why, now)
        return Failing(change.lane, change.failing_since, given_up)

    def chat(self, tx: Tx, job: Job) -> str | None:
        """Return the chat in which the posts of an envelope are."""
        change = post_changes.get(tx, job.number)
        return None if change is None else change.place.partition("/")[0]

    async def make(self, job: Job) -> None:
        """Do step by step what is to be done; look again after each: the message may be another one."""
        envelope = job.number
        while (change := self._store.read(lambda c: post_changes.get(c, envelope))) is not None:
            if not change.lane.binding:
                await self._give_up(envelope, _UNBOUND)
            elif not change.planned:
                await self._plan(envelope, change)
            elif (step := self._store.read(lambda c: post_changes.next_step(c, envelope))) is not None:
                await self._do(envelope, change, step)
                continue
            if await self._store.timed_write_until_done(
                lambda tx, now: post_changes.finish(tx, envelope, now)
            ):
                return

    async def _give_up(self, envelope: int, why: str) -> None:
        await self._store.timed_write_until_done(lambda tx, now: post_changes.give_up(tx, envelope, why, now))

    async def _plan(self, envelope: int, change: Change) -> None:
        """Store the steps, or that nothing can be done."""
        adapter = self._calls.adapter(change.lane)
        needed = "delete" if change.deleted else "edit"
        if needed not in getattr(adapter, "capabilities", ()):
            return await self._give_up(envelope, f"{adapter.type} cannot {needed} what is posted")
        wanted = post_changes.NOTHING
        if not change.deleted:
            if change.barred is not None:
                return await self._give_up(envelope, change.barred)
            chunks = await letters.chunks(adapter, self._letter(change, self._facts(envelope, change)))
            if not 0 < len(chunks) <= MOST_CHUNKS:
                return await self._give_up(envelope, f"it has {len(chunks)} chunks there")
            wanted = self._wanted(adapter, envelope, change, chunks)
            if change.cancelled and wanted.added:
                return await self._give_up(envelope, _CANCELLED)
        await self._store.timed_write_until_done(
            lambda tx, now: post_changes.plan(tx, envelope, change, wanted, now)
        )
        crashpoint(CHANGE_PLANNED)

    def _wanted(self, adapter: Any, envelope: int, change: Change, chunks: list[str]) -> post_changes.Plan:
        """Say which chunk each post is to show. Of what was cancelled only as many as there are posts."""
        rows = self._store.read(lambda c: post_changes.there(c, envelope))
        chunks = chunks[: len(rows)] if change.cancelled else chunks
        can_become = getattr(adapter, "can_become", lambda shown, chunk: True)
        found = align([row["content"] for row in rows], chunks, can_become)
        shows = {rows[post]["chunk"]: chunks[number] for post, number in found.kept.items()}
        return post_changes.Plan(shows, [chunks[number] for number in found.added])

    async def _do(self, envelope: int, change: Change, step: Step) -> None:
        adapter = self._calls.adapter(change.lane)
        try:
            self._check(adapter, change, step)
            if step.content is None:
                await self._delete(adapter, change, step)
            elif step.ids:
                await self._edit(adapter, envelope, change, step)
            else:
                return await self._post(adapter, envelope, change, step)
        except EnvelopeError as error:
            why = storable(error.text, WHY_CHARACTERS)
            log.warning("A post of e%d stays as it is: %s", envelope, why, extra={"action": "change"})
            await self._store.timed_write_until_done(
                lambda tx, now: post_changes.refused(tx, envelope, step, why, now)
            )
            return
        crashpoint(CHANGE_MADE)
        await self._store.timed_write_until_done(
            lambda tx, now: (
                post_changes.taken_back(tx, envelope, step, now)
                if step.content is None
                else post_changes.edited(tx, envelope, step)
            )
        )
        crashpoint(CHANGE_NOTED)

    def _check(self, adapter: Any, change: Change, step: Step) -> None:
        """Raise EnvelopeError if a step cannot be done, whatever the platform says."""
        if step.chat is not None and not change.private:
            raise EnvelopeError("other_chat", _OTHER_CHAT)
        if step.content is None and "delete" not in adapter.capabilities:
            raise EnvelopeError("cannot_delete", f"{adapter.type} cannot delete what is posted")

    async def _edit(self, adapter: Any, envelope: int, change: Change, step: Step) -> None:
        assert step.content is not None
        content, key = step.content, f"{self._store.epoch}-e{envelope}.{step.chunk}"
        await self._calls.call_paced(
            change.lane,
            lambda: adapter.edit(change.place, step.ids[0], content, key),
            f"An edit of e{envelope} in {change.place}",
            CALL_SECONDS,
        )

    async def _delete(self, adapter: Any, change: Change, step: Step) -> None:
        """Delete all posts of a chunk; raise EnvelopeError if one of them stays."""
        refusal: EnvelopeError | None = None
        for platform_id in step.ids:
            try:
                await self._calls.call(
                    change.lane,
                    lambda one=platform_id: adapter.delete(change.place, one),  # type: ignore[misc]
                    f"A deletion in {change.place}",
                    CALL_SECONDS,
                )
            except EnvelopeError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal

    async def _post(self, adapter: Any, envelope: int, change: Change, step: Step) -> None:
        """Post a chunk in addition, behind the others."""
        assert step.content is not None
        facts, content = self._facts(envelope, change), step.content
        letter = self._letter(change, facts)
        given = await self._calls.call_paced(
            change.lane,
            lambda: adapter.post(letter, step.chunk, content),
            f"A post of {letter.id} to {letter.place}",
            self._settings.post_seconds,
        )
        crashpoint(CHANGE_MADE)
        posted = letters.posted(given)
        await self._store.timed_write_until_done(
            lambda tx, now: _note_post(tx, change, facts, step, posted, now)
        )
        crashpoint(CHANGE_NOTED)

    # --- letters -------------------------------------------------------------------------

    def _facts(self, envelope: int, change: Change) -> EnvelopeRow:
        return self._store.read(lambda c: lanes.to_post(c, envelope, change.lane))

    def _letter(self, change: Change, facts: EnvelopeRow) -> Letter:
        files = letters.attachments(facts)
        known = self._store.read(lambda c: posted_files.known(c, change.lane.binding, files)) if files else []
        return letters.of_envelope(facts, self._store.epoch, self._home.media, (), known)


def _note_post(tx: Tx, change: Change, facts: EnvelopeRow, step: Step, posted: Posted, now: int) -> None:
    """Record a chunk that was posted in addition, as delivery does."""
    post_changes.added(tx, int(facts["id"]), step, posted.ids, now)
    if posted.files:
        posted_files.note(tx, change.lane.binding, letters.attachments(facts), posted.files, now)
    if posted.notes:
        notices.tell_sender_of_rest(tx, facts, posted.notes, now)
    live_posts.overtake(tx, change.lane)
