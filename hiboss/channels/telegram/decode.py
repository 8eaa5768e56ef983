"""What a raw update means, without fetching anything.

Pure functions over JSON that may lack any field, or have it in another form: none of them raises, because one
update that is not understood must not hold up the others. What nobody understands is `ignored`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ...core.contracts.inbound import Inbound, Update
from . import message_facts as facts
from .message_facts import Me, Raw, identifier, number, record, records, text
from .message_text import content, is_live_location, is_service

ALLOWED = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "message_reaction",  # only who names it gets it
    "callback_query",
    "my_chat_member",
    "stopped_message_generation",  # servers before Bot API 10.3 do not mind
)
NOWHERE = "unknown"  # the chat of an update that names none
MESSAGES = ("message", "channel_post")
EDITS = ("edited_message", "edited_channel_post")
_ACTING = ("press", "membership", "command", "stop")
_PRESENT = ("member", "administrator", "creator")
_EMOJI_OF = {"paid": "⭐", "custom_emoji": "custom"}


def update(raw: Any, era: int, me: Me) -> Update:
    """Return a raw update as hiboss stores it. `era`: how often the server began to count anew."""
    found = meaning(raw, me)
    return Update(
        id=update_id(raw, era),
        chat=found.chat,
        raw=raw,
        message=found.message,
        act=found if found.kind in _ACTING else None,
        about=found,
    )


def update_id(raw: Any, era: int) -> str:
    """Return an id that no other update has, also if the server gives a number twice."""
    known = number(raw, "update_id")
    if known is None:  # the server has made a mistake; the same mistake gets the same id
        known_by = json.dumps(raw, sort_keys=True, default=str).encode()
        return f"odd.{hashlib.sha256(known_by).hexdigest()[:16]}"
    return str(known) if era == 0 else f"{era}.{known}"


def meaning(raw: Any, me: Me) -> Inbound:
    """Return what an update means, without its files."""
    for kind in (*MESSAGES, *EDITS):
        if message := record(raw, kind):
            return _message(message, me, edited=kind in EDITS)
    if query := record(raw, "callback_query"):
        return _press(query)
    if reaction := record(raw, "message_reaction"):
        return _reaction(reaction)
    if change := record(raw, "my_chat_member"):
        return _membership(change)
    if stopped := record(raw, "stopped_message_generation"):
        return _stop(stopped)
    return Inbound(kind="ignored", **_where(_any_record(raw)))


def message_of(raw: Any) -> Raw:
    """Return the message of an update, new or edited; an empty one if it has none."""
    return next((found for kind in (*MESSAGES, *EDITS) if (found := record(raw, kind))), {})


def album(raw: Any) -> str | None:
    """Return the album that a new message is a part of."""
    message = next((found for kind in MESSAGES if (found := record(raw, kind))), {})
    return text(message, "media_group_id") or None


def _any_record(raw: Any) -> Raw:
    """Return what an update of an unknown kind is about, if it is like the others."""
    values = raw.values() if isinstance(raw, dict) else ()
    return next((one for one in values if isinstance(one, dict) and record(one, "chat")), {})


def _where(message: Raw) -> dict[str, Any]:
    chat = record(message, "chat")
    kind = facts.chat_kind(chat)
    return {
        "chat": identifier(chat, "id") or NOWHERE,
        "chat_kind": kind,
        "title": None if kind == "private" else text(chat, "title") or None,
        "topic": facts.topic(message),
    }


def _message(message: Raw, me: Me, *, edited: bool) -> Inbound:
    where = _where(message)
    about: dict[str, Any] = {"message": identifier(message, "message_id"), "author": facts.author(message)}
    new_id = identifier(message, "migrate_to_chat_id")
    if new_id is not None:
        return Inbound(kind="membership", membership="renamed", renamed_to=new_id, **where, **about)
    if is_service(message) or about["message"] is None or where["chat"] == NOWHERE:
        return Inbound(kind="ignored", **where, **about)
    if edited and (is_live_location(message) or _is_wordless_part(message)):
        return Inbound(kind="ignored", **where, **about)
    date = number(message, "edit_date") if edited else number(message, "date")
    about |= {
        "text": content(message),
        "forwarded": facts.forwarded(message),
        "reply_to": identifier(facts.answered(message), "message_id"),
        "quote": facts.quote(message),
        "mentioned": facts.mentions(message, me),
        "replied": facts.is_reply_to(message, me),
        "sent_at": None if date is None else date * 1000,
    }
    command = None if edited else facts.command(message, me)
    if command is not None:
        about |= {"kind": "command", "command": command.name, "arguments": command.arguments}
    elif edited:
        about["kind"] = "edit"
    return Inbound(**where, **about)


def _is_wordless_part(message: Raw) -> bool:
    """Tell whether an edit is of a part of an album that has no text: that of the album is another part's."""
    return bool(text(message, "media_group_id")) and not text(message, "caption")


def _press(query: Raw) -> Inbound:
    """A button was pressed. Of an old post only its chat and its id are known."""
    message = record(query, "message")
    where, post, value = _where(message), identifier(message, "message_id"), text(query, "data")
    if post is None or not value or where["chat"] == NOWHERE:  # of a post that is not ours, or a game
        return Inbound(kind="ignored", **where)
    return Inbound(
        kind="press", message=post, button=value, author=facts.person(record(query, "from")), **where
    )


def _stop(stopped: Raw) -> Inbound:
    """Somebody pressed Stop on a draft. Only private chats have drafts, so it is the person of the chat."""
    where, draft = _where(stopped), number(stopped, "draft_id")
    where["topic"] = identifier(stopped, "message_thread_id")  # here it can be nothing else
    if draft is None or where["chat"] == NOWHERE or where["chat_kind"] != "private":
        return Inbound(kind="ignored", **where)
    return Inbound(kind="stop", draft=draft, author=facts.person(record(stopped, "chat")), **where)


def _reaction(change: Raw) -> Inbound:
    where, message = _where(change), identifier(change, "message_id")
    if message is None or where["chat"] == NOWHERE:
        return Inbound(kind="ignored", **where)
    actor = {"sender_chat": change.get("actor_chat"), "from": change.get("user")}
    now = [
        text(one, "emoji") or _EMOJI_OF.get(text(one, "type"), "?") for one in records(change, "new_reaction")
    ]
    return Inbound(kind="reaction", message=message, emojis=tuple(now), author=facts.author(actor), **where)


def _membership(change: Raw) -> Inbound:
    where, by = _where(change), facts.person(record(change, "from"))
    before, after = (_is_there(record(change, f"{when}_chat_member")) for when in ("old", "new"))
    if before == after or where["chat"] == NOWHERE:  # it became an admin, for example
        return Inbound(kind="ignored", author=by, **where)
    return Inbound(kind="membership", membership="joined" if after else "left", author=by, **where)


def _is_there(member: Raw) -> bool:
    status = text(member, "status")
    return status in _PRESENT or (status == "restricted" and member.get("is_member") is True)
