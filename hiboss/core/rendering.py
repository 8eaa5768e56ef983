"""Render envelopes as text, for people and for agents. No other module formats them.

It works on the JSON form of an envelope, so every door and every turn shows the same. A text
of a sender stands behind `>` on each line, and everything else that a sender chose in double
quotes, except plain names (core/escaping.py). So a line of hiboss is never a sender's. docs/turns.md
describes the format. JSON output has the texts unchanged.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from itertools import groupby

from .escaping import emoji, mark_lines, name, quote, visible
from .shortening import shorten

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import tzinfo
    from typing import Any

    Envelope = Mapping[str, Any]
    Facts = list[tuple[str, str]]

CONTEXT_LIMIT = 250
DIGEST_LIMIT = 2_000
DIGEST_QUOTE = 120  # characters of a subject or a name in a digest
DIGEST_FILES = 3  # attachments named in a digest
REACTIONS = 20  # named in one line
TAGS = 10  # scopes, or refs, named in one line
DIGEST_TAGS = 2
NOTHING = "(none)"  # in place of an empty text; without a mark, so no text can imitate it
_HANDLE = "[A-Za-z0-9_]{1,64}"  # a username that is shown without quotes
_PER_MESSAGE = (
    *("envelope-id", "author", "from-boss", "from-name", "from-username"),
    *("created-at", "edited-at", "forwarded-from", "note"),
)


class Around:
    """What was said around the envelopes of a turn, and how much more is left out."""

    def __init__(self, messages: Sequence[Mapping[str, Any]], left_out: int | str) -> None:
        self.messages = messages
        self.left_out = left_out


class Reactions:
    """New reactions to what an agent wrote, each with its message and the beginning of its text."""

    def __init__(self, shown: Sequence[Mapping[str, Any]], more: int) -> None:
        self.shown = shown
        self.more = more


def envelope(one: Envelope, zone: tzinfo) -> str:
    """Render one envelope as lists show it: header lines, state of the delivery, text."""
    return "\n".join([*_lines(facts(one, zone)), *content(one)])


def facts(one: Envelope, zone: tzinfo) -> Facts:
    """Return the lines above the text, as pairs of key and value."""
    return _header(one, zone) + _delivery(one, zone)


def turn(
    now: str,
    agent: str,
    pending: int | str,
    envelopes: Sequence[Envelope],
    zone: tzinfo,
    around: Around | None = None,
    reactions: Reactions | None = None,
    meanwhile: Around | None = None,
) -> str:
    """Render the input of an agent's turn: the context, what was said around, reactions, the envelopes.

    `meanwhile`: what was said while somebody else had the conversation.
    """
    blocks = [context(now, agent, pending, zone)]
    if meanwhile is not None and meanwhile.messages:
        blocks += _meanwhile(meanwhile, zone)
    if around is not None and around.messages:
        blocks += _around(around, zone)
    if reactions is not None and reactions.shown:
        blocks.append(_new_reactions(reactions))
    return "\n\n".join([*blocks, mail(envelopes, zone)] if envelopes else blocks)


def mail(envelopes: Sequence[Envelope], zone: tzinfo) -> str:
    """Render envelopes as a turn shows them."""
    # Consecutive messages of one group chat share a header, if it is the same for all of them.
    blocks: list[str] = []
    for _, run in groupby(envelopes, key=lambda one: _group_key(one, zone)):
        blocks += _under_one_header(list(run), zone)
    return "\n\n".join(blocks)


def _around(around: Around, zone: tzinfo) -> list[str]:
    """Return the blocks of what was said around: a header, then one for each message."""
    latest = around.messages[-1]
    group = _group(latest)
    known: list[tuple[str, str | None]] = [
        ("around", str(len(around.messages))),
        ("left-out", str(around.left_out) if around.left_out else None),
        ("from", visible(latest["from"])),
        ("group", None if group is None else quote(group)),
    ]
    return ["\n".join(_lines(_given(known))), *(_said(one, zone) for one in around.messages)]


def _meanwhile(said: Around, zone: tzinfo) -> list[str]:
    """Return the blocks of what an agent read along: a header, then one for each message, with its sender."""
    known: list[tuple[str, str | None]] = [
        ("meanwhile", str(len(said.messages))),
        ("left-out", str(said.left_out) if said.left_out else None),
    ]
    return ["\n".join(_lines(_given(known))), *(_said(one, zone, one["from"]) for one in said.messages)]


def _said(one: Mapping[str, Any], zone: tzinfo, sender: str | None = None) -> str:
    known: list[tuple[str, str | None]] = [
        ("message", one["id"]),
        ("from", None if sender is None else visible(sender)),
        *_author(one, None),
        *_times(one, zone, None),
        *_answered(one, None),
        ("cut", "true" if one["cut"] else None),
    ]
    return "\n".join([*_lines(_given(known)), *content(one)])


def _new_reactions(new: Reactions) -> str:
    lines = [f"- {one['message']} {_reaction(one, None)}: {quote(shorten(one['text']))}" for one in new.shown]
    return "\n".join(["reactions:", *lines, *([f"- {new.more} more"] if new.more else [])])


def _reaction(one: Mapping[str, Any], limit: int | None) -> str:
    """Return a reaction and whose it is: 👍 Ada (@ada) [boss], or 👍 agent:kai."""
    known = one.get("address") if not one["from_boss"] else None
    who = visible(known) if known else _person(one["name"], one["username"], limit, boss=one["from_boss"])
    return " ".join([emoji(one["emoji"], limit), who] if who else [emoji(one["emoji"], limit)])


def already_sent(sent: Sequence[tuple[str, Sequence[str], str]]) -> str:
    """Render what an agent sent when it was given this turn before and did not finish: id, to, quote."""
    lines = [f"- {number} to {', '.join(map(visible, to))}: {quote(text)}" for number, to, text in sent]
    return "\n".join(["already-sent:", *lines])


def context(now: str, agent: str, pending: int | str, zone: tzinfo) -> str:
    """Render the first lines of a turn: time, name of the agent, number of due envelopes."""
    text = "\n".join(_lines([("now", moment(now, zone)), ("agent", agent), ("pending", str(pending))]))
    assert len(text) <= CONTEXT_LIMIT
    return text


def digest(envelopes: Sequence[Envelope], zone: tzinfo) -> str:
    """Render envelopes in short: each is cut to DIGEST_LIMIT characters, to spare an agent's context."""
    return "\n\n".join(_in_short(one, zone) for one in envelopes)


def _in_short(one: Envelope, zone: tzinfo) -> str:
    # The text is cut before it is marked: a megabyte must not be worked on for two kilobytes.
    text, files = one["text"][: DIGEST_LIMIT + 1], one["attachments"][:DIGEST_FILES]
    head = "\n".join([*_lines(_header(one, zone, DIGEST_QUOTE)), "text:\n"])
    tail = "".join(f"\n{line}" for line in attachments(files, DIGEST_QUOTE))
    if len(head) + len(body(text)) + len(tail) <= DIGEST_LIMIT and len(files) == len(one["attachments"]):
        return head + body(text) + tail
    tail += f"\n… (the rest: hiboss envelope get {one['id']})"
    while (over := len(head) + len(body(text)) + len(tail) - DIGEST_LIMIT) > 0 and text:
        text = text[: -max(over // 3, 1)]  # a marked text is at most three times as long
    return head + body(text) + tail


def _group_key(one: Envelope, zone: tzinfo) -> Any:
    """Return a key that is equal for messages which can share a header."""
    if _group(one) is None:
        return one["id"]
    return (one["conversation"], *(fact for fact in _header(one, zone) if fact[0] not in _PER_MESSAGE))


def _under_one_header(run: list[Envelope], zone: tzinfo) -> list[str]:
    """Return the blocks of these messages: one if there is one message, else one more for the header."""
    if len(run) == 1:
        return ["\n".join([*_lines(_header(run[0], zone)), *content(run[0])])]
    shared = [fact for fact in _header(run[0], zone) if fact[0] not in _PER_MESSAGE]
    ids = ", ".join(one["id"] for one in run)
    return ["\n".join(_lines([("envelope-id", ids), *shared])), *(_message(one, zone) for one in run)]


def _message(one: Envelope, zone: tzinfo) -> str:
    own = [fact for fact in _header(one, zone) if fact[0] in _PER_MESSAGE]
    own[0] = ("message", one["id"])
    return "\n".join([*_lines(own), *content(one)])


def _header(one: Envelope, zone: tzinfo, limit: int | None = None) -> Facts:
    """Return the header lines. What a sender chose is in quotes, with at most `limit` characters."""
    group = _group(one)
    known: list[tuple[str, str | None]] = [
        ("envelope-id", one["id"]),
        ("from", f"group:{one['group']}" if one["group"] else visible(one["from"])),
        ("to", visible(one["to"])),
        ("routed-from", visible(one["routed_from"]) if one.get("routed_from") else None),
        ("group", None if group is None else quote(group, limit)),
        ("author", visible(one["from"]) if one["group"] else None),
        *_author(one, limit),
        ("subject", _quoted(one["subject"], limit)),
        ("scopes", _tags(one["scopes"], limit)),
        ("refs", _tags(one["refs"], limit)),
        *_times(one, zone, limit),
        ("deliver-at", one["deliver_at"] and moment(one["deliver_at"], zone)),
        ("late", one["late_seconds"] and length(one["late_seconds"])),
        ("ack-by", one["ack_by"] and moment(one["ack_by"], zone)),
        ("priority", None if one["priority"] == "normal" else one["priority"]),
        *_answered(one, limit),
        ("redelivered", "true" if one["redelivered"] else None),
        ("set-aside-for", one["preempted_by"]),
        ("last-delivery-error", _quoted(_last_error(one), limit)),
    ]
    return _given(known)


def _tags(given: Sequence[Mapping[str, str]], limit: int | None) -> str | None:
    """Return scopes or refs as their sender gave them; who is mentioned can be read in the text."""
    most = TAGS if limit is None else DIGEST_TAGS
    known = [f"{one['type']}:{one['value']}" for one in given if one["type"] != "mention"]
    shown = [quote(text, limit and limit // 2) for text in known[:most]]
    more = [f"{len(known) - most} more"] if len(known) > most else []
    return ", ".join([*shown, *more]) or None


def _author(one: Mapping[str, Any], limit: int | None) -> list[tuple[str, str | None]]:
    """Return who wrote it. Neither (@ada) nor [boss] can be part of a name."""
    person = _channel(one).get("author") or {}
    username = person.get("username")
    given = person.get("name") or one["from_name"]
    known = given or _is_handle(username)
    return [
        ("from-boss", "true" if one["from_boss"] else None),
        ("from-name", _person(given, username, limit, boss=one["from_boss"]) if known else None),
        ("from-username", None if _is_handle(username) else _quoted(username, limit)),
    ]


def _times(one: Mapping[str, Any], zone: tzinfo, limit: int | None) -> list[tuple[str, str | None]]:
    """Return when it was written and changed, and what the platform says of its content."""
    channel = _channel(one)
    return [
        ("created-at", moment(one["created_at"], zone)),
        ("edited-at", one["edited_at"] and moment(one["edited_at"], zone)),
        ("forwarded-from", _quoted(channel.get("forwarded"), limit)),
        ("note", _quoted(channel.get("note"), limit)),  # of the adapter, which may quote the platform
    ]


def _answered(one: Mapping[str, Any], limit: int | None) -> list[tuple[str, str | None]]:
    """Return what it replies to, and the words that its author quotes of that, or else its beginning."""
    chosen = _channel(one).get("quote")
    if one["reply_to"] is None:
        return [("quotes", _quoted(chosen, limit))]
    words = _quoted(chosen, limit) or _quoted(one["quote"], limit)
    return [("in-reply-to", f"{one['reply_to']} {words}" if words else str(one["reply_to"]))]


def _channel(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the platform told about it; nothing, if it came from none."""
    return one["channel"] or {}


def _quoted(text: str | None, limit: int | None) -> str | None:
    return quote(text, limit) if text else None


def _person(given: str | None, username: str | None, limit: int | None, *, boss: bool) -> str:
    """Return a person as people know them: Ada (@ada) [boss]."""
    known = [name(given, limit)] if given else []
    if _is_handle(username):
        known.append(f"(@{username})")
    elif username and not given:
        known.append(quote(username, limit))
    return " ".join([*known, "[boss]"] if boss else known)


def _is_handle(username: str | None) -> bool:
    return bool(username) and re.fullmatch(_HANDLE, username or "") is not None


def _delivery(one: Envelope, zone: tzinfo) -> Facts:
    metadata = json.dumps(one["metadata"], ensure_ascii=False) if one["metadata"] else None
    known: list[tuple[str, str | None]] = [
        ("deleted", "true" if one.get("deleted") else None),
        ("deleted-why", _quoted(one.get("deleted_why"), None)),
        ("status", one["status"]),
        ("waits", one["waits"]),
        ("box", None if one["box"] == "inbox" else one["box"]),
        ("snoozed-until", one["snoozed_until"] and moment(one["snoozed_until"], zone)),
        ("type", None if one["type"] == "text" else one["type"]),
        ("context", "true" if one["context"] else None),
        ("thread", one["thread"]),
        ("read-at", one["read_at"] and moment(one["read_at"], zone)),
        ("acked-at", one["acked_at"] and moment(one["acked_at"], zone)),
        ("reactions", _reactions(one["reactions"])),
        ("metadata", metadata and visible(metadata)),
    ]
    return _given(known)


def _reactions(given: Sequence[Mapping[str, Any]]) -> str | None:
    shown = [_reaction(one, DIGEST_QUOTE) for one in given[:REACTIONS]]
    more = [f"{len(given) - REACTIONS} more"] if len(given) > REACTIONS else []
    return ", ".join([*shown, *more]) or None


def _given(known: Iterable[tuple[str, str | None]]) -> Facts:
    return [(key, value) for key, value in known if value]


def _lines(known: Facts) -> list[str]:
    return [f"{key}: {value}" for key, value in known]


def content(one: Mapping[str, Any]) -> list[str]:
    """Render the text and its attachments."""
    return ["text:", body(one["text"]), *attachments(one["attachments"])]


def body(text: str) -> str:
    """Render a text: `>` before each line, or `(none)` if it is empty."""
    return mark_lines(text) if text else NOTHING


def attachments(files: Sequence[Mapping[str, Any]], limit: int | None = None) -> list[str]:
    """Render the attachments of a message, one line each, under a title; nothing if there are none."""
    return ["attachments:", *(_attachment(file, limit) for file in files)] if files else []


def _attachment(file: Mapping[str, Any], limit: int | None) -> str:
    kind = file["mime"].partition("/")[0]
    medium = kind if kind in ("image", "audio", "video") else "file"
    return f"- [{medium}] {quote(file['name'], limit)} ({visible(file['path'])})"


def _group(one: Mapping[str, Any]) -> str | None:
    """Return the name of the group chat of this message; None if it was no group chat."""
    chat = _channel(one).get("chat") or {}
    if chat.get("kind") == "group":
        return str(chat.get("title") or chat.get("id") or "")
    group: str | None = one["group"]
    return group


def _last_error(one: Envelope) -> str | None:
    error = one["last_error"]
    return (error["text"] or error["kind"]) if error else None


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
