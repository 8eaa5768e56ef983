"""Material for the tests of rendering: envelopes in the form of the API."""

from __future__ import annotations

import unicodedata
from typing import Any

Envelope = dict[str, Any]

NOW = "2026-01-28T12:30:00.000Z"


def letter(number: int = 81, **facts: Any) -> Envelope:
    """Return an envelope in the form of the API: from agent kai to agent nex, pending, with these changes."""
    plain: Envelope = {
        "id": f"e{number}",
        "message": f"m{number - 24}",
        "conversation": "c4",
        "seq": number,
        "thread": f"t{number - 24}",
        "reply_to": None,
        "quote": None,
        "from": "agent:kai",
        "sender": "agent:kai",
        "from_boss": False,
        "from_name": None,
        "channel": None,
        "group": None,
        "to": "agent:nex",
        "forwards": None,
        "routed_from": None,
        "subject": None,
        "type": "text",
        "text": "The build is green.",
        "attachments": [],
        "status": "pending",
        "waits": None,
        "priority": "normal",
        "box": "inbox",
        "snoozed_until": None,
        "interruptible": True,
        "auto": False,
        "context": False,
        "deliver_at": None,
        "late_seconds": None,
        "created_at": "2026-01-28T12:08:45.120Z",
        "edited_at": None,
        "deleted": False,
        "deleted_why": None,
        "reactions": [],
        "scopes": [],
        "refs": [],
        "read_at": None,
        "read_by": [],
        "acked_at": None,
        "ack_by": None,
        "done_at": None,
        "attempts": 0,
        "redelivered": False,
        "preempted_by": None,
        "last_error": None,
        "run": None,
        "trace": f"m{number - 24}",
        "hops": 0,
        "metadata": {},
    }
    known = {"from" if key == "from_" else key: value for key, value in facts.items()}
    assert not set(known) - set(plain), "the API says nothing like this"
    return plain | known


def boss(number: int = 81, **facts: Any) -> Envelope:
    return letter(number, **{"from_": "user:boss", "from_boss": True, "from_name": "Ada", **facts})


def private(name: str | None, username: str | None = None, number: int = 81, **facts: Any) -> Envelope:
    """Return a message to an agent from a private chat of a platform."""
    author = {"name": name, "username": username, "id": "7001"}
    channel = {"author": author, "chat": {"kind": "private", "title": None, "id": "7001"}, "message": "55"}
    return letter(number, **{"from_": "channel:telegram:7001", "channel": channel, **facts})


def group(
    name: str | None, username: str | None = None, number: int = 81, title: str | None = "ops", **facts: Any
) -> Envelope:
    """Return a message from a group chat of a platform."""
    author = {"name": name, "username": username, "id": "7001"}
    channel = {"author": author, "chat": {"kind": "group", "title": title, "id": "-1009"}, "message": "55"}
    return letter(number, **{"from_": "channel:telegram:-1009", "channel": channel, **facts})


def said(
    name: str | None, username: str | None = None, number: int = 41, title: str | None = "ops", **facts: Any
) -> Envelope:
    """Return something that was said around a turn in a group chat, in the form that is rendered."""
    like = group(name, username, title=title)
    keys = ("from", "from_boss", "from_name", "channel", "group", "reply_to", "quote", "text")
    more = ("attachments", "created_at", "edited_at")
    plain = {"id": f"m{number}", "cut": False, **{key: like[key] for key in (*keys, *more)}}
    assert not set(facts) - set(plain)
    return plain | facts


def reaction(emoji: str, name: str | None = None, username: str | None = None, **facts: Any) -> Envelope:
    """Return a reaction to m5, as a turn shows it."""
    plain = {"message": "m5", "text": "done", "emoji": emoji, "name": name, "username": username}
    return {**plain, "from_boss": False, **facts}


def file(name: str, mime: str = "application/pdf") -> dict[str, Any]:
    ending = name.rpartition(".")[2] if name.rpartition(".")[2].isascii() else "bin"
    path = (
        f"/home/ada/.hiboss/media/ab/ab12.{ending}" if ending.isalnum() else "/home/ada/.hiboss/media/ab/ab12"
    )
    return {"name": name, "path": path, "size": 3, "mime": mime, "sha256": "ab12"}


def visible(text: str) -> str:
    """Return the same text, with invisible and control characters written as escapes."""
    return "".join(_written(one) for one in text)


def _written(one: str) -> str:
    if one == "\\":
        return "\\\\"
    if one in " \n" or unicodedata.category(one) not in ("Cc", "Cf", "Zs", "Zl", "Zp"):
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"
