"""Adapters with one fault each; a daemon loads them with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import os
from typing import ClassVar

from hiboss.core.contracts.adapter import Account, Letter, Receive
from hiboss.testing.scripted_adapter import ScriptedAdapter

SECRET = "hba_abcdefghijklmnopqrstuvwxyz0123456789"


class Noted(ScriptedAdapter):
    """Without a fault: it writes down its starts and stops."""

    type: ClassVar[str] = "noted"

    async def start(self) -> None:
        self.note("start")
        await super().start()

    async def stop(self) -> None:
        self.note("stop")
        await super().stop()

    def note(self, what: str) -> None:
        with open(os.path.join(self._root, "life.txt"), "a", encoding="utf-8") as file:
            file.write(what + "\n")


class Leaving(Noted):
    """Its `listen` returns."""

    type: ClassVar[str] = "leaving"

    async def listen(self, receive: Receive) -> None:
        return


class Talkative(Noted):
    """Its errors contain a secret."""

    type: ClassVar[str] = "talkative"

    async def start(self) -> None:
        await super().start()
        raise RuntimeError(f"GET https://example.org/{SECRET}/getMe: 404")


class Clinging(Noted):
    """Its `stop` raises."""

    type: ClassVar[str] = "clinging"

    async def stop(self) -> None:
        await super().stop()
        raise RuntimeError("I will not go")


class Unborn(Noted):
    """Its constructor raises."""

    type: ClassVar[str] = "unborn"

    def __init__(self, account: Account) -> None:
        raise ValueError("no such account")


class Endless(Noted):
    """Its `start` never returns."""

    type: ClassVar[str] = "endless"

    async def start(self) -> None:
        await super().start()
        await asyncio.Event().wait()


class Unspeakable(Noted):
    """Its error cannot be turned into a text."""

    type: ClassVar[str] = "unspeakable"

    async def start(self) -> None:
        await super().start()
        raise WithoutWords


class WithoutWords(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words for this")


async def _for_ever() -> None:
    """Wait, and ignore every cancellation."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


class DeafStart(Noted):
    """Its `start` ignores its cancellation."""

    type: ClassVar[str] = "deafstart"

    async def start(self) -> None:
        await super().start()
        await _for_ever()


class DeafListen(Noted):
    """Its `listen` ignores its cancellation, and goes on listening."""

    type: ClassVar[str] = "deaflisten"

    async def listen(self, receive: Receive) -> None:
        while True:
            try:
                await super().listen(receive)
            except BaseException as error:  # noqa: BLE001 - this is its fault
                self.note(type(error).__name__)
                await asyncio.sleep(0.02)


class DeafPost(Noted):
    """Its `post` ignores its cancellation."""

    type: ClassVar[str] = "deafpost"

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        self.note("post")
        await _for_ever()
        return "never"


class DeafStop(Noted):
    """Its `stop` ignores its cancellation."""

    type: ClassVar[str] = "deafstop"

    async def stop(self) -> None:
        await super().stop()
        await _for_ever()


class Leisurely(Noted):
    """Its posts go on when it was stopped."""

    type: ClassVar[str] = "leisurely"

    async def stop(self) -> None:
        self.note("stop")


DEAF = [DeafStart, DeafListen, DeafPost, DeafStop]
ADAPTERS = [Noted, Leaving, Talkative, Clinging, Unborn, Endless, Unspeakable, Leisurely, *DEAF]
