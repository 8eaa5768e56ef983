"""Messages and envelopes as values: what a sender asks for, and the words for its state.

The integers are what the database stores; the names are what everybody else sees.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from .address import Address
from .errors import BadText, TooLarge


class Word(IntEnum):
    """An integer in the database, a lower-case word everywhere else."""

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Word:
        return cls[word.upper()]


class Status(Word):
    PENDING = 0
    DONE = 1
    FAILED = 2  # given up, kept, can be retried
    CANCELLED = 3


class Priority(Word):
    """Ascending is the order of claiming."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class Box(Word):
    INBOX = 0
    ARCHIVED = 1
    TRASH = 2


class Kind(Word):
    """The type of a message's content."""

    TEXT = 0
    MARKDOWN = 1
    JSON = 2
    HTML = 3
    EVENT = 4


class Waits(Word):
    """Why a pending envelope is not due; NULL in the database means: it waits for nothing.

    Apart from `wake_at` (when to look at the row again), because a row can have a
    deadline to look at and still be due: one with `ack_by`, lying in an agent's box.
    """

    DEFERRED = 0
    RETRY = 1
    LEASE = 2
    SNOOZE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file kept in media/ under its content's hash."""

    name: str
    sha256: str
    size: int
    mime: str
    file: str  # below media/

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "sha256": self.sha256,
            "size": self.size,
            "mime": self.mime,
            "file": self.file,
        }


class Draft(NamedTuple):
    """What a sender asks for: no id yet, nothing stored yet.

    A NamedTuple like all values on the path of a send: making a frozen dataclass of
    twenty fields takes five times as long.
    """

    sender: Address
    caller: int | None  # address id of whoever proved it with a token; None: it came by an adapter
    to: tuple[Address, ...]  # empty: whoever wrote the message replied to
    text: str
    sees_all: bool = False  # the boss may reply to anything
    subject: str | None = None
    kind: Kind = Kind.TEXT
    priority: Priority = Priority.NORMAL
    attachments: tuple[Attachment, ...] = ()
    deliver_at: int | None = None
    reply_to: tuple[str, int] | None = None  # ('envelope', 81) or ('message', 57)
    interruptible: bool = True
    auto: bool = False
    from_boss: bool = False
    from_name: str | None = None
    run: int | None = None
    trace: str | None = None
    hops: int = 0
    metadata: dict[str, Any] | None = None
    key: str | None = None
    digest: bytes | None = None  # of the request as written, to tell a repeat from a reuse
    channel: dict[str, Any] | None = None  # what a platform said of it: author, chat, message


class Accepted(NamedTuple):
    """The answer to a draft: what was stored, or the first answer to the same key."""

    message: int
    conversation: int
    thread: int
    envelopes: tuple[int, ...]
    deliver_at: int | None
    duplicate: bool = False
    recipients: tuple[int, ...] = ()  # address ids, in the order of the envelopes
    lanes: tuple[tuple[int, int], ...] = ()  # (address, binding) that have something to post now


QUOTE_CHARACTERS = 60
_JOINER = "\u200d"


def shorten(text: str, limit: int = QUOTE_CHARACTERS) -> str:
    """The beginning of a text, on one line; never cut inside what people see as one character."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    end = limit - 1
    while end and _one_character(flat, end):
        end -= 1
    return flat[:end].rstrip() + "…"


def _one_character(text: str, end: int) -> bool:
    """Whether people see one character in what is on both sides of this place."""
    if text[end - 1] == _JOINER or _clings(text[end]):
        return True
    flags = end
    while flags and _half_a_flag(text[flags - 1]):
        flags -= 1
    return _half_a_flag(text[end]) and (end - flags) % 2 == 1


def _clings(character: str) -> bool:
    """Whether this belongs to the character before it: accents, skin tones, later parts of a syllable."""
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc", "Cf")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\u1160" <= character <= "\u11ff"
    )


def _half_a_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def check_text(text: str, field: str = "text") -> str:
    """The text, when it can be stored and shown again unchanged."""
    if "\x00" in text:
        raise BadText(field=field, why="it contains a NUL character; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadText(field=field, why="it contains half a surrogate pair, which is no character") from None
    return text


def measure(field: str, value: str, limit: int, advice: str = "") -> str:
    """The text, when it can be stored and is not longer than allowed."""
    check_text(value, field)
    # A character has at most four bytes: short texts need no encoding to be measured.
    if len(value) * 4 > limit and (size := len(value.encode())) > limit:
        raise TooLarge(what=field, size=f"{size} bytes", limit=str(limit), advice=advice)
    return value


class Lane(NamedTuple):
    """The one-at-a-time line of one place; for channels, of one binding there."""

    address: int
    binding: int | None
