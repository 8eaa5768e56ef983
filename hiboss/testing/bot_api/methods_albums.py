"""sendMediaGroup: several files that are shown together, each a message of its own."""

from __future__ import annotations

import secrets
from typing import Any

from .bots import Bot
from .destinations import find_chat
from .formatted_text import read_caption
from .media_json import media_json
from .messages import Message
from .methods_sending import send
from .params import Params
from .refusals import bad_request
from .uploads import read_files
from .world import World

MOST_PARTS = 10
_KINDS = {"photo", "video", "document", "audio"}


def send_media_group(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    parts = _checked_parts(params)
    if params.has("reply_markup"):
        params.remark("an album has no keyboard: reply_markup is ignored")
    ready = []
    for part in parts:
        own = params.part(part)
        files = read_files(world, bot, own, part["type"], part.get("media"))
        ready.append((read_caption(own), files))
    if [files[-1].kind for _, files in ready] != [part["type"] for part in parts]:
        raise bad_request("wrong type of the media in the album")  # a guess at the words
    more = {"media_group_id": str(secrets.randbelow(10**17))}
    sent: list[Message] = []
    for part, (caption, files) in zip(parts, ready, strict=True):
        facts = {"media": media_json(part["type"], files), "files": files, "more": dict(more)}
        items = len(parts) if not sent else 0  # counted with the first
        sent.append(send(world, bot, chat, params, caption, items=items, keyboard=False, **facts))
    return [message.as_json() for message in sent]


def _checked_parts(params: Params) -> list[dict[str, Any]]:
    parts = params.object("media", "media")
    if not isinstance(parts, list) or not parts:
        raise bad_request("there are no messages to send")
    if len(parts) > MOST_PARTS:
        raise bad_request("too many messages to send as an album")
    if len(parts) == 1:
        raise bad_request("wrong number of media in the album")  # a guess: the documentation says 2-10
    if not all(isinstance(part, dict) and part.get("type") in _KINDS for part in parts):
        raise bad_request("can't parse InputMedia: type must be specified")  # a guess at the words
    kinds = {part["type"] for part in parts}
    if len(kinds) > 1 and not kinds <= {"photo", "video"}:
        kind = "Document" if "document" in kinds else "Audio"
        raise bad_request(f"{kind} can't be mixed with other media types")
    return parts
