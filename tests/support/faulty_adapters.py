"""Adapters with one fault each; a daemon loads them with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from hiboss.core.contracts import failures
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


class Rude(Noted):
    """It raises what is said, as an expression: by the text of a letter, or by the settings."""

    type: ClassVar[str] = "rude"

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._raise_for("init")

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        found = super().bind(given)
        _raise_for("bind", found[1]["path"])
        return found

    async def start(self) -> None:
        await super().start()
        self._raise_for("start")
        self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        self._raise_for("task")

    async def listen(self, receive: Receive) -> None:
        self._raise_for("listen")
        await super().listen(receive)

    async def stop(self) -> None:
        await super().stop()
        self._raise_for("stop")

    def chunks(self, letter: Letter) -> list[str]:
        if letter.subject == "chunks":
            raise _evaluated(letter.text)
        return super().chunks(letter)

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        if letter.subject == "post":
            self.note("try")
            raise _evaluated(letter.text)
        return await super().post(letter, number, chunk)

    def _raise_for(self, where: str) -> None:
        _raise_for(where, self._root)


def _raise_for(where: str, root: str) -> None:
    with open(os.path.join(root, "settings.json"), encoding="utf-8") as file:
        error = json.load(file).get(where)
    if error is not None:
        raise _evaluated(error)


def _evaluated(expression: str) -> BaseException:
    error: BaseException = eval(expression, {"asyncio": asyncio, **vars(failures), **vars(datetime)})
    return error


DEAF = [DeafStart, DeafListen, DeafPost, DeafStop]
ADAPTERS = [Noted, Leaving, Talkative, Clinging, Unborn, Endless, Unspeakable, Leisurely, Rude, *DEAF]
