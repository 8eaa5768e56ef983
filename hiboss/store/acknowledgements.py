"""Acknowledge envelopes: what their recipient has dealt with is done."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.envelope import Status
from ..core.errors import TooLate
from . import envelope_marks
from .envelope_rows import received
from .group_commit import Tx

CLAIMED_AGAIN = "claimed again by another session: your claim has ended"


def acknowledge(
    tx: Tx,
    ids: Iterable[int],
    recipient: int,
    now: int,
    claim: int | None = None,
    *,
    reader: int | None = None,
    session: str = "",
) -> int:
    """Acknowledge envelopes; return how many were not acknowledged before. A pending one is then done.

    `reader`, `session`: who does that, and in which session. `claim`: the claim that the caller works on
    them with. Raise TooLate if another claim has one of them.
    """
    changed = 0
    for row in received(tx, ids, recipient):
        if claim is not None and row["claim"] not in (None, claim):
            raise TooLate(id=f"e{row['id']}", action="acknowledged with this claim", state=CLAIMED_AGAIN)
        if row["status"] in (Status.FAILED, Status.CANCELLED):
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state=Status(row["status"]).word)
        to_post = row["binding"] is not None and row["status"] == Status.PENDING
        if row["held_by"] is not None or to_post:
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state="being delivered")
        changed += envelope_marks.acknowledge(tx, row["id"], now, reader=reader, session=session)
    return changed


def acknowledge_due(
    tx: Tx,
    recipient: int,
    upto: int,
    limit: int,
    now: int,
    *,
    reader: int | None = None,
    session: str = "",
) -> int:
    """Acknowledge due envelopes up to an arrival number, at most `limit`, oldest first; return how many."""
    rows = tx.execute(
        """
        SELECT id FROM envelope INDEXED BY envelope_box
        WHERE recipient = ?1 AND box = 0 AND status = 0 AND arrived <= ?2 AND ifnull(due_again, 0) <= ?2
          AND held_by IS NULL AND waits IS NULL ORDER BY arrived LIMIT ?3
        """,
        (recipient, upto, limit),
    ).fetchall()
    return sum(
        [envelope_marks.acknowledge(tx, row["id"], now, reader=reader, session=session) for row in rows]
    )
