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
from .rich_messages import Rich
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
    return _change(world, bot, chat, message, params, text=text, entities=entities)


def edit_message_caption(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    if not message.has_caption:
        raise bad_request("there is no caption in the message to edit")
    text, entities = read_caption(params)
    return _change(world, bot, chat, message, params, text=text, entities=entities)


def edit_message_reply_markup(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    return _change(world, bot, chat, message, params)


def edit_rich(world: World, bot: Bot, params: Params, rich: Rich) -> Any:
    """Edit a message into a rich one, or a rich one into another."""
    chat = find_chat(world, bot, params)
    message = _own(bot, chat, params)
    if message.media:
        raise bad_request("there is no text in the message to edit")
    facts = {"text": rich.text, "entities": [], "more": {**message.more, "rich_message": rich.as_json}}
    return _change(world, bot, chat, message, params, **facts, rich_source=rich.source)


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


def _change(world: World, bot: Bot, chat: Chat, message: Message, params: Params, **facts: Any) -> Any:
    """Write new content. Without a keyboard in the call, the old one goes, as on the platform."""
    markup = read_markup(params)
    if "text" in facts and "more" not in facts:  # it is a plain text now
        plain = {name: value for name, value in message.more.items() if name != "rich_message"}
        facts |= {"more": plain, "rich_source": None}
    said = {name: value for name, value in facts.items() if name != "rich_source"}
    if message.reply_markup == markup and all(
        getattr(message, name) == value for name, value in said.items()
    ):
        raise bad_request(_UNCHANGED)
    world.limits.count(bot.id, chat.id, params.method, group=chat.kind != "private")
    for name, value in facts.items():
        setattr(message, name, value)
    message.reply_markup = markup
    chat.note_edit(message)
    return message.as_json()


def delete_message(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    message = chat.find(params.number("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    _check_deletable(world, bot, chat, message)
    chat.delete(message)
    return True


def delete_messages(world: World, bot: Bot, params: Params) -> Any:
    """Delete up to 100; those that are not there are skipped."""
    chat = find_chat(world, bot, params)
    numbers = params.object("message_ids", "message identifiers") or []
    found = [message for number in numbers if (message := chat.find(int(number)))]
    for message in found:
        _check_deletable(world, bot, chat, message)
    for message in found:
        chat.delete(message)
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
