"""Lists of envelopes, one page at a time.

Every walk follows one index and stops at the end of the page, so a page costs the same in a
box of ten and in a box of a million. A cursor is a position in the order of the list: an
arrival number; the id of an envelope among those that have not arrived yet (visible to
sender and boss only); or, in an outbox, the position in the order of acceptance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..core.envelope import Box, Status
from ..core.errors import BadCursor, Gap
from ..core.ids import LARGEST
from .connection import Connection, Row
from .group_commit import Tx

MEASURED_AT_ONCE = 10  # envelopes; large texts after the end of a page need not be read
LARGEST_IN_JSON = 6  # bytes that one byte of a text can have in an answer, as \u0001


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """The position where a page ended. `walk`: 'a' arrived, 'd' deferred, 'o' outbox."""

    walk: str
    number: int
    envelope: int = 0

    def text(self, epoch: str) -> str:
        """Return the position as a cursor."""
        tail = f".{self.envelope}" if self.walk == "o" else ""
        return f"{epoch}-{self.walk}{self.number}{tail}"

    @classmethod
    def parse(cls, text: str, epoch: str) -> Position:
        """Return the position of a cursor; raise BadCursor, or Gap for a cursor of another epoch."""
        head, dash, place = text.partition("-")
        walk, (number, _, envelope) = place[:1], place[1:].partition(".")
        digits = number + envelope
        numeric = digits.isascii() and digits.isdigit() and len(digits) < 40 and bool(number)
        shaped = dash and walk in ("a", "d", "o") and bool(envelope) == (walk == "o")
        if not (numeric and shaped) or max(int(number), int(envelope or 0)) > LARGEST:
            raise BadCursor(value=text[:60])
        if head != epoch:
            raise Gap()
        return cls(walk=walk, number=int(number), envelope=int(envelope or 0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """What to list: which box or thread, which filters, which page."""

    owner: int  # the address id of the owner of the box
    outbox: bool = False
    whole_thread: bool = False  # what the owner sent or received of a thread
    sees_all: bool = False  # with whole_thread: everything in it
    everywhere: bool = False  # what failed, in all boxes: for the boss
    every_box: bool = False  # all envelopes of everybody, in the order of their ids: for the boss
    box: Box = Box.INBOX
    statuses: tuple[Status, ...] = tuple(Status)
    unread: bool = False
    due: bool = False  # nothing that waits: deferred, leased, snoozed
    senders: tuple[int, ...] | None = None
    recipients: tuple[int, ...] | None = None
    thread: int | None = None
    created_after: int | None = None
    created_before: int | None = None
    oldest_first: bool = False
    with_deferred: bool = False  # also what has not arrived yet: for the boss
    limit: int = 10
    after: Position | None = None

    @property
    def by_unread_index(self) -> bool:
        return self.unread and self.box is Box.INBOX and Status.CANCELLED not in self.statuses

    @property
    def filtered(self) -> bool:
        """Tell whether a page may have to skip many rows that do not match."""
        filters = (self.senders, self.recipients, self.thread, self.created_after, self.created_before)
        accepted = self.outbox or self.every_box
        narrow = self.everywhere or (accepted and (self.unread or len(self.statuses) < len(Status)))
        narrow = narrow or (self.unread and not (self.by_unread_index and len(self.statuses) == 3))
        return narrow or any(value is not None for value in filters)


class Page(NamedTuple):
    """The envelopes of one page, each with its position, and whether there are more."""

    found: list[tuple[int, Position]]
    more: bool

    @property
    def ids(self) -> list[int]:
        return [number for number, _ in self.found]

    @property
    def next(self) -> Position | None:
        """Where the next page begins; None: this is the last."""
        return self.found[-1][1] if self.more else None

    def first(self, number: int) -> Page:
        """Return the page that ends after so many envelopes."""
        return Page(self.found[:number], self.more or number < len(self.found))


@dataclass(slots=True)
class _Where:
    """A WHERE clause that is built step by step."""

    terms: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, term: str, *values: Any) -> None:
        self.terms.append(term)
        self.values.extend(values)

    def __str__(self) -> str:
        return " AND ".join(self.terms)


def page(connection: Connection, query: Query) -> Page:
    """Return the ids of one page and where it ended; `next` is None on the last page."""
    wanted = replace(query, limit=query.limit + 1)  # one more tells whether there is a next page
    accepted = query.outbox or query.whole_thread  # listed in the order of acceptance
    if query.every_box:
        found = _every_box(connection, wanted)
    elif query.everywhere:
        found = _failed(connection, wanted)
    else:
        found = _accepted(connection, wanted) if accepted else _box(connection, wanted)
    return Page(found, more=False).first(query.limit)


def fitting(connection: Connection | Tx, ids: Sequence[int], most: int) -> list[int]:
    """Return the first of these envelopes whose contents have at most so many bytes in JSON; at least one."""
    groups = [ids[start : start + MEASURED_AT_ONCE] for start in range(0, len(ids), MEASURED_AT_ONCE)]
    if _surely_fit(connection, groups, most):
        return list(ids)
    left, found = most, 0
    for some in groups:
        size = _content_bytes(connection, some, "json_quote(m.text)")
        if size > left:  # it ends among these
            for number in some:
                left -= _content_bytes(connection, [number], "json_quote(m.text)")
                if left < 0:
                    return list(ids[: max(found, 1)])
                found += 1
        left -= size
        found += len(some)
    return list(ids)


def _surely_fit(connection: Connection | Tx, groups: Sequence[Sequence[int]], most: int) -> bool:
    """Tell whether these envelopes fit, whatever their texts are: the usual case, without encoding them."""
    left = most
    for some in groups:
        left -= LARGEST_IN_JSON * _content_bytes(connection, some, "m.text")
        if left < 0:
            return False
    return True


def _content_bytes(connection: Connection | Tx, ids: Sequence[int], text: str) -> int:
    # A cast to BLOB: of a text, length() counts the characters.
    row = connection.execute(
        f"""
        SELECT sum(length(CAST({text} AS BLOB)) + ifnull(length(CAST(m.metadata AS BLOB)), 0)
                   + ifnull(length(CAST(m.channel AS BLOB)), 0)
                   + ifnull(length(CAST(m.attachments AS BLOB)), 0))
        FROM envelope e JOIN message m ON m.id = e.message WHERE e.id IN ({",".join("?" * len(ids))})
        """,
        list(ids),
    ).fetchone()
    return int(row[0] or 0)


def count(connection: Connection, query: Query, exact_to: int) -> int | str:
    """Return how many there are in total: exact up to a limit, then '1000+'."""
    found = page(connection, replace(query, limit=exact_to, after=None))
    return f"{exact_to}+" if found.next else len(found.ids)


def _box(connection: Connection, query: Query) -> list[tuple[int, Position]]:
    """List a box. Deferred mail counts as newest: it comes first, or last with oldest first."""
    walks = ["d", "a"] if query.with_deferred and not query.unread else ["a"]
    if query.oldest_first:
        walks.reverse()
    after = query.after
    if after and after.walk not in walks:
        raise BadCursor(value="a cursor of another list")
    found: list[tuple[int, Position]] = []
    for walk in walks:
        if after and after.walk != walk and after.walk in walks[walks.index(walk) :]:
            continue  # this walk was finished before the one of the cursor
        start = after.number if after and after.walk == walk else None
        rows: list[Row] = []
        # Unread mail of the inbox has its own index; elsewhere `unread` is a filter.
        for status in [None] if query.by_unread_index else query.statuses:
            rows += _walk_box(connection, query, walk, status, start)
        rows.sort(key=lambda row: row["place"], reverse=not query.oldest_first)
        found += [(row["id"], Position(walk=walk, number=row["place"])) for row in rows]
        if len(found) >= query.limit:
            break
    return found[: query.limit]


def _walk_box(
    connection: Connection, query: Query, walk: str, status: Status | None, start: int | None
) -> Sequence[Row]:
    """Walk the index for one status, or the index of unread mail (status None)."""
    place = "e.arrived" if walk == "a" else "e.id"
    index = "envelope_box"
    if status is None:  # what came back counts as new: a cursor passed its old place
        place, index = "ifnull(e.due_again, e.arrived)", "envelope_unread"
    where = _Where()
    # The box is a literal: with a parameter SQLite could not prove that the partial index covers it.
    where.add(f"e.recipient = ? AND e.box = {int(query.box)}", query.owner)
    where.add("e.arrived IS NOT NULL" if walk == "a" else "e.arrived IS NULL")
    if query.unread:
        where.add("e.read_at IS NULL")
    if query.due:
        where.add("e.waits IS NULL")
    if status is None:
        where.add("e.status <> 3")  # exactly as in the index, or SQLite could not use it
        where.add(f"e.status IN ({','.join(str(int(s)) for s in query.statuses)})")
    else:
        where.add("e.status = ?", int(status))
    if start is not None:
        where.add(f"{place} {'>' if query.oldest_first else '<'} ?", start)
    _narrow(where, query)
    source = f"envelope e INDEXED BY {index} JOIN message m ON m.id = e.message"
    if query.thread is not None:
        source = "message m JOIN envelope e INDEXED BY envelope_message ON e.message = m.id"
    elif not query.filtered:
        source = f"envelope e INDEXED BY {index}"
    order = "ASC" if query.oldest_first else "DESC"
    return connection.execute(
        f"SELECT e.id, {place} AS place FROM {source} WHERE {where} ORDER BY {place} {order} LIMIT ?",
        (*where.values, query.limit),
    ).fetchall()


def _accepted(connection: Connection, query: Query) -> list[tuple[int, Position]]:
    """List an outbox or a whole thread, in the order of acceptance."""
    where = _Where()
    if query.outbox:
        where.add("m.sender = ?", query.owner)
    elif not query.sees_all:
        received = "e.recipient = ? AND e.arrived IS NOT NULL"
        where.add(f"(m.sender = ? OR ({received}))", query.owner, query.owner)
    # A forward is the same mail again, for a chat of the boss. Who named that chat finds it in his outbox.
    if query.whole_thread and query.recipients is None:
        where.add("e.forwards IS NULL")
    elif query.recipients is None or not query.sees_all:
        where.add("(e.forwards IS NULL OR e.addressed)")
    if len(query.statuses) < len(Status):
        where.add(f"e.status IN ({','.join(str(int(s)) for s in query.statuses)})")
    if query.unread:
        where.add("e.read_at IS NULL")
    after, sign = query.after, ">" if query.oldest_first else "<"
    if after:
        if after.walk != "o":
            raise BadCursor(value="an inbox cursor")
        # The first term lets the walk begin at the right position of the index.
        where.add(f"m.id {sign}= ?", after.number)
        where.add(f"(m.id {sign} ? OR e.id {sign} ?)", after.number, after.envelope)
    _narrow(where, query)
    order = "ASC" if query.oldest_first else "DESC"
    source = "message m" if query.thread is not None else "message m INDEXED BY message_sender"
    rows = connection.execute(
        f"""
        SELECT e.id, m.id AS message FROM {source}
        CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id
        WHERE {where} ORDER BY m.id {order}, e.id {order} LIMIT ?
        """,
        (*where.values, query.limit),
    )
    return [(row["id"], Position(walk="o", number=row["message"], envelope=row["id"])) for row in rows]


def _failed(connection: Connection, query: Query) -> list[tuple[int, Position]]:
    """List what failed in all boxes: box by box, because there is no index of failures alone."""
    where = _Where()
    if query.after:
        if query.after.walk != "o":
            raise BadCursor(value="an inbox cursor")
        where.add(f"e.id {'>' if query.oldest_first else '<'} ?", query.after.envelope)
    where.add("e.status = 2")
    _narrow(where, query)
    rows = connection.execute(
        f"""
        SELECT e.id, e.message FROM address a
        CROSS JOIN (SELECT 0 AS box UNION ALL SELECT 1 UNION ALL SELECT 2) b
        CROSS JOIN envelope e INDEXED BY envelope_box ON e.recipient = a.id AND e.box = b.box
        JOIN message m ON m.id = e.message
        WHERE {where} ORDER BY e.id {"ASC" if query.oldest_first else "DESC"} LIMIT ?
        """,
        (*where.values, query.limit),
    )
    return [(row["id"], Position(walk="o", number=row["message"], envelope=row["id"])) for row in rows]


def _every_box(connection: Connection, query: Query) -> list[tuple[int, Position]]:
    """List all envelopes, also those that have not arrived and forwards."""
    where = _Where()
    sign, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
    if query.after and query.after.walk != "o":
        raise BadCursor(value="an inbox cursor")
    where.add(f"e.id {sign} ?", query.after.envelope if query.after else 0 if query.oldest_first else LARGEST)
    if not query.with_deferred:
        where.add("e.arrived IS NOT NULL")
    if len(query.statuses) < len(Status):
        where.add(f"e.status IN ({','.join(str(int(s)) for s in query.statuses)})")
    if query.unread:
        where.add("e.read_at IS NULL")
    _narrow(where, query)
    rows = connection.execute(
        f"""
        SELECT e.id, e.message FROM envelope e JOIN message m ON m.id = e.message
        WHERE {where} ORDER BY e.id {order} LIMIT ?
        """,
        (*where.values, query.limit),
    )
    return [(row["id"], Position(walk="o", number=row["message"], envelope=row["id"])) for row in rows]


def _narrow(where: _Where, query: Query) -> None:
    if query.senders is not None:  # also by the chat in which the boss wrote it: that is shown as `from`
        marks = ",".join("?" * len(query.senders))
        where.add(f"(m.sender IN ({marks}) OR m.place IN ({marks}))", *query.senders, *query.senders)
    if query.recipients is not None:
        where.add(f"e.recipient IN ({','.join('?' * len(query.recipients))})", *query.recipients)
    if query.thread is not None:
        where.add("(m.thread = ? OR m.id = ?)", query.thread, query.thread)
    if query.created_after is not None:
        where.add("m.created_at > ?", query.created_after)
    if query.created_before is not None:
        where.add("m.created_at < ?", query.created_before)
