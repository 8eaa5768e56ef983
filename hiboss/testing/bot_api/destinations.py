"""Where a call goes: the chat a bot may write to, the topic, the message it replies to, its buttons."""

from __future__ import annotations

from typing import Any

from .bots import Bot
from .chats import Chat
from .messages import Message
from .params import Params
from .refusals import bad_request, forbidden
from .text_entities import units
from .world import World

BUTTON_DATA_BYTES = 64
_KEYBOARD_KINDS = ("inline_keyboard", "keyboard", "remove_keyboard", "force_reply")
_BUTTON_ACTIONS = (
    "callback_data",
    "url",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)


def find_chat(world: World, bot: Bot, params: Params) -> Chat:
    """Return the chat of a call, or refuse it in the words of the platform."""
    given = params.text("chat_id").strip()
    if not given:
        raise bad_request("chat_id is empty")
    if given.startswith("@"):
        return _checked(bot, _named(world, given[1:]))
    try:
        number = int(given)
    except ValueError:
        raise bad_request("chat not found") from None
    if number > 0:
        return _private(world, bot, number)
    if number not in world.groups:
        raise bad_request("chat not found")
    return _checked(bot, world.groups[number])


def _named(world: World, username: str) -> Chat:
    for chat in world.groups.values():
        if (chat.identity.username or "").lower() == username.lower():
            return chat
    raise bad_request("chat not found")


def _private(world: World, bot: Bot, number: int) -> Chat:
    if any(other.id == number for other in world.bots.values()):
        raise forbidden("bot can't send messages to bots")
    person = world.people.get(number)
    if person is None:
        raise bad_request("chat not found")
    if number in world.deactivated:
        raise forbidden("user is deactivated")
    if (number, bot.id) in world.blocked:
        raise forbidden("bot was blocked by the user")
    if (number, bot.id) not in world.started:
        raise forbidden("bot can't initiate conversation with a user")
    return world.private_chat(person, bot)


def _checked(bot: Bot, chat: Chat) -> Chat:
    if chat.migrated_to is not None:
        raise bad_request("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to)
    status = chat.status(bot)
    if status is not None and chat.dissolved:
        raise forbidden("the group chat was deleted")
    if status is None:
        raise bad_request("chat not found")
    if status == "kicked" or (status == "left" and chat.kind == "group"):
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if status == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")
    return chat


def read_topic(bot: Bot, chat: Chat, params: Params, reply_to: Message | None) -> int | None:
    """Return the topic of a call. General has no id, and a reply goes where the other message is."""
    if not params.has("message_thread_id"):
        return reply_to.topic if reply_to is not None else None
    number = params.number("message_thread_id")
    topic = chat.topics.get(number)
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed and chat.kind != "private" and not chat.is_admin(bot):
        raise bad_request("TOPIC_CLOSED")
    return number


def read_reply(chat: Chat, params: Params) -> tuple[Message | None, dict[str, Any]]:
    """Return the message a call replies to, and what this adds to the new message."""
    given = params.object("reply_parameters", "reply parameters") or {}
    if not given and params.has("reply_to_message_id"):
        given = {
            "message_id": params.number("reply_to_message_id"),
            "allow_sending_without_reply": params.flag("allow_sending_without_reply"),
        }
    if not given:
        return None, {}
    if not isinstance(given, dict) or not isinstance(given.get("message_id"), int):
        raise bad_request("can't parse reply parameters: Can't find field \"message_id\"")
    message = chat.find(given["message_id"])
    if message is None:
        if given.get("allow_sending_without_reply"):
            return None, {}
        raise bad_request("message to be replied not found")
    quote = given.get("quote")
    if not quote:
        return message, {}
    if quote not in message.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    place = units(message.text.partition(quote)[0])
    return message, {"quote": {"text": quote, "position": place, "is_manual": True}}


def read_markup(params: Params) -> dict[str, Any] | None:
    """Return the keyboard of a call, or refuse it."""
    markup = params.object("reply_markup", "reply keyboard markup")
    if markup is None:
        return None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    rows = markup.get("inline_keyboard")
    if rows is None:
        return markup if any(kind in markup for kind in _KEYBOARD_KINDS) else None
    kept = [[_checked_button(button) for button in row] for row in rows if row]
    return {"inline_keyboard": kept} if kept else None


def _checked_button(button: Any) -> dict[str, Any]:
    if not isinstance(button, dict):
        raise bad_request("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
    if not button.get("text"):
        raise bad_request("inline keyboard button text must be non-empty")  # a guess at the words
    if not any(action in button for action in _BUTTON_ACTIONS):
        raise bad_request("text buttons are unallowed in the inline keyboard")
    if "callback_data" in button:
        size = len(str(button["callback_data"]).encode())
        if not 1 <= size <= BUTTON_DATA_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    return button
