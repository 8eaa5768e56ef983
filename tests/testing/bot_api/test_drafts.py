"""What came with newer versions: drafts, rich messages, the Stop button; and servers that lack them."""

from __future__ import annotations

import asyncio

import pytest
from telegram.error import EndPointNotFound

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw, library


def test_a_draft_is_seen_until_a_message_comes(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw
) -> None:
    async def talk() -> None:
        async with library(api, bot) as client:
            assert await client.send_message_draft(ada.id, 1, "Let me")
            assert await client.send_message_draft(ada.id, 1, "Let me think")

    asyncio.run(talk())
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
    assert raw.refused("sendMessageDraft", chat_id=ada.id, draft_id=0, text="x")[0] == 400
    assert raw.refused("sendMessageDraft", chat_id=ada.id, text="x")[0] == 400


def test_stop_on_a_draft_is_told_to_the_bot(ada: Person, chat: Chat, raw: Raw) -> None:
    raw("sendMessageDraft", chat_id=ada.id, draft_id=7, text="Let me", can_stop=True)
    ada.stops_generation(chat)
    (update,) = raw.updates()
    assert update["stopped_message_generation"] == {"chat": chat.identity.as_json(), "draft_id": 7}
    raw("sendMessageDraft", chat_id=ada.id, draft_id=8, text="Let me")
    with pytest.raises(AssertionError):
        ada.stops_generation(chat)


def test_a_rich_message_is_sent_edited_and_refused_for_odd_reasons(ada: Person, chat: Chat, raw: Raw) -> None:
    sent = raw("sendRichMessage", chat_id=ada.id, rich_message={"markdown": "# Title"})
    assert (chat.messages[-1].text, "text" in sent, "rich_message" in sent) == ("# Title", False, True)
    here = {"chat_id": ada.id, "message_id": sent["message_id"]}
    raw("editMessageText", **here, rich_message={"html": "<h1>Other</h1>"})
    assert chat.messages[-1].text == "<h1>Other</h1>"
    assert raw("editMessageText", **here, text="plain")["text"] == "plain"
    for rich, words in (
        ({"markdown": "openai:ada@example.org"}, "RICH_MESSAGE_EMAIL_INVALID"),
        ({"markdown": "a", "html": "b"}, "RICH_MESSAGE_FORMAT_INVALID"),
        ({}, "RICH_MESSAGE_EMPTY"),
        ({"markdown": "x" * 32769}, "RICH_MESSAGE_TOO_LONG"),
    ):
        assert raw.refused("sendRichMessage", chat_id=ada.id, rich_message=rich) == (
            400,
            f"Bad Request: {words}",
        )
    raw("sendRichMessageDraft", chat_id=ada.id, draft_id=1, rich_message={"markdown": "# Ti"})
    assert chat.draft and chat.draft.rich


def test_an_old_server_does_not_know_newer_methods_and_ignores_newer_parameters() -> None:
    with BotApi(version="9.2") as api:
        bot, ada = api.add_bot(topics=True), api.add_person()
        ada.starts(bot)
        raw = Raw(api, bot)
        for method in ("sendMessageDraft", "sendRichMessage"):
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
