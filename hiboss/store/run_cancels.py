"""Runs that were told to end, and as what: stored before anybody is told, so it holds after a crash too.

The processes of a run may take seconds to end, and only then is the run settled (run_settlement.py). What
is stored here decides how, also if the run has an answer by then. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import clock
from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from . import lanes
from .connection import Connection, Row
from .group_commit import Tx

# How a run can be told to end. cancelled: its envelopes are cancelled too. With all others they are due
# again. requeued: somebody wants them to begin anew. preempted: something more urgent came. stopped: by
# the breaker. paused: it was paused for too long.
CANCELLED, REQUEUED, PREEMPTED, STOPPED, PAUSED = "cancelled", "requeued", "preempted", "stopped", "paused"
_KEEPS_LANE_PAUSED = (STOPPED, PAUSED)


class Ending(NamedTuple):
    """What a run was told to end as."""

    ends_as: str
    why: str
    by: int | None  # the address id of who did it, and gets no notice about it

    @property
    def status(self) -> str:
        """The status of the run when it has ended."""
        return "cancelled" if self.ends_as in (CANCELLED, REQUEUED) else "interrupted"

    @property
    def failure(self) -> Failure:
        """The error of the run when it has ended."""
        return Failure("cancelled" if self.status == "cancelled" else self.ends_as, self.why)

    @property
    def cancels(self) -> bool:
        """Whether its envelopes are cancelled too. Else they are due again, and have not failed."""
        return self.ends_as == CANCELLED


def note(
    tx: Tx, run: int, why: str, by: int | None, ends_as: str = CANCELLED, preempted_by: int | None = None
) -> bool:
    """Store what a run ends as; return False if it has ended, or was told to end before: the first counts.

    `by`: the address id of who did it. `preempted_by`: the message that it is ended for. The caller commits
    this, and only then ends its processes (agents/controls.py).
    """
    row = tx.execute(
        """
        UPDATE run SET cancelled_why = ?, cancelled_by = ?, ends_as = ?, preempted_by = ?
        WHERE id = ? AND status = 'running' AND ends_as IS NULL RETURNING agent
        """,
        (why, by, ends_as, preempted_by, run),
    ).fetchone()
    if row is None:
        return False
    if ends_as not in _KEEPS_LANE_PAUSED:
        open_lane(tx, row["agent"], run)
    return True


def of_row(row: Row) -> Ending | None:
    """Return what the run of a row was told to end as; None: nothing."""
    if row["ends_as"] is None:
        return None
    return Ending(row["ends_as"], row["cancelled_why"] or "it was ended", row["cancelled_by"])


def of_running(connection: Connection | Tx, run: int) -> Ending | None:
    """Return what a run that still runs was told to end as; None: nothing, or it has ended."""
    row = connection.execute("SELECT * FROM run WHERE id = ? AND status = 'running'", (run,)).fetchone()
    return None if row is None else of_row(row)


def noted(connection: Connection | Tx, run: int) -> Ending | None:
    """Return what a run was told to end as; None: nothing."""
    return of_row(
        connection.execute(
            "SELECT ends_as, cancelled_why, cancelled_by FROM run WHERE id = ?", (run,)
        ).fetchone()
    )


def open_lane(tx: Tx, agent: int, run: int) -> bool:
    """End the pause of an agent's lane if it is paused because of this run; return whether it was."""
    lane = Lane(agent, None)
    state = lanes.get(tx, lane)
    if state is None or state["paused_run"] != run:
        return False
    return lanes.resume(tx, lane, clock.now()) is not None
