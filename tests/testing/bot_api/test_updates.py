"""getUpdates and webhooks: offsets, long polls, what is remembered and what is forgotten."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from telegram import Update

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw


def texts(updates: list[Any]) -> list[str]:
    return [one["message"]["text"] for one in updates]


def in_background(raw: Raw, **params: Any) -> tuple[threading.Thread, list[Any]]:
    """Call getUpdates in a thread and collect its answer."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(raw.post("getUpdates", **params).json()))
    thread.start()
    return thread, answers


def test_updates_come_again_until_an_offset_confirms_them(
    raw: Raw, ada: Person, bot: Bot, chat: Chat
) -> None:
    for text in ("one", "two", "three"):
        ada.says(chat, text)
    first = raw("getUpdates")
    assert texts(first) == ["one", "two", "three"] == texts(raw("getUpdates", offset=0))
    assert texts(raw("getUpdates", offset=first[1]["update_id"])) == ["two", "three"]
    assert len(bot.pending) == 2
    assert raw("getUpdates", offset=first[-1]["update_id"] + 1) == []
    assert bot.pending == []


def test_a_negative_offset_counts_from_the_end_and_forgets_the_rest(
    raw: Raw, ada: Person, chat: Chat
) -> None:
    for text in ("one", "two", "three"):
        ada.says(chat, text)
    assert texts(raw("getUpdates", offset=-1)) == ["three"]
    assert texts(raw("getUpdates")) == ["three"]


def test_at_most_a_hundred_updates_come_at_once(raw: Raw, ada: Person, chat: Chat) -> None:
    for number in range(105):
        ada.says(chat, str(number))
    assert len(raw("getUpdates")) == 100 == len(raw("getUpdates", limit=1000))
    assert len(raw("getUpdates", limit=3)) == 3


def test_a_long_poll_ends_when_something_happens(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    before = len(api.calls_of("getUpdates"))
    thread, answers = in_background(raw, timeout=30)
    api.wait_for_call("getUpdates", count=before + 1)
    ada.says(chat, "hello")
    thread.join()
    assert texts(answers[0]["result"]) == ["hello"]


def test_a_second_poll_ends_the_first_with_a_conflict(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat
) -> None:
    before = len(api.calls_of("getUpdates"))
    thread, answers = in_background(raw, timeout=30)
    api.wait_for_call("getUpdates", count=before + 1)
    assert raw("getUpdates") == []
    thread.join()
    assert answers[0]["error_code"] == 409
    assert answers[0]["description"] == (
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    )


def test_an_update_older_than_a_day_is_gone(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    ada.says(chat, "old")
    api.advance(hours=23)
    ada.says(chat, "new")
    api.advance(hours=2)
    assert texts(raw("getUpdates")) == ["new"]


def test_after_a_quiet_week_ids_start_anew_and_an_offset_far_ahead_is_not_believed(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada.says(chat, "before")
    last = raw("getUpdates")[-1]["update_id"]
    assert raw("getUpdates", offset=last + 1) == []
    api.advance(days=8)
    monkeypatch.setattr("hiboss.testing.bot_api.update_queue._random_id", lambda: 7)
    ada.says(chat, "after")
    found = raw("getUpdates", offset=last + 1)
    assert (found[0]["update_id"], texts(found)) == (7, ["after"])


def test_a_week_with_updates_keeps_the_ids_in_order(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    ada.says(chat, "one")
    first = raw("getUpdates")[-1]["update_id"]
    api.advance(days=6)
    ada.says(chat, "two")
    assert raw("getUpdates")[-1]["update_id"] == first + 1


def test_reactions_come_only_to_a_bot_that_named_them(raw: Raw, ada: Person, chat: Chat) -> None:
    message = ada.says(chat, "hello")
    raw.updates()
    ada.reacts(message, "👍")
    assert raw.updates(allowed_updates=["message", "message_reaction"]) == []
    ada.reacts(message, "🔥")
    (update,) = raw.updates()  # it is remembered what was named
    assert update["message_reaction"]["old_reaction"] == [{"type": "emoji", "emoji": "👍"}]
    assert update["message_reaction"]["new_reaction"] == [{"type": "emoji", "emoji": "🔥"}]
    raw("getUpdates", allowed_updates=[])
    ada.reacts(message, "👍")
    assert raw.updates() == []


def test_a_webhook_and_getupdates_exclude_each_other(raw: Raw, ada: Person, bot: Bot, chat: Chat) -> None:
    assert raw.refused("setWebhook", url="http://example.org") == (
        400,
        "Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
    )
    raw("setWebhook", url="https://example.org/hook")
    ada.says(chat, "hello")
    assert raw.refused("getUpdates") == (
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    )
    info = raw("getWebhookInfo")
    assert (info["url"], info["pending_update_count"]) == ("https://example.org/hook", 1)
    raw("deleteWebhook", drop_pending_updates=True)
    assert raw("getUpdates") == []
    assert raw("getWebhookInfo")["url"] == ""


def test_an_update_can_be_injected_that_no_library_reads(raw: Raw, bot: Bot, chat: Chat) -> None:
    message = {"message_id": 1, "date": "tomorrow", "chat": {"id": 1, "type": "private"}}
    number = bot.inject({"message": message})
    (update,) = raw("getUpdates")
    assert update == {"update_id": number, "message": message}
    with pytest.raises(TypeError):
        Update.de_json(update, None)


def test_a_reply_to_another_chat_comes_with_what_is_known_of_it(raw: Raw, ada: Person, chat: Chat) -> None:
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Bob"}
    ada.says(chat, "look", external_reply={"origin": origin})
    (update,) = raw.updates()
    message = Update.de_json(update, None).message
    assert message and message.external_reply and message.external_reply.origin.type == "hidden_user"
