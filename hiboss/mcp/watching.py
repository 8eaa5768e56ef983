"""Watch a chat for a client: whether something is new that it should hear of, and the state of the agent.

What is new is read from the store, from the last place on; facts of the daemon only say when to look. So
nothing is missed when facts are, and what happened while the client was away is found when it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..core.errors import HibossError
from .caller import Caller
from .daemon_connection import Fact
from .resources import HEAD, INBOX, MESSAGE, STATUS

TOPICS = ["envelope.arrived", "message.edited", "message.deleted", "message.restored", "presence"]
RIDING = 10  # entries that go along with a notice
RIDING_BYTES = 16_384

Entries = list[dict[str, Any]]
Tell = Callable[[str, Entries], Awaitable[None]]  # a resource that has changed, and what is new in it


class Watch:
    """Tells a client, until it is cancelled or the token of the client ends."""

    def __init__(self, caller: Caller, tell: Tell, wanted: Callable[[str], bool]) -> None:
        self._caller = caller
        self._tell = tell
        self._wanted = wanted  # whether the client follows a resource now
        self._look = asyncio.Event()
        self._ended = False
        self._place = "0"
        self._state: Any = None
        self._hears: tuple[str, ...] = ()  # whose entries

    async def run(self) -> None:
        """Announce what the client has not acknowledged, then follow. It returns when the daemon ends it."""
        async with self._caller.daemon.own_connection(self._caller.token) as connection:
            status = await self._caller.chat("status")
            address = f"agent:{status['agent']}"
            await connection.follow({"topics": TOPICS, "addresses": [address]}, self._told)
            status = await self._caller.chat("status")  # again: what came in between is in it
            self._state = _state(status)
            self._hears = ("user",) if status["author"] == "assistant" else ("user", "assistant")
            await self._announce_missed(status)
            while not self._ended:
                await self._look.wait()
                self._look.clear()
                if not self._ended:
                    await self._tell_new()

    def _told(self, fact: Fact) -> None:
        self._ended = self._ended or not fact
        self._look.set()

    async def _announce_missed(self, status: dict[str, Any]) -> None:
        """Say once that there is something after what was acknowledged, if it is for this client."""
        place, self._place = status["acknowledged"], status["last_id"]
        while True:
            page = await self._caller.chat("read", after_id=place)
            if heard := self._heard(page["messages"]):
                await self._announce(heard)
                return
            place = page["last_id"]
            if not page["more"]:
                return

    async def _tell_new(self) -> None:
        try:
            more = True
            while more:
                page = await self._caller.chat("read", after_id=self._place)
                self._place, more = page["last_id"], page["more"]
                if heard := self._heard(page["messages"]):
                    await self._announce(heard)
            if self._wanted(STATUS):
                status = await self._caller.chat("status")
                if (state := _state(status)) != self._state:
                    self._state = state
                    await self._tell(STATUS, [])
        except HibossError:
            self._ended = True  # the token has ended, or the daemon

    def _heard(self, entries: Entries) -> Entries:
        """Return what this client is told of: an agent hears the boss, people hear both; nobody itself."""
        posted = set(self._caller.posted)
        return [one for one in entries if one["author"] in self._hears and one["id"] not in posted]

    async def _announce(self, entries: Entries) -> None:
        await self._tell(INBOX, _riding(entries))
        await self._tell(HEAD, [])
        for one in entries:  # who follows a single message hears of its edits
            await self._tell(f"{MESSAGE}{one.get('edits', one['id'])}", [])


def _riding(entries: Entries) -> Entries:
    """Return what goes along with a notice: a few entries, not large. The client may read them instead."""
    some = entries[-RIDING:]
    size = sum(len(one["content"].encode()) for one in some)
    return some if size <= RIDING_BYTES else []


def _state(status: dict[str, Any]) -> tuple[Any, ...]:
    return (status["state"], status["why"], status["ui"]["ready"])
