"""Threads: what of each is in which conversation, noted at every arrival of a reply: lists need not count.

What takes a Tx runs inside the writer. Lists of threads are in thread_lists.py.
"""

from __future__ import annotations

from .group_commit import Tx


def note(tx: Tx, thread: int, conversation: int, message: int) -> None:
    """Note that a reply arrived in a conversation. The first one makes a thread of what it answers."""
    tx.execute(
        """
        INSERT INTO thread (conversation, id, messages, last, arrived)
        SELECT ?1, m.id, 1 + (m.conversation = ?1 AND m.seq IS NOT NULL), ?3, ?4 FROM message m
        WHERE m.id = ?2
        ON CONFLICT DO UPDATE SET messages = messages + 1, last = ?3, arrived = ?4
        """,
        (conversation, thread, message, tx.cache.last_arrived),
    )


def note_first(tx: Tx, message: int, conversation: int) -> None:
    """Note that the first message of a thread arrived after replies to it: it had been deferred."""
    tx.execute(
        "UPDATE thread SET messages = messages + 1 WHERE conversation = ? AND id = ?", (conversation, message)
    )


def conversations(tx: Tx, thread: int) -> list[int]:
    """Return the conversations that a thread is in, by its replies."""
    rows = tx.execute("SELECT conversation FROM thread INDEXED BY thread_id WHERE id = ?", (thread,))
    return [row["conversation"] for row in rows.fetchall()]


def merge(tx: Tx, gone: int, kept: int) -> None:
    """Count again after the messages of one conversation were moved to another: threads and unread mail."""
    tx.execute("DELETE FROM thread WHERE conversation IN (?, ?)", (gone, kept))
    tx.execute(
        """
        INSERT INTO thread (conversation, id, messages, last, arrived)
        SELECT ?1, t.thread, t.replies + (SELECT count(*) FROM message f
                                          WHERE f.id = t.thread AND f.conversation = ?1 AND f.seq > 0),
               l.id, (SELECT ifnull(max(e.arrived), 0) FROM envelope e WHERE e.message = l.id)
        FROM (SELECT thread, count(*) AS replies, max(seq) AS seq FROM message
              WHERE conversation = ?1 AND seq IS NOT NULL AND thread IS NOT NULL GROUP BY thread) t
        JOIN message l ON l.conversation = ?1 AND l.seq = t.seq
        """,
        (kept,),
    )
    tx.execute("DELETE FROM unread WHERE conversation IN (?, ?)", (gone, kept))
    tx.execute(
        """
        INSERT INTO unread (address, conversation, thread, number)
        SELECT e.recipient, m.conversation, ifnull(m.thread, 0), count(*)
        FROM message m JOIN envelope e ON e.message = m.id
        WHERE m.conversation = ? AND e.unread = 1 AND e.binding IS NULL
        GROUP BY e.recipient, ifnull(m.thread, 0)
        """,
        (kept,),
    )
