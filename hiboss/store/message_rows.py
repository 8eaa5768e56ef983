"""Read single messages: all that is known of one, for somebody who may see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import NotFound
from ..core.message_json import About
from . import envelope_details, envelope_rows
from .connection import Connection
from .group_commit import Tx
from .visibility import may_see, sees

MessageRow = dict[str, Any]
# Cancelled mail need not be read, and what one only reads along is not counted.
_UNREAD_HERE = """
EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ? AND e.arrived IS NOT NULL
        AND e.read_at IS NULL AND e.context = 0 AND e.status <> 3)
"""
_COLUMNS = f"""
SELECT m.id, m.conversation, m.seq, m.thread, m.reply_to, m.sender, m.session, m.from_boss, m.run, m.trace,
       m.type, m.subject, m.text, m.attachments, m.metadata, m.created_at, m.edited_at, m.deleted_at,
       m.deleted_why, m.arrived_at, s.kind AS sender_kind, s.name AS sender_name,
       coalesce(m.from_name, u.name, g.display) AS from_name, {_UNREAD_HERE} AS unread_here
FROM message m JOIN address s ON s.id = m.sender
LEFT JOIN user u ON u.address = m.sender LEFT JOIN agent g ON g.address = m.sender
"""


def fetch(connection: Connection | Tx, ids: Sequence[int], owner: int) -> list[MessageRow]:
    """Return the messages with these ids, in this order, as `owner` has them; unknown ids are left out."""
    cursor = connection.execute(f"{_COLUMNS} WHERE m.id IN ({','.join('?' * len(ids))})", (owner, *ids))
    names = [column[0] for column in cursor.description]
    by_id = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
    return [by_id[number] for number in ids if number in by_id]


def about(connection: Connection, ids: Sequence[int]) -> About:
    """Return what messages show beside their columns. The caller has checked that they may be seen."""
    return About(_recipients(connection, ids), envelope_details.tags(connection, ids))


def _recipients(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return whom messages were sent to; of a group only the group, and not the chats of the boss."""
    rows = connection.execute(
        f"""
        SELECT e.message, a.kind, a.kind || ':' || a.name AS address FROM envelope e
        JOIN address a ON a.id = e.recipient
        WHERE e.message IN ({",".join("?" * len(ids))}) AND e.forwards IS NULL ORDER BY e.id
        """,
        tuple(ids),
    ).fetchall()
    to_group = {row["message"] for row in rows if row["kind"] == "group"}
    found: dict[int, list[str]] = {}
    for row in rows:
        if row["kind"] == "group" or row["message"] not in to_group:
            found.setdefault(row["message"], []).append(row["address"])
    return found


def visible(connection: Connection | Tx, given: tuple[str, int], viewer: int | None) -> int:
    """Return a message that somebody may see, given by its id or that of an envelope; else raise NotFound."""
    kind, number = given
    message = number
    if kind == "envelope":
        message = envelope_rows.visible(connection, number, viewer)["message"]
    if not may_see(connection, message, viewer):
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return message


def is_party(connection: Connection, conversation: int, viewer: int | None) -> bool:
    """Tell whether somebody is or was in a conversation; None is in all that there are."""
    row = connection.execute(
        """
        SELECT 1 FROM conversation c WHERE c.id = ?1 AND (?2 IS NULL OR EXISTS (
            SELECT 1 FROM participant p WHERE p.conversation = c.id AND p.address = ?2))
        """,
        (conversation, viewer),
    ).fetchone()
    return row is not None


def thread_of(connection: Connection, given: tuple[str, int], viewer: int | None) -> int:
    """Return a thread of which somebody may see something, given by any id in it; else raise NotFound."""
    kind, number = given
    thread = number
    if kind != "thread":
        message = visible(connection, given, viewer)
        thread = envelope_rows.thread_of(connection, message)
    elif not sees_thread(connection, number, viewer):
        raise NotFound(what=kind, value=f"t{number}")
    return thread


def sees_thread(connection: Connection, thread: int, viewer: int | None) -> bool:
    """Tell whether somebody may see a message of a thread."""
    return first_visible(connection, thread, viewer) is not None


def first_visible(connection: Connection, thread: int, viewer: int | None) -> int | None:
    """Return the first message of a thread that somebody may see; None: it may see none."""
    if may_see(connection, thread, viewer) and envelope_rows.thread_of(connection, thread) == thread:
        return thread
    return _visible_at_an_end(connection, thread, viewer, "ASC")


def last_visible(connection: Connection, thread: int, viewer: int | None) -> int | None:
    """Return the last message of a thread, by its id, that somebody may see."""
    found = _visible_at_an_end(connection, thread, viewer, "DESC")
    return found or (thread if may_see(connection, thread, viewer) else None)


def _visible_at_an_end(connection: Connection, thread: int, viewer: int | None, order: str) -> int | None:
    row = connection.execute(
        f"""
        SELECT m.id FROM message m INDEXED BY message_thread
        WHERE m.thread = ?1 AND (?2 IS NULL OR {sees("?2")}) ORDER BY m.id {order} LIMIT 1
        """,
        (thread, viewer),
    ).fetchone()
    return None if row is None else int(row[0])
