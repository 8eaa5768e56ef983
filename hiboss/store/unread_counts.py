"""How much is unread for somebody: in the inbox, in a conversation, in a thread. Counted up to a limit."""

from __future__ import annotations

from .connection import Connection
from .paging import Total


def of_box(connection: Connection, owner: int, exact_to: int) -> Total:
    """Return how many envelopes in an inbox are unread."""
    row = connection.execute(
        """
        SELECT count(*) FROM (SELECT 1 FROM envelope INDEXED BY envelope_unread
                              WHERE recipient = ? AND unread = 1 LIMIT ?)
        """,
        (owner, exact_to + 1),
    ).fetchone()
    return _capped(row[0], exact_to)


def of_conversation(connection: Connection, owner: int, conversation: int, exact_to: int) -> Total:
    """Return how many envelopes of a conversation are unread in an inbox."""
    row = connection.execute(
        """
        SELECT sum(number) FROM (SELECT number FROM unread WHERE address = ? AND conversation = ? LIMIT ?)
        """,  # each row has at least one
        (owner, conversation, exact_to + 1),
    ).fetchone()
    return _capped(row[0] or 0, exact_to)


def of_thread(connection: Connection, owner: int, thread: int, exact_to: int) -> Total:
    """Return how many envelopes of a thread are unread in an inbox, in all conversations it is in."""
    row = connection.execute(
        """
        SELECT (SELECT ifnull(sum(u.number), 0) FROM thread t CROSS JOIN unread u
                ON u.address = ?1 AND u.conversation = t.conversation AND u.thread = t.id WHERE t.id = ?2)
             + (SELECT count(*) FROM envelope e WHERE e.message = ?2 AND e.recipient = ?1 AND e.unread = 1
                AND (SELECT m.thread IS NULL FROM message m WHERE m.id = ?2))
        """,
        (owner, thread),
    ).fetchone()
    return _capped(row[0], exact_to)


def _capped(found: int, exact_to: int) -> Total:
    return Total(min(found, exact_to), found > exact_to)
