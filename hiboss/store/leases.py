"""Leases of agents in pull mode: claim due envelopes until a time, or release them before.

To acknowledge one, see `envelopes`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.envelope import Status, Waits
from ..core.errors import NotFound, TooLate
from . import due_envelopes, envelopes, paging
from .group_commit import Tx


def claim(
    tx: Tx, recipient: int, limit: int, until: int, now: int, most_bytes: int | None = None
) -> list[int]:
    """Lease the next due envelopes until a time and return their ids; nobody else gets them until then.

    `most_bytes`: no more than fit into one answer, but at least one.
    """
    found = [one.id for one in due_envelopes.due(tx, recipient, now, limit)]
    if most_bytes is not None:
        found = paging.fitting(tx, found, most_bytes)
    for number in found:
        envelopes.lease(tx, number, recipient, until)
    return found


def release(tx: Tx, ids: Iterable[int], recipient: int) -> int:
    """Release leased envelopes, all of them or none; return how many."""
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
        envelopes.end_wait(tx, number)
        changed += 1
        tx.arrived_for.append(recipient)
    return changed
