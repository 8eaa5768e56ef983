"""Read conversations: the messages between the same parties, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.address import SYSTEM
from ..core.envelope import Kind
from .connection import Connection, Row

WAITED = 100  # messages before it came that a guest may have got, since they waited then


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


class Guest(NamedTuple):
    """Somebody who has a conversation in the place of an agent, and sees what it got or wrote there."""

    address: int
    since: int  # the first sequence number that may be shown


def shared(connection: Connection, own: int, other: int) -> tuple[Row | None, Guest | None]:
    """Return the conversation of two: one that the first has in the place of an agent, else their own."""
    return taken_over(connection, own, other) or (between(connection, (own, other)), None)


def taken_over(connection: Connection, own: int, other: int) -> tuple[Row, Guest] | None:
    """Return the conversation with another one that somebody has in the place of an agent; None: none."""
    row = connection.execute(
        """
        SELECT c.id, c.first_seq, c.last_seq, g.joined_seq FROM conversation_route r
        CROSS JOIN participant p ON p.conversation = r.conversation AND p.address = ?2 AND p.role <> 'guest'
        CROSS JOIN participant g ON g.conversation = r.conversation AND g.address = ?1 AND g.left_seq IS NULL
        JOIN conversation c ON c.id = r.conversation
        WHERE r.destination = ?1 AND r.agent <> ?2 AND p.left_seq IS NULL ORDER BY c.id DESC LIMIT 1
        """,
        (own, other),
    ).fetchone()
    return None if row is None else (row, Guest(own, row["joined_seq"] - WAITED))


def after(
    connection: Connection,
    conversation: int,
    seq: int,
    limit: int,
    guest: Guest | None = None,
    viewer: int | None = None,
) -> list[tuple[int, int]]:
    """Return the messages after a sequence number, oldest first: (sequence number, one of its envelopes).

    `viewer`: who looks; None sees all, also what hiboss asked another party there.
    """
    address, since = guest or (None, 0)
    rows = connection.execute(
        f"{_MESSAGES} ORDER BY m.seq LIMIT ?3",
        (conversation, max(seq, since - 1), limit, address, _LAST, viewer),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in rows]


def before(
    connection: Connection,
    conversation: int,
    seq: int | None,
    limit: int,
    guest: Guest | None = None,
    viewer: int | None = None,
) -> list[tuple[int, int]]:
    """Return the last messages before a sequence number, or of all; oldest first, as `after` does."""
    address, since = guest or (None, 0)
    rows = connection.execute(
        f"{_MESSAGES} ORDER BY m.seq DESC LIMIT ?3",
        (conversation, since - 1, limit, address, _LAST if seq is None else seq, viewer),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in reversed(rows)]


_LAST = 2**63 - 1
# Of a guest (?4): only what it got or wrote. What hiboss asks an agent, like a summary, only who got it.
_MESSAGES = f"""
SELECT m.seq, (SELECT min(e.id) FROM envelope e WHERE e.message = m.id) AS envelope
FROM message m INDEXED BY message_seq
WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq > ?2 AND m.seq < ?5
  AND (?4 IS NULL OR m.sender = ?4 OR EXISTS (
      SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?4 AND e.arrived IS NOT NULL))
  AND (?6 IS NULL OR m.type = {int(Kind.EVENT)}
       OR NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}')
       OR EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?6))
"""
