"""Adapters with one fault each; a daemon loads them with HIBOSS_ADAPTERS_MODULES."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import quote

from pydantic import Field, SecretStr

from hiboss.core.contracts import failures
from hiboss.core.contracts.adapter import Account, Checked, Letter, Take, Taken
from hiboss.core.contracts.inbound import Digested, NotYet, Update
from hiboss.testing.scripted_adapter import ScriptedAdapter, ScriptedSettings

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

    async def listen(self, take: Take) -> None:
        return


class Talkative(Noted):
    """Its errors contain a secret."""

    type: ClassVar[str] = "talkative"

    async def start(self) -> None:
        await super().start()
        raise RuntimeError(f"GET https://example.org/{SECRET}/getMe: 404")


class Indiscreet(Noted):
    """Its errors contain its password, as those of HTTP libraries do: where the file `leak` says."""

    type: ClassVar[str] = "indiscreet"

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._password = account.settings.password.get_secret_value()

    @classmethod
    async def check(cls, given: ScriptedSettings, home: str) -> Checked:
        assert given.password is not None
        _leak("check", str(given.path), given.password.get_secret_value())
        return await super().check(given, home)

    async def start(self) -> None:
        await super().start()
        _leak("start", self._root, self._password)

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        _leak("digest", self._root, self._password)
        return await super().digest(updates, downloads, waited=waited, last_try=last_try)

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        _leak("post", self._root, self._password)
        return await super().post(letter, number, chunk)


def _leak(where: str, root: str, password: str) -> None:
    """Raise the error that `leak` names for this method, like {"post": "LaneError"}."""
    with open(os.path.join(root, "leak"), encoding="utf-8") as file:
        kind = json.load(file).get(where)
    text = f"ConnectError: https://api.example.org/bot{password}/getMe and {quote(password, safe='')}"
    if kind == "RuntimeError":
        raise RuntimeError("x" * 980 + text)
    if kind == "Refused":
        raise failures.Refused(text)
    if kind is not None:
        raise getattr(failures, kind)("network", text)


class KeyedSettings(ScriptedSettings):
    key: SecretStr = Field(description="one more secret, which it needs")


class Keyed(Noted):
    """Without a fault: it writes down with which secrets it starts."""

    type: ClassVar[str] = "keyed"
    Settings = KeyedSettings

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        settings = account.settings
        self._secrets = [one and one.get_secret_value() for one in (settings.password, settings.key)]

    async def start(self) -> None:
        self.note(json.dumps(self._secrets, separators=(",", ":")))
        await super().start()


class Tidy(Noted):
    """It removes the directory for its downloads when it needs none."""

    type: ClassVar[str] = "tidy"

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        os.rmdir(downloads)
        return await super().digest(updates, downloads, waited=waited, last_try=last_try)


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

    async def listen(self, take: Take) -> None:
        while True:
            try:
                await super().listen(take)
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


class Impatient(Noted):
    """It cancels each `take` that it has begun, and gives the same updates again."""

    type: ClassVar[str] = "impatient"

    async def listen(self, take: Take) -> None:
        async def twice(updates: Sequence[Update], position: str | None = None) -> Taken:
            first = asyncio.ensure_future(take(updates, position))
            await asyncio.sleep(0)  # it has begun
            first.cancel()
            return await take(updates, position)

        await super().listen(twice)


class Rude(Noted):
    """It raises what is said, as an expression: by the text of a letter, or by the settings."""

    type: ClassVar[str] = "rude"

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._raise_for("init")

    @classmethod
    async def check(cls, given: ScriptedSettings, home: str) -> Checked:
        found = await super().check(given, home)
        _raise_for("check", str(given.path))
        return found

    async def start(self) -> None:
        await super().start()
        self._raise_for("start")
        self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        self._raise_for("task")

    async def listen(self, take: Take) -> None:
        self._raise_for("listen")
        await super().listen(take)

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
    return eval(expression, {"asyncio": asyncio, **vars(failures), **vars(datetime)})


DEAF = [DeafStart, DeafListen, DeafPost, DeafStop]
ADAPTERS = [
    Noted,
    Leaving,
    Talkative,
    Indiscreet,
    Keyed,
    Tidy,
    Clinging,
    Unborn,
    Endless,
    Unspeakable,
    Leisurely,
    Impatient,
    Rude,
    *DEAF,
]
