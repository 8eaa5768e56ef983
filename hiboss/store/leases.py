"""What an agent that fetches takes in hand: claimed until a time, then acknowledged or released.
And what was given up, taken up again."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.envelope import Status, Waits
from ..core.errors import NotFound, TooLate
from . import due_envelopes, envelopes
from .group_commit import Tx
from .lanes import Lane


def claim(tx: Tx, recipient: int, limit: int, until: int, now: int) -> list[int]:
    """The next that are due, leased until a time; nobody else gets them meanwhile."""
    found = [one.id for one in due_envelopes.due(tx, recipient, now, limit)]
    for number in found:
        tx.execute(
            """
            UPDATE envelope SET waits = ?, wake_at = ?, claimed_by = ?, handovers = handovers + 1
            WHERE id = ?
            """,
            (int(Waits.LEASE), until, recipient, number),
        )
    return found


def release(tx: Tx, ids: Iterable[int], recipient: int) -> int:
    """Give back what one has claimed; all of it, or nothing."""
    changed = 0
    for number in dict.fromkeys(ids):
        row = tx.execute(
            "SELECT status, waits FROM envelope WHERE id = ? AND recipient = ? AND arrived IS NOT NULL",
            (number, recipient),
        ).fetchone()
        if row is None:
            raise NotFound(what="envelope", value=f"e{number}")
        if row["waits"] != Waits.LEASE:
            state = "not claimed" if row["status"] == Status.PENDING else Status(row["status"]).word
            raise TooLate(id=f"e{number}", action="released", state=state)
        changed += tx.execute(
            "UPDATE envelope SET waits = NULL, wake_at = NULL, claimed_by = NULL WHERE id = ?", (number,)
        ).rowcount
        tx.arrived_for.append(recipient)
    return changed


def retry(tx: Tx, ids: Iterable[int], sender: int | None, now: int) -> tuple[int, set[Lane]]:
    """Take up again what has failed; for its sender, and None may for everybody."""
    changed, lanes = 0, set()
    for number in dict.fromkeys(ids):
        row = envelopes.visible(tx, number, None)
        if sender is not None and row["sender"] != sender:
            raise NotFound(what="envelope", value=f"e{number}")
        if row["status"] != Status.FAILED:
            raise TooLate(id=f"e{number}", action="tried again", state=Status(row["status"]).word)
        _check_recipient(tx, row)
        deferred = row["arrived"] is None
        tx.execute(
            """
            UPDATE envelope SET status = 0, done_at = NULL, first_failed_at = ?, held_by = NULL,
                   waits = ?, wake_at = ? WHERE id = ?
            """,
            # Its day before it is given up begins anew.
            (now, int(Waits.DEFERRED) if deferred else None, row["deliver_at"] if deferred else None, number),
        )
        changed += 1
        if not deferred:
            tx.arrived_for.append(row["recipient"])
        if row["binding"] is not None and not deferred:
            lanes.add(Lane(row["recipient"], row["binding"]))
    return changed, lanes


def _check_recipient(tx: Tx, row: envelopes.EnvelopeRow) -> None:
    """Who has left, and an account that is no longer bound, cannot be tried again."""
    gone = tx.execute(
        """
        SELECT a.retired_at IS NOT NULL OR ifnull(b.removed_at, 0) <> 0 FROM envelope e
        JOIN address a ON a.id = e.recipient LEFT JOIN binding b ON b.id = e.binding WHERE e.id = ?
        """,
        (row["id"],),
    ).fetchone()[0]
    if gone:
        state = f"for {row['to_address']}, which is no longer there"
        raise TooLate(id=f"e{row['id']}", action="tried again", state=state)
