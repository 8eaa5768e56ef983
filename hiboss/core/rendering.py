"""Render envelopes as text, for people and for agents. No other module formats them.

It works on the JSON form of an envelope, so every door and every turn shows the same. Input
of senders is escaped, so that it cannot forge a header: a name becomes one line without
square brackets (`[boss]` is a mark of hiboss), and a line of a text that looks like a header
line gets a `>` in front (core/escaping.py). JSON output has the text unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Any

from . import escaping

Envelope = Mapping[str, Any]
Facts = list[tuple[str, str]]
CONTEXT_LIMIT = 250
DIGEST_LIMIT = 2_000

# Characters that change the writing direction; with one, a name could visually reorder the header line.
_STEERING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATE, _RELEASE = "\u2068", "\u2069"
_SQUARE = "[]［］〔〕【】〖〗〘〙〚〛⁅⁆❲❳⟦⟧⟬⟭⦋⦌﹇﹈﹝﹞"
_BRACKETS = str.maketrans(_SQUARE, "()" * (len(_SQUARE) // 2))


def envelope(one: Envelope, zone: tzinfo) -> str:
    """Render one envelope as lists show it: header lines, state of the delivery, text."""
    return "\n".join([*_lines(facts(one, zone)), *content(one, zone)])


def facts(one: Envelope, zone: tzinfo) -> Facts:
    """Return the lines above the text, as pairs of key and value."""
    return _header(one, zone) + _delivery(one, zone)


def turn(now: str, agent: str, pending: int | str, envelopes: Sequence[Envelope], zone: tzinfo) -> str:
    """Render the input of an agent's turn: the context, then the envelopes."""
    blocks = [context(now, agent, pending, zone)]
    # Consecutive messages of one group chat share a header, if it is the same for all of them.
    for _, run in groupby(envelopes, key=lambda one: _group_key(one, zone)):
        blocks.append(_under_one_header(list(run), zone))
    return "\n\n".join(blocks)


def already_sent(sent: Sequence[tuple[str, Sequence[str], str]]) -> str:
    """Render what an agent sent when it was given this turn before and did not finish: id, to, quote."""
    lines = [f'- {number} to {", ".join(to)}: "{line(quote)}"' for number, to, quote in sent]
    return "\n".join(["already-sent:", *lines])


def context(now: str, agent: str, pending: int | str, zone: tzinfo) -> str:
    """Render the first lines of a turn: time, name of the agent, number of due envelopes."""
    text = "\n".join(_lines([("now", moment(now, zone)), ("agent", agent), ("pending", str(pending))]))
    assert len(text) <= CONTEXT_LIMIT
    return text


def digest(envelopes: Sequence[Envelope], zone: tzinfo) -> str:
    """Render envelopes in short: each is cut to DIGEST_LIMIT characters, to spare an agent's context."""
    return "\n\n".join(_cut(one, _under_one_header([one], zone)) for one in envelopes)


def _cut(one: Envelope, block: str) -> str:
    if len(block) <= DIGEST_LIMIT:
        return block
    note = f"\n… (the rest: hiboss envelope get {one['id']})"
    return block[: DIGEST_LIMIT - len(note)] + note


def _group_key(one: Envelope, zone: tzinfo) -> Any:
    """Return a key that is equal for messages which can share a header."""
    if _group(one) is None:
        return one["id"]
    own = ("envelope-id", "created-at")
    return (one["conversation"], *(fact for fact in _header(one, zone) if fact[0] not in own))


def _under_one_header(run: list[Envelope], zone: tzinfo) -> str:
    header = _header(run[0], zone)
    header[0] = ("envelope-id", ", ".join(one["id"] for one in run))
    contents = ["\n".join(content(one, zone)) for one in run]
    return "\n".join(_lines(header)) + "\n" + "\n\n".join(contents)


def _header(one: Envelope, zone: tzinfo) -> Facts:
    known: list[tuple[str, str | None]] = [
        ("envelope-id", one["id"]),
        ("from", f"group:{one['group']}" if one["group"] else one["from"]),
        ("to", one["to"]),
        ("from-name", _from_name(one)),
        ("subject", one["subject"] and line(one["subject"])),
        ("created-at", moment(one["created_at"], zone)),
        ("deliver-at", one["deliver_at"] and moment(one["deliver_at"], zone)),
        ("late", one["late_seconds"] and length(one["late_seconds"])),
        ("priority", None if one["priority"] == "normal" else one["priority"]),
        ("in-reply-to", _in_reply_to(one)),
        ("redelivered", "true" if one["redelivered"] else None),
        ("last-delivery-error", _last_error(one)),
    ]
    return _given(known)


def _delivery(one: Envelope, zone: tzinfo) -> Facts:
    metadata = json.dumps(one["metadata"], ensure_ascii=False) if one["metadata"] else None
    known: list[tuple[str, str | None]] = [
        ("status", one["status"]),
        ("waits", one["waits"]),
        ("box", None if one["box"] == "inbox" else one["box"]),
        ("type", None if one["type"] == "text" else one["type"]),
        ("thread", one["thread"]),
        ("read-at", one["read_at"] and moment(one["read_at"], zone)),
        ("acked-at", one["acked_at"] and moment(one["acked_at"], zone)),
        ("metadata", metadata and line(metadata)),
    ]
    return _given(known)


def _given(known: Iterable[tuple[str, str | None]]) -> Facts:
    return [(key, value) for key, value in known if value]


def _lines(known: Facts) -> list[str]:
    return [f"{key}: {value}" for key, value in known]


def content(one: Envelope, zone: tzinfo) -> list[str]:
    """Render the text and its attachments; in a group chat the author and the time stand above the text."""
    title = f"{_author(one)} at {moment(one['created_at'], zone)}:" if _group(one) is not None else "text:"
    lines = [title, body(one["text"]) or "(none)"]
    if one["attachments"]:
        lines.append("attachments:")
        lines += [_attachment(file) for file in one["attachments"]]
    return lines


def _attachment(file: Mapping[str, Any]) -> str:
    kind = file["mime"].partition("/")[0]
    medium = kind if kind in ("image", "audio", "video") else "file"
    return f"- [{medium}] {line(file['name'])} ({file['path']})"


def body(text: str) -> str:
    """Return a text with a `>` before each line that looks like a header line."""
    return escaping.escape_body(text)


# --- the author ----------------------------------------------------------------------


def _from_name(one: Envelope) -> str | None:
    group = _group(one)
    if group is not None:
        title = name(group.replace('"', "'"))
        return f'group "{title}"'
    return _with_mark(_person(one), one["from_boss"]) or None


def _author(one: Envelope) -> str:
    return _with_mark(_person(one) or one["from"], one["from_boss"])


def _person(one: Envelope) -> str:
    """Return the author's name and platform user name: Alice (@alice)."""
    author = (one["channel"] or {}).get("author") or {}
    chosen = author.get("name") or one["from_name"] or ""
    shown = name(escaping.escape_name(chosen))
    handle = author.get("username")
    return f"{shown} (@{name(handle)})".strip() if handle else shown


def _with_mark(shown: str, is_boss: bool) -> str:
    return f"{shown} [boss]".strip() if is_boss else shown


def _group(one: Envelope) -> str | None:
    """Return the name of the group chat of this message; None if it was no group chat."""
    chat = (one["channel"] or {}).get("chat") or {}
    if chat.get("kind") == "group":
        return str(chat.get("title") or chat.get("id") or "")
    group: str | None = one["group"]
    return group


def _in_reply_to(one: Envelope) -> str | None:
    if one["reply_to"] is None:
        return None
    quote = one["quote"] and line(one["quote"].replace('"', "'"))
    return f'{one["reply_to"]} "{quote}"' if quote else str(one["reply_to"])


def _last_error(one: Envelope) -> str | None:
    error = one["last_error"]
    return line(error["text"] or error["kind"]) if error else None


# --- input of senders inside header lines ----------------------------------------------


def name(text: str) -> str:
    """Return a chosen name on one line, with round brackets for square ones: it cannot contain `[boss]`."""
    return line(text.translate(_BRACKETS))


def line(text: str) -> str:
    """Return a text on one line: no control characters, and its writing direction ends with it."""
    flat = " ".join(_STEERING.sub("", text).split())
    flat = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", flat)
    return f"{_ISOLATE}{flat}{_RELEASE}" if _RIGHT_TO_LEFT.search(flat) else flat


def length(seconds: int) -> str:
    """Return a duration in its two largest units, like 2h5m."""
    parts = [
        (seconds // 86_400, "D"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    ]
    texts = [f"{number}{unit}" for number, unit in parts]
    first = next((place for place, (number, _) in enumerate(parts) if number), 3)
    return "".join(text for text in texts[first : first + 2] if not text.startswith("0")) or "0s"


def moment(utc: str, zone: tzinfo) -> str:
    """Return 2026-01-28T20:08:45+08:00 for a UTC time of the API."""
    return datetime.fromisoformat(utc).astimezone(zone).isoformat(timespec="seconds")
