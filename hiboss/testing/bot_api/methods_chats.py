"""Methods about chats: what they are, who is in them, their topics, leaving them; and files."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .chats import MEMBER, Chat, Topic
from .delivery import member_json, tell_membership
from .destinations import find_chat
from .groups import create_topic
from .params import Params
from .refusals import bad_request
from .world import World

TOPIC_NAME_LIMIT = 128


def get_chat(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    return chat.identity.as_json() | {
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": {
            "unlimited_gifts": False,
            "limited_gifts": False,
            "unique_gifts": False,
            "premium_subscription": False,
            "gifts_from_channels": False,
        },
    }


def get_chat_member(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    account = chat.accounts.get(params.number("user_id"))
    if account is None:
        raise bad_request("member not found")
    return member_json(account, chat.statuses[account.id])


def get_chat_administrators(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    if chat.kind == "private":
        raise bad_request("there are no administrators in the private chat")
    return [
        member_json(account, chat.statuses[account.id])
        for account in chat.accounts.values()
        if chat.is_admin(account)
    ]


def get_chat_member_count(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    return sum(status in MEMBER for status in chat.statuses.values())


def leave_chat(world: World, bot: Bot, params: Params) -> Any:
    chat = find_chat(world, bot, params)
    if chat.kind == "private":
        raise bad_request("chat member status can't be changed in private chats")
    before = chat.status(bot)
    chat.statuses[bot.id] = "left"
    tell_membership(world, chat, bot, bot, before, "left")
    return True


def get_file(world: World, bot: Bot, params: Params) -> Any:
    file = world.files.promised(params.text("file_id"), bot.id)
    return file.as_json() | {"file_path": file.path}


def create_forum_topic(world: World, bot: Bot, params: Params) -> Any:
    chat = _forum(world, bot, params)
    name = params.text("name").strip()
    if not 1 <= len(name) <= TOPIC_NAME_LIMIT:
        raise bad_request("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    color = params.number("icon_color", 7322096)
    return create_topic(world, chat, name, by=bot, icon_color=color).as_json()


def edit_forum_topic(world: World, bot: Bot, params: Params) -> Any:
    topic = _topic(_forum(world, bot, params), params)
    name = params.text("name").strip() or topic.name
    icon = params.text("icon_custom_emoji_id") or topic.icon_custom_emoji_id
    if (name, icon) == (topic.name, topic.icon_custom_emoji_id):
        raise bad_request("TOPIC_NOT_MODIFIED")
    topic.name, topic.icon_custom_emoji_id = name, icon
    return True


def close_forum_topic(world: World, bot: Bot, params: Params) -> Any:
    return _set_closed(world, bot, params, True)


def reopen_forum_topic(world: World, bot: Bot, params: Params) -> Any:
    return _set_closed(world, bot, params, False)


def delete_forum_topic(world: World, bot: Bot, params: Params) -> Any:
    """Delete a topic with all its messages."""
    chat = _forum(world, bot, params)
    topic = _topic(chat, params)
    del chat.topics[topic.id]
    for message in chat.messages:
        if message.topic == topic.id:
            chat.delete(message)
    return True


def _set_closed(world: World, bot: Bot, params: Params, closed: bool) -> bool:
    topic = _topic(_forum(world, bot, params), params)
    if topic.closed == closed:
        raise bad_request("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    return True


def _forum(world: World, bot: Bot, params: Params) -> Chat:
    """Return a chat whose topics the bot may manage, or refuse."""
    chat = find_chat(world, bot, params)
    if chat.kind == "private":
        if not bot.topics or not world.has("9.3"):
            raise bad_request("the chat is not a forum")
        return chat
    if not chat.identity.is_forum:
        raise bad_request("the chat is not a forum")
    if not chat.is_admin(bot):
        raise bad_request("not enough rights to create a topic")
    return chat


def _topic(chat: Chat, params: Params) -> Topic:
    topic = chat.topics.get(params.number("message_thread_id"))
    if topic is None:
        raise bad_request("TOPIC_ID_INVALID")
    return topic
