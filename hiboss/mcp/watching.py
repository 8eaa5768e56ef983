"""Watch a chat for a client: whether something is new that it should hear of, and the state of the agent.

What is new is read from the store, from the last place on; facts of the daemon only say when to look. So
nothing is missed when facts are, and what happened while the client was away is found when it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ..core.errors import NotFound
from .caller import Caller
from .daemon_connection import Fact, Refused
from .resources import HEAD, INBOX, MESSAGE, STATUS

TOPICS = ["envelope.arrived", "message.edited", "message.deleted", "message.restored", "presence"]
RIDING = 10  # entries that go along with a notice
RIDING_BYTES = 16_384
DELETED_SECONDS = 5.0  # between two looks whether somebody has the name of a deleted agent again

Entries = list[dict[str, Any]]
Status = dict[str, Any]  # as chat.status answers
Tell = Callable[[str, Entries], Awaitable[None]]  # a resource that has changed, and what is new in it


class Watch:
    """Tells a client, until it is cancelled or the token of the client ends."""

    def __init__(self, caller: Caller, tell: Tell) -> None:
        self._caller = caller
        self._tell = tell
        self._followed: set[str] = set()
        self._unannounced: set[str] = set()  # followed since a moment
        self._look = asyncio.Event()
        self._ended = False
        self._place = "0"
        self._state: Any = None
        self._hears: tuple[str, ...] = ()  # whose entries
        self.is_set_up = asyncio.Event()  # from then on no change is missed; also set when it has ended

    def follow(self, uri: str, status: Status) -> None:
        """Tell of a resource from now on. What was not acknowledged by then is announced once."""
        if uri == STATUS and uri not in self._followed:
            self._state = _state(status)
        self._followed.add(uri)
        self._unannounced.add(uri)
        self._look.set()

    def leave(self, uri: str) -> None:
        self._followed.discard(uri)

    async def run(self, begin: asyncio.Event | None = None) -> None:
        """Tell, from `begin` on. It returns when the daemon ends it."""
        try:
            while not self._ended:
                await self._watch_one_agent(begin)
                self._unannounced |= (
                    self._followed
                )  # another agent has the name: its chat is new to the client
        finally:
            self.is_set_up.set()

    async def _watch_one_agent(self, begin: asyncio.Event | None) -> None:
        """Tell of the agent that has the name now. Return when another one has it, or the daemon ends it."""
        async with self._caller.daemon.own_connection(self._caller.token) as connection:
            status = await self._caller.chat("status")
            address = f"agent:{status['agent']}"
            await connection.follow({"topics": TOPICS, "addresses": [address]}, self._told)
            status = await self._caller.chat("status")  # again: what came in between is in it
            self._place = status["last_id"]
            self._hears = ("user",) if status["author"] == "assistant" else ("user", "assistant")
            self.is_set_up.set()
            if begin is not None:
                await begin.wait()
            self._look.set()
            await self._tell_what_comes(status)
            connection.unfollow()

    def _told(self, fact: Fact) -> None:
        self._ended = self._ended or not fact
        self._look.set()

    async def _tell_what_comes(self, status: Status) -> None:
        """Tell what is new, while the agent is the one of this status."""
        since, is_deleted = status["registered_at"], status["state"] == "deleted"
        while True:
            await self._wait_for_facts(DELETED_SECONDS if is_deleted else None)
            if self._ended:
                return
            if self._hears != ("user",):  # of an agent the token ends with it
                status = await self._caller.chat("status")
                is_deleted = status["state"] == "deleted"
                if status["registered_at"] != since:
                    return
            try:
                if self._unannounced:
                    await self._announce_missed()
                await self._tell_new()
            except Refused as error:
                if error.stable_code != NotFound.code:
                    raise
                return  # another agent has the name since a moment, and no such entry in its chat

    async def _wait_for_facts(self, seconds: float | None) -> None:
        """Wait until there may be something new. Facts are of one agent, not of who has its name later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._look.wait()
        self._look.clear()

    async def _announce_missed(self) -> None:
        """Say once that there is something after what was acknowledged, if it is for this client."""
        new, self._unannounced = self._unannounced, set()
        place = (await self._caller.chat("status"))["acknowledged"]
        while _order(place) < _order(self._place):
            page = await self._caller.chat("read", after_id=place)
            known = [one for one in page["messages"] if _order(one["id"]) <= _order(self._place)]
            if heard := self._heard(known):
                await self._announce(heard, new)
                return
            place = page["last_id"]

    async def _tell_new(self) -> None:
        more = True
        while more:
            page = await self._caller.chat("read", after_id=self._place)
            self._place, more = page["last_id"], page["more"]
            if heard := self._heard(page["messages"]):
                await self._announce(heard, self._followed)
        if STATUS in self._followed:
            state = _state(await self._caller.chat("status"))
            if state != self._state:
                self._state = state
                await self._tell(STATUS, [])

    def _heard(self, entries: Entries) -> Entries:
        """Return what this client is told of: an agent hears the boss, people hear both; nobody itself."""
        posted = set(self._caller.posted)
        return [one for one in entries if one["author"] in self._hears and one["id"] not in posted]

    async def _announce(self, entries: Entries, to: set[str]) -> None:
        changed = {INBOX: _riding(entries), HEAD: []}
        for one in entries:  # who follows a single message hears of its edits
            changed[f"{MESSAGE}{one.get('edits', one['id'])}"] = []
        for uri, riding in changed.items():
            if uri in to:
                await self._tell(uri, riding)


def _riding(entries: Entries) -> Entries:
    """Return what goes along with a notice: a few entries, not large. The client may read them instead."""
    some = entries[-RIDING:]
    size = sum(len(one["content"].encode()) for one in some)
    return some if size <= RIDING_BYTES else []


def _order(number: str) -> tuple[int, ...]:
    """Return the id of an entry in a form that compares: "9" is before "9.0001", and that before "10"."""
    return tuple(int(part) for part in number.split("."))


def _state(status: Status) -> tuple[Any, ...]:
    return (status["state"], status["why"], status["ui"]["ready"])
