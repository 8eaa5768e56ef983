"""Who wrote a raw message, where, in reply to what, and whether it names the bot.

Pure functions over JSON that may lack any field, or have it in another form: none of them raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ...core.contracts.inbound import NOBODY, Author

Raw = dict[str, Any]
ChatKind = Literal["private", "group", "channel"]
_KINDS: dict[str, ChatKind] = {"private": "private", "channel": "channel"}  # else group
_HALF = re.compile("[\ud800-\udfff]")
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?(?=\s|$)")
_QUOTING = ("blockquote", "expandable_blockquote", "code", "pre")


class Me(NamedTuple):
    """The bot itself."""

    id: int
    username: str | None = None


class Command(NamedTuple):
    name: str
    arguments: str


def record(raw: object, key: str) -> Raw:
    """Return a field that is an object; an empty one if it is not there, or something else."""
    found = raw.get(key) if isinstance(raw, dict) else None
    return found if isinstance(found, dict) else {}


def records(raw: object, key: str) -> list[Raw]:
    """Return the objects of a field that is a list."""
    found = raw.get(key) if isinstance(raw, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(raw: object, key: str) -> str:
    """Return a field that is a text, in a form that can be stored; "" if there is none."""
    found = raw.get(key) if isinstance(raw, dict) else None
    return _HALF.sub("\ufffd", found) if isinstance(found, str) else ""


def number(raw: object, key: str) -> int | None:
    """Return a field that is a whole number."""
    found = raw.get(key) if isinstance(raw, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def identifier(raw: object, key: str) -> str | None:
    """Return a field that is a numeric id, as text."""
    found = number(raw, key)
    return None if found is None else str(found)


def chat_kind(chat: Raw) -> ChatKind:
    return _KINDS.get(text(chat, "type"), "group")


def topic(message: Raw) -> str | None:
    """Return the topic of a message; General has none."""
    return identifier(message, "message_thread_id") if message.get("is_topic_message") is True else None


def person(user: Raw) -> Author:
    if (known := identifier(user, "id")) is None:
        return NOBODY
    name = " ".join(filter(None, (text(user, "first_name"), text(user, "last_name"))))
    return Author(known, name or None, text(user, "username") or None, user.get("is_bot") is True)


def author(message: Raw) -> Author:
    """Return who wrote a message. An anonymous admin or a channel has no id: it is no person."""
    if chat := record(message, "sender_chat"):
        return Author(name=chat_name(chat) or "a chat", username=text(chat, "username") or None)
    return person(record(message, "from"))


def chat_name(chat: Raw) -> str:
    return text(chat, "title") or text(chat, "first_name") or text(chat, "username")


def forwarded(message: Raw) -> str | None:
    """Return who first wrote a message that was forwarded, or which bot wrote it; None: its author did."""
    if origin := record(message, "forward_origin"):
        named = (
            person(record(origin, "sender_user")).name
            or text(origin, "sender_user_name")
            or chat_name(record(origin, "sender_chat"))
            or chat_name(record(origin, "chat"))
        )
        return named or "somebody"
    if "forward_date" in message or "forward_origin" in message:  # a server from before Bot API 7.0
        named = (
            person(record(message, "forward_from")).name
            or text(message, "forward_sender_name")
            or chat_name(record(message, "forward_from_chat"))
        )
        return named or "somebody"
    if bot := record(message, "via_bot"):
        return person(bot).name or "a bot"
    return None


def answered(message: Raw) -> Raw:
    """Return the message that it is a reply to; empty if it is none.

    Everything in a topic looks like a reply to the message that began the topic.
    """
    other = record(message, "reply_to_message")
    if "forum_topic_created" in other:
        return {}
    root = message.get("is_topic_message") is True and number(other, "message_id") == number(
        message, "message_thread_id"
    )
    return {} if root else other


def quote(message: Raw) -> str | None:
    """Return the words that it quotes."""
    elsewhere = record(message, "external_reply")
    return (
        text(record(message, "quote"), "text")
        or text(elsewhere, "text")
        or text(elsewhere, "caption")
        or None
    )


def is_reply_to(message: Raw, me: Me) -> bool:
    return number(record(answered(message), "from"), "id") == me.id


def mentions(message: Raw, me: Me) -> bool:
    """Tell whether the bot is named in the text or the caption."""
    return any(_names(kind, words, entity, me) for kind, words, entity in _entities(message))


def _names(kind: str, words: str, entity: Raw, me: Me) -> bool:
    if kind == "text_mention":
        return number(record(entity, "user"), "id") == me.id
    name = words.rpartition("@")[2] if kind in ("mention", "bot_command") and "@" in words else None
    return name is not None and me.username is not None and name.lower() == me.username.lower()


def _entities(message: Raw) -> Iterator[tuple[str, str, Raw]]:
    """Yield what is marked in a text: the kind, the words, and the entity. Places are UTF-16 units."""
    for words, marks in (("text", "entities"), ("caption", "caption_entities")):
        encoded = text(message, words).encode("utf-16-le")
        for entity in records(message, marks):
            start, length = number(entity, "offset"), number(entity, "length")
            if start is None or length is None or start < 0 or length < 0:
                continue
            part = encoded[2 * start : 2 * (start + length)]
            yield text(entity, "type"), part.decode("utf-16-le", "replace"), entity


def command(message: Raw, me: Me) -> Command | None:
    """Return the command at the very start of a text, if it is for this bot.

    What was forwarded, quoted, shown as code or written by another bot for somebody is none.
    """
    words = text(message, "text")
    found = _COMMAND.match(words)
    if found is None or forwarded(message) is not None:
        return None
    at_start = [kind for kind, _, entity in _entities(message) if number(entity, "offset") == 0]
    if "bot_command" not in at_start or any(kind in _QUOTING for kind in at_start):
        return None
    if found[2] and (me.username is None or found[2].lower() != me.username.lower()):
        return None
    return Command(found[1], words[found.end() :].strip())
