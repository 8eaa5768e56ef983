"""Adapters with one fault each; a daemon loads them with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import os
from typing import ClassVar

from hiboss.core.contracts.adapter import Account, Receive
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


ADAPTERS = [Noted, Leaving, Talkative, Clinging, Unborn, Endless]
