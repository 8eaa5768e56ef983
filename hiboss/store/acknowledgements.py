"""Acknowledge envelopes: what their recipient has dealt with is done."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.envelope import Status
from ..core.errors import TooLate
from . import envelopes
from .envelope_rows import received
from .group_commit import Tx

CLAIMED_AGAIN = "claimed again by another session: your claim has ended"


def acknowledge(tx: Tx, ids: Iterable[int], recipient: int, now: int, claim: int | None = None) -> int:
    """Acknowledge envelopes; return how many were not acknowledged before. A pending one is then done.

    `claim`: the claim that the caller works on them with. Raise TooLate if another claim has one of them.
    """
    changed = 0
    for row in received(tx, ids, recipient):
        if claim is not None and row["claim"] not in (None, claim):
            raise TooLate(id=f"e{row['id']}", action="acknowledged with this claim", state=CLAIMED_AGAIN)
        if row["status"] in (Status.FAILED, Status.CANCELLED):
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state=Status(row["status"]).word)
        if row["held_by"] is not None:
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state="being delivered")
        changed += envelopes.acknowledge(tx, row["id"], now)
    return changed


def acknowledge_due(tx: Tx, recipient: int, upto: int, limit: int, now: int) -> int:
    """Acknowledge due envelopes up to an arrival number, at most `limit`, oldest first; return how many."""
    rows = tx.execute(
        """
        SELECT id FROM envelope INDEXED BY envelope_box
        WHERE recipient = ? AND box = 0 AND status = 0 AND arrived <= ? AND held_by IS NULL AND waits IS NULL
        ORDER BY arrived LIMIT ?
        """,
        (recipient, upto, limit),
    ).fetchall()
    return sum(envelopes.acknowledge(tx, row["id"], now) for row in rows)
