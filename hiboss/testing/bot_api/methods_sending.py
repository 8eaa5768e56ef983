"""Methods that send: text, files, chat actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .bots import Bot
from .chats import Chat
from .delivery import publish
from .destinations import find_chat, read_markup, read_reply, read_topic
from .formatted_text import Formatted, read_caption, read_text
from .media_json import media_json
from .messages import Message
from .params import Params
from .posting import bot_message
from .refusals import bad_request
from .uploads import read_files
from .world import World

_MADE = ("photo", "video", "voice", "document", "video_note", "audio")
_ACTIONS = {
    "typing",
    "choose_sticker",
    "find_location",
    *(f"upload_{what}" for what in _MADE),
    *(f"record_{what}" for what in ("video", "voice", "video_note", "audio")),
}


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
        files = read_files(world, bot, params, kind, params.values.get(kind))
        media = media_json(files[-1].kind, files)
        caption = ("", []) if kind == "sticker" else read_caption(params)
        return send(world, bot, chat, params, caption, media=media, files=files).as_json()

    return send_file


def send(
    world: World,
    bot: Bot,
    chat: Chat,
    params: Params,
    formatted: Formatted,
    *,
    items: int = 1,
    keyboard: bool = True,
    **facts: Any,
) -> Message:
    """Post a message of a bot with all that a sending call can say. It counts as `items` in a group."""
    reply_to, added = read_reply(chat, params)
    topic = read_topic(bot, chat, params, reply_to)
    markup = read_markup(params) if keyboard else None
    if items:
        world.limits.count(bot.id, chat.id, params.method, group=chat.kind != "private", items=items)
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
