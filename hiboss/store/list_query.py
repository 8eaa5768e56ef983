"""What a list asks for, whatever it lists: whose, with which filters, in which order, from which position.

The one builder of conditions behind the lists of envelopes (`envelope_walks`) and of messages
(`message_walks`). All values are bound, none is written into a statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.envelope import Box, Kind, Status
from ..core.errors import BadCursor, Gap
from ..core.ids import LARGEST
from ..core.mentions import EVERYBODY
from .connection import Connection
from .visibility import sees

# The sets of filters that are flat: a page, and the count of the first thousand, cost the same among a
# thousand messages and among a million, as long as the reader may see most of what matches. By the name of
# the walk, with the parameters of `message.list`. Any other filter needs one of these beside it.
FLAT: dict[str, tuple[str, ...]] = {
    "box": (),  # the inbox without any filter
    "archived": (),  # these three by `box` alone
    "trash": (),
    "outbox": (),
    "unread": ("unread", "unread_for_agent"),
    "snoozed": ("snoozed",),
    "thread": ("thread_id",),
    "conversation": ("conversation_id",),
    "scope": ("scope",),
    "ref": ("ref",),
    "mentions": ("mentions", "mention_role"),
    "run": ("run_id",),
    "author": ("author_id",),  # only one's own; for the boss that of anybody
}
# Positions of which a second number is a part. 'o': the envelope, 'm': up to which arrival it was read,
# 'u': the message.
_TWO_NUMBERS = ("o", "m", "u")
_WALKS = ("a", "d", "s", *_TWO_NUMBERS)


class Position(NamedTuple):
    """The position where a page ended.

    `walk`: 'a' in the order of arrival, 'd' deferred, 'o' outbox, 's' conversation, 'm' ids of messages,
    'u' last changes. `of`: the kind of list; in another one the same number is another place.
    """

    walk: str
    number: int
    of: str
    second: int = 0

    def text(self, epoch: str) -> str:
        """Return the position as a cursor."""
        tail = f".{self.second}" if self.walk in _TWO_NUMBERS else ""
        return f"{epoch}-{self.walk}{self.number}{tail}~{self.of}"

    def check(self, of: str, walks: str) -> None:
        """Raise BadCursor if this is no position of this kind of list, in one of these walks."""
        if self.of != of or self.walk not in walks:
            raise BadCursor(value="a cursor of another list")

    @classmethod
    def parse(cls, text: str, epoch: str) -> Position:
        """Return the position of a cursor; raise BadCursor, or Gap for a cursor of another epoch."""
        head, dash, whole = text.partition("-")
        place, _, of = whole.partition("~")
        walk, (number, _, second) = place[:1], place[1:].partition(".")
        digits = number + second
        numeric = digits.isascii() and digits.isdigit() and len(digits) < 40 and bool(number)
        shaped = dash and walk in _WALKS and bool(walk) and bool(second) == (walk in _TWO_NUMBERS)
        if not (numeric and shaped) or max(int(number), int(second or 0)) > LARGEST:
            raise BadCursor(value=text[:60])
        if head != epoch:
            raise Gap()
        return cls(walk, int(number), of, int(second or 0))


class Tag(NamedTuple):
    """What a message is tagged with, as the table `tag` has it."""

    kind: str  # mention, scope, ref
    name: str
    value: str


class AnyTag(NamedTuple):
    """A filter: a message has at least one of these tags."""

    walk: str  # its name in FLAT
    tags: tuple[Tag, ...]


MENTIONABLE = ("agent", "user", "group", "role")  # what a mention can mean: the value of its tag


def mention(name: str, *kinds: str) -> tuple[Tag, ...]:
    """Return the tags of a name with @ in a text; without kinds, whatever it means."""
    plain = name.removeprefix("@").lower()
    return tuple(Tag("mention", plain, kind) for kind in kinds or MENTIONABLE)


class RunSpan(NamedTuple):
    """A run, and between which ids are the messages that it sent."""

    run: int
    agent: int
    after: int
    last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to list: whose, which filters, which page."""

    owner: int  # the address id of the owner of the box
    viewer: int | None = None  # of a list of messages: who must be allowed to see them; None sees all
    boxed: bool = False  # of a list of messages: only those in this box, whatever else is asked for
    # Which envelopes.
    outbox: bool = False  # what the owner sent
    whole_thread: bool = False  # what the owner sent or received of a thread
    sees_all: bool = False  # with whole_thread: everything in it
    everywhere: bool = False  # what failed, in all boxes: for the boss
    every_box: bool = False  # all envelopes of everybody, in the order of their ids: for the boss
    box: Box = Box.INBOX
    statuses: tuple[Status, ...] = tuple(Status)
    unread: bool = False
    due: bool = False  # nothing that waits: deferred, leased, snoozed
    with_deferred: bool = False  # also what has not arrived yet: for the boss
    recipients: tuple[int, ...] | None = None
    # Which messages.
    senders: tuple[int, ...] | None = None
    thread: int | None = None
    conversation: int | None = None
    tags: tuple[AnyTag, ...] = ()
    run: RunSpan | None = None
    trace: str | None = None
    kind: Kind | None = None
    meta: tuple[tuple[str, Any], ...] = ()  # keys of the sender's own JSON, with their values
    created_after: int | None = None
    created_before: int | None = None
    # Which page.
    oldest_first: bool = False
    limit: int = 10
    after: Position | None = None

    @property
    def by_unread_index(self) -> bool:
        return self.unread and self.box is Box.INBOX and Status.CANCELLED not in self.statuses

    @property
    def filtered(self) -> bool:
        """Tell whether a page of envelopes may have to skip many rows that do not match."""
        accepted = self.outbox or self.every_box
        narrow = self.everywhere or (accepted and (self.unread or len(self.statuses) < len(Status)))
        narrow = narrow or (self.unread and not (self.by_unread_index and len(self.statuses) == 3))
        return narrow or self.recipients is not None or self.about_messages

    @property
    def about_messages(self) -> bool:
        """Tell whether there is a filter on messages, which are not in an index of envelopes."""
        filters = (self.senders, self.thread, self.conversation, self.run, self.trace, self.kind)
        times = (self.created_after, self.created_before)
        return any(value is not None for value in (*filters, *times)) or bool(self.tags or self.meta)


class Page(NamedTuple):
    """The ids of one page, each with its position, and whether there are more."""

    found: list[tuple[int, Position]]
    more: bool

    @property
    def ids(self) -> list[int]:
        return [number for number, _ in self.found]

    @property
    def next(self) -> Position | None:
        """Where the next page begins; None: this is the last."""
        return self.found[-1][1] if self.more and self.found else None

    def first(self, number: int) -> Page:
        """Return the page that ends after so many."""
        return Page(self.found[:number], self.more or number < len(self.found))


@dataclass(slots=True)
class Where:
    """A WHERE clause that is built step by step."""

    terms: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, term: str, *values: Any) -> None:
        self.terms.append(term)
        self.values.extend(values)

    def __str__(self) -> str:
        return " AND ".join(self.terms) or "1"


# --- what filters mean -----------------------------------------------------------------


def own_mentions(connection: Connection, address: int) -> tuple[Tag, ...]:
    """Return the tags of a name, of everybody, and of its role if it is an agent that has one."""
    row = connection.execute(
        "SELECT a.kind, a.name, g.role FROM address a LEFT JOIN agent g ON g.address = a.id WHERE a.id = ?",
        (address,),
    ).fetchone()
    named = mention(row["name"], row["kind"]) + mention(EVERYBODY, "role")
    return named + (mention(row["role"], "role") if row["role"] else ())


def sent_in_run(connection: Connection, run: int) -> RunSpan:
    """Return between which ids the messages of a run are; of an unknown run there are none."""
    row = connection.execute(
        "SELECT agent, after_message, last_message FROM run WHERE id = ?", (run,)
    ).fetchone()
    if row is None:
        return RunSpan(run, 0, 0, 0)
    return RunSpan(run, row["agent"], row["after_message"], row["last_message"] or LARGEST)


# --- conditions on a message -----------------------------------------------------------


def narrow(where: Where, query: Query, *, done: str = "") -> None:
    """Add the conditions on the message `m`. `done`: the walk in FLAT that fulfils its own already."""
    if query.senders is not None and done != "author":
        # Also by the chat in which the boss wrote it: that is shown as `from`.
        marks = ",".join("?" * len(query.senders))
        where.add(f"(m.sender IN ({marks}) OR m.place IN ({marks}))", *query.senders, *query.senders)
    if query.thread is not None and done != "thread":
        where.add("(m.thread = ? OR m.id = ?)", query.thread, query.thread)
    if query.conversation is not None and done != "conversation":
        where.add("m.conversation = ?", query.conversation)
    if query.tags:
        _narrow_by_tags(where, query.tags, done)
    if query.run is not None and done != "run":
        where.add("m.run = ?", query.run.run)
    if query.kind is not None:
        where.add("m.type = ?", int(query.kind))
    _narrow_by_own_data(where, query)
    if query.created_after is not None:
        where.add("m.created_at > ?", query.created_after)
    if query.created_before is not None:
        where.add("m.created_at < ?", query.created_before)


def _narrow_by_tags(where: Where, tags: tuple[AnyTag, ...], done: str) -> None:
    # Nobody is shown the tags of a deleted message, so nobody finds it by them.
    where.add("m.deleted_at IS NULL")
    for place, one in enumerate(tags):
        if not place and one.walk == done:  # a walk over tags is over the first of them
            continue
        either = " OR ".join(["(t.kind = ? AND t.name = ? AND t.value = ?)"] * len(one.tags)) or "0"
        values = [value for tag in one.tags for value in tag]
        where.add(f"EXISTS (SELECT 1 FROM tag t WHERE t.message = m.id AND ({either}))", *values)


def _narrow_by_own_data(where: Where, query: Query) -> None:
    if query.trace is not None:  # a trace that a caller named ends with the id of its message
        where.add(
            "(ifnull(m.trace, 'm' || m.id) = ? OR (m.trace > ? AND m.trace < ?))",
            query.trace,
            f"{query.trace}/",
            f"{query.trace}0",
        )
    for key, value in query.meta:
        # Not everybody is shown the data of a deleted message, or of the record of a control: so nobody finds
        # it by them.
        term = "SELECT 1 FROM json_each(m.metadata) j WHERE j.key = ? AND j.type IN ({}) AND j.value IS ?"
        types = {bool: "'true', 'false'", str: "'text'", type(None): "'null'"}
        found = term.format(types.get(type(value), "'integer', 'real'"))
        where.add(f"m.deleted_at IS NULL AND m.type <> {Kind.EVENT:d} AND EXISTS ({found})", key, value)


def narrow_to_viewer(where: Where, viewer: int | None) -> None:
    """Add that the viewer sees the message `m`. None sees all."""
    if viewer is not None:
        rule = sees(":viewer")
        where.add(rule.replace(":viewer", "?"), *[viewer] * rule.count(":viewer"))
