"""Methods that change what is there: edits, deletions, reactions."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .chats import Chat
from .destinations import find_chat, read_markup
from .formatted_text import read_caption, read_text
from .messages import Message
from .params import Params
from .refusals import bad_request
from .world import World

DELETABLE_SECONDS = 48 * 3600
_EMOJI = """
👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤️‍🔥
🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨
🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂️ 🤷 🤷‍♀️ 😡
"""
REACTIONS = frozenset(_EMOJI.split())  # what everybody may react with
_UNCHANGED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def edit_message_text(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    if not message.text or message.media:
        raise bad_request("there is no text in the message to edit")
    text, entities = read_text(params)
    return _change(world, bot, chat, message, read_markup(params), text=text, entities=entities)


def edit_message_caption(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    if not message.has_caption:
        raise bad_request("there is no caption in the message to edit")
    text, entities = read_caption(params)
    return _change(world, bot, chat, message, read_markup(params), text=text, entities=entities)


def edit_message_reply_markup(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    return _change(world, bot, chat, message, read_markup(params))


def edit_rich(world: World, bot: Bot, params: Params, text: str, rich: dict[str, Any]) -> Any:
    """Edit a message into a rich one, or a rich one into another."""
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    more = {**message.more, "rich_message": rich}
    return _change(world, bot, chat, message, read_markup(params), text=text, entities=[], more=more)


def _own(bot: Bot, chat: Chat, params: Params) -> Message:
    """Return the message to edit. A bot edits only what it sent."""
    if not params.has("message_id"):
        raise bad_request("message identifier is not specified")
    message = chat.find(params.number("message_id"))
    if message is None:
        raise bad_request("message to edit not found")
    ours = message.sender is bot or (chat.kind == "channel" and chat.is_admin(bot))
    if not ours or message.service:
        raise bad_request("message can't be edited")
    return message


def _change(
    world: World, bot: Bot, chat: Chat, message: Message, markup: dict[str, Any] | None, **facts: Any
) -> Any:
    """Write new content. Without a keyboard in the call, the old one goes, as on the platform."""
    same = all(getattr(message, name) == value for name, value in facts.items())
    if same and message.reply_markup == markup:
        raise bad_request(_UNCHANGED)
    world.limits.count(bot.id, chat.id, group=chat.kind != "private")
    if "text" in facts and "more" not in facts:
        message.more.pop("rich_message", None)  # it is a plain text now
    for name, value in facts.items():
        setattr(message, name, value)
    message.reply_markup = markup
    message.revision += 1
    message.edit_date = world.clock.date()
    return message.as_json()


def delete_message(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = chat.find(params.number("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    _check_deletable(world, bot, chat, message)
    message.deleted = True
    return True


def delete_messages(world: World, bot: Bot, params: Params) -> Any:
    """Delete up to 100; those that are not there are skipped."""
    chat = find_chat(world, bot, params)
    numbers = params.object("message_ids", "message identifiers") or []
    found = [message for number in numbers if (message := chat.find(int(number)))]
    for message in found:
        _check_deletable(world, bot, chat, message)
    for message in found:
        message.deleted = True
    return True


def _check_deletable(world: World, bot: Bot, chat: Chat, message: Message) -> None:
    admin = chat.kind != "private" and chat.is_admin(bot)
    if message.sender is not bot and chat.kind != "private" and not admin:
        raise bad_request("message can't be deleted")
    if world.clock.now() - message.date > DELETABLE_SECONDS and not admin:
        raise bad_request("message can't be deleted for everyone")


def set_message_reaction(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = chat.find(params.number("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reactions = params.object("reaction", "reaction types") or []
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")  # a bot has one, as people without Premium
    emojis = [str(one.get("emoji", "")) for one in reactions]
    if any(emoji not in REACTIONS for emoji in emojis):
        raise bad_request("REACTION_INVALID")
    message.reactions.pop(bot.id, None)
    if emojis:
        message.reactions[bot.id] = emojis
    return True
