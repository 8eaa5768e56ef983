"""Albums of bots, and file ids: several uploads in one call, mixed with known files."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw
from .sending_calls import PNG


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
    assert {one.topic for one in shown} == {topic.id}
    assert {one.reply_to for one in shown} == {asked}
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
