"""The Telegram adapter, as the daemon calls it. Each of its parts is a module of its own.

A chat is `channel:telegram:<chat id>`, a topic of it `channel:telegram:<chat id>/<topic id>`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, SecretStr, field_validator

from ...core.contracts.adapter import (
    Account,
    AdapterSettings,
    Checked,
    Command,
    Letter,
    Live,
    Pace,
    Posted,
    Take,
    Taken,
)
from ...core.contracts.inbound import Digested, NotYet, Update
from ...core.file_guard import FileGuard
from ...core.paths import Home
from ...core.settings import Configuration
from . import account_check, letter_chunks, reactions
from .api_errors import CallFailed
from .chunk_form import decode
from .digestion import Digester
from .message_facts import record, text
from .polling import Poller
from .posting import Poster
from .signs import Signs

if TYPE_CHECKING:
    from .bot_client import BotClient

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,200}")
ANSWER_CHARACTERS = 200
ANSWERS_AT_ONCE = 100  # more wait for nobody: their spinners end by themselves


class TelegramSettings(AdapterSettings):
    """What a binding of a bot needs."""

    adapter_token: SecretStr = Field(description="the token of the bot, from @BotFather")

    @field_validator("adapter_token")
    @classmethod
    def _check_form(cls, given: SecretStr) -> SecretStr:
        token = given.get_secret_value().strip()
        if not _TOKEN.fullmatch(token):
            raise ValueError("a token has the form 123456:ABC…: digits, a colon, and letters")
        return SecretStr(token)

    @property
    def token(self) -> str:
        return self.adapter_token.get_secret_value()

    @property
    def bot_id(self) -> str:
        """The id of the bot: the first part of its token, also of a new token."""
        return str(int(self.token.partition(":")[0]))


class TelegramAdapter:
    """A bot of Telegram: private chats, groups, channels, and their topics."""

    type: ClassVar[str] = "telegram"
    Settings = TelegramSettings
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"edit", "delete", "react", "typing", "draft", "buttons", "files", "threads", "topics", "menu"}
    )
    open_to_all: ClassVar[bool] = False
    person_id: ClassVar[str] = "[1-9][0-9]{0,18}"  # a group has a negative one, and a username is none
    # Telegram names no exact figures: one a second in a chat, 20 a minute in a group, 30 a second in all.
    pace: ClassVar[Pace | None] = Pace(1.0, 20, 30)
    emojis: ClassVar[frozenset[str] | None] = reactions.EMOJIS

    def __init__(self, account: Account) -> None:
        self._settings: TelegramSettings = account.settings
        self._home = account.home
        self._position = account.position
        self._client: BotClient | None = None
        self._poller: Poller | None = None
        self._poster: Poster
        self._signs: Signs
        self._live: str  # the setting telegram.live
        self._digester: Digester
        self._answers: set[asyncio.Task[None]] = set()  # to those who pressed a button

    @property
    def trouble(self) -> str | None:
        """What is wrong while it listens and goes on trying."""
        return None if self._poller is None else self._poller.trouble

    # --- binding -----------------------------------------------------------------------

    @classmethod
    async def check(cls, given: TelegramSettings, home: str) -> Checked:
        configuration = await asyncio.to_thread(_configuration, home)
        client = await asyncio.to_thread(_connect, given.token, configuration)
        try:
            found = await account_check.checked(client)
            notes = await account_check.notes(client, found)
        finally:
            await client.close()
        username = text(found, "username")
        name = f"@{username}" if username else None
        return Checked(account=given.bot_id, settings=given, name=name, notes=tuple(notes))

    @classmethod
    def unchecked(cls, given: TelegramSettings) -> Checked:
        return Checked(account=given.bot_id, settings=given)

    # --- life --------------------------------------------------------------------------

    async def start(self) -> None:
        configuration = await asyncio.to_thread(_configuration, self._home)
        client = await asyncio.to_thread(_connect, self._settings.token, configuration)
        self._client = client  # whatever happens now, `stop` closes it
        me = account_check.me(await account_check.who_it_is(client), self._settings.token)
        self._poller = Poller(client, me, self._position)
        self._poster = Poster(client, FileGuard(Home(self._home)))
        self._signs = Signs(client)
        self._live = configuration.settings.telegram_live
        poller = self._poller
        self._digester = Digester(client, me, configuration, lambda: poller.caught_up)

    async def stop(self) -> None:
        for task in self._answers:
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # --- in ----------------------------------------------------------------------------

    async def listen(self, take: Take) -> None:
        assert self._poller is not None  # it was started
        await self._poller.run(take, self._answer)

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        return await self._digester.digest(updates, downloads, waited=waited, last_try=last_try)

    def _answer(self, updates: Sequence[Update], taken: Taken) -> None:
        """Answer those who pressed a button, behind the back of the polling: it must not wait for this."""
        for update in updates:
            query = text(record(update.raw, "callback_query"), "id")
            if not query or len(self._answers) >= ANSWERS_AT_ONCE:
                continue
            words = taken.answers.get(update.id, "")[:ANSWER_CHARACTERS]
            task = asyncio.create_task(self._answer_one(query, words))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def _answer_one(self, query: str, words: str) -> None:
        try:
            if self._client is not None:
                await self._client.call("answerCallbackQuery", callback_query_id=query, text=words or None)
        except CallFailed:
            pass  # most often it is too old; what the button stands for is done all the same

    # --- out ---------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return letter_chunks.chunks(letter)

    async def post(self, letter: Letter, number: int, chunk: str) -> str | Posted:
        return await self._poster.post(letter, number, chunk)

    async def edit(self, place: str, platform_id: str, chunk: str, key: str) -> None:
        await self._poster.edit(place, platform_id, chunk)

    def can_become(self, shown: str, chunk: str) -> bool:
        return decode(shown).files == decode(chunk).files

    async def delete(self, place: str, platform_id: str) -> None:
        await self._poster.delete(place, platform_id)

    async def create_topic(self, chat: str, name: str) -> str:
        return await self._poster.create_topic(chat, name)

    async def remove_buttons(self, place: str, platform_id: str) -> None:
        await self._signs.remove_buttons(place, platform_id)

    async def react(self, place: str, platform_id: str, emoji: str | None) -> None:
        await self._signs.react(place, platform_id, emoji)

    async def typing(self, place: str) -> None:
        await self._signs.typing(place)

    async def show_commands(self, chat: str, commands: Sequence[Command]) -> None:
        await self._signs.show_commands(chat, commands)

    def live(self, place: str) -> Live:
        return self._signs.live(place, self._live)

    async def draft(self, place: str, number: int, chunk: str) -> None:
        await self._signs.draft(place, number, chunk)


def _configuration(home: str) -> Configuration:
    return Configuration(Home(home).config, os.environ)


def _connect(token: str, configuration: Configuration) -> BotClient:
    """Return the client of a bot. Call it in a thread: the import takes 0.3 s."""
    from .bot_client import BotClient

    return BotClient(token, configuration.settings.telegram_base_url)
