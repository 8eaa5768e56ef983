"""sendMessage, albums, file ids, uploads and downloads, with their refusals in the words of the platform."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from telegram import Bot as Library
from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    InputMediaPhoto,
    MessageEntity,
    ReplyParameters,
    Update,
)
from telegram.error import BadRequest, InvalidToken, RetryAfter

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw, library
from .sending_calls import PNG


async def test_the_library_says_hello(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    assert (client.bot.id, client.username, client.can_read_all_group_messages) == (
        bot.id,
        "nexbot",
        False,
    )
    sent = await client.send_message(ada.id, "hello *Ada*", parse_mode="MarkdownV2")
    assert (sent.text, sent.parse_entities()) == ("hello Ada", {MessageEntity("bold", 6, 3): "Ada"})
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
    assert (sent["text"], [one["type"] for one in sent["entities"]]) == (text, kinds)


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


# --- albums and file ids --------------------------------------------------------------


def post(api: BotApi, bot: Bot, method: str, files: Any = None, **params: Any) -> httpx.Response:
    data = {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
    return httpx.post(f"{api.url}/bot{bot.token}/{method}", data=data, files=files)


def attached(*names: str, kind: str = "photo") -> list[dict[str, Any]]:
    return [{"type": kind, "media": f"attach://{name}"} for name in names]


def test_uploads_and_known_files_make_one_album_in_a_topic_with_a_quote(
    api: BotApi, bot: Bot, ada: Person, raw: Raw
) -> None:
    group = api.add_group("Team", [ada, bot], forum=True)
    topic = group.create_topic("Pictures")
    asked = ada.says(group, "show me @nexbot", topic=topic)
    known = ada.sends_photo(group, PNG, "@nexbot", topic=topic).files[-1]
    media = [
        *attached("one", "two"),
        {"type": "photo", "media": known.id, "caption": "<b>third</b>", "parse_mode": "HTML"},
    ]
    files = {"one": ("1.png", PNG + b"1"), "two": ("2.png", PNG + b"2")}
    reply = {"message_id": asked.id, "quote": "show me"}
    answer = post(
        api, bot, "sendMediaGroup", files, chat_id=group.id, media=media, message_thread_id=topic.id,
        reply_parameters=reply,
    ).json()["result"]  # fmt: skip
    shown = group.messages[-3:]
    assert [one.files[-1].data for one in shown] == [PNG + b"1", PNG + b"2", PNG]
    assert len({one.more["media_group_id"] for one in shown}) == 1
    assert [one["message_id"] for one in answer] == [one.id for one in shown]
    assert ({one.topic for one in shown}, {one.reply_to for one in shown}) == ({topic.id}, {asked})
    assert (shown[2].text, shown[2].entities[0]["type"], shown[0].text) == ("third", "bold", "")
    assert answer[2]["photo"][-1]["file_unique_id"] == known.unique_id
    assert api.complaints == []


def test_a_keyboard_under_an_album_is_ignored(api: BotApi, bot: Bot, ada: Person, chat: Chat) -> None:
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    files = {"one": ("1.png", PNG), "two": ("2.png", PNG)}
    post(api, bot, "sendMediaGroup", files, chat_id=ada.id, media=attached("one", "two"), reply_markup=markup)
    assert [one.buttons for one in chat.messages[-2:]] == [[], []]
    assert "reply_markup is ignored" in api.complaints[0]


@pytest.mark.parametrize(
    ("media", "words"),
    [
        ([], "there are no messages to send"),
        (attached("one"), "wrong number of media in the album"),
        (attached(*["one"] * 11), "too many messages to send as an album"),
        ([*attached("one"), *attached("one", kind="document")], "Document can't be mixed with other media types"),
        ([*attached("one"), *attached("one", kind="audio")], "Audio can't be mixed with other media types"),
        (attached("one", "one", kind="voice"), "can't parse InputMedia: type must be specified"),
        (attached("one", "three"), "wrong file identifier/HTTP URL specified"),
        ([*attached("one"), {"type": "photo", "media": "nonsense"}], "wrong remote file identifier specified: Wrong string length"),
        ([{**attached("one")[0], "caption": "x" * 1025}, *attached("one")], "message caption is too long"),
    ],
)  # fmt: skip
def test_an_album_that_cannot_be_sent_is_refused_as_a_whole(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, media: Any, words: str
) -> None:
    answer = post(api, bot, "sendMediaGroup", {"one": ("1.png", PNG)}, chat_id=ada.id, media=media).json()
    assert (answer["error_code"], answer["description"]) == (400, f"Bad Request: {words}")
    assert len(chat.messages) == 1


def test_a_file_id_belongs_to_the_bots_that_got_it(api: BotApi, bot: Bot, ada: Person, chat: Chat) -> None:
    other = api.add_bot("otherbot")
    ada.starts(other)
    file = ada.sends_document(chat, "a.txt", b"a").files[0]
    sent = post(api, bot, "sendDocument", chat_id=ada.id, document=file.id).json()["result"]["document"]
    assert (sent["file_id"], sent["file_unique_id"]) == (file.id, file.unique_id)
    refused = post(api, other, "sendDocument", chat_id=ada.id, document=file.id).json()
    assert refused["description"] == "Bad Request: wrong file identifier/HTTP URL specified"
    assert not post(api, other, "getFile", file_id=file.id).json()["ok"]
    own = post(api, bot, "sendDocument", {"document": ("b.txt", b"b")}, chat_id=ada.id).json()["result"]
    again = {"chat_id": ada.id, "document": own["document"]["file_id"]}
    assert post(api, bot, "sendDocument", **again).json()["result"]["document"] == own["document"]
    assert not post(api, other, "sendDocument", **again).json()["ok"]


@pytest.mark.parametrize(
    ("method", "name", "mime", "comes_as"),
    [
        ("sendVoice", "a.ogg", "audio/ogg", "voice"),
        ("sendVoice", "a.mp3", "audio/mpeg", "voice"),
        ("sendVoice", "a.wav", "audio/x-wav", "audio"),
        ("sendVoice", "a.txt", "text/plain", "document"),
        ("sendVideo", "a.mp4", "video/mp4", "video"),
        ("sendVideo", "a.mkv", "video/x-matroska", "document"),
        ("sendAudio", "a.flac", "audio/flac", "audio"),
        ("sendVoice", "a", "application/octet-stream", "voice"),
    ],
)
def test_a_file_that_a_method_does_not_take_comes_as_another_kind(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, method: str, name: str, mime: str, comes_as: str
) -> None:
    field = method.removeprefix("send").lower()
    sent = post(api, bot, method, {field: (name, b"data", mime)}, chat_id=ada.id).json()["result"]
    assert comes_as in sent
    again = f"send{comes_as.title()}"
    assert post(api, bot, again, chat_id=ada.id, **{comes_as: sent[comes_as]["file_id"]}).json()["ok"]


# --- files both ways: what people send, what bots send, downloads and their limits ----------------


MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("kind", "send"),
    [
        ("photo", lambda ada, chat: ada.sends_photo(chat, PNG, caption="look")),
        (
            "document",
            lambda ada, chat: ada.sends_document(chat, "a.pdf", b"%PDF", "application/pdf", caption="look"),
        ),
        ("voice", lambda ada, chat: ada.sends_voice(chat)),
        ("audio", lambda ada, chat: ada.sends_audio(chat)),
        ("video", lambda ada, chat: ada.sends_video(chat)),
        ("sticker", lambda ada, chat: ada.sends_sticker(chat)),
        ("location", lambda ada, chat: ada.sends_location(chat, 1.5, 2.5)),
        ("contact", lambda ada, chat: ada.sends_contact(chat)),
    ],
)
def test_the_library_reads_what_people_send(
    raw: Raw, ada: Person, chat: Chat, kind: str, send: Callable[[Person, Chat], object]
) -> None:
    send(ada, chat)
    (update,) = raw.updates()
    message = Update.de_json(update, None).message
    assert message and getattr(message, kind)
    assert (message.caption or "") in ("", "look")


async def test_a_file_is_downloaded_through_its_path(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    sent = ada.sends_document(chat, "ä.txt", b"contents", "text/plain")
    (update,) = await client.get_updates()
    assert update.message and update.message.document
    assert (update.message.document.file_name, update.message.document.file_size) == ("ä.txt", 8)
    file = await update.message.document.get_file()
    assert bytes(await file.download_as_bytearray()) == b"contents"
    sent.files[0].vanish()
    with pytest.raises(InvalidToken):  # 404: the library takes it for a wrong token
        await file.download_as_bytearray()


def test_what_is_too_big_or_unknown_has_no_path(raw: Raw, ada: Person, chat: Chat) -> None:
    sent = ada.sends_document(chat, "huge.bin", b"x", size=20 * MEGABYTE + 1)
    assert raw.refused("getFile", file_id=sent.files[0].id) == (400, "Bad Request: file is too big")
    unknown = "Bad Request: wrong file_id or the file is temporarily unavailable"
    assert raw.refused("getFile", file_id="nonsense") == (400, unknown)


async def test_a_bot_sends_files_by_upload_and_by_id(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    sent = await client.send_document(
        ada.id, b"notes", filename="notes.txt", caption="<b>read</b>", parse_mode="HTML"
    )
    assert sent.document and sent.caption_entities
    again = await client.send_document(ada.id, sent.document.file_id)
    assert again.document and again.document.file_unique_id == sent.document.file_unique_id
    photo = await client.send_photo(ada.id, PNG)
    assert len(photo.photo) == 3
    for send, field in (
        (client.send_voice, "voice"),
        (client.send_audio, "audio"),
        (client.send_video, "video"),
    ):
        assert getattr(await send(ada.id, b"data"), field)
    assert (await client.send_sticker(ada.id, b"RIFF")).sticker
    with pytest.raises(BadRequest, match="Can't use file of type document as photo"):
        await client.send_photo(ada.id, sent.document.file_id)
    with pytest.raises(BadRequest, match="Message caption is too long"):
        await client.send_photo(ada.id, PNG, caption="x" * 1025)
    with pytest.raises(BadRequest, match="Wrong remote file identifier"):
        await client.send_document(ada.id, "nonsense")
    assert (chat.messages[1].text, [file.data for file in chat.messages[1].files]) == ("read", [b"notes"])
    assert chat.messages[1].files[0].name == "notes.txt"


@pytest.mark.slow
def test_an_upload_must_be_small_enough_and_an_image_if_it_is_a_photo(
    api: BotApi, bot: Bot, ada: Person, chat: Chat
) -> None:
    def upload(method: str, field: str, data: bytes) -> tuple[int, str]:
        url = f"{api.url}/bot{bot.token}/{method}"
        response = httpx.post(url, data={"chat_id": ada.id}, files={field: ("a.jpg", data)}, timeout=60)
        return response.status_code, response.json().get("description", "")

    size = 10 * MEGABYTE + 1
    assert upload("sendPhoto", "photo", b"\xff\xd8" + bytes(size - 2)) == (
        400,
        f"Bad Request: file of size {size} bytes is too big for a photo; the maximum size is 10485760 bytes",
    )
    assert upload("sendPhoto", "photo", b"text") == (400, "Bad Request: IMAGE_PROCESS_FAILED")
    assert upload("sendPhoto", "other", b"text") == (400, "Bad Request: there is no photo in the request")
    assert upload("sendDocument", "document", bytes(52 * MEGABYTE)) == (413, "Request Entity Too Large")
    assert upload("sendDocument", "document", b"") == (400, "Bad Request: file must be non-empty")
    assert len(chat.messages) == 1


async def test_an_album_is_several_messages_with_one_group(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, raw: Raw, client: Library
) -> None:
    album = ada.begins_album(chat)
    album.add(PNG, "look")
    first = raw.messages()  # nothing says that more will come
    album.add(("notes.txt", b"notes"))
    second = raw.messages()
    assert first[0]["media_group_id"] == second[0]["media_group_id"] == album.id
    assert (first[0]["caption"], "caption" in second[0]) == ("look", False)
    assert len(ada.sends_album(chat, [PNG, PNG], caption="two")) == 2
    sent = await client.send_media_group(ada.id, [InputMediaPhoto(PNG, caption="a"), InputMediaPhoto(PNG)])
    assert len({one.media_group_id for one in sent}) == 1
    with pytest.raises(BadRequest):
        await client.send_media_group(ada.id, [InputMediaPhoto(PNG)])
    with pytest.raises(BadRequest, match="Document can't be mixed with other media types"):
        await client.send_media_group(ada.id, [InputMediaPhoto(PNG), InputMediaDocument(b"x")])
    assert [one.text for one in chat.messages[-2:]] == ["a", ""]


async def test_an_album_counts_once_against_the_limits(
    api: BotApi, bot: Bot, ada: Person, chat: Chat, client: Library
) -> None:
    api.limit()
    for _ in range(3):
        await client.send_media_group(ada.id, [InputMediaPhoto(PNG)] * 5)
    with pytest.raises(RetryAfter):
        await client.send_media_group(ada.id, [InputMediaPhoto(PNG)] * 2)
    assert len(chat.messages) == 1 + 15
