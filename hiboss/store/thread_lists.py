"""Lists of threads: the last active first. A thread is listed when it has a reply.

Somebody is shown the threads of the conversations that it is in now. Each conversation has its threads in
the order of their last arrivals; they are merged one by one, so a page costs the same however many there are.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..core.ids import LARGEST
from . import message_rows, unread_counts
from .connection import Connection
from .list_query import AnyTag, Page, Position
from .visibility import may_see, sees

AT_ONCE = 100  # threads that are read together
KIND = "threads"  # of these lists, as their cursors name it
TAGGED = 2_000  # of the last messages with a scope, whose threads are listed
LISTED = 1_000  # messages of a thread that are counted one by one
COUNTED = 1_000_000  # unread envelopes of a thread; nobody has so many
_PRESENT = "p.address = {} AND p.left_seq IS NULL AND p.role <> 'guest'"


class Active(NamedTuple):
    """A thread, and when something last arrived in it, in the order of arrival over all envelopes."""

    arrived: int
    thread: int


def walk(
    connection: Connection, viewer: int, after: Position | None, limit: int
) -> list[tuple[int, Position]]:
    """Return the threads that were last active before a position, at most so many."""
    before = LARGEST if after is None else after.number
    merged, found = _merged(connection, viewer, before), list[Active]()
    while len(found) < limit and (some := list(islice(merged, AT_ONCE))):
        found += _shown(connection, viewer, some)
    return _placed(found[:limit])


def _placed(found: Any) -> list[tuple[int, Position]]:
    return [(one.thread, Position(walk="a", number=one.arrived, of=KIND)) for one in found]


def _merged(connection: Connection, viewer: int, before: int) -> Iterator[Active]:
    """Yield what is in all conversations of somebody, the last active first; a thread can be in several."""
    newest = "SELECT {} FROM thread t INDEXED BY thread_activity WHERE t.conversation = p.conversation"
    newest += " AND t.arrived < ?1 ORDER BY t.arrived DESC LIMIT 1"
    rows = connection.execute(
        f"""
        SELECT DISTINCT p.conversation, ({newest.format("t.id")}) AS id,
               ({newest.format("t.arrived")}) AS arrived, ({newest.format("1")} OFFSET 1) AS more
        FROM participant p WHERE {_PRESENT.format("?2")}
        """,
        (before, viewer),
    ).fetchall()
    heap = [(-row["arrived"], row["id"], row["conversation"]) for row in rows if row["id"] is not None]
    heapq.heapify(heap)
    older = {
        row["conversation"]: _older(connection, row["conversation"], row["arrived"])
        for row in rows
        if row["more"] is not None
    }
    while heap:
        newest_arrived, thread, conversation = heap[0]
        yield Active(-newest_arrived, thread)
        follows = next(older[conversation], None) if conversation in older else None
        if follows is not None:
            heapq.heapreplace(heap, (-follows.arrived, follows.thread, conversation))
        else:
            heapq.heappop(heap)


def _older(connection: Connection, conversation: int, before: int) -> Iterator[Active]:
    """Yield the threads of a conversation that were last active before a moment, the last active first."""
    while True:
        rows = connection.execute(
            """
            SELECT arrived, id FROM thread INDEXED BY thread_activity
            WHERE conversation = ? AND arrived < ? ORDER BY arrived DESC LIMIT ?
            """,
            (conversation, before, AT_ONCE),
        ).fetchall()
        yield from (Active(row["arrived"], row["id"]) for row in rows)
        if len(rows) < AT_ONCE:
            return
        before = rows[-1]["arrived"]


def _shown(connection: Connection, viewer: int, some: Sequence[Active]) -> list[Active]:
    """Return those that are the last activity of a thread of which the viewer may see something."""
    rows = connection.execute(
        f"""
        SELECT j.key FROM json_each(?1) j CROSS JOIN message first ON first.id = json_extract(j.value, '$[1]')
        WHERE NOT EXISTS (
            SELECT 1 FROM thread t INDEXED BY thread_id
            CROSS JOIN participant p ON p.conversation = t.conversation
            WHERE t.id = first.id AND t.arrived > json_extract(j.value, '$[0]') AND {_PRESENT.format("?2")})
          AND (EXISTS (SELECT 1 FROM message m WHERE m.id = first.id AND {sees("?2")})
               OR EXISTS (SELECT 1 FROM message m INDEXED BY message_thread
                          WHERE m.thread = first.id AND {sees("?2")}))
        """,
        (json.dumps(some), viewer),
    ).fetchall()
    return [some[row["key"]] for row in rows]


def walk_tagged(
    connection: Connection, viewer: int, tag: AnyTag, after: Position | None, limit: int
) -> list[tuple[int, Position]]:
    """Return the threads of which some message has a tag, among the last messages that have it."""
    (wanted,) = tag.tags
    rows = connection.execute(
        f"""
        SELECT t.id AS thread, max(t.arrived) AS arrived FROM (
            SELECT DISTINCT ifnull(m.thread, m.id) AS id FROM (
                SELECT message FROM tag WHERE kind = ?1 AND name = ?2 AND value = ?3
                ORDER BY message DESC LIMIT {TAGGED}) g
            CROSS JOIN message m ON m.id = g.message WHERE {sees("?4")}) found
        CROSS JOIN thread t INDEXED BY thread_id ON t.id = found.id
        WHERE EXISTS (SELECT 1 FROM participant p
                      WHERE p.conversation = t.conversation AND {_PRESENT.format("?4")})
        GROUP BY t.id ORDER BY arrived DESC
        """,
        (*wanted, viewer),
    ).fetchall()
    before = LARGEST if after is None else after.number
    found = (Active(row["arrived"], row["thread"]) for row in rows if row["arrived"] < before)
    return _placed(islice(found, limit))


def page(connection: Connection, viewer: int, tag: AnyTag | None, after: Position | None, limit: int) -> Page:
    """Return one page of threads."""
    if tag is None:
        found = walk(connection, viewer, after, limit + 1)
    else:
        found = walk_tagged(connection, viewer, tag, after, limit + 1)
    return Page(found, more=False).first(limit)


def is_cut(connection: Connection, tag: AnyTag) -> bool:
    """Tell whether more messages have a tag than those whose threads are listed."""
    (wanted,) = tag.tags
    query = "SELECT 1 FROM tag WHERE kind = ? AND name = ? AND value = ? LIMIT 1 OFFSET ?"
    return connection.execute(query, (*wanted, TAGGED)).fetchone() is not None


# --- one thread ------------------------------------------------------------------------


class Facts(NamedTuple):
    """What is known of a thread for one who may see something of it."""

    first: message_rows.MessageRow  # that the viewer may see
    last: message_rows.MessageRow
    messages: int
    unread: int


def facts(connection: Connection, thread: int, owner: int, viewer: int | None) -> Facts:
    """Return what a list shows of a thread. `owner`: who has unread mail of it; the viewer None sees all."""
    first = message_rows.first_visible(connection, thread, viewer)
    last = _last(connection, thread, viewer)
    assert first is not None and last is not None, "the viewer was checked"
    rows = {row["id"]: row for row in message_rows.fetch(connection, [first, last], owner)}
    unread = unread_counts.of_thread(connection, owner, thread, COUNTED).number
    return Facts(rows[first], rows[last], _messages(connection, thread, viewer), unread)


def _last(connection: Connection, thread: int, viewer: int | None) -> int | None:
    """Return the message of a thread that arrived last, of those that the viewer may see."""
    rows = connection.execute(
        f"""
        SELECT t.last FROM thread t INDEXED BY thread_id WHERE t.id = ?1 AND (?2 IS NULL OR EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = t.conversation AND {_PRESENT.format("?2")}))
        ORDER BY t.arrived DESC
        """,
        (thread, viewer),
    ).fetchall()
    if rows and may_see(connection, rows[0]["last"], viewer):
        return int(rows[0]["last"])
    return message_rows.last_visible(connection, thread, viewer)


def _messages(connection: Connection, thread: int, viewer: int | None) -> int:
    """Return how many messages of a thread have arrived in the conversations of the viewer, and it may see.

    The first one counts too, wherever it is; if it was deferred, replies may have arrived before it. Of a
    group that the viewer joined later they are counted one by one, at most LISTED; else the number is known.
    """
    rows = connection.execute(
        f"""
        SELECT t.conversation, t.messages, t.conversation = m.conversation AS has_first, EXISTS (
                   SELECT 1 FROM participant p JOIN conversation c ON c.id = p.conversation
                   WHERE p.conversation = t.conversation AND {_PRESENT.format("?2")} AND c.kind = 'group'
                     -- Of a deferred one: replies may come before it.
                     AND p.joined_seq > iif(t.conversation = m.conversation AND m.deliver_at IS NULL,
                                            m.seq, c.first_seq)) AS in_part
        FROM message m JOIN thread t ON t.id = m.id AND (?2 IS NULL OR EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = t.conversation AND {_PRESENT.format("?2")}))
        WHERE m.id = ?1
        """,
        (thread, viewer),
    ).fetchall()
    found = sum(
        _seen_of(connection, thread, row["conversation"], viewer) if row["in_part"] else row["messages"]
        for row in rows
    )
    if any(row["has_first"] for row in rows):
        return int(found)
    arrived = connection.execute(
        "SELECT 1 FROM message WHERE id = ? AND seq IS NOT NULL", (thread,)
    ).fetchone()
    return int(found) + bool(arrived is not None and may_see(connection, thread, viewer))


def _seen_of(connection: Connection, thread: int, conversation: int, viewer: int | None) -> int:
    """Return how many messages of a thread in a conversation somebody may see, at most LISTED."""
    row = connection.execute(
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM message m INDEXED BY message_thread
            WHERE m.thread = ?1 AND m.conversation = ?2 AND m.seq IS NOT NULL AND {sees("?3")} LIMIT {LISTED})
        """,
        (thread, conversation, viewer),
    ).fetchone()
    first = connection.execute(
        f"""
        SELECT 1 FROM message m
        WHERE m.id = ?1 AND m.conversation = ?2 AND m.seq IS NOT NULL AND {sees("?3")}
        """,
        (thread, conversation, viewer),
    ).fetchone()
    return min(int(row[0]) + (first is not None), LISTED)
