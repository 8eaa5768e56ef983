"""Notes in chats: what was written there waits for a run that is not ready yet.

Such a note is a live post of the run that is waited for (hiboss/store/live_posts.py): it is deleted when that
run has ended, also by the next daemon. If another run comes first then, there is a new note.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ..core import bounded_calls, clock
from ..core.contracts.adapter import Letter
from ..core.envelope import Kind
from ..core.errors import HibossError
from ..core.settings import Settings
from ..store import turn_origins
from ..store.live_posts import Key, Target
from ..store.store import Store
from ..store.turn_origins import Behind
from .live_endings import ChatWaits, LivePost
from .live_posts import LivePosts

log = logging.getLogger(__name__)
SECONDS = 3.0  # that somebody waits before there is a note: most turns begin sooner
AGAIN_SECONDS = 0.5  # until the next look, if somebody has not waited for so long yet
STOP_SECONDS = 5.0  # for what is being posted when the daemon stops
CHATS = 20  # with notes about one run, at most


class QueueNotes:
    """Posts notes for the agents that it is told to look at. Use it on the event loop's thread only."""

    def __init__(self, store: Store, settings: Settings, live: LivePosts) -> None:
        self._store = store
        self._settings = settings
        self._live = live
        self._timers: dict[int, asyncio.TimerHandle] = {}  # by agent: when it is looked at
        self._posting: dict[asyncio.Task[None], Key] = {}
        self._noted: set[Key] = set()  # also those that could not be posted: once is enough
        self._waited_for: set[int] = set()  # agents that people waited for when they were looked at
        self._closed = False

    def look(self, agents: Iterable[int], seconds: float = SECONDS) -> None:
        """Look in a moment whether people wait for these agents. Never waits."""
        loop = asyncio.get_running_loop()
        for agent in agents:
            if agent not in self._timers and not self._closed:
                self._timers[agent] = loop.call_later(seconds, self._look, agent)

    def run_begun(self, agent: int) -> None:
        """Look again: who waits now waits for this run."""
        self.look({agent, *self._waited_for})

    def run_ended(self, run: int) -> None:
        """Forget the notes about a run: they are deleted, as all its live posts are."""
        self._noted = {key for key in self._noted if key.run != run}

    async def close(self) -> None:
        """Let the notes that are being posted be stored: one whose id nobody knows would stay for ever."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        begun = [task for task, key in self._posting.items() if key in self._live.endings.posts]
        if begun:
            await asyncio.wait(begun, timeout=STOP_SECONDS)
        await bounded_calls.end(list(self._posting), "A note about a queue")

    def _look(self, agent: int) -> None:
        self._timers.pop(agent, None)
        now = clock.now()
        before = now - int(SECONDS * 1000) + 200  # the timer may ring a little early
        try:
            behind = self._store.read(lambda c: turn_origins.behind(c, agent, self._settings.parallel_runs))
            if behind is None or self._closed:
                self._waited_for.discard(agent)
                return
            found = self._store.read(lambda c: turn_origins.waiting(c, agent, before))
            if len(found) < len(self._store.read(lambda c: turn_origins.waiting(c, agent, now))):
                self.look([agent], AGAIN_SECONDS)  # they came while the timer ran
        except HibossError as error:
            log.warning("No note about a queue: %s", error, extra={"action": "live post"})
            return
        (self._waited_for.add if found else self._waited_for.discard)(agent)
        for origin in found:
            key = Key(behind.run, origin.target.lane, note=True)
            if key in self._noted or not self._live.signs.may_go(origin.target):
                continue
            if sum(one.run == behind.run for one in self._noted) >= CHATS:
                break
            self._noted.add(key)
            task = asyncio.get_running_loop().create_task(self._post(behind, origin.target))
            self._posting[task] = key
            task.add_done_callback(lambda task: self._posting.pop(task, None))

    async def _post(self, behind: Behind, target: Target) -> None:
        adapter = self._live.signs.adapter(target, "delete")
        if adapter is None:
            return  # a note that cannot be taken away would soon be wrong
        letter = _letter(behind, target, self._store.epoch)
        live = LivePost(behind.run, target, note=True)
        try:
            await self._live.post(adapter, letter, adapter.chunks(letter)[0], live)
        except BaseException as error:  # whatever an adapter raises: it is only a note
            if bounded_calls.is_our_cancellation(error):
                raise
            if live.platform_id is None:
                await self._live.endings.forget(live)
            if not isinstance(error, ChatWaits):
                log.warning("No note about a queue: %r", error, extra={"action": "live post"})


def _letter(behind: Behind, target: Target, epoch: str) -> Letter:
    why = f"{behind.agent} reads this when that is done" if behind.own else "all places for runs are taken"
    return Letter(
        id=f"r{behind.run}",
        key=f"{epoch}-r{behind.run}-{target.lane.binding}-{target.lane.address}-note",
        place=target.place,
        text=f"⏳ Queued behind r{behind.run}: {why}.",
        type=Kind.TEXT.word,
        subject=None,
        sender="agent:system",
        sender_name=None,
        files=(),
        reply_to=target.reply_to,
    )
