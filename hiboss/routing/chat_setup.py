"""What hiboss sets up in chats of the boss: the menu of commands, and topics of agents.

It looks when an adapter has started, when a chat becomes the boss's and when an agent is bound. A menu is
a sign: lost, it is shown at the next start. A topic is made once; what fails for now is tried again.
"""

from __future__ import annotations

import asyncio
import logging

from ..channels.supervisor import Supervisor
from ..core import bounded_calls
from ..core.backoff import next_wait
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
BUTTON_TRIES = 10  # for buttons to go; then they say that nothing is asked any more when one is pressed


class ChatSetup:
    """Sets up chats of the boss, one binding at a time. Use it on the event loop's thread only."""

    def __init__(self, store: Store, supervisor: Supervisor, signs: Signs) -> None:
        self._store = store
        self._supervisor = supervisor
        self._signs = signs
        self._working: dict[int, asyncio.Task[None]] = {}  # by binding
        self._again: set[int] = set()  # bindings to look at once more
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._removing: dict[tuple[Target, str], asyncio.Task[None]] = {}  # by post
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
        """Take the buttons away from the posts of a message; what cannot go now is tried again."""
        try:
            found = self._store.read(lambda c: buttons.posts(c, message))
        except HibossError as error:  # then a press says that it is settled, and takes them away
            log.error("Buttons of a message stay: %s", error, extra={"action": "chat"})
            return
        for post in found:
            self._remove((Target(post.lane, post.place, post.contact), post.platform_id))

    def _remove(self, post: tuple[Target, str]) -> None:
        if post in self._removing or self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._take_buttons(*post))
        self._removing[post] = task
        task.add_done_callback(lambda _: self._removing.pop(post, None))

    async def _take_buttons(self, target: Target, platform_id: str) -> None:
        began_at = asyncio.get_running_loop().time()
        for _ in range(BUTTON_TRIES):
            task = self._signs.show(target, "buttons", platform_id)
            if task is None and not self._may_have_buttons(target):
                return
            error = None if task is None else await task
            if task is not None and not isinstance(error, LaneError | bounded_calls.TookTooLong):
                return  # they are gone, or will never go
            failing = asyncio.get_running_loop().time() - began_at
            seconds, _named = next_wait(failing, getattr(error, "retry_after", None))
            await asyncio.sleep(seconds)

    def _may_have_buttons(self, target: Target) -> bool:
        """Tell whether the adapter of a post has buttons, or does not run now."""
        try:
            adapter = self._supervisor.adapter(target.lane.binding)
        except LaneError:
            return True
        return "buttons" in getattr(adapter, "capabilities", ())

    async def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        working = [*self._working.values(), *self._removing.values()]
        await bounded_calls.end(working, "The setting up of a chat")

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
