"""What becomes of a live post when its run has ended (docs/delivery.md).

- The answer is delivered to its place, and nothing was posted there after it: it becomes the answer.
- The answer is delivered there, but something was posted after it, or it cannot be edited: the answer is
  posted anew, and the live post is deleted.
- There is no answer for that place (silence, cancelled, failed, interrupted): it is deleted.

It never fails a lane. A wait that the platform names for a change of it holds its chat, as one for a post
does: the answer waits, and what was shown stays until then. A live post whose deletion fails is tried
again, and in the end left where it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ..channels.supervisor import Supervisor
from ..core import backoff, bounded_calls, clock
from ..core.contracts.adapter import Letter
from ..core.contracts.failures import ChatMoved, Failure, LaneError
from ..core.crashpoint import LIVE_BECAME, LIVE_DELETED, crashpoint
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.settings import Settings
from ..store import chat_pacing, lanes, live_posts
from ..store.envelope_rows import EnvelopeRow
from ..store.group_commit import Tx
from ..store.live_posts import Key, Target
from ..store.store import Store

log = logging.getLogger(__name__)
CALL_SECONDS = 10.0  # for a change of a live post: an answer may have to wait for it
UNBIND_SECONDS = 3.0  # for the live posts of a binding that ends
LOOK_SECONDS = 15.0  # between looks at a live post whose run has ended
REMOVALS = 20  # attempts to delete one
LAST_EDITS = 3  # attempts to make one the answer, if the platform names waits for it


class ChatWaits(Exception):
    """The platform named a wait, which is stored: nothing is tried in this chat before."""


class LivePost:
    """One live post in memory, beside its row."""

    def __init__(
        self, run: int, target: Target, platform_id: str | None = None, *, note: bool = False
    ) -> None:
        self.key = Key(run, target.lane, note)
        self.run = run
        self.target = target
        self.platform_id = platform_id
        self.shown: str | None = None  # its text; None: unknown
        self.changes = 0
        self.over = False  # it grows no more
        self.goes = False  # it is deleted, and does not become the answer
        self.removals = 0  # attempts to delete it
        self.last_edits = 0  # attempts to make it the answer
        self.at_once = False  # its account goes: it is deleted now or never
        self.lock = asyncio.Lock()  # one call to the platform at a time
        self.look = asyncio.Event()  # something happened that may decide what becomes of it
        self.settling: asyncio.Task[None] | None = None


class LiveEndings:
    """Knows all live posts, and turns each into the answer or deletes it."""

    def __init__(
        self, store: Store, settings: Settings, supervisor: Supervisor, nudge: Callable[[int], None]
    ) -> None:
        self._store = store
        self._settings = settings
        self._supervisor = supervisor
        self._nudge = nudge  # the scheduler: something must be woken at this time
        self.posts: dict[Key, LivePost] = {}  # one for each row
        self._closing = False

    async def start(self) -> None:
        """Read what an earlier daemon left; its runs have all ended. It is settled when its adapter runs."""
        unknown = await self._store.timed_write_until_done(live_posts.forget_lost)
        if unknown:
            text = (
                "%d live posts of the last daemon stay where they are: it is not known where, or not bound."
            )
            log.warning(text, unknown, extra={"action": "live post"})
        for row in self._store.read(live_posts.left):
            lane = Lane(row["address"], row["binding"])
            target = Target(lane, row["place"], row["contact"] or 0)
            live = LivePost(row["run"], target, row["platform_id"], note=bool(row["note"]))
            live.over = True
            self.posts[live.key] = live

    async def close(self) -> None:
        """Settle each live post once more. The next start settles the others."""
        self._closing = True
        for live in self.posts.values():
            live.look.set()
        tasks = [live.settling for live in self.posts.values() if live.settling is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        await bounded_calls.end(tasks, "A live post")

    # --- deleting --------------------------------------------------------------------

    def end(self, live: LivePost) -> asyncio.Task[None]:
        """Decide what becomes of a live post: its run has ended, or it must go."""
        live.over = True
        live.look.set()
        if live.settling is None or live.settling.done():
            live.settling = asyncio.get_running_loop().create_task(self._settle(live))
        return live.settling

    def remove(self, live: LivePost) -> asyncio.Task[None]:
        """Delete a live post, whatever becomes of its run."""
        live.goes = True
        return self.end(live)

    def look(self, binding: int | None) -> None:
        """Look again at the live posts of a binding: its adapter runs, or an envelope was settled there."""
        for live in self._of_binding(binding):
            if live.over:
                self.end(live)

    async def end_binding(self, binding: int) -> None:
        """Delete the live posts of a binding that ends, while its adapter still runs."""
        tasks = []
        for live in self._of_binding(binding):
            live.at_once = True
            tasks.append(self.remove(live))
        if tasks:
            await asyncio.wait(tasks, timeout=UNBIND_SECONDS)

    def _of_binding(self, binding: int | None) -> Iterator[LivePost]:
        return (live for live in [*self.posts.values()] if live.target.lane.binding == binding)

    async def _settle(self, live: LivePost) -> None:
        """Delete a live post that does not become an answer; look again until that is done."""
        while True:
            live.look.clear()
            async with live.lock:
                if self.posts.get(live.key) is not live:
                    return  # it has become the answer
                live.goes = live.goes or not self._awaits_answer(live)
                waits = 0.0 if live.at_once else self._told_to_wait(live.target.lane)
                if live.goes and not waits and await self._delete(live):
                    return
            if self._closing:
                return
            await happens(live.look, min(waits or LOOK_SECONDS, LOOK_SECONDS))

    def _awaits_answer(self, live: LivePost) -> bool:
        if live.key.note:
            return False
        try:
            return self._store.read(lambda c: live_posts.awaits_answer(c, live.run, live.target.lane))
        except HibossError:
            return True

    async def _delete(self, live: LivePost) -> bool:
        """Delete a live post on its platform; return whether there is no more to do about it."""
        target, live.removals = live.target, live.removals + 1
        try:
            if live.platform_id is not None:
                adapter = self._supervisor.adapter(target.lane.binding)
                what = f"The removal of a live post in {target.place}"
                await self.change(target, adapter.delete(target.place, live.platform_id), what)
                crashpoint(LIVE_DELETED)
        except BaseException as error:  # whatever an adapter raises: nobody waits for it
            if bounded_calls.is_our_cancellation(error):
                raise
            passes = isinstance(error, (LaneError, ChatWaits, bounded_calls.TookTooLong))
            passes = passes and not isinstance(error, ChatMoved)  # nothing changes in what it was any more
            if passes and live.removals < REMOVALS and target.lane.binding in self._supervisor.slots:
                return False
            text = "The live post %s in %s stays there: %r"
            log.warning(text, live.platform_id, target.place, error, extra={"action": "live post"})
        await self.forget(live)
        return True

    async def forget(self, live: LivePost) -> None:
        """Delete the row of a live post that is not there (any more)."""
        await self._store.timed_write_until_done(lambda tx, now: live_posts.deleted(tx, live.key, now))
        if self.posts.get(live.key) is live:
            del self.posts[live.key]

    # --- waits that the platform names ----------------------------------------------------

    async def change(self, target: Target, call: Coroutine[Any, Any, Any], what: str) -> Any:
        """Post, edit or delete a live post. Raise ChatWaits if the platform names a wait."""
        try:
            return await bounded_calls.call(call, what, CALL_SECONDS)
        except LaneError as error:
            seconds, named = backoff.next_wait(0.0, error.retry_after)
            if not named:
                raise
            failure = Failure.reported(error.kind, error.text)

            def write(tx: Tx, now: int) -> int:
                until = now + int(seconds * 1000)
                chat_pacing.hold(tx, target.lane, failure, until, now, itself=True)
                return until

            self._nudge(await self._store.timed_write_until_done(write))
            log.info("%s waits: %s", what, failure.text, extra={"action": "live post"})
            raise ChatWaits(failure.text) from error

    def _told_to_wait(self, lane: Lane) -> float:
        """Return for how many seconds nothing may be tried in a lane."""
        try:
            until = self._store.read(lambda c: lanes.told_until(c, lane))
        except HibossError:
            return LOOK_SECONDS
        return max(0.0, (until - clock.now()) / 1000)

    # --- for delivery ----------------------------------------------------------------

    def is_in(self, lane: Lane) -> bool:
        """Tell whether there is a live post in a place: whatever is posted there overtakes it."""
        return any(live.target.lane.address == lane.address for live in self.posts.values())

    async def become(
        self, adapter: Any, lane: Lane, claimed: EnvelopeRow, letter: Letter, chunk: str
    ) -> str | None:
        """Make the live post of a run its answer; return its platform id. None: the answer must be posted.

        Raise ChatWaits if neither may be tried now.
        """
        live = self.posts.get(Key(claimed["run"], lane))
        if live is None or self._row(live)["answer"] != claimed["message"]:
            return None  # nothing grew here, or it is something else that the run sent
        live.over = True
        async with live.lock:  # an edit on its way must not come after the answer
            if self._told_to_wait(lane):
                raise ChatWaits  # while this one was claimed, a change was refused
            if self.posts.get(live.key) is not live or live.platform_id is None:
                return None
            stays = (
                not live.goes and not letter.files and not letter.buttons and not self._row(live)["overtaken"]
            )
            if stays and await self._edit(adapter, live, letter, chunk):
                crashpoint(LIVE_BECAME)
                del self.posts[live.key]  # its row goes with the record of this post
                return live.platform_id
            live.goes = True  # behind the post of the answer: two calls at once could not heed a named wait
        return None

    def _row(self, live: LivePost) -> Any:
        row = self._store.read(lambda c: live_posts.get(c, live.key))
        return row or {"answer": None, "overtaken": 1}  # its row is not written yet, or is gone

    async def _edit(self, adapter: Any, live: LivePost, letter: Letter, chunk: str) -> bool:
        if live.shown == chunk:
            return True
        assert live.platform_id is not None
        try:
            live.last_edits += 1
            edit = adapter.edit(letter.place, live.platform_id, chunk, letter.chunk_key(0))
            await self.change(live.target, edit, f"An edit for {letter.id}")
        except ChatWaits:
            live.goes = live.last_edits >= LAST_EDITS  # then it is posted anew, after the wait
            raise
        except BaseException as error:  # whatever an adapter raises: the answer is posted then
            if bounded_calls.is_our_cancellation(error):
                raise
            text = "%s is posted anew: its live post could not be edited: %r"
            log.warning(text, letter.id, error, extra={"action": "live post"})
            return False
        return True


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most so long; return whether it happened."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
