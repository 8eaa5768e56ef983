"""Live posts: in its channel, an answer grows while the run works.

How it grows is the adapter's choice for each place (`Adapter.live`): by edits of a post, or by drafts, which
vanish by themselves, with some time between two changes in one chat. The row of a live post is written
before it is posted, and the platform's id after that (hiboss/store/live_posts.py). After a wait that the
platform names it grows no more in this turn, and becomes the answer later; after another error it is deleted,
and the answer is posted when it comes. What becomes of it when the run has ended is in `live_endings`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..agents.run_execution import Execution
from ..channels.supervisor import Supervisor
from ..core import bounded_calls
from ..core.contracts.adapter import Letter, Live
from ..core.crashpoint import LIVE_BEGUN, LIVE_NOTED, LIVE_POSTED, crashpoint
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.settings import Settings
from ..store import live_posts, reactions, turn_origins
from ..store.live_posts import Key, Target
from ..store.run_answers import SILENT
from ..store.store import Store
from ..store.turn_origins import Origin
from . import letters
from .growing_answer import GrowingAnswer
from .live_drafts import LiveDrafts
from .live_endings import ChatWaits, LiveEndings, LivePost, happens
from .pace_windows import Rank
from .pacing import Pacing
from .signs import TYPING_SECONDS, Signs

log = logging.getLogger(__name__)
STOP_SECONDS = 5.0  # for what is being posted when the daemon stops
SEEN = "👀"  # on what a run has begun to work on
EDIT, DRAFT, OFF = Live("edit"), Live("draft"), Live("off")


class LivePosts:
    """Shows in their channels what runs write. Use it on the event loop's thread only."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        supervisor: Supervisor,
        pacing: Pacing,
        nudge: Callable[[int], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._pacing = pacing
        self.endings = LiveEndings(store, settings, supervisor, nudge)
        self.signs = Signs(store, supervisor, pacing)
        self._over: dict[int, asyncio.Event] = {}  # by run: set when it has ended
        self._given_up: set[Key] = set()  # of runs that go on: nothing more is shown there
        self._drafts = LiveDrafts(self.signs)
        self._next_change: dict[int, float] = {}  # by chat: when a live post there may change again
        self._shows: set[asyncio.Task[None]] = set()
        self._closed = False

    def follow(self, execution: Execution) -> None:
        """Show what a run writes, from its beginning until `run_ended`, and that it works."""
        turn = execution.turn
        try:
            found = self._store.read(lambda c: live_posts.targets(c, turn))
            origins = self._begun_with(turn.envelopes)
        except HibossError as error:
            log.warning("r%d is not shown live: %s", turn.run, error, extra={"action": "live post"})
            return
        if self._closed:
            return
        answered = {target.lane for target in found}
        also = {one.target.lane: one.target for one in origins if one.target.lane not in answered}
        over = self._over[turn.run] = asyncio.Event()
        for target in [*found, *also.values()]:
            grows = target.lane in answered
            task = asyncio.get_running_loop().create_task(self._show(execution, target, over, grows=grows))
            self._shows.add(task)
            task.add_done_callback(self._shows.discard)

    def taken(self, envelopes: Sequence[int]) -> None:
        """Show where they were written that a run has taken these envelopes into its turn."""
        try:
            self._begun_with(envelopes)
        except HibossError as error:
            log.warning("Taken, and not shown: %s", error, extra={"action": "live post"})

    def _begun_with(self, envelopes: Sequence[int]) -> list[Origin]:
        """Mark what a run has begun to work on, and take away the notes that it waits; return where it is."""
        origins = self._store.read(lambda c: turn_origins.origins(c, envelopes))
        for one in [one for one in origins if self._has_no_reaction(one)]:
            self.signs.show(one.target, "react", one.platform_id, SEEN)
        lanes = {one.target.lane for one in origins}
        for note in [live for key, live in self.endings.posts.items() if key.note and key.lane in lanes]:
            self.endings.remove(note)  # it waits no more, though the run that it waited for may go on
        return origins

    def _has_no_reaction(self, origin: Origin) -> bool:
        """Tell whether no agent of the account has set a reaction there: it would be replaced."""
        message, binding = origin.message or 0, origin.target.lane.binding or 0
        return self._store.read(lambda c: reactions.of_account(c, message, binding)) is None

    def run_ended(self, run: int) -> None:
        """Turn the live posts of a run, whose outcome is stored, into its answer, or delete them."""
        over = self._over.pop(run, None)
        if over is not None:
            over.set()
        self._given_up = {key for key in self._given_up if key.run in self._over}
        now = asyncio.get_running_loop().time()
        self._next_change = {chat: at for chat, at in self._next_change.items() if at > now}
        self._drafts.forget(run)
        for live in [one for one in self.endings.posts.values() if one.run == run]:
            self.endings.end(live)

    async def close(self) -> None:
        self._closed = True
        for over in self._over.values():
            over.set()
        if self._shows:
            await asyncio.wait(self._shows, timeout=STOP_SECONDS)
        await bounded_calls.end(list(self._shows), "A live post")
        await self.endings.close()
        await self.signs.close()

    async def end_drafts(self, run: int | None, lane: Lane, message: int) -> None:
        """Show no more drafts in a place if this is the answer of the run: one that came later would stay."""
        key = Key(run or 0, lane)
        if self._drafts.has(key) and self._store.read(lambda c: live_posts.is_answer(c, key.run, message)):
            self._given_up.add(key)
            await self._drafts.sent(key)

    async def _show(self, execution: Execution, target: Target, over: asyncio.Event, *, grows: bool) -> None:
        """Show what a run writes in one place, until it has ended; if it does not grow, that it works."""
        loop = asyncio.get_running_loop()
        grown, shown, position, typing_at = GrowingAnswer(), "", 0, 0.0
        while not over.is_set() and execution.ending is None:  # who stopped it wants to see no more of it
            typing = loop.time() >= typing_at and not execution.paused
            if typing and self.signs.show(target, "typing") is not None:
                typing_at = loop.time() + TYPING_SECONDS
            form = self._form(target) if grows else OFF
            if await happens(over, min(form.seconds or TYPING_SECONDS, TYPING_SECONDS)):
                return
            came_before = shown
            parts, position = execution.live_output.after(position)
            grown.add(parts)
            # What it does is shown alone only in drafts: for a post of it people would be notified.
            shown = grown.shown(details=target.is_his, alone=form.how == "draft")
            if form.how != "off" and came_before:  # not for an answer that comes at once
                silent = SILENT.startswith(grown.text.strip() or "-")  # it may become the word for silence
                await self._grow(execution, target, form, "" if silent else shown, over)

    def _form(self, target: Target) -> Live:
        """Return how an answer grows in a place now, with the time between two changes."""
        if self._settings.live_posts != "on":
            return OFF
        if (adapter := self.signs.adapter(target)) is None:  # it may start soon: the daemon has just done so
            return OFF._replace(seconds=self._settings.live_seconds)
        can: frozenset[str] = getattr(adapter, "capabilities", frozenset())
        form = EDIT if {"edit", "delete"} <= can else DRAFT if "draft" in can else OFF
        if (asked := getattr(adapter, "live", None)) is not None:
            form = asked(target.place)
        return form._replace(seconds=form.seconds or self._settings.live_seconds)

    async def _grow(
        self, execution: Execution, target: Target, form: Live, text: str, over: asyncio.Event
    ) -> None:
        """Let a live post, or a draft, show this text."""
        turn = execution.turn
        key = Key(turn.run, target.lane)
        if not text or key in self._given_up:
            return
        letter = letters.of_growing_answer(turn, target, text, self._store.epoch)
        adapter = self.signs.adapter(target)
        try:
            if adapter is not None and form.how == "edit":
                await self._change(adapter, execution, target, form, letter, over)
            elif adapter is not None:
                chunk = adapter.chunks(letter)[0]
                due = self._drafts.is_due(key, chunk)
                due = due and await self._may_change(execution, target, form, over)
                if due and key not in self._given_up:
                    self._drafts.show(key, target, chunk)
        except BaseException as error:  # whatever an adapter raises: the answer is posted when it comes
            if bounded_calls.is_our_cancellation(error):
                raise
            live = self.endings.posts.get(key)
            if live is not None and live.platform_id is None:
                await self.endings.forget(live)  # it was not posted, as far as anybody knows
            log.warning("The live post of %s ends: %r", letter.id, error, extra={"action": "live post"})
            if isinstance(error, ChatWaits):
                self._given_up.add(key)  # what is shown stays: it becomes the answer after the wait
            else:
                self._give_up(key)

    async def _change(
        self,
        adapter: Any,
        execution: Execution,
        target: Target,
        form: Live,
        letter: Letter,
        over: asyncio.Event,
    ) -> None:
        """Post a live post, or edit it, when its chat may get the next change."""
        turn = execution.turn
        chunk = adapter.chunks(letter)[0]
        live = self.endings.posts.get(Key(turn.run, target.lane))
        if live is not None and (live.over or live.shown == chunk):
            return
        if not await self._may_change(execution, target, form, over):
            return
        if live is None:
            await self.post(adapter, letter, chunk, LivePost(turn.run, target))
            return
        async with live.lock:
            if live.over or live.platform_id is None:
                return
            permit = self._pacing.try_permit(target.lane, Rank.LIVE)
            if permit is None:
                return  # what comes next shows this too
            live.shown, live.changes = None, live.changes + 1
            edit = adapter.edit(target.place, live.platform_id, chunk, letter.chunk_key(live.changes))
            with permit:
                await self.endings.change(target, edit, f"A change of a live post in {target.place}")
            live.shown = chunk

    async def _may_change(
        self, execution: Execution, target: Target, form: Live, over: asyncio.Event
    ) -> bool:
        """Wait until the chat may get the next change; return False if nothing may be shown there now."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_change.get(target.chat, 0.0))
        self._next_change[target.chat] = at + (form.seconds or self._settings.live_seconds)
        if await happens(over, at - now) or execution.ending is not None:
            return False
        turn = execution.turn
        if target.lane not in [one.lane for one in self._store.read(lambda c: live_posts.targets(c, turn))]:
            self._give_up(Key(turn.run, target.lane))  # the agent may not post there any more
            return False
        return self.signs.may_go(target)

    def _give_up(self, key: Key) -> None:
        """Show nothing more of a run in a place, and delete what was shown: its answer will be posted."""
        self._given_up.add(key)
        if (live := self.endings.posts.get(key)) is not None:
            self.endings.remove(live)

    async def post(self, adapter: Any, letter: Letter, chunk: str, live: LivePost) -> None:
        """Post a live post, and store it before and after; not now if the platform allows no more."""
        lane = live.target.lane
        if live.key.note:  # it does not come again, so it waits
            permit = await self._pacing.permit(lane, Rank.CHANGE)
        else:
            permit = self._pacing.try_permit(lane, Rank.LIVE)
        if permit is None:
            return
        with permit:
            await self._post(adapter, letter, chunk, live)

    async def _post(self, adapter: Any, letter: Letter, chunk: str, live: LivePost) -> None:
        async with live.lock:
            self.endings.posts[live.key] = live  # before its row: what is posted from now on overtakes it
            begun = await self._store.timed_write_until_done(
                lambda tx, now: live_posts.begin(tx, live.key, now)
            )
            if not begun:
                del self.endings.posts[live.key]
                return
            crashpoint(LIVE_BEGUN)
            what = f"A live post of {letter.id} to {letter.place}"
            given = await self.endings.change(live.target, adapter.post(letter, 0, chunk), what)
            crashpoint(LIVE_POSTED)
            platform_id = letters.posted(given).ids[0]
            await self._store.write_until_done(lambda tx: live_posts.note_id(tx, live.key, platform_id))
            live.platform_id, live.shown = platform_id, chunk
            crashpoint(LIVE_NOTED)
