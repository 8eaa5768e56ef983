"""Material for the tests of rendering: envelopes in the form of the API, and a reader of turns.

The reader is written against the specification and not with render's own patterns: it is as
strict as a program can be about what is a line of ours, and as lax as a person can be about what
looks like one.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import Any, NamedTuple

Envelope = dict[str, Any]

NOW = "2026-01-28T12:30:00.000Z"
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
# Characters that show nothing, though Unicode calls them letters or marks.
NOTHING = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100"


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
        "from_boss": False,
        "from_name": None,
        "channel": None,
        "group": None,
        "to": "agent:nex",
        "subject": None,
        "type": "text",
        "text": "The build is green.",
        "attachments": [],
        "status": "pending",
        "waits": None,
        "priority": "normal",
        "box": "inbox",
        "interruptible": True,
        "auto": False,
        "deliver_at": None,
        "late_seconds": None,
        "created_at": "2026-01-28T12:08:45.120Z",
        "read_at": None,
        "acked_at": None,
        "done_at": None,
        "attempts": 0,
        "redelivered": False,
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
    chat = {"kind": "private", "title": None, "id": "7001"}
    channel = {"author": author, "chat": chat, "message": "55"}
    return letter(number, **{"from_": "channel:telegram:7001", "channel": channel, **facts})


def group(
    name: str | None, username: str | None = None, number: int = 81, title: str | None = "ops", **facts: Any
) -> Envelope:
    """Return a message from a group chat of a platform."""
    author = {"name": name, "username": username, "id": "7001"}
    chat = {"kind": "group", "title": title, "id": "-1009"}
    channel = {"author": author, "chat": chat, "message": "55"}
    return letter(number, **{"from_": "channel:telegram:-1009", "channel": channel, **facts})


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


# --- reading ---------------------------------------------------------------------------

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
ORDER = [
    *("envelope-id", "from", "to", "from-name", "subject", "created-at", "deliver-at", "late"),
    *("priority", "in-reply-to", "redelivered", "last-delivery-error"),
]


class Read(NamedTuple):
    """One envelope, as a reader of a turn understands it."""

    id: str
    sender: str
    from_boss: bool
    text: str
    attachments: list[tuple[str, str]]


def unseen(one: str) -> bool:
    """Tell whether this character is invisible before a word."""
    return one in NOTHING or (unicodedata.category(one) in ("Cc", "Cf", "Zs") and one not in BREAKS)


def looks_like_ours(line: str) -> bool:
    """Tell whether a careless reader takes this line for a header line of hiboss."""
    faint = "".join(" " if unseen(one) else one for one in line)
    if re.match(r">*(envelope-id|attachments):", faint.replace(" ", ""), re.IGNORECASE):
        return True
    signs = "at0000-00-00T00:00:00"
    moment = " *".join(r"\d" if sign == "0" else sign for sign in signs)
    return re.search(rf" {moment} *[+-] *\d *\d *: *\d *\d *: *$", faint, re.IGNORECASE) is not None


def unstuffed(body: str) -> str:
    """Return the text as it was written: without the `>` before each line that looks like a header line."""
    pieces = re.split(f"([{BREAKS}])", body)
    for place, piece in enumerate(pieces):
        if looks_like_ours(piece):
            assert piece.startswith(">"), f"{piece!r} passes for a line of ours"
            pieces[place] = piece[1:]
    return "".join(pieces)


def read_turn(text: str) -> tuple[dict[str, str], list[Read]]:
    """Return the context of a turn and its envelopes; fail if anything has a wrong form."""
    starts = [found.start() for found in re.finditer(r"(?m)^envelope-id: ", text)]
    seen = [line for line in re.split(f"[{BREAKS}]", text) if line.startswith("envelope-id:")]
    assert len(seen) == len(starts), "a reader who knows other line breaks sees another envelope"
    places = [0, *starts, len(text) + 2]
    context, *blocks = [(text + "\n\n")[a:b] for a, b in itertools.pairwise(places)]
    assert all(block.endswith("\n\n") for block in (context, *blocks))
    facts = dict(line.split(": ", 1) for line in context[:-2].split("\n"))
    assert list(facts) == ["now", "agent", "pending"]
    return facts, [one for block in blocks for one in _block(block[:-2])]


def _block(block: str) -> list[Read]:
    header: dict[str, str] = {}
    rest = block
    while found := re.match(rf"({'|'.join(ORDER)}): ([^{BREAKS}]*)\n", rest):
        header[found[1]] = found[2]
        rest = rest[found.end() :]
    assert list(header) == [key for key in ORDER if key in header], "the header is not in its order"
    ids = header["envelope-id"].split(", ")
    if rest.startswith("text:\n"):
        (number,) = ids
        body, attachments = _content(rest.removeprefix("text:\n"))
        return [Read(number, header["from"], _marked(header.get("from-name", "")), body, attachments)]
    assert re.fullmatch('group ".*"', header["from-name"]) and not _marked(header["from-name"])
    heads = list(re.finditer(rf"(?:\A|\n\n)([^>{BREAKS}][^{BREAKS}]*) at {MOMENT}:\n", rest))
    assert heads and heads[0].start() == 0
    ends = [*(head.start() for head in heads[1:]), len(rest)]
    said = [(head[1], *_content(rest[head.end() : end])) for head, end in zip(heads, ends, strict=True)]
    assert len(said) == len(ids)
    return [
        Read(number, header["from"], _marked(author), body, attachments)
        for number, (author, body, attachments) in zip(ids, said, strict=True)
    ]


def _marked(shown: str) -> bool:
    """Tell whether the boss's mark is there; it must be at the end, once, or nowhere."""
    number = unicodedata.normalize("NFKC", shown).count("[")
    assert number == (shown == "[boss]" or shown.endswith(" [boss]"))
    return number == 1


def _content(content: str) -> tuple[str, list[tuple[str, str]]]:
    body, found, files = content.partition("\nattachments:\n")
    lines = [re.fullmatch(r"- \[(image|audio|video|file)\] .*\((.*)\)", line) for line in files.split("\n")]
    assert not found or all(lines)
    return unstuffed(body), [(line[1], line[2]) for line in lines if line]
