"""Edits, deletions, reactions, commands: by bots and by people."""

from __future__ import annotations

import pytest
from telegram import Bot as Library
from telegram import BotCommand, BotCommandScopeChat, Update
from telegram.error import BadRequest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw

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
    theirs = ada.says(chat, "mine")
    assert raw.refused("editMessageText", chat_id=ada.id, message_id=theirs.id, text="x") == (
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
    theirs = ada.says(group, "mine")
    here = {"chat_id": group.id, "message_id": theirs.id}
    assert raw.refused("deleteMessage", **here) == (400, "Bad Request: message can't be deleted")
    group.promote(bot)
    raw("deleteMessage", **here)
    assert raw.refused("deleteMessage", **here) == (400, "Bad Request: message to delete not found")
    private = ada.says(chat, "mine")
    raw("deleteMessage", chat_id=ada.id, message_id=private.id)
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
    assert answered["quote"]["position"] == 7
    assert answered["reply_to_message"]["message_id"] == question.id


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
