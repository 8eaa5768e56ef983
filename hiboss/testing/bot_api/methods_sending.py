"""Methods that send: text, files, albums, chat actions."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from .bots import Bot
from .chats import Chat
from .delivery import publish
from .destinations import find_chat, read_markup, read_reply, read_topic
from .files import PHOTO_LIMIT, UPLOAD_LIMIT, StoredFile
from .formatted_text import Formatted, read_caption, read_text
from .media_json import media_json, photo_sizes
from .messages import Message
from .params import Params, Upload
from .posting import bot_message
from .refusals import Refusal, bad_request
from .world import World

_MADE = ("photo", "video", "voice", "document", "video_note", "audio")
_ACTIONS = {
    "typing",
    "choose_sticker",
    "find_location",
    *(f"upload_{what}" for what in _MADE),
    *(f"record_{what}" for what in ("video", "voice", "video_note", "audio")),
}
_ALBUM_KINDS = {"photo", "video", "document", "audio"}
_IMAGE_STARTS = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"BM")


def send_message(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    return send(world, bot, chat, params, read_text(params)).as_json()


def send_chat_action(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    action = params.text("action").lower()
    if action not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    read_topic(bot, chat, params, None)
    chat.actions.append(action)
    return True


def sender_of(kind: str) -> Callable[[World, Bot, Params], Any]:
    """Return the method that sends one file of this kind: sendPhoto, sendDocument …"""

    def send_file(world: World, bot: Bot, params: Params) -> Any:
        chat = find_chat(world, bot, params)
        files = read_files(world, params, kind, params.values.get(kind))
        media = media_json(kind, files)
        caption = ("", []) if kind == "sticker" else read_caption(params)
        return send(world, bot, chat, params, caption, media=media, files=files).as_json()

    return send_file


def send_media_group(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    parts = params.object("media", "media")
    if not isinstance(parts, list) or not parts:
        raise bad_request("there are no messages to send")
    if not 2 <= len(parts) <= 10:
        raise bad_request("wrong number of media in the album")  # a guess at the words
    kinds = {part.get("type") for part in parts}
    if not kinds <= _ALBUM_KINDS:
        raise bad_request("can't parse InputMedia: type must be specified")  # a guess at the words
    if len(kinds) > 1 and not kinds <= {"photo", "video"}:
        kind = "Document" if "document" in kinds else "Audio"
        raise bad_request(f"{kind} can't be mixed with other media types")
    ready = []
    for part in parts:
        files = read_files(world, params, part["type"], part.get("media"))
        ready.append((read_caption(Params(part, {})), media_json(part["type"], files), files))
    group = {"media_group_id": str(secrets.randbelow(10**17))}
    sent: list[Message] = []
    for caption, media, files in ready:
        facts = {"media": media, "files": files, "more": dict(group)}
        sent.append(send(world, bot, chat, params, caption, counted=not sent, **facts))
    return [message.as_json() for message in sent]


def send(
    world: World,
    bot: Bot,
    chat: Chat,
    params: Params,
    formatted: Formatted,
    *,
    counted: bool = True,
    **facts: Any,
) -> Message:
    """Post a message of a bot with all that a sending call can say. An album is `counted` once."""
    reply_to, added = read_reply(chat, params)
    topic = read_topic(bot, chat, params, reply_to)
    markup = read_markup(params)
    if counted:
        world.limits.count(bot.id, chat.id, group=chat.kind != "private")
    message = bot_message(
        world,
        bot,
        chat,
        text=formatted[0],
        entities=formatted[1],
        reply_to=reply_to,
        topic=topic,
        reply_markup=markup,
        silent=params.flag("disable_notification"),
        more={**facts.pop("more", {}), **added},
        **facts,
    )
    return publish(world, chat, message)


def read_files(world: World, params: Params, kind: str, given: Any) -> list[StoredFile]:
    """Return the files of a call: uploaded with it, attached under another name, or known by their id."""
    reference = str(given or "")
    upload = params.uploads.get(reference.removeprefix("attach://") if reference else kind)
    if upload is not None:
        return _uploaded(world, kind, upload)
    if not reference:
        raise bad_request(f"there is no {kind} in the request")
    if reference.startswith(("http://", "https://")):
        raise bad_request("failed to get HTTP URL content")  # this server reaches nothing outside
    file = world.files.get(reference)
    if file is None:
        raise bad_request("wrong remote file identifier specified: Wrong string length")
    if file.kind != kind:
        raise bad_request(f"can't use file of type {file.kind.title()} as {kind.title()}")
    return [file]


def _uploaded(world: World, kind: str, upload: Upload) -> list[StoredFile]:
    size = len(upload.data)
    if size > UPLOAD_LIMIT:
        raise Refusal(413, "Request Entity Too Large")
    if not size:
        raise bad_request("file must be non-empty")
    if kind == "photo":
        if size > PHOTO_LIMIT:
            raise bad_request(
                f"file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_LIMIT} bytes"
            )
        if not upload.data.startswith(_IMAGE_STARTS):
            raise bad_request("IMAGE_PROCESS_FAILED")
        return photo_sizes(world.files, upload.data)
    return [world.files.add(kind, upload.data, name=upload.name, mime=upload.mime)]
