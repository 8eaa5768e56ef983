"""Files both ways: what people send, what bots send, downloads and their limits."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from telegram import Bot as Library
from telegram import InputMediaDocument, InputMediaPhoto, Update
from telegram.error import BadRequest, InvalidToken, RetryAfter

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.bots import Bot
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.people import Person

from .conftest import Raw

PNG = b"\x89PNG\r\n\x1a\n and so on"
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
    assert chat.messages[1].text == "read"
    assert [file.data for file in chat.messages[1].files] == [b"notes"]
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
