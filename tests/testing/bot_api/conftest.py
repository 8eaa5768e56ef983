"""A server with one bot and one person; the bot's side is python-telegram-bot, or plain HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from telegram import Bot as Library

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person


class Raw:
    """Calls methods without a library, to see what really comes back."""

    def __init__(self, api: BotApi, bot: Bot) -> None:
        self._root = f"{api.url}/bot{bot.token}/"
        self._client = httpx.Client(timeout=30, verify=False, trust_env=False)  # certificates cost 40 ms

    def post(self, method: str, **params: Any) -> httpx.Response:
        return self._client.post(self._root + method, json=params)

    def __call__(self, method: str, **params: Any) -> Any:
        """Call and return the result; it must succeed."""
        answer = self.post(method, **params).json()
        assert answer["ok"], answer
        return answer["result"]

    def refused(self, method: str, **params: Any) -> tuple[int, str]:
        """Call and return the code and the words; it must be refused."""
        response = self.post(method, **params)
        answer = response.json()
        assert not answer["ok"], answer
        assert response.status_code == answer["error_code"]
        return answer["error_code"], answer["description"]

    def updates(self, **params: Any) -> list[Any]:
        """Fetch all updates and confirm them."""
        found = self("getUpdates", **params)
        if found:
            self("getUpdates", offset=found[-1]["update_id"] + 1, limit=1)
        return list(found)

    def messages(self) -> list[Any]:
        return [one["message"] for one in self.updates() if "message" in one]

    def close(self) -> None:
        self._client.close()


def library(api: BotApi, bot: Bot) -> Library:
    """A client of python-telegram-bot; use it with `async with`."""
    return Library(bot.token, base_url=f"{api.url}/bot", base_file_url=f"{api.url}/file/bot")


@pytest.fixture(autouse=True)
def no_warning_about_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library warns about the type of RetryAfter.retry_after on every 429, unless this is set."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi() as running:
        yield running


@pytest.fixture
def bot(api: BotApi) -> Bot:
    return api.add_bot("nexbot")


@pytest.fixture
def ada(api: BotApi) -> Person:
    return api.add_person("Ada", username="ada")


@pytest.fixture
def client(api: BotApi, bot: Bot) -> Library:
    """Give a test that is a coroutine a client that is open (tests/support/async_tests.py)."""
    return library(api, bot)


@pytest.fixture
def raw(api: BotApi, bot: Bot) -> Iterator[Raw]:
    client = Raw(api, bot)
    yield client
    client.close()


@pytest.fixture
def chat(ada: Person, bot: Bot, raw: Raw) -> Chat:
    """The private chat, started, with nothing pending."""
    started = ada.starts(bot)
    raw.updates()
    return started
