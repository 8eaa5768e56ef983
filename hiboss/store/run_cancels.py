"""Runs that somebody cancelled: that is stored before it is acknowledged, and holds after a crash too.

The processes of a run may take seconds to end, and only then is the run settled (run_settlement.py). What
takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.contracts.failures import Failure
from . import lanes
from .connection import Row
from .group_commit import Tx


def note(tx: Tx, run: int, why: str, by: int | None) -> None:
    """Store that a run is cancelled; nothing if it has ended. `by`: the address id of who did it."""
    tx.execute(
        "UPDATE run SET cancelled_why = ?, cancelled_by = ? WHERE id = ? AND status = 'running'",
        (why, by, run),
    )


def give_up_envelopes(tx: Tx, run: Row, now: int) -> None:
    """Give up what a cancelled run worked on that ended with its daemon."""
    rows = tx.execute(
        """
        SELECT e.id FROM run_envelope x JOIN envelope e ON e.id = x.envelope
        WHERE x.run = ? AND e.status = 0
        """,
        (run["id"],),
    ).fetchall()
    failure = Failure("cancelled", run["cancelled_why"])
    lanes.fail(tx, [row["id"] for row in rows], failure, now, not_told=run["cancelled_by"])
