"""Edits, deletions, reactions, commands, drafts and their Stop button; and what a test can ask about all that was seen."""

from __future__ import annotations

import asyncio

import pytest
from telegram import Bot as Library
from telegram import BotCommand, BotCommandScopeChat, Update
from telegram.error import BadRequest, EndPointNotFound

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw, library

MARKUP = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
UNCHANGED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def test_an_edit_changes_the_text_and_an_edit_without_change_is_refused(
    raw: Raw, ada: Person, chat: Chat
) -> None:
    number = raw("sendMessage", chat_id=ada.id, text="one", reply_markup=MARKUP)["message_id"]
    here = {"chat_id": ada.id, "message_id": number}
    assert raw.refused("editMessageText", **here, text="one", reply_markup=MARKUP) == (400, UNCHANGED)
    raw("editMessageText", **here, text="two", reply_markup=MARKUP)
    message = chat.messages[-1]
    assert (message.text, message.edited, len(message.buttons)) == ("two", True, 1)
    raw("editMessageText", **here, text="two")  # without a keyboard, it goes
    assert message.buttons == []
    assert raw.refused("editMessageReplyMarkup", **here) == (400, UNCHANGED)
    raw("editMessageReplyMarkup", **here, reply_markup=MARKUP)
    assert len(message.buttons) == 1
    assert raw.refused("editMessageText", **here, text="x" * 5000)[1] == "Bad Request: message is too long"


def test_only_what_is_there_and_ones_own_can_be_edited(raw: Raw, ada: Person, chat: Chat) -> None:
    assert raw.refused("editMessageText", chat_id=ada.id, message_id=ada.says(chat, "mine").id, text="x") == (
        400,
        "Bad Request: message can't be edited",
    )
    assert raw.refused("editMessageText", chat_id=ada.id, message_id=999, text="x") == (
        400,
        "Bad Request: message to edit not found",
    )
    sent = raw("sendMessage", chat_id=ada.id, text="one")["message_id"]
    ada.deletes(chat.messages[-1])
    assert raw.refused("editMessageText", chat_id=ada.id, message_id=sent, text="x")[0] == 400
    assert raw.updates()[0]["message"]["text"] == "mine"
    assert raw.updates() == []  # nobody is told of a deletion


async def test_a_caption_is_edited_as_a_caption(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    sent = await client.send_document(ada.id, b"x", filename="x.txt", caption="one")
    with pytest.raises(BadRequest, match="There is no text in the message to edit"):
        await client.edit_message_text("two", ada.id, sent.message_id)
    await client.edit_message_caption(ada.id, sent.message_id, caption="two")
    plain = await client.send_message(ada.id, "plain")
    with pytest.raises(BadRequest, match="There is no caption in the message to edit"):
        await client.edit_message_caption(ada.id, plain.message_id, caption="two")
    assert chat.texts[1:] == ["two", "plain"]


def test_a_bot_deletes_its_own_messages_and_those_of_others_with_rights(
    api: BotApi, raw: Raw, bot: Bot, ada: Person, chat: Chat
) -> None:
    group = api.add_group("Team", [ada, bot])
    here = {"chat_id": group.id, "message_id": ada.says(group, "mine").id}
    assert raw.refused("deleteMessage", **here) == (400, "Bad Request: message can't be deleted")
    group.promote(bot)
    raw("deleteMessage", **here)
    assert raw.refused("deleteMessage", **here) == (400, "Bad Request: message to delete not found")
    raw("deleteMessage", chat_id=ada.id, message_id=ada.says(chat, "mine").id)
    old = raw("sendMessage", chat_id=ada.id, text="old")["message_id"]
    api.advance(hours=49)
    refusal = raw.refused("deleteMessage", chat_id=ada.id, message_id=old)
    assert refusal == (400, "Bad Request: message can't be deleted for everyone")


async def test_a_bot_reacts_with_one_emoji_that_is_allowed(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    message = ada.says(chat, "hello")
    await client.set_message_reaction(ada.id, message.id, "👀")
    assert message.reactions == {bot.id: ["👀"]}
    for refused, words in ((["🧿"], "Reaction_invalid"), (["👍", "👎"], "Reactions_too_many")):
        with pytest.raises(BadRequest, match=words):
            await client.set_message_reaction(ada.id, message.id, refused)
    await client.set_message_reaction(ada.id, message.id, [])
    with pytest.raises(BadRequest, match="Message to react not found"):
        await client.set_message_reaction(ada.id, 999, "👀")
    assert message.reactions == {}


def test_edits_of_people_come_also_when_nothing_can_be_seen(raw: Raw, ada: Person, chat: Chat) -> None:
    message = ada.says(chat, "one")
    ada.edits(message, "two")
    ada.edits(message)
    first, second, third = (Update.de_json(one, None) for one in raw.updates())
    assert first.message and first.message.text == "one"
    assert second.edited_message and third.edited_message
    assert second.edited_message.text == third.edited_message.text == "two"
    assert second.edited_message.edit_date


def test_people_mention_and_quote(raw: Raw, api: BotApi, ada: Person, chat: Chat) -> None:
    bob = api.add_person("Bob")
    question = ada.says(chat, "😀 ask Bob or @nexbot", mentions={"Bob": bob})
    ada.says(chat, "yes", reply_to=question, quote="Bob")
    asked, answered = raw.messages()
    kinds = [(one["type"], one["offset"], one["length"]) for one in asked["entities"]]
    assert kinds == [("text_mention", 7, 3), ("mention", 14, 7)]
    assert asked["entities"][0]["user"]["id"] == bob.id
    assert (answered["quote"]["position"], answered["reply_to_message"]["message_id"]) == (7, question.id)


async def test_commands_are_kept_by_scope(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    await client.set_my_commands([BotCommand("help", "Show help")])
    await client.set_my_commands([("stop", "Stop it")], scope=BotCommandScopeChat(ada.id))
    assert [one.command for one in await client.get_my_commands()] == ["help"]
    assert [one.command for one in await client.get_my_commands(BotCommandScopeChat(ada.id))] == ["stop"]
    with pytest.raises(BadRequest, match="Bot_command_invalid"):
        await client.set_my_commands([("No-Good", "x")])
    await client.delete_my_commands()
    assert await client.get_my_commands() == ()


def test_a_chat_action_is_seen(raw: Raw, ada: Person, chat: Chat) -> None:
    raw("sendChatAction", chat_id=ada.id, action="typing")
    assert chat.actions == ["typing"]
    assert raw.refused("sendChatAction", chat_id=ada.id, action="juggling")[0] == 400


# --- drafts, and servers that lack them -----------------------------------------------


async def test_a_draft_is_seen_until_a_message_comes(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw, client: Library
) -> None:
    assert await client.send_message_draft(ada.id, 1, "Let me")
    assert await client.send_message_draft(ada.id, 1, "Let me think")
    assert chat.draft and chat.draft.text == "Let me think"
    assert chat.wait_for_draft("Let me").draft_id == 1
    raw("sendMessage", chat_id=ada.id, text="Done")
    assert (chat.draft, [one.text for one in chat.drafts]) == (None, ["Let me", "Let me think"])


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
        assert [
            raw.refused(method, chat_id=ada.id, draft_id=1, text="x")
            for method in ("sendMessageDraft", "sendRichMessage", "sendRichMessageDraft")
        ] == [(404, "Not Found")] * 3
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


# --- the log --------------------------------------------------------------------------


def test_all_that_was_ever_seen_is_in_the_log(api: BotApi, raw: Raw, ada: Person, chat: Chat) -> None:
    live = raw("sendMessage", chat_id=ada.id, text="one")["message_id"]
    raw("editMessageText", chat_id=ada.id, message_id=live, text="one two")
    api.advance(seconds=5)
    raw("sendMessage", chat_id=ada.id, text="other")
    raw("deleteMessage", chat_id=ada.id, message_id=live)
    happened = [(one.kind, one.text) for one in chat.log[1:]]
    assert happened == [("sent", "one"), ("edited", "one two"), ("sent", "other"), ("deleted", "one two")]
    assert chat.visible() == ["/start", "other"]
    message = chat.history[live]
    assert (message.texts, message.revision, message.deleted) == (["one", "one two"], 1, True)
    assert [one.message for one in chat.log.of("deleted")] == [message]
    assert chat.log[-1].date - chat.log[1].date >= 5


def test_a_refused_edit_is_in_no_log(raw: Raw, ada: Person, chat: Chat) -> None:
    number = raw("sendMessage", chat_id=ada.id, text="one")["message_id"]
    raw.refused("editMessageText", chat_id=ada.id, message_id=number, text="one")
    raw.refused("editMessageText", chat_id=ada.id, message_id=number, text="x" * 5000)
    assert chat.history[number].texts == ["one"]


def test_a_message_tells_all_about_itself(raw: Raw, bot: Bot, ada: Person, chat: Chat) -> None:
    question = ada.says(chat, "how?")
    reaction = [{"type": "emoji", "emoji": "👀"}]
    raw("setMessageReaction", chat_id=ada.id, message_id=question.id, reaction=reaction)
    rich = {"html": "<p>so</p>"}
    raw("sendRichMessage", chat_id=ada.id, rich_message=rich, reply_parameters={"message_id": question.id})
    facts = chat.messages[-1].facts()
    assert (facts["text"], facts["rich_source"], facts["reply_to"]) == ("so", "<p>so</p>", question.id)
    assert (facts["revision"], facts["texts"], facts["topic"], facts["entities"]) == (0, ["so"], None, [])
    assert (question.reactions_of(bot), chat.messages[-1].reactions_of(bot)) == (["👀"], [])


def test_what_people_edit_and_topics_that_go_are_in_the_log_too(api: BotApi, ada: Person, raw: Raw) -> None:
    bot = api.add_bot("topicbot", topics=True)
    chat = ada.starts(bot)
    topic = ada.creates_topic(chat, "Here")
    message = ada.says(chat, "oen", topic=topic)
    ada.edits(message, "one")
    other = Raw(api, bot)
    other("deleteForumTopic", chat_id=ada.id, message_thread_id=topic.id)
    assert message.texts == ["oen", "one"]
    assert [one.text for one in chat.log.of("deleted")] == ["", "one"]
    other.close()
