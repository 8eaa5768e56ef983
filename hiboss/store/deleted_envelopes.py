"""Envelopes that were in hand when their message was deleted: they are cancelled, and not given again."""

from __future__ import annotations

from collections.abc import Sequence

from . import envelopes
from .group_commit import Tx


def end(tx: Tx, number: int, now: int) -> None:
    """Cancel a pending envelope that nobody holds. What is posted of it is taken back (post_changes)."""
    envelopes.end(tx, number, now)
    tx.execute("UPDATE lane SET partly_posted = NULL WHERE partly_posted = ?", (number,))


def without_deleted(tx: Tx, numbers: Sequence[int], now: int) -> list[int]:
    """Return these due envelopes without those of deleted messages, which are cancelled."""
    marks = ",".join("?" * len(numbers))
    rows = tx.execute(
        f"""
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id IN ({marks}) AND m.deleted_at IS NOT NULL
        """,
        list(numbers),
    ).fetchall()
    gone = {row["id"] for row in rows}
    for number in gone:
        end(tx, number, now)
    return [one for one in numbers if one not in gone]


def is_deleted(tx: Tx, number: int) -> bool:
    """Tell whether the message of an envelope was deleted."""
    row = tx.execute(
        "SELECT m.deleted_at FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?", (number,)
    ).fetchone()
    return row["deleted_at"] is not None
