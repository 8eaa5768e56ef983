"""How far somebody has read a conversation. What takes a Tx runs inside the writer."""

from __future__ import annotations

from collections.abc import Sequence

from . import envelope_marks
from .connection import Connection
from .group_commit import Tx

AT_ONCE = 1_000  # messages in one transaction, so that other writers wait at most for these


def position(connection: Connection | Tx, conversation: int, address: int) -> int:
    """Return up to which sequence number somebody has read; 0: nothing."""
    row = connection.execute(
        """
        SELECT last_read_seq FROM participant WHERE conversation = ? AND address = ?
        ORDER BY joined_seq DESC LIMIT 1
        """,
        (conversation, address),
    ).fetchone()
    return 0 if row is None else int(row["last_read_seq"])


def unread(connection: Connection, conversation: int, address: int) -> int:
    """Return how many envelopes of somebody are unread in a conversation."""
    row = connection.execute(
        "SELECT ifnull(sum(number), 0) FROM unread WHERE address = ? AND conversation = ?",
        (address, conversation),
    ).fetchone()
    return int(row[0])


def mark(
    tx: Tx, conversation: int, owner: int, after: int, upto: int, now: int, *, reader: int, session: str
) -> tuple[int, int]:
    """Mark what somebody has of a conversation as read, after one sequence number and up to another.

    Return how many envelopes were unread, and up to which number this was done: go on from there until that
    is `upto`.
    """
    end = min(upto, after + AT_ONCE)
    rows = tx.execute(_NEW, (conversation, after, end, owner)).fetchall()
    changed = envelope_marks.mark_together(tx, [row["id"] for row in rows], reader, session, now)
    tx.execute(
        """
        UPDATE participant SET last_read_seq = max(last_read_seq, ?3)
        WHERE conversation = ?1 AND address = ?2 AND joined_seq = (
            SELECT max(joined_seq) FROM participant WHERE conversation = ?1 AND address = ?2)
        """,
        (conversation, owner, end),
    )
    return changed, end


_NEW = """
SELECT e.id FROM message m INDEXED BY message_seq
CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id AND e.recipient = ?4 AND e.unread
WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq > ?2 AND m.seq <= ?3
"""


def came_back(connection: Connection, conversation: int, owner: int, upto: int) -> list[int]:
    """Return the unread envelopes of what is read already: a snooze ended, or they were put into the inbox.

    It looks through the unread mail of somebody, and only if some of the conversation is among it.
    """
    if not unread(connection, conversation, owner):
        return []
    rows = connection.execute(
        """
        SELECT e.id FROM envelope e INDEXED BY envelope_unread CROSS JOIN message m ON m.id = e.message
        WHERE e.recipient = ?1 AND e.unread = 1 AND m.conversation = ?2 AND m.seq <= ?3
        """,
        (owner, conversation, upto),
    )
    return [row["id"] for row in rows]


def mark_back(tx: Tx, numbers: Sequence[int], owner: int, now: int, *, reader: int, session: str) -> int:
    """Mark those of these envelopes as read that somebody has not read yet; return how many."""
    rows = tx.execute(
        """
        SELECT e.id FROM json_each(?) j CROSS JOIN envelope e ON e.id = j.value
        WHERE e.recipient = ? AND e.unread = 1
        """,
        (f"[{','.join(map(str, numbers))}]", owner),
    ).fetchall()
    return envelope_marks.mark_together(tx, [row["id"] for row in rows], reader, session, now)
