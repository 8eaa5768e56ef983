"""The walks of lists of messages: each follows one index and stops at the end of the page.

A message is listed once, however many recipients it has. The order is that of arrival: the arrival number in
a box, `seq` in a conversation. Threads, tags, runs and authors are listed by the ids of messages, that is in
the order of acceptance. There mail that was deferred arrives behind positions that a reader has passed. So
a cursor of these also has the arrival number up to which it was read, and the next page of a list with the
oldest first begins with what has arrived late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..core.envelope import Box, Status
from ..core.errors import TooBroad
from ..core.ids import LARGEST
from .connection import Connection
from .conversations import WAITED
from .counters import last_arrived
from .list_query import Position, Query, RunSpan, Where, narrow, narrow_to_viewer
from .paging import Total

SORTED_AT_ONCE = 10_000  # messages whose last changes are compared for one page


class _Range(NamedTuple):
    """A range of an index, of those whose place is after `low`, and not after `high`."""

    term: str
    values: Sequence[Any]
    low: int | None = None
    high: int | None = None

    def where(self, place: str, start: int | None, *, oldest_first: bool) -> Where:
        """Return the condition that something is in this range, and behind a position of the list.

        With one bound on each side: of two on the same side SQLite follows the index by the first.
        """
        low, high = self.low, self.high
        if start is not None and oldest_first:
            low = start if low is None else max(low, start)
        elif start is not None:
            high = start - 1 if high is None else min(high, start - 1)
        found = Where()
        found.add(self.term, *self.values)
        if low is not None:
            found.add(f"{place} > ?", low)
        if high is not None:
            found.add(f"{place} <= ?", high)
        return found


class _Walk(NamedTuple):
    """How to read what a query asks for: by which index, and in which order."""

    name: str  # in FLAT
    letter: str  # of its positions
    source: str
    place: str  # the column that the order is by
    ranges: Sequence[_Range]  # a message may be in several of them, of tags
    envelopes: str = ""  # the source without messages, for a count that needs none of their columns

    @property
    def of(self) -> str:
        """The kind of list, as its cursors name it."""
        return f"message.{self.name}"


def walk(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """Return the ids of the first messages after the position of the query, at most so many."""
    query = replace(query, limit=most)
    chosen = _choose(connection, query)
    if query.after:
        query.after.check(chosen.of, chosen.letter)
    if chosen.letter == "m":
        return _by_ids(connection, query, chosen)
    rows = _rows(connection, query, chosen, None if query.after is None else query.after.number)
    return [(message, Position(walk=chosen.letter, number=place, of=chosen.of)) for place, message in rows]


def count(connection: Connection, query: Query, exact_to: int) -> Total:
    """Return how many messages there are in total, exact up to a limit."""
    chosen, most, found = _choose(connection, query), exact_to + 1, 0
    if len(chosen.ranges) > 1 and query.tags:  # those with several of the tags count once
        found = len(_rows(connection, replace(query, limit=most), chosen, None))
    else:
        for one in chosen.ranges:
            found += _count(connection, query, chosen, one, most - found)
    return Total(min(found, exact_to), found > exact_to)


def walk_name(connection: Connection, query: Query) -> str:
    """Return the name in FLAT of the walk that a query takes."""
    return _choose(connection, query).name


# --- which index -----------------------------------------------------------------------


def _choose(connection: Connection, query: Query) -> _Walk:
    """Return the walk for a query: that of the filter which usually leaves the fewest."""
    if query.run is not None:
        return _of_run(query.run)
    if query.thread is not None:
        ranges = [_Range("m.thread = ?", [query.thread]), _Range("m.id = ?", [query.thread])]
        return _Walk("thread", "m", "message m", "m.id", ranges)
    if query.tags:
        return _of_tags(query)
    if (query.unread and query.box is Box.INBOX) or query.box is Box.SNOOZED:
        return _of_box(query)
    if query.conversation is not None:
        return _of_conversation(connection, query)
    if query.outbox:
        own = [_Range("m.sender = ?", [query.owner])]
        return _Walk("outbox", "m", "message m INDEXED BY message_sender", "m.id", own)
    if query.senders is not None:
        ranges = [_Range("m.sender = ?", [sender]) for sender in query.senders]
        return _Walk("author", "m", "message m INDEXED BY message_sender", "m.id", ranges)
    return _of_box(query)


def _of_run(run: RunSpan) -> _Walk:
    span = _Range("m.sender = ? AND m.run = ?", [run.agent, run.run], run.after, run.last)
    return _Walk("run", "m", "message m INDEXED BY message_sender", "m.id", [span])


def _of_tags(query: Query) -> _Walk:
    one = query.tags[0]
    ranges = [_Range("t.kind = ? AND t.name = ? AND t.value = ?", tag) for tag in one.tags]
    return _Walk(one.walk, "m", "tag t CROSS JOIN message m ON m.id = t.message", "t.message", ranges)


def _of_box(query: Query) -> _Walk:
    if query.unread and query.box is Box.INBOX:
        # What came back counts as new: a cursor passed its old place.
        own = _Range("e.recipient = ? AND e.unread = 1", [query.owner])
        place = "ifnull(e.due_again, e.arrived)"
        return _Walk("unread", "a", _envelopes("envelope_unread"), place, [own], _index("envelope_unread"))
    of_box = "e.recipient = ? AND e.box = ? AND e.status = ? AND e.arrived IS NOT NULL"
    ranges = [_Range(of_box, [query.owner, int(query.box), int(status)]) for status in Status]
    name = "box" if query.box is Box.INBOX else query.box.word
    return _Walk(name, "a", _envelopes("envelope_box"), "e.arrived", ranges, _index("envelope_box"))


def _index(name: str) -> str:
    return f"envelope e INDEXED BY {name}"


def _envelopes(index: str) -> str:
    return f"{_index(index)} CROSS JOIN message m ON m.id = e.message"


def _of_conversation(connection: Connection, query: Query) -> _Walk:
    first, last = _seen_between(connection, query)
    span = _Range("m.conversation = ? AND m.seq IS NOT NULL", [query.conversation], first - 1, last)
    return _Walk("conversation", "s", "message m INDEXED BY message_seq", "m.seq", [span])


def _seen_between(connection: Connection, query: Query) -> tuple[int, int]:
    """Return between which numbers of a group its stays are, so that a page need not look much beyond them.

    What it got in the place of an agent may be older than its stay, and what it answered to that newer.
    """
    row = connection.execute(
        """
        SELECT min(p.joined_seq), max(ifnull(p.left_seq, ?1)) FROM participant p
        JOIN conversation c ON c.id = p.conversation AND c.kind = 'group'
        WHERE p.conversation = ?2 AND p.address = ?3
        """,
        (LARGEST, query.conversation, query.viewer),
    ).fetchone()
    return (1, LARGEST) if row[0] is None else (row[0] - WAITED, min(row[1] + WAITED, LARGEST))


# --- reading it ------------------------------------------------------------------------


def _rows(connection: Connection, query: Query, chosen: _Walk, start: int | None) -> list[tuple[int, int]]:
    """Return the first messages of a walk after a place: the place and the id of each."""
    order = "ASC" if query.oldest_first else "DESC"
    found: dict[int, int] = {}
    for one in chosen.ranges:
        where = one.where(chosen.place, start, oldest_first=query.oldest_first)
        _narrow(where, query, chosen)
        rows = connection.execute(
            f"""
            SELECT {chosen.place} AS place, m.id FROM {chosen.source}
            WHERE {where} ORDER BY {chosen.place} {order} LIMIT ?
            """,
            (*where.values, query.limit),
        )
        found |= {row["id"]: row["place"] for row in rows}
    merged = sorted(((place, message) for message, place in found.items()), reverse=not query.oldest_first)
    return merged[: query.limit]


def _count(connection: Connection, query: Query, chosen: _Walk, one: _Range, most: int) -> int:
    """Return how many messages a range has, at most so many. SQLite counts: to list them takes far longer."""
    where = one.where(chosen.place, None, oldest_first=query.oldest_first)
    _narrow(where, query, chosen)
    source = chosen.source if query.about_messages or not chosen.envelopes else chosen.envelopes
    row = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?)", (*where.values, most)
    ).fetchone()
    return int(row[0])


def _narrow(where: Where, query: Query, chosen: _Walk) -> None:
    narrow(where, query, done=chosen.name)
    if chosen.name not in _OWN_BOXES:
        narrow_to_viewer(where, query.viewer)
        _narrow_envelope(where, query)
        # What was said in a conversation. Elsewhere its author also sees what is still to come.
        if query.conversation is not None and chosen.name != "conversation":
            where.add("m.seq IS NOT NULL")
    elif query.unread and chosen.name != "unread":
        where.add(_UNREAD.format("e"))


_OWN_BOXES = ("box", "unread", "snoozed", "archived", "trash")  # what is in one's own box one may see
_UNREAD = "{0}.read_at IS NULL AND {0}.context = 0"  # outside of an inbox, where no index has it


def _narrow_envelope(where: Where, query: Query) -> None:
    """Add the conditions on the envelope of the owner, where the walk is not over its box."""
    if query.outbox:
        where.add("m.sender = ?", query.owner)
        return
    inbox = query.box is Box.INBOX
    states = [f"u.box = {int(query.box)}"] if query.boxed or not inbox else []
    if query.unread:
        states.append("u.unread = 1" if inbox else _UNREAD.format("u"))
    if states:
        mine = "SELECT 1 FROM envelope u WHERE u.message = m.id AND u.recipient = ?"
        where.add(f"EXISTS ({mine} AND u.arrived IS NOT NULL AND {' AND '.join(states)})", query.owner)


def _by_ids(connection: Connection, query: Query, chosen: _Walk) -> list[tuple[int, Position]]:
    """List by the ids of messages; oldest first, also what has arrived late since the page before."""
    after, upto = query.after, last_arrived(connection) if query.oldest_first else 0
    found: list[tuple[int, Position]] = []
    if after is not None and query.oldest_first and query.viewer is not None:
        late = _arrived_late(connection, query, after)
        found = [(message, after._replace(second=arrived)) for message, arrived in late]
    left = query.limit - len(found)
    if left > 0:
        start = None if after is None else after.number
        rows = _rows(connection, replace(query, limit=left), chosen, start)
        found += [
            (message, Position(walk="m", number=message, second=upto, of=chosen.of)) for _, message in rows
        ]
    return found


def _arrived_late(connection: Connection, query: Query, after: Position) -> list[tuple[int, int]]:
    """Return deferred messages that were passed before they arrived: the id and the arrival number of each.

    It reads what has arrived for the viewer since then, which is little between two pages.
    """
    where = Where()
    where.add("e.recipient = ? AND e.box IN (0, 1, 2, 3) AND e.status IN (0, 1, 2, 3)", query.viewer)
    where.add("e.arrived > ? AND m.deliver_at IS NOT NULL", after.second)
    where.add("m.id <= ? AND m.sender <> ?", after.number, query.viewer)
    narrow(where, query)
    _narrow_envelope(where, query)
    rows = connection.execute(
        f"SELECT m.id, e.arrived FROM {_envelopes('envelope_box')} WHERE {where} ORDER BY e.arrived LIMIT ?",
        (*where.values, query.limit),
    )
    return [(row["id"], row["arrived"]) for row in rows]


# --- by the last change ----------------------------------------------------------------


def walk_by_change(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """Return messages in the order of their last changes; raise TooBroad if there are too many to sort."""
    of = "message.changes"
    if query.after:
        query.after.check(of, "u")
    found = walk(connection, replace(query, after=None), SORTED_AT_ONCE + 1)
    if len(found) > SORTED_AT_ONCE:
        raise TooBroad(
            what=f"sort_by updated_at over more than {SORTED_AT_ONCE:,} messages",
            advice="sort by created_at, or narrow it down to a thread_id",
        )
    rows = connection.execute(
        """
        SELECT m.id, max(ifnull(m.edited_at, 0), ifnull(m.deleted_at, 0), ifnull(m.arrived_at, m.created_at))
        FROM json_each(?) j CROSS JOIN message m ON m.id = j.value
        """,
        (f"[{','.join(str(message) for message, _ in found)}]",),
    )
    places = sorted(((at, message) for message, at in rows), reverse=not query.oldest_first)
    if (after := query.after) is not None:
        passed: Callable[[tuple[int, int]], bool] = (
            (lambda one: one > (after.number, after.second))
            if query.oldest_first
            else (lambda one: one < (after.number, after.second))
        )
        places = [one for one in places if passed(one)]
    return [(message, Position(walk="u", number=at, second=message, of=of)) for at, message in places[:most]]
