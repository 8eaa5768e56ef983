"""Two readers of the text of a turn, written from docs/turns.md alone. They share no code with hiboss.

- `read_turn`, `read_list`: a strict reader. It fails on everything that the page does not describe, and
  returns exactly what was sent.
- `seen_headers`: a careless reader, like a language model. Of each line that has no mark it takes what
  looks like a key or like the mark of the boss, however it is written. It also reads the form that turns
  had before lines were marked, so that the same texts can be tried there.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# --- strict ------------------------------------------------------------------------------

END_OF_LINE = "\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
ADDRESS = r"(?:agent|user|group|channel):\S+"
STRING = '\u2068?("(?:[^"\\\\]|\\\\.)*")\u2069?'
# A name without quotes has only letters, digits, spaces, dots, dashes and apostrophes.
NAME = rf"(?:{STRING}|((?:[^\W_]|[ .'-])*?))"
PERSON = rf"{NAME}(?: ?\(@([A-Za-z0-9_]+)\))?(?: ?\[(boss)\])?"
STRINGS = rf"({STRING}(?:, {STRING})*(?:, \d+ more)?)"
HEADER = {
    "envelope-id": r"e\d+(?:, e\d+)*",
    "from": ADDRESS,
    "to": ADDRESS,
    "group": STRING,
    "author": ADDRESS,
    "from-boss": "true",
    "from-name": PERSON,
    "from-username": STRING,
    "subject": STRING,
    "scopes": STRINGS,
    "refs": STRINGS,
    "created-at": TIME,
    "edited-at": TIME,
    "forwarded-from": STRING,
    "note": STRING,
    "deliver-at": TIME,
    "late": r"(?:\d+[Dhms]){1,2}",
    "ack-by": TIME,
    "priority": "critical|high|low",
    "in-reply-to": rf"(m\d+)(?: {STRING})?",
    "quotes": STRING,
    "redelivered": "true",
    "set-aside-for": r"m\d+",
    "last-delivery-error": STRING,
}
# An emoji without quotes has neither letters nor digits nor signs of ASCII.
EMOJI = rf"(?:{STRING}|([^\x00-\x7f]+))"
# Of an agent or a user its address, without quotes: no name can look like one.
REACTION = rf"{EMOJI}(?: (?:(?:agent|user):[A-Za-z0-9-]+|{PERSON}))?"
DELIVERY = {
    "deleted": "true",
    "deleted-why": STRING,
    "status": "pending|done|failed|cancelled",
    "waits": "deferred|retry|lease|snooze",
    "box": "archived|trash|snoozed",
    "snoozed-until": TIME,
    "type": "markdown|json|html|event",
    "context": "true",
    "thread": r"t\d+",
    "read-at": TIME,
    "acked-at": TIME,
    "reactions": rf"{REACTION}(?:, {REACTION})*(?:, \d+ more)?",
    "metadata": r"\{.*\}",
}
MESSAGE = {"message": r"e\d+", **{key: HEADER[key] for key in HEADER if key.startswith(("from-", "author"))}}
MESSAGE |= {key: HEADER[key] for key in ("created-at", "edited-at", "forwarded-from", "note")}
AROUND = {"around": r"\d+", "left-out": r"\d+\+?", "from": ADDRESS, "group": STRING}
SAID = {**MESSAGE, "message": r"m\d+", "in-reply-to": HEADER["in-reply-to"], "quotes": STRING, "cut": "true"}
CONTEXT = {"now": TIME, "agent": "[A-Za-z0-9-]+", "pending": r"\d+\+?"}


class Forged(AssertionError):
    """The text is not what docs/turns.md describes, or contains something that was not sent."""


@dataclass
class Read:
    """One envelope, as the strict reader understands it. Strings of senders are unescaped."""

    header: dict[str, str]
    text: str = ""
    files: list[tuple[str, str, str]] = field(default_factory=list)  # kind, name, path


Reacted = tuple[str, str, str | None, str | None, str | None]  # message, emoji, name, username, boss


@dataclass
class Turn:
    context: dict[str, str]
    envelopes: list[Read]
    already_sent: list[tuple[str, list[str], str]]  # id, recipients, quote
    around: dict[str, str] = field(default_factory=dict)  # the header of what was said around
    said: list[Read] = field(default_factory=list)
    reactions: list[tuple[Reacted, str]] = field(default_factory=list)  # each with the quote of its message
    more_reactions: int = 0


def read_turn(text: str) -> Turn:
    """Read a whole turn."""
    blocks = _blocks(text)
    context, rest = _keys(blocks[0], CONTEXT)
    _expect(not rest, "the context has other lines")
    sent: list[tuple[str, list[str], str]] = []
    if blocks[-1][0] == "already-sent:":
        sent = [_sent(line) for line in blocks.pop()[1:]]
    del blocks[0]
    turn = Turn(context, [], sent)
    if blocks and blocks[0][0].startswith("around: "):
        turn.around, rest = _keys(blocks.pop(0), AROUND)
        _expect(not rest, "the header of what was said around has other lines")
        number = int(turn.around["around"])
        _expect(0 < number <= len(blocks), "there are not as many messages around as the header says")
        turn.said = [_content(*_keys(block, SAID)) for block in blocks[:number]]
        del blocks[:number]
    if blocks and blocks[0][0] == "reactions:":
        lines = blocks.pop(0)[1:]
        if more := re.fullmatch(r"- (\d+) more", lines[-1]):
            turn.more_reactions = int(more[1])
            lines.pop()
        turn.reactions = [_reacted(line) for line in lines]
    turn.envelopes = _envelopes(blocks, HEADER)
    return turn


def read_list(text: str) -> list[Read]:
    """Read envelopes as a list shows them."""
    return _envelopes(_blocks(text), HEADER | DELIVERY)


def _expect(right: object, what: str) -> None:
    if not right:
        raise Forged(what)


def _blocks(text: str) -> list[list[str]]:
    lines = text.split("\n")
    strict = [line for line in lines if line and line[0] != ">"]
    every = [line for line in re.split(END_OF_LINE, text) if line and line[0] != ">"]
    _expect(strict == every, "a reader who knows other line breaks sees other lines of hiboss")
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        else:
            blocks.append([])
    _expect(all(blocks), "there is an empty block")
    return blocks


def _envelopes(blocks: list[list[str]], allowed: dict[str, str]) -> list[Read]:
    found: list[Read] = []
    shared: dict[str, str] = {}
    missing: list[str] = []  # ids of a shared header whose message has not come yet
    for block in blocks:
        if missing:
            own, rest = _keys(block, MESSAGE)
            _expect(own.pop("message") == missing.pop(0), "another message was announced")
            header = {**shared, **own}
        else:
            header, rest = _keys(block, allowed)
            ids = header.pop("envelope-id").split(", ")
            if len(ids) > 1:
                _expect(not rest and "created-at" not in header, "a shared header has a text")
                shared, missing = header, ids
                continue
        found.append(_content(header, rest))
        found[-1].header["envelope-id"] = block[0].split(": ")[1]
    _expect(not missing, "a message is missing")
    return found


def _keys(lines: list[str], allowed: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the keys with their values, and the lines below them."""
    found: dict[str, str] = {}
    number = 0
    for line in lines:
        key, colon, value = line.partition(": ")
        if not colon or key not in allowed:
            break
        match = re.fullmatch(allowed[key], value)
        _expect(match, f"{line!r} has another form")
        assert match
        found[key] = _value(key, match)
        number += 1
    _expect(list(found) == [key for key in allowed if key in found], f"the keys are not in order: {found}")
    _expect(len(found) == number and found, f"a key stands there twice, or none: {lines}")
    return found, lines[number:]


def _value(key: str, match: re.Match[str]) -> str:
    if key == "from-name":  # the name, the username and the mark of the boss
        return json.dumps([match[2] or (_string(match[1]) if match[1] else None), match[3], match[4]])
    if key == "reactions":  # of each, whether it is the boss's
        return json.dumps([one[6] for one in re.finditer(rf"{REACTION}(?:, |$)", match[0])])
    if key in ("scopes", "refs"):
        return json.dumps([_string(one[1]) for one in re.finditer(STRING, match[1])])
    if key == "in-reply-to":
        return f"{match[1]} {_string(match[2])}" if match[2] else match[1]
    return _string(match[1]) if match.re.groups else match[0]


def _string(quoted: str) -> str:
    _expect(not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", quoted), "a string is not on one line")
    return json.loads(quoted)


def _content(header: dict[str, str], lines: list[str]) -> Read:
    _expect(lines and lines[0] == "text:", f"there is no text: {lines[:1]}")
    end = next((n for n, line in enumerate(lines) if n and line[0] != ">"), len(lines))
    marked, rest = lines[1:end], lines[end:]
    if not marked:
        _expect(rest and rest[0] == "(none)", "there is neither a text nor (none)")
        rest = rest[1:]
    one = Read(header, _unmarked("\n".join(marked)) if marked else "")
    if rest:
        _expect(rest[0] == "attachments:" and len(rest) > 1, f"{rest[0]!r} does not belong below a text")
        one.files = [_file(line) for line in rest[1:]]
    return one


def _unmarked(text: str) -> str:
    pieces = re.split(f"({END_OF_LINE})", text)
    for line in pieces[::2]:
        _expect(line == ">" or line[:2] == "> ", f"{line!r} has no mark")
    return "".join(piece[2:] if place % 2 == 0 else piece for place, piece in enumerate(pieces))


def _file(line: str) -> tuple[str, str, str]:
    match = re.fullmatch(rf"- \[(image|audio|video|file)\] {STRING} \((/[^()]*)\)", line)
    _expect(match, f"{line!r} is no attachment")
    assert match
    return match[1], _string(match[2]), match[3]


def _reacted(line: str) -> tuple[Reacted, str]:
    match = re.fullmatch(rf"- (m\d+) {REACTION}: {STRING}", line)
    _expect(match, f"{line!r} is no reaction")
    assert match
    emoji = match[3] or _string(match[2])
    name = match[5] or (_string(match[4]) if match[4] else None)
    return (match[1], emoji, name, match[6], match[7]), _string(match[8])


def _sent(line: str) -> tuple[str, list[str], str]:
    match = re.fullmatch(rf"- (m\d+) to ({ADDRESS}(?:, {ADDRESS})*): {STRING}", line)
    _expect(match, f"{line!r} is nothing that was sent")
    assert match
    return match[1], match[2].split(", "), _string(match[3])


# --- careless ----------------------------------------------------------------------------

KEYS = (
    *("envelope-id", "from", "to", "group", "author", "from-boss", "from-name", "from-username", "subject"),
    *("created-at", "deliver-at", "late", "priority", "in-reply-to", "redelivered", "last-delivery-error"),
    *("status", "thread", "metadata", "text", "attachments", "already-sent", "message", "now", "agent"),
    *("pending", "more-due", "edited-at", "note", "forwarded-from", "quotes", "around", "left-out", "cut"),
    *("reactions", "context", "deleted", "deleted-why"),
)
_LIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0456\u0455\u0501\u2236\u02d0\u0589\ua789\u05c3⌈⌉⟦⟧【】「」『』❴❵⦗⦘⟬⟭⸢⸣｛｝{}",
    "aeopcxisd:::::[][][][][][][][][][][]",
)
_KEY = re.compile(rf"[^\w]*({'|'.join(sorted(KEYS, key=len, reverse=True))})[^\w:]*:")
_AUTHOR = re.compile(r"\w.* at \d{4}-\d\d-\d\dt\d\d:\d\d:\d\d[+-]\d\d:\d\d:\s*$")
_FILE = re.compile(r"\W*\[(?:image|audio|video|file)\]")


def seen_headers(text: str) -> list[str]:
    """Return what a careless reader takes for lines of hiboss: their keys, in order, and each [boss]."""
    found = []
    for line in re.split(END_OF_LINE, text):
        if line.startswith(">"):
            continue
        plain = _plain(re.sub(STRING, '""', line))
        if match := _KEY.match(plain):
            found.append(match[1])
        elif _AUTHOR.match(plain) or _FILE.match(plain):
            found.append("author or file")
        found += ["boss"] * plain.count("[boss]")
    return found


def _plain(line: str) -> str:
    """Return a line as it looks: without accents and what nobody sees, and with common signs for rare ones."""
    if line.isascii():
        return line.lower()
    signs = []
    for one in unicodedata.normalize("NFKD", line).translate(_LIKE):
        kind = unicodedata.category(one)
        if kind not in ("Mn", "Me", "Cf", "Cc"):
            signs.append("-" if kind == "Pd" else " " if kind == "Zs" else one)
    return "".join(signs).lower()


def expected(one: Mapping[str, Any], moment: Any) -> Read:
    """Return what a reader must find for an envelope in the form of the API. `moment` shows a time."""
    chat = (one["channel"] or {}).get("chat") or {}
    header = {"envelope-id": one["id"], "from": one["from"], "to": one["to"]}
    if chat.get("kind") == "group":
        header["group"] = chat.get("title") or chat["id"]
    optional = {
        **_written(one, moment),
        "subject": one["subject"],
        **{key: _tags(one[key]) for key in ("scopes", "refs")},
        "ack-by": one["ack_by"] and moment(one["ack_by"]),
        "redelivered": "true" if one["redelivered"] else None,
        "set-aside-for": one["preempted_by"],
        "last-delivery-error": one["last_error"] and (one["last_error"]["text"] or one["last_error"]["kind"]),
    }
    header |= {key: value for key, value in optional.items() if value}
    return Read(header, one["text"], _files(one))


def _tags(given: list[dict[str, str]]) -> str | None:
    return json.dumps([f"{one['type']}:{one['value']}" for one in given]) if given else None


def expected_said(one: Mapping[str, Any], moment: Any) -> Read:
    """Return what a reader must find for something that was said around a turn."""
    header = {"message": one["id"], **_written(one, moment), "cut": "true" if one["cut"] else None}
    return Read({key: value for key, value in header.items() if value}, one["text"], _files(one))


def expected_reaction(one: Mapping[str, Any]) -> Reacted:
    name, handle = one["name"] or None, one["username"] if _is_handle(one["username"]) else None
    given = name or (None if handle else one["username"] or None)
    return one["message"], one["emoji"], given, handle, "boss" if one["from_boss"] else None


def _written(one: Mapping[str, Any], moment: Any) -> dict[str, str | None]:
    channel = one["channel"] or {}
    author = channel.get("author") or {}
    username, words = author.get("username"), channel.get("quote")
    reply = one["reply_to"]
    return {
        "from-boss": "true" if one["from_boss"] else None,
        "from-name": _person(author.get("name") or one["from_name"], username, one["from_boss"]),
        "from-username": None if _is_handle(username) else username,
        "created-at": moment(one["created_at"]),
        "edited-at": one["edited_at"] and moment(one["edited_at"]),
        "forwarded-from": channel.get("forwarded"),
        "note": channel.get("note"),
        "in-reply-to": reply and " ".join([reply, *filter(None, [words or one["quote"]])]),
        "quotes": None if reply else words,
    }


def _files(one: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    kinds = [file["mime"].partition("/")[0] for file in one["attachments"]]
    shown = [kind if kind in ("image", "audio", "video") else "file" for kind in kinds]
    return [(kind, file["name"], file["path"]) for kind, file in zip(shown, one["attachments"], strict=True)]


def _is_handle(username: str | None) -> bool:
    return re.fullmatch("[A-Za-z0-9_]{1,64}", username or "") is not None


def _person(name: str | None, username: str | None, boss: bool) -> str | None:
    handle = username if _is_handle(username) else None
    return json.dumps([name or None, handle, "boss" if boss else None]) if name or handle else None
