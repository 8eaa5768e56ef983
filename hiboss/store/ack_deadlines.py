"""Deadlines for acknowledging mail. When one passes, the sender and the boss are told (late_acks.py).

A deadline ends when the envelope is acknowledged or settled (a trigger of the schema sees to that). What
takes a Tx runs inside the writer.
"""

from __future__ import annotations

from .group_commit import Tx


def put(tx: Tx, envelope: int, at: int) -> None:
    """Let an envelope that has arrived be acknowledged until a time."""
    tx.execute("INSERT OR REPLACE INTO ack_deadline (envelope, at) VALUES (?, ?)", (envelope, at))


def put_again(tx: Tx, envelope: int) -> None:
    """Give an envelope that is to be dealt with again its deadline again. What was told is not told twice."""
    tx.execute(
        """
        INSERT OR IGNORE INTO ack_deadline (envelope, at)
        SELECT id, ack_by FROM envelope WHERE id = ? AND ack_by IS NOT NULL AND acked_at IS NULL
        """,
        (envelope,),
    )


def of(tx: Tx, envelope: int) -> int | None:
    """Return the deadline of an envelope; None: it has none, or none any more."""
    query = "SELECT at FROM ack_deadline WHERE envelope = ? AND told_at IS NULL"
    row = tx.execute(query, (envelope,)).fetchone()
    return None if row is None else int(row["at"])


def end(tx: Tx, envelope: int) -> None:
    """End the deadline of an envelope, if it has one."""
    tx.execute("DELETE FROM ack_deadline WHERE envelope = ?", (envelope,))


def move_waits(tx: Tx, step: int) -> None:
    """Move all deadlines by `step` ms, because the clock was set by so much."""
    tx.execute("UPDATE ack_deadline SET at = at + ? WHERE told_at IS NULL", (step,))
