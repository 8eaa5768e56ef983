"""What hiboss sets up in chats of the boss: the menu of commands, and topics of agents.

It looks when an adapter has started, when a chat becomes the boss's and when an agent is bound. A menu is
a sign: lost, it is shown at the next start. A topic is made once; what fails for now is tried again.
"""

from __future__ import annotations

import asyncio
import logging

from ..channels.supervisor import Supervisor
from ..core import bounded_calls
from ..core.contracts.failures import LaneError, Refused
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..store import buttons, own_topics
from ..store.connection import Row
from ..store.live_posts import Target
from ..store.store import Store
from .commands import MENU
from .signs import Signs

log = logging.getLogger(__name__)
TOPIC_SECONDS = 10.0
RETRY_SECONDS = 60.0


class ChatSetup:
    """Sets up chats of the boss, one binding at a time. Use it on the event loop's thread only."""

    def __init__(self, store: Store, supervisor: Supervisor, signs: Signs) -> None:
        self._store = store
        self._supervisor = supervisor
        self._signs = signs
        self._working: dict[int, asyncio.Task[None]] = {}  # by binding
        self._again: set[int] = set()  # bindings to look at once more
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._closed = False

    def look(self, binding: int) -> None:
        """Set up the chats of the boss that a binding posts to, as far as that is not done. Never waits."""
        if self._closed:
            return
        if binding in self._working:
            self._again.add(binding)
            return
        task = asyncio.get_running_loop().create_task(self._set_up(binding))
        self._working[binding] = task
        task.add_done_callback(lambda task: self._ended(binding))

    def _ended(self, binding: int) -> None:
        self._working.pop(binding, None)
        if binding in self._again:
            self._again.discard(binding)
            self.look(binding)

    def remove_buttons(self, message: int) -> None:
        """Take the buttons away from the posts of a message; what cannot go now stays there."""
        for post in self._store.read(lambda c: buttons.posts(c, message)):
            target = Target(post.lane, post.place, post.contact)
            self._signs.show(target, "buttons", post.platform_id)

    async def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        await bounded_calls.end(list(self._working.values()), "The setting up of a chat")

    async def _set_up(self, binding: int) -> None:
        try:
            for chat in self._store.read(lambda c: own_topics.chats_of_boss(c, binding)):
                target = Target(Lane(chat["address"], binding), chat["platform_id"], chat["id"])
                self._signs.show(target, "menu", MENU)
            for wanted in self._store.read(lambda c: own_topics.missing(c, binding)):
                await self._make_topic(binding, wanted)
        except HibossError as error:  # the store cannot be used now
            log.error("Chats of b%d are set up later: %s", binding, error, extra={"action": "chat"})
            self._look_later(binding)

    async def _make_topic(self, binding: int, wanted: Row) -> None:
        """Make the topic of an agent. A crash right after it leaves one that nobody uses."""
        try:
            adapter = self._supervisor.adapter(binding)
            if "topics" not in getattr(adapter, "capabilities", ()):
                raise Refused(f"{wanted['adapter']} has no topics")
            making = adapter.create_topic(wanted["chat"], wanted["title"])
            topic = await bounded_calls.call(making, "The making of a topic", TOPIC_SECONDS)
        except Refused as refusal:
            why = refusal.why
            await self._store.timed_write_until_done(
                lambda tx, now: own_topics.give_up(tx, binding, wanted, why, now)
            )
            return
        except BaseException as error:  # whatever an adapter raises: it is tried again
            if bounded_calls.is_our_cancellation(error):
                raise
            if not isinstance(error, LaneError):
                log.warning("A topic was not made: %r", error, extra={"action": "chat"})
            self._look_later(binding)
            return
        await self._store.timed_write_until_done(
            lambda tx, now: own_topics.add(tx, binding, wanted, str(topic), now)
        )

    def _look_later(self, binding: int) -> None:
        if timer := self._timers.pop(binding, None):
            timer.cancel()
        self._timers[binding] = asyncio.get_running_loop().call_later(RETRY_SECONDS, self.look, binding)
