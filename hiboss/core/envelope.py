"""Messages and envelopes as values: drafts, the answer to a draft, states, and checks of texts.

The database stores the integers of the states; everything else uses their names.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """Lower values are claimed first."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    NOTICE = 4  # of agent:system, shown as normal. Their own, so that mail is found behind any number of them


class Box(Word):
    INBOX = 0
    ARCHIVED = 1
    TRASH = 2
    SNOOZED = 3  # until it wakes: then it is in the inbox again


class Kind(Word):
    """The type of a message's content."""

    TEXT = 0
    MARKDOWN = 1
    JSON = 2
    HTML = 3
    EVENT = 4


class Waits(Word):
    """Why a pending envelope is not due; NULL in the database means that it waits for nothing.

    Separate from `wake_at` (when to look at the row again), because a row can have a
    deadline and still be due: for example one with `ack_by` in an agent's box.
    """

    DEFERRED = 0
    RETRY = 1
    LEASE = 2
    SNOOZE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file stored in media/ under the hash of its content."""

    name: str
    sha256: str
    size: int
    mime: str
    file: str  # path below media/
    # Of one that came in from a platform.
    source: str | None = None  # the type of its adapter, like telegram
    filename: str | None = None  # as its sender named it
    platform_id: str | None = None  # the platform's id of the file

    def facts(self) -> dict[str, Any]:
        """Return the attachment as the database stores it (JSON)."""
        found = {
            "name": self.name,
            "sha256": self.sha256,
            "size": self.size,
            "mime": self.mime,
            "file": self.file,
        }
        if self.source is not None:
            given = {"filename": self.filename, f"{self.source}_file_id": self.platform_id}
            found |= {"source": self.source, **{key: value for key, value in given.items() if value}}
        return found

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Attachment:
        """Return the attachment that the database stores so."""
        names = ("name", "sha256", "size", "mime", "file", "source", "filename")
        known = {name: facts[name] for name in names if name in facts}
        return cls(**known, platform_id=facts.get(f"{facts.get('source')}_file_id"))


class Draft(NamedTuple):
    """A message that a sender asks to send: no id yet, nothing stored yet.

    A NamedTuple, like all values on the path of a send: to create a frozen dataclass with
    twenty fields takes five times as long.
    """

    sender: Address
    caller: int | None  # address id proved with a token; None: an adapter brought it
    to: tuple[Address, ...]  # empty: the others of its conversation, or of the thread of what it answers
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
    named: bool = False  # the trace is a name that the caller chose, and is stored as caller/name/message
    hops: int = 0
    metadata: dict[str, Any] | None = None
    key: str | None = None
    digest: bytes | None = None  # of the request as written: tells a repeated request from a reused key
    channel: dict[str, Any] | None = None  # what the platform reported: author, chat, message
    place: Address | None = None  # the chat in which a person wrote it; None: the sender says it all
    conversation: int | None = None  # the one it is said in; None: the one between sender and recipients
    forward: bool = True  # False: it is about the account that posts to the boss, so it is only for his box
    # Recipients by address id who were deleted, or to whom nobody can post: it is stored for them as failed.
    gone: tuple[int, ...] = ()
    # It was said in a group to nobody of us: it is done on arrival, and shown with the next turn there.
    context: bool = False
    binding: int | None = None  # of what hiboss itself posts to a chat: the account that posts it
    parse_mode: Kind | None = None  # how channels read its text; None: by its kind
    tags: tuple[tuple[str, str, str], ...] = ()  # ('scope', 'module', 'auth'), ('ref', 'issue', '42')
    session: str | None = None  # the sender's
    ack_within: int | None = None  # milliseconds after its arrival in which it is to be acknowledged
    to_sender: bool = False  # of a reply without recipients: not to all of the thread
    repeats: bool = False  # it has the text of what it answers, and is deleted with that
    about: int | None = None  # of a notice: the conversation that it belongs to


class Accepted(NamedTuple):
    """The answer to a draft: what was stored, or the first answer for the same key."""

    message: int
    conversation: int
    thread: int
    envelopes: tuple[int, ...]
    deliver_at: int | None
    duplicate: bool = False
    recipients: tuple[int, ...] = ()  # address ids, in the order of the envelopes
    lanes: tuple[tuple[int, int], ...] = ()  # (address, binding) with something to post now
    failed: tuple[int, ...] = ()  # the envelopes for recipients who were deleted
    elsewhere: bool = False  # a reply that is not in the conversation of what it answers
    skipped: tuple[str, ...] = ()  # parties of a thread or conversation whom the sender may not write to
    ack_by: int | None = None  # until when it is to be acknowledged; None: there is no such time now


def check_text(text: str, field: str = "text") -> str:
    """Return the text if it can be stored and shown again unchanged; raise BadText if not."""
    if "\x00" in text:
        raise BadText(field=field, why="it contains a NUL character; leave it out")
    if text.isascii():
        return text  # what follows costs more
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadText(field=field, why="it contains half a surrogate pair, which is no character") from None
    return text


def measure(field: str, value: str, limit: int, advice: str = "") -> str:
    """Return the text if it can be stored and has at most `limit` bytes; raise BadText or TooLarge if not."""
    check_text(value, field)
    # A character has at most four bytes: a short text need not be encoded to be measured.
    if len(value) * 4 > limit and (size := len(value.encode())) > limit:
        raise TooLarge(what=field, size=f"{size} bytes", limit=str(limit), advice=advice)
    return value


class Lane(NamedTuple):
    """The queue of one address, delivered one at a time; for channels, of one binding and chat."""

    address: int  # 0: all chats of the binding
    binding: int | None

    @property
    def account(self) -> Lane:
        """All lanes of the same binding, for what fails for all of them."""
        return Lane(0, self.binding)
