"""The newer methods: previews of a message that is being written, and rich messages."""

from __future__ import annotations

import re
from typing import Any

from .bots import Bot
from .chats import Chat, Draft
from .destinations import find_chat, read_topic
from .formatted_text import TEXT_LIMIT, read_formatted
from .methods_changing import edit_message_text, edit_rich
from .methods_sending import send
from .params import Params
from .refusals import bad_request
from .text_entities import units
from .world import World

RICH_LIMIT = 32768
_FORMATS = ("html", "markdown", "blocks")
# What looks like "openai:ada@example.org" is made into a link, and the link is then refused.
_BAD_EMAIL = re.compile(r"[\w.-]+:[\w.+-]+@[\w-]+\.\w+")


def send_message_draft(world: World, bot: Bot, params: Params) -> Any:
    chat = _draft_chat(world, bot, params)
    text, _ = read_formatted(params.text("text"), params, "entities")
    if not text and not world.has("10.0"):
        raise bad_request("text must be non-empty")
    if units(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return _show(world, bot, chat, params, text, rich=False)


def send_rich_message_draft(world: World, bot: Bot, params: Params) -> Any:
    chat = _draft_chat(world, bot, params)
    text, _ = _read_rich(params)
    return _show(world, bot, chat, params, text, rich=True)


def send_rich_message(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    text, rich = _read_rich(params)
    return send(world, bot, chat, params, (text, []), more={"rich_message": rich}).as_json()


def edit_text_or_rich(world: World, bot: Bot, params: Params) -> Any:
    """Answer editMessageText, which takes a rich message since 10.1; before, it ignores it."""
    if world.has("10.1") and params.has("rich_message"):
        return edit_rich(world, bot, params, *_read_rich(params))
    return edit_message_text(world, bot, params)


def _draft_chat(world: World, bot: Bot, params: Params) -> Chat:
    chat = find_chat(world, bot, params)
    if chat.kind != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if params.number("draft_id") == 0:
        raise bad_request("draft_id must be non-zero")  # a guess at the words
    return chat


def _show(world: World, bot: Bot, chat: Chat, params: Params, text: str, *, rich: bool) -> bool:
    draft = Draft(
        draft_id=params.number("draft_id"),
        text=text,
        topic=read_topic(bot, chat, params, None),
        date=world.clock.now(),
        can_stop=world.has("10.3") and params.flag("can_stop"),
        rich=rich,
    )
    chat.show_draft(draft)
    return True


def _read_rich(params: Params) -> tuple[str, dict[str, Any]]:
    """Return the source of a rich message and what stands in the message for it."""
    given = params.object("rich_message", "InputRichMessage")
    if not isinstance(given, dict):
        raise bad_request("rich_message is empty")  # a guess at the words
    named = [name for name in _FORMATS if given.get(name)]
    if len(named) != 1:
        raise bad_request("RICH_MESSAGE_EMPTY" if not named else "RICH_MESSAGE_FORMAT_INVALID")
    content = given[named[0]]
    text = content if isinstance(content, str) else str(content)
    if len(text) > RICH_LIMIT:
        raise bad_request("RICH_MESSAGE_TOO_LONG")
    if not given.get("skip_entity_detection") and _BAD_EMAIL.search(text):
        raise bad_request("RICH_MESSAGE_EMAIL_INVALID")
    blocks = content if named[0] == "blocks" else [{"type": "paragraph", "text": text}]
    return text, {"blocks": blocks}
