"""The walks of lists of envelopes: each follows one index and stops at the end of the page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ..core.envelope import Status
from ..core.ids import LARGEST
from .connection import Connection, Row
from .list_query import Position, Query, Where, narrow

UNREAD = "unread"  # the kind of list that waits and polls go on with
_UNREAD = "e.read_at IS NULL AND e.context = 0"  # outside of an inbox, where no index has it


def walk(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """Return the ids of the first envelopes after the position of the query, at most so many."""
    if query.every_box:
        return _every_box(connection, query, most)
    if query.everywhere:
        return _failed(connection, query, most)
    if query.outbox or query.whole_thread:
        return _accepted(connection, query, most)
    return _box(connection, query, most)


def kind(query: Query) -> str:
    """Return the kind of a list, as its cursors name it."""
    if query.every_box or query.everywhere:
        return "all" if query.every_box else "failed"
    if query.outbox or query.whole_thread:
        return "outbox" if query.outbox else "thread"
    return UNREAD if query.by_unread_index else query.box.word


def _box(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """List a box. Deferred mail counts as newest: it comes first, or last with oldest first."""
    walks = ["d", "a"] if query.with_deferred and not query.unread else ["a"]
    if query.oldest_first:
        walks.reverse()
    after, of = query.after, kind(query)
    if after:
        after.check(of, "".join(walks))
    found: list[tuple[int, Position]] = []
    for walk in walks:
        if after and after.walk != walk and after.walk in walks[walks.index(walk) :]:
            continue  # this walk was finished before the one of the cursor
        start = after.number if after and after.walk == walk else None
        rows = _walk_box(connection, query, walk, start, most - len(found))
        found += [(number, Position(walk, place, of)) for number, place in rows]
        if len(found) >= most:
            break
    return found


def _walk_box(
    connection: Connection, query: Query, walk: str, start: int | None, most: int
) -> list[tuple[int, int]]:
    """Return the first envelopes of a walk, each with its place."""
    # Unread mail of the inbox has its own index; elsewhere `unread` is a filter.
    by_unread = query.by_unread_index
    source = _box_source(query, "envelope_unread" if by_unread else "envelope_box")
    where = Where(values=[*source.values, query.owner, int(query.box)])
    if start is not None:
        where.values.append(start)
    _narrow(where, query, done=source.done)
    sort = _Sort(walk == "a", by_unread, start is not None, query.oldest_first)
    statement = _box_statement(
        source.tables, query.statuses, sort, query.due, query.unread and not by_unread, str(where)
    )
    cursor = connection.cursor()
    cursor.row_factory = None
    arms = 1 if by_unread else len(query.statuses)
    return cursor.execute(statement, (*where.values * arms, most)).fetchall()


class _Sort(NamedTuple):
    """How a walk of a box goes."""

    arrived: bool  # what has arrived; else what is deferred
    by_unread: bool  # in the index of unread mail
    started: bool  # after a position
    oldest_first: bool

    @property
    def place(self) -> str:
        if self.by_unread:  # what came back counts as new: a cursor passed its old place
            return "ifnull(e.due_again, e.arrived)"
        return "e.arrived" if self.arrived else "e.id"


@lru_cache(maxsize=256)
def _box_statement(
    tables: str, statuses: tuple[Status, ...], sort: _Sort, due: bool, unread: bool, narrowed: str
) -> str:
    """Return one statement for all statuses: SQLite merges their walks, and none goes beyond the page."""
    where = Where()
    where.add("e.recipient = ? AND e.box = ?")
    where.add("e.arrived IS NOT NULL" if sort.arrived else "e.arrived IS NULL")
    if sort.started:
        where.add(f"{sort.place} {'>' if sort.oldest_first else '<'} ?")
    if due:
        where.add("e.waits IS NULL")
    if unread:
        where.add(_UNREAD)
    among = [f"e.status = {int(status)}" for status in statuses]
    if sort.by_unread:  # exactly as in the index, or SQLite could not use it
        among = [f"e.unread = 1 AND e.status IN ({','.join(str(int(s)) for s in statuses)})"]
    arms = (
        f"SELECT e.id AS id, {sort.place} AS place FROM {tables} WHERE {one} AND {where} AND {narrowed}"
        for one in among
    )
    return f"{' UNION ALL '.join(arms)} ORDER BY place {'ASC' if sort.oldest_first else 'DESC'} LIMIT ?"


class _Source(NamedTuple):
    tables: str
    values: list[str]
    done: str = ""  # the walk in FLAT whose condition it fulfils


def _box_source(query: Query, index: str) -> _Source:
    """Return where a walk begins: with the few messages of a thread or a tag, else with the box."""
    joined = "message m CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id"
    if query.thread is not None:
        return _Source(joined, [])
    if query.tags:
        one = query.tags[0]
        tagged = " UNION ".join(
            ["SELECT message FROM tag WHERE kind = ? AND name = ? AND value = ?"] * len(one.tags)
        )
        values = [value for tag in one.tags for value in tag]
        none = "SELECT NULL AS message WHERE 0"  # who has no name and no role is mentioned nowhere
        return _Source(f"({tagged or none}) t CROSS JOIN {joined} AND m.id = t.message", values, one.walk)
    if query.filtered:
        return _Source(f"envelope e INDEXED BY {index} JOIN message m ON m.id = e.message", [])
    return _Source(f"envelope e INDEXED BY {index}", [])


# What was sent to a group is in the outbox once, by the envelope of the group; and where it failed.
_NOT_OF_A_MEMBER = """
    (e.status = 2
     OR NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = m.conversation AND c.kind = 'group')
     OR EXISTS (SELECT 1 FROM address a WHERE a.id = e.recipient AND a.kind = 'group'))
"""


def _accepted(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """List an outbox or a whole thread, in the order of acceptance."""
    where = Where()
    if query.outbox:
        where.add("m.sender = ?", query.owner)
        if query.recipients is None:
            where.add(_NOT_OF_A_MEMBER)
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
        where.add(_UNREAD)
    after, sign = query.after, ">" if query.oldest_first else "<"
    if after:
        after.check(kind(query), "o")
        # The first term lets the walk begin at the right position of the index.
        where.add(f"m.id {sign}= ?", after.number)
        where.add(f"(m.id {sign} ? OR e.id {sign} ?)", after.number, after.second)
    _narrow(where, query)
    order = "ASC" if query.oldest_first else "DESC"
    source = "message m" if query.thread is not None else "message m INDEXED BY message_sender"
    rows = connection.execute(
        f"""
        SELECT e.id, m.id AS message FROM {source}
        CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id
        WHERE {where} ORDER BY m.id {order}, e.id {order} LIMIT ?
        """,
        (*where.values, most),
    )
    return _accepted_places(rows, query)


def _failed(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """List what failed in all boxes: box by box, because there is no index of failures alone."""
    where = Where()
    if query.after:
        query.after.check(kind(query), "o")
        where.add(f"e.id {'>' if query.oldest_first else '<'} ?", query.after.second)
    where.add("e.status = 2")
    _narrow(where, query)
    rows = connection.execute(
        f"""
        SELECT e.id, e.message FROM address a
        CROSS JOIN (SELECT 0 AS box UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) b
        CROSS JOIN envelope e INDEXED BY envelope_box ON e.recipient = a.id AND e.box = b.box
        JOIN message m ON m.id = e.message
        WHERE {where} ORDER BY e.id {"ASC" if query.oldest_first else "DESC"} LIMIT ?
        """,
        (*where.values, most),
    )
    return _accepted_places(rows, query)


def _every_box(connection: Connection, query: Query, most: int) -> list[tuple[int, Position]]:
    """List all envelopes, also those that have not arrived and forwards."""
    where = Where()
    sign, order = (">", "ASC") if query.oldest_first else ("<", "DESC")
    if query.after:
        query.after.check(kind(query), "o")
    where.add(f"e.id {sign} ?", query.after.second if query.after else 0 if query.oldest_first else LARGEST)
    if not query.with_deferred:
        where.add("e.arrived IS NOT NULL")
    if len(query.statuses) < len(Status):
        where.add(f"e.status IN ({','.join(str(int(s)) for s in query.statuses)})")
    if query.unread:
        where.add(_UNREAD)
    _narrow(where, query)
    rows = connection.execute(
        f"""
        SELECT e.id, e.message FROM envelope e JOIN message m ON m.id = e.message
        WHERE {where} ORDER BY e.id {order} LIMIT ?
        """,
        (*where.values, most),
    )
    return _accepted_places(rows, query)


def _accepted_places(rows: Iterable[Row], query: Query) -> list[tuple[int, Position]]:
    of = kind(query)
    return [(row["id"], Position(walk="o", number=row["message"], second=row["id"], of=of)) for row in rows]


def _narrow(where: Where, query: Query, *, done: str = "") -> None:
    narrow(where, query, done=done)
    if query.recipients is not None:
        where.add(f"e.recipient IN ({','.join('?' * len(query.recipients))})", *query.recipients)
