"""What becomes an update of which bot: privacy mode, bots that do not see bots, members coming and going."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .chats import Chat
from .identities import CHANNEL_BOT, GROUP_ANONYMOUS_BOT, Account
from .messages import Message
from .text_entities import part
from .world import World

# Written by people, though the account is one of a bot.
_HIDDEN_PEOPLE = (GROUP_ANONYMOUS_BOT.id, CHANNEL_BOT.id)


def publish(world: World, chat: Chat, message: Message) -> Message:
    """Put a message into a chat and tell the bots that may see it."""
    with world.changed:
        chat.put(message)
        if message.sender is not None and message.sender.is_bot:
            chat.draft_board.end(message.topic)  # a real message ends the preview
        announce(world, chat, message, "channel_post" if chat.kind == "channel" else "message")
        world.changed.notify_all()
    return message


def announce(world: World, chat: Chat, message: Message, kind: str) -> None:
    for bot in world.bots_in(chat):
        if sees(chat, bot, message):
            for file in [*message.files, *(message.reply_to.files if message.reply_to else ())]:
                file.bots.add(bot.id)
            bot.updates.put(kind, message.as_json())


def sees(chat: Chat, bot: Bot, message: Message) -> bool:
    """Return whether a bot gets a message as an update."""
    sender = message.sender
    if sender is not None and sender.is_bot and sender.id not in _HIDDEN_PEOPLE:
        return False
    if chat.kind == "private" or message.service or not bot.privacy:
        return True
    return chat.is_admin(bot) or _is_for(bot, message)


def _is_for(bot: Bot, message: Message) -> bool:
    """Return whether a bot with privacy mode gets this message of a group."""
    if message.reply_to is not None and message.reply_to.sender is bot:
        return True
    for entity in message.entities:
        words = part(message.text, entity).lower()
        if entity["type"] == "mention" and words == f"@{bot.name.lower()}":
            return True
        if entity["type"] == "bot_command":
            _, at, name = words.partition("@")
            if name == bot.name.lower() or (not at and entity["offset"] == 0):
                return True
    return False


def tell_membership(
    world: World, chat: Chat, by: Account, account: Account, before: str | None, after: str
) -> None:
    """Tell a bot that its own place in a chat changed, and admin bots about others'."""
    for bot in world.bots.values():
        own = bot is account
        if not own and not chat.is_admin(bot):
            continue
        change = {
            "chat": chat.identity.as_json(),
            "from": by.as_json(),
            "date": world.clock.date(),
            "old_chat_member": member_json(account, before or "left"),
            "new_chat_member": member_json(account, after),
        }
        bot.updates.put("my_chat_member" if own else "chat_member", change)


_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_pin_messages",
    "can_manage_topics",
)


def member_json(account: Account, status: str) -> dict[str, Any]:
    """Return a member of a chat as the platform writes it."""
    answer: dict[str, Any] = {"user": account.as_json(), "status": status}
    if status == "administrator":
        answer |= {"can_be_edited": False, "is_anonymous": False} | dict.fromkeys(_RIGHTS, True)
    if status == "creator":
        answer["is_anonymous"] = False
    if status == "kicked":
        answer["until_date"] = 0
    return answer
