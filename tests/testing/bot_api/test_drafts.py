"""Drafts and their Stop button, and servers that lack them."""

from __future__ import annotations

import asyncio

import pytest
from telegram import Bot as Library
from telegram.error import EndPointNotFound

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw, library


async def test_a_draft_is_seen_until_a_message_comes(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw, client: Library
) -> None:
    assert await client.send_message_draft(ada.id, 1, "Let me")
    assert await client.send_message_draft(ada.id, 1, "Let me think")
    assert chat.draft and chat.draft.text == "Let me think"
    assert chat.wait_for_draft("Let me").draft_id == 1
    raw("sendMessage", chat_id=ada.id, text="Done")
    assert chat.draft is None
    assert [one.text for one in chat.drafts] == ["Let me", "Let me think"]


def test_a_draft_lasts_thirty_seconds(api: BotApi, ada: Person, chat: Chat, raw: Raw) -> None:
    raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="Let me")
    api.advance(seconds=31)
    assert chat.draft is None


def test_drafts_need_an_id_and_a_private_chat(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw
) -> None:
    group = api.add_group("Team", [ada, bot])
    refusal = raw.refused("sendMessageDraft", chat_id=group.id, draft_id=1, text="x")
    assert refusal == (400, "Bad Request: TEXTDRAFT_PEER_INVALID")
    for odd in ({"draft_id": 0}, {"draft_id": "one"}, {}):
        assert raw.refused("sendMessageDraft", chat_id=ada.id, text="x", **odd)[1].endswith(
            "RANDOM_ID_INVALID"
        )


def test_stop_on_a_draft_is_told_to_the_bot(ada: Person, chat: Chat, raw: Raw) -> None:
    raw("sendMessageDraft", chat_id=ada.id, draft_id=7, text="Let me", can_stop=True)
    ada.stops_generation(chat)
    (update,) = raw.updates()
    assert update["stopped_message_generation"] == {"chat": chat.identity.as_json(), "draft_id": 7}
    raw("sendMessageDraft", chat_id=ada.id, draft_id=8, text="Let me")
    with pytest.raises(AssertionError):
        ada.stops_generation(chat)


def test_a_draft_belongs_to_its_topic(api: BotApi, ada: Person) -> None:
    bot = api.add_bot("topicbot", topics=True)
    chat = ada.starts(bot)
    raw = Raw(api, bot)
    here = raw("createForumTopic", chat_id=ada.id, name="Here")["message_thread_id"]
    raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="in the topic", message_thread_id=here)
    raw("sendMessageDraft", chat_id=ada.id, draft_id=2, text="outside")
    raw("sendMessage", chat_id=ada.id, text="Done")
    assert chat.draft and chat.draft.text == "in the topic"
    raw("sendMessage", chat_id=ada.id, text="Done", message_thread_id=here)
    assert chat.draft is None
    raw.close()


def test_a_draft_is_new_for_thirty_seconds_and_grows_out_of_the_one_with_its_id(
    api: BotApi, ada: Person, chat: Chat, raw: Raw
) -> None:
    raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="one")
    api.advance(seconds=20)
    raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="one two")
    api.advance(seconds=20)
    assert chat.draft and chat.draft.text == "one two"
    raw("sendMessageDraft", chat_id=ada.id, draft_id=2, text="other")
    api.advance(seconds=31)
    raw("sendMessageDraft", chat_id=ada.id, draft_id=2, text="later")
    assert [one.animated for one in chat.drafts] == [False, True, False, False]


def test_a_stopped_draft_goes_unless_it_is_to_be_kept(ada: Person, chat: Chat, raw: Raw) -> None:
    raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="Let me", can_stop=True)
    ada.stops_generation(chat)
    assert chat.draft is None
    raw("sendMessageDraft", chat_id=ada.id, draft_id=2, text="Let me", can_stop=True, keep_on_stop=True)
    ada.stops_generation(chat)
    assert chat.draft


def test_before_version_10_3_nothing_can_be_stopped() -> None:
    with BotApi(version="10.2") as api:
        bot, ada = api.add_bot(), api.add_person()
        chat = ada.starts(bot)
        raw = Raw(api, bot)
        raw("sendMessageDraft", chat_id=ada.id, draft_id=1, text="Let me", can_stop=True)
        with pytest.raises(AssertionError, match="no draft with a Stop button"):
            ada.stops_generation(chat)
        raw.close()


def test_an_old_server_does_not_know_newer_methods_and_ignores_newer_parameters() -> None:
    with BotApi(version="9.2") as api:
        bot, ada = api.add_bot(topics=True), api.add_person()
        ada.starts(bot)
        raw = Raw(api, bot)
        for method in ("sendMessageDraft", "sendRichMessage", "sendRichMessageDraft"):
            assert raw.refused(method, chat_id=ada.id, draft_id=1, text="x") == (404, "Not Found")
        assert "has_topics_enabled" not in raw("getMe")
        raw("sendMessage", chat_id=ada.id, text="x", some_new_thing=True)
        assert raw.refused("createForumTopic", chat_id=ada.id, name="x")[0] == 400
        assert api.calls[0].method == "sendMessageDraft" and api.calls[0].status == 404
        raw.close()

        async def talk() -> None:
            async with library(api, bot) as client:
                with pytest.raises(EndPointNotFound):
                    await client.do_api_request("sendRichMessage", api_kwargs={"chat_id": ada.id})

        asyncio.run(talk())
