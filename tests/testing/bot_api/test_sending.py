"""sendMessage and its refusals, in the words of the platform."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from telegram import Bot as Library
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters
from telegram.error import InvalidToken

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw, library


async def test_the_library_says_hello(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    assert (client.bot.id, client.username, client.can_read_all_group_messages) == (
        bot.id,
        "nexbot",
        False,
    )
    sent = await client.send_message(ada.id, "hello *Ada*", parse_mode="MarkdownV2")
    assert sent.text == "hello Ada"
    assert sent.parse_entities() == {MessageEntity("bold", 6, 3): "Ada"}
    (message,) = [one for one in chat.messages if one.sender is bot]
    assert (message.text, message.sender) == ("hello Ada", bot)


def test_parameters_come_as_query_form_multipart_or_json(
    api: BotApi, bot: Bot, ada: Person, chat: Chat
) -> None:
    url = f"{api.url}/bot{bot.token}/sendMessage"
    params: dict[str, Any] = {"chat_id": ada.id, "text": "hällo & 1+1"}
    httpx.get(url, params=params).raise_for_status()
    httpx.post(url, data=params).raise_for_status()
    httpx.post(url, json=params).raise_for_status()
    httpx.post(url, data=params, files={"unused": ("a.txt", b"x")}).raise_for_status()
    httpx.post(url.replace("sendMessage", "SENDmessage"), json=params).raise_for_status()
    assert chat.texts[1:] == ["hällo & 1+1"] * 5


def test_an_unknown_token_or_method_is_refused(api: BotApi, bot: Bot, raw: Raw) -> None:
    wrong = httpx.get(f"{api.url}/bot123:wrong_token/getMe")
    assert (wrong.status_code, wrong.json()["description"]) == (401, "Unauthorized")
    assert httpx.get(f"{api.url}/botnonsense/getMe").status_code == 404
    assert raw.refused("sendThoughts") == (404, "Not Found")

    async def log_in() -> None:
        async with library(api, bot):
            pass

    bot.token = "1:other_token"
    with pytest.raises(InvalidToken):
        asyncio.run(log_in())


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n "}, "message text is empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "😀" * 2049}, "message is too long"),
        ({"text": "<b>x", "parse_mode": "HTML"}, 'can\'t parse entities: Can\'t find end tag corresponding to start tag "b"'),
        ({"text": "ä<x>y</x>", "parse_mode": "HTML"}, 'can\'t parse entities: Unsupported start tag "x" at byte offset 2'),
        ({"text": "a</b>", "parse_mode": "HTML"}, "can't parse entities: Unexpected end tag at byte offset 1"),
        ({"text": "1 < 2", "parse_mode": "HTML"}, "can't parse entities: Unclosed start tag at byte offset 2"),
        (
            {"text": "<b>x<i>y</b></i>", "parse_mode": "HTML"},
            'can\'t parse entities: Unmatched end tag at byte offset 8, expected "</i>", found "</b>"',
        ),
        (
            {"text": "a.b", "parse_mode": "MarkdownV2"},
            "can't parse entities: Character '.' is reserved and must be escaped with the preceding '\\'",
        ),
        ({"text": "a *b", "parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Bold entity at byte offset 2"),
        ({"text": "a `b", "parse_mode": "MarkdownV2"}, "can't parse entities: Can't find end of Code entity at byte offset 2"),
        (
            {"text": "a_b", "parse_mode": "Markdown"},
            "can't parse entities: Can't find end of the entity starting at byte offset 1",
        ),
        ({"text": "x", "parse_mode": "BBCode"}, "unsupported parse_mode"),
        ({"text": "x", "reply_parameters": {"message_id": 999}}, "message to be replied not found"),
        ({"text": "x", "message_thread_id": 5}, "message thread not found"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": "x" * 65}]]}}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "b", "callback_data": ""}]]}}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "b"}]]}}, "text buttons are unallowed in the inline keyboard"),
        ({"text": "x", "reply_markup": "{nonsense"}, "can't parse reply keyboard markup JSON object"),
        ({"text": "x", "entities": [{"type": "bold", "offset": 0}]}, 'can\'t parse MessageEntity: Can\'t find field "length"'),
        (
            {"text": "x", "entities": [{"type": "bold", "offset": 0, "length": 2}]},
            "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 2",
        ),
        ({"text": "x", "chat_id": ""}, "chat_id is empty"),
        ({"text": "x", "chat_id": 17}, "chat not found"),
        ({"text": "x", "chat_id": -17}, "chat not found"),
        ({"text": "x", "chat_id": "@nobody"}, "chat not found"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_and_not_shown(
    raw: Raw, ada: Person, chat: Chat, params: Any, words: str
) -> None:
    before = chat.texts
    assert raw.refused("sendMessage", **{"chat_id": ada.id, **params}) == (400, f"Bad Request: {words}")
    assert chat.texts == before


def test_the_longest_text_is_counted_without_markup_in_utf_16(raw: Raw, ada: Person, chat: Chat) -> None:
    raw("sendMessage", chat_id=ada.id, text=f"<b>{'😀' * 2048}</b>", parse_mode="HTML")
    assert chat.messages[-1].entities == [{"type": "bold", "offset": 0, "length": 4096}]


@pytest.mark.parametrize(
    ("mode", "source", "text", "kinds"),
    [
        ("HTML", '<b>a</b> <a href="https://x.org/?a=1&amp;b">l</a> &lt;', "a l <", ["bold", "text_link"]),
        ("HTML", '<pre><code class="language-py">x = 1</code></pre>', "x = 1", ["pre"]),
        (
            "HTML",
            "<blockquote expandable>q</blockquote><tg-spoiler>s</tg-spoiler>",
            "qs",
            ["expandable_blockquote", "spoiler"],
        ),
        (
            "MarkdownV2",
            "*b* _i_ __u__ ~s~ ||p||",
            "b i u s p",
            ["bold", "italic", "underline", "strikethrough", "spoiler"],
        ),
        ("MarkdownV2", "```py\nx = 1\n``` `c\\`` \\.", "x = 1\n c` .", ["pre", "code"]),
        ("MarkdownV2", "[l](https://x.org/a_b) 1\\+1", "l 1+1", ["text_link"]),
        ("MarkdownV2", ">quoted\n>more\nplain", "quoted\nmore\nplain", ["blockquote"]),
        ("Markdown", "*b* _i_ `c` [l](https://x.org)", "b i c l", ["bold", "italic", "code", "text_link"]),
        (
            "",
            "see @ada or /help@nexbot #tag",
            "see @ada or /help@nexbot #tag",
            ["mention", "bot_command", "hashtag"],
        ),
    ],
)
def test_markup_becomes_entities(
    raw: Raw, ada: Person, chat: Chat, mode: str, source: str, text: str, kinds: list[str]
) -> None:
    sent = raw("sendMessage", chat_id=ada.id, text=source, parse_mode=mode)
    assert sent["text"] == text
    assert [one["type"] for one in sent["entities"]] == kinds


async def test_a_reply_shows_what_it_replies_to(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw, client: Library
) -> None:
    question = ada.says(chat, "how are you today?")
    reply = ReplyParameters(question.id, quote="are you")
    sent = await client.send_message(ada.id, "fine", reply_parameters=reply)
    assert sent.reply_to_message and sent.reply_to_message.text == "how are you today?"
    assert sent.quote and (sent.quote.text, sent.quote.position) == ("are you", 4)
    assert chat.messages[-1].reply_to is question
    ada.deletes(question)
    reply = {"message_id": question.id}
    assert raw.refused("sendMessage", chat_id=ada.id, text="x", reply_parameters=reply)[0] == 400
    lenient = {**reply, "allow_sending_without_reply": True}
    assert "reply_to_message" not in raw("sendMessage", chat_id=ada.id, text="x", reply_parameters=lenient)


async def test_buttons_are_pressed_and_answered_once_and_in_time(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw, client: Library
) -> None:
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
    await client.send_message(ada.id, "sure?", reply_markup=keyboard)
    message = chat.messages[-1]
    assert [(button.text, button.data) for button in message.buttons] == [("Yes", "y")]
    press = ada.presses(message, "y")
    (update,) = raw.updates()
    query = update["callback_query"]
    assert (query["data"], query["message"]["message_id"], query["from"]["id"]) == ("y", message.id, ada.id)
    raw("answerCallbackQuery", callback_query_id=query["id"], text="noted")
    assert press.answer and press.answer["text"] == "noted"
    late = ada.presses(message, "y")
    api.advance(seconds=16)
    too_late = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    for query_id in (late.id, press.id, "17"):
        assert raw.refused("answerCallbackQuery", callback_query_id=query_id) == (400, too_late)
    with pytest.raises(AssertionError, match="there is no button"):
        ada.presses(message, "n")


def test_a_press_on_a_message_that_is_gone_comes_without_it(raw: Raw, ada: Person, chat: Chat) -> None:
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    raw("sendMessage", chat_id=ada.id, text="sure?", reply_markup=markup)
    message = chat.messages[-1]
    raw("deleteMessage", chat_id=ada.id, message_id=message.id)
    ada.presses(message, "y")
    (update,) = raw.updates()
    assert update["callback_query"]["message"]["date"] == 0
    assert "text" not in update["callback_query"]["message"]


def test_the_limits_of_sending_are_switched_on(
    api: BotApi, ada: Person, bot: Bot, chat: Chat, raw: Raw
) -> None:
    api.limit()
    for _ in range(3):
        sent = raw("sendMessage", chat_id=ada.id, text="hi")
    response = raw.post("editMessageText", chat_id=ada.id, message_id=sent["message_id"], text="ho").json()
    seconds = response["parameters"]["retry_after"]
    assert (response["error_code"], response["description"]) == (
        429,
        f"Too Many Requests: retry after {seconds}",
    )
    api.advance(seconds=seconds)
    raw("sendMessage", chat_id=ada.id, text="hi")
    group = api.add_group("Team", [ada, bot])
    for _ in range(20):
        raw("sendMessage", chat_id=group.id, text="hi")
        api.advance(seconds=1.5)
    assert raw.refused("sendMessage", chat_id=group.id, text="hi")[0] == 429
