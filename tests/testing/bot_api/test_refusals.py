"""What holds for every method that sends: where a bot may not write, and what is not there any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw
from .sending_calls import CHANGING, EVERY, NEW, SHOWN_ONLY, Sender

DRAFTS = ("sendMessageDraft", "sendRichMessageDraft")
IN_GROUPS = tuple(method for method in EVERY if method not in DRAFTS)


@pytest.fixture
def sender(api: BotApi, bot: Bot) -> Iterator[Sender]:
    calls = Sender(api, bot)
    yield calls
    calls.client.close()


def said(response: httpx.Response) -> tuple[int, str, Any]:
    answer = response.json()
    assert response.status_code == answer.get("error_code", 200)
    return response.status_code, answer.get("description", ""), answer.get("parameters")


@pytest.mark.parametrize("method", EVERY)
def test_a_good_call_is_carried_out(
    api: BotApi, sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    assert said(sender(method, ada.id, **sender.prepare(method, ada.id)))[0] == 200
    assert api.complaints == []
    if method in NEW:
        assert "new" in chat.visible()


@pytest.mark.parametrize("method", EVERY)
def test_who_blocked_the_bot_or_is_gone_cannot_be_written_to(
    sender: Sender, bot: Bot, ada: Person, chat: Chat, method: str
) -> None:
    before = sender.prepare(method, ada.id)
    ada.blocks(bot)
    blocked = said(sender(method, ada.id, **before))
    assert blocked == (403, "Forbidden: bot was blocked by the user", None)
    ada.deletes_account()
    gone = said(sender(method, ada.id, **before))
    assert gone == (403, "Forbidden: user is deactivated", None)


@pytest.mark.parametrize("method", EVERY)
def test_nobody_writes_first(sender: Sender, ada: Person, method: str) -> None:
    answer = said(sender(method, ada.id, message_id=1))
    assert answer == (403, "Forbidden: bot can't initiate conversation with a user", None)


@pytest.mark.parametrize("method", IN_GROUPS)
def test_a_group_that_moved_tells_where_to_every_method(
    api: BotApi, sender: Sender, bot: Bot, ada: Person, method: str
) -> None:
    group = api.add_group("Team", [ada, bot], supergroup=False)
    before = sender.prepare(method, group.id)
    new = group.migrate()
    answer = said(sender(method, group.id, **before))
    words = "Bad Request: group chat was upgraded to a supergroup chat"
    assert answer == (400, words, {"migrate_to_chat_id": new.id})


@pytest.mark.parametrize("method", IN_GROUPS)
def test_a_group_that_is_deleted_or_left_cannot_be_written_to(
    api: BotApi, sender: Sender, bot: Bot, ada: Person, method: str
) -> None:
    group, other = api.add_group("Team", [ada, bot]), api.add_group("Other", [ada, bot])
    before, before_other = sender.prepare(method, group.id), sender.prepare(method, other.id)
    group.dissolve()
    other.remove(bot)
    assert said(sender(method, group.id, **before)) == (403, "Forbidden: the group chat was deleted", None)
    answer = said(sender(method, other.id, **before_other))
    assert answer == (403, "Forbidden: bot was kicked from the supergroup chat", None)


@pytest.mark.parametrize("method", [*NEW, *SHOWN_ONLY])
def test_a_topic_that_was_deleted_is_not_found_by_any_method(api: BotApi, ada: Person, method: str) -> None:
    bot = api.add_bot("topicbot", topics=True)
    ada.starts(bot)
    sender, raw = Sender(api, bot), Raw(api, bot)
    topic = raw("createForumTopic", chat_id=ada.id, name="Here")["message_thread_id"]
    assert said(sender(method, ada.id, message_thread_id=topic))[0] == 200
    raw("deleteForumTopic", chat_id=ada.id, message_thread_id=topic)
    answer = said(sender(method, ada.id, message_thread_id=topic))
    assert answer == (400, "Bad Request: message thread not found", None)
    sender.client.close()
    raw.close()


@pytest.mark.parametrize("method", CHANGING)
def test_what_was_deleted_can_no_longer_be_changed(
    sender: Sender, ada: Person, chat: Chat, method: str
) -> None:
    before = sender.prepare(method, ada.id)
    ada.deletes(chat.messages[-1])
    status, words, _ = said(sender(method, ada.id, **before))
    verb = {"deleteMessage": "delete", "setMessageReaction": "react"}.get(method, "edit")
    assert (status, words) == (400, f"Bad Request: message to {verb} not found")


def test_a_text_or_caption_that_is_too_long_is_refused_in_an_edit_too(
    sender: Sender, ada: Person, chat: Chat
) -> None:
    text = sender.prepare("editMessageText", ada.id)
    caption = sender.prepare("editMessageCaption", ada.id)
    assert (
        said(sender("editMessageText", ada.id, **text, old="x" * 4097))[1]
        == "Bad Request: message is too long"
    )
    words = said(sender("editMessageCaption", ada.id, **caption, old="x" * 1025))[1]
    assert words == "Bad Request: message caption is too long"


def test_the_same_text_with_the_same_entities_is_no_edit(raw: Raw, ada: Person, chat: Chat) -> None:
    bold, italic = ({"type": kind, "offset": 0, "length": 3} for kind in ("bold", "italic"))
    sent = raw("sendMessage", chat_id=ada.id, text="abc", entities=[bold, italic])
    here = {"chat_id": ada.id, "message_id": sent["message_id"], "text": "abc"}
    assert "not modified" in raw.refused("editMessageText", **here, entities=[italic, bold])[1]
    assert raw("editMessageText", **here, entities=[italic])["entities"] == [italic]
    assert "not modified" in raw.refused("editMessageText", **here, entities=[italic])[1]
