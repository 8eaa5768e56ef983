"""The newer methods: previews of a message that is being written, and rich messages."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .chats import Chat
from .destinations import find_chat, read_topic
from .drafts import Draft
from .formatted_text import TEXT_LIMIT, read_formatted
from .methods_changing import edit_message_text, edit_rich
from .methods_sending import send
from .params import Params
from .refusals import bad_request
from .rich_messages import read_rich
from .text_entities import units
from .world import World


def send_message_draft(world: World, bot: Bot, params: Params) -> Any:
    chat = _draft_chat(world, bot, params)
    text, _ = read_formatted(params.text("text"), params, "entities")
    if not text and not world.has("10.0"):
        raise bad_request("text must be non-empty")
    if units(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return _show(world, bot, chat, params, text)


def send_rich_message_draft(world: World, bot: Bot, params: Params) -> Any:
    chat = _draft_chat(world, bot, params)
    rich = read_rich(world, params, draft=True)
    return _show(world, bot, chat, params, rich.text, rich_source=rich.source)


def send_rich_message(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    rich = read_rich(world, params)
    more = {"rich_message": rich.as_json}
    message = send(world, bot, chat, params, (rich.text, []), more=more, rich_source=rich.source)
    return message.as_json()


def edit_text_or_rich(world: World, bot: Bot, params: Params) -> Any:
    """Answer editMessageText, which takes a rich message since 10.1; before, it ignores it."""
    if not world.has("10.1") or not params.has("rich_message"):
        return edit_message_text(world, bot, params)
    if params.has("text"):
        params.remark("a text beside a rich message is ignored")  # a guess: one of them is documented
    return edit_rich(world, bot, params, read_rich(world, params))


def _draft_chat(world: World, bot: Bot, params: Params) -> Chat:
    chat = find_chat(world, bot, params)
    if chat.kind != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if params.number("draft_id") == 0:
        raise bad_request("RANDOM_ID_INVALID")
    return chat


def _show(
    world: World, bot: Bot, chat: Chat, params: Params, text: str, *, rich_source: str | None = None
) -> bool:
    """Show a draft. One with the id of the draft before grows out of it, another takes its place."""
    topic = read_topic(bot, chat, params, None)
    before = chat.draft_board.now(topic)
    number = params.number("draft_id")
    draft = Draft(
        draft_id=number,
        text=text,
        topic=topic,
        date=world.clock.now(),
        can_stop=world.has("10.3") and params.flag("can_stop"),
        keep_on_stop=world.has("10.3") and params.flag("keep_on_stop"),
        rich=rich_source is not None,
        rich_source=rich_source,
        animated=before is not None and before.draft_id == number,
    )
    chat.draft_board.show(draft)
    return True
