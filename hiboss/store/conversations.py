"""Read conversations: the messages between the same parties, in order."""

from __future__ import annotations

from collections.abc import Iterable

from .connection import Connection, Row


def key(parties: Iterable[int]) -> str:
    """Return the key of the conversation between exactly these addresses, whoever of them writes."""
    ids = sorted(set(parties))
    return ",".join(map(str, ids if len(ids) > 1 else ids * 2))  # twice: who writes to nobody else


def between(connection: Connection, parties: Iterable[int]) -> Row | None:
    """Return the conversation between exactly these addresses; None if there is none."""
    row: Row | None = connection.execute(
        "SELECT id, first_seq, last_seq FROM conversation WHERE key = ?", (key(parties),)
    ).fetchone()
    return row


def after(connection: Connection, conversation: int, seq: int, limit: int) -> list[tuple[int, int]]:
    """Return the messages after a sequence number, oldest first: (sequence number, one of its envelopes)."""
    rows = connection.execute(
        """
        SELECT m.seq, (SELECT min(e.id) FROM envelope e WHERE e.message = m.id) AS envelope
        FROM message m INDEXED BY message_seq
        WHERE m.conversation = ? AND m.seq > ? AND m.seq IS NOT NULL ORDER BY m.seq LIMIT ?
        """,
        (conversation, seq, limit),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in rows]


def before(connection: Connection, conversation: int, seq: int | None, limit: int) -> list[tuple[int, int]]:
    """Return the last messages before a sequence number, or of all; oldest first, as `after` does."""
    rows = connection.execute(
        """
        SELECT m.seq, (SELECT min(e.id) FROM envelope e WHERE e.message = m.id) AS envelope
        FROM message m INDEXED BY message_seq
        WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq < ifnull(?2, 9223372036854775807)
        ORDER BY m.seq DESC LIMIT ?3
        """,
        (conversation, seq, limit),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in reversed(rows)]
