"""Mail that a run is given in the middle of its turn, instead of being set aside for it.

It is held while it is given, so it comes back if the daemon dies. When the turn has taken it, it belongs to
the run, and is settled with it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core import clock
from . import envelopes, preemption
from .connection import Row
from .group_commit import Tx
from .turn_selection import TURN_ENVELOPES


def hold(tx: Tx, run: int, agent: int, boot: int) -> list[int]:
    """Hold what people have said to a run since it began, and that it was not given; return it, oldest first.

    Nothing if the run has ended, or is about to.
    """
    row = preemption.running(tx, agent)
    if row is None or row["id"] != run or preemption.why_not(row) is not None:
        return []
    found = [int(one["id"]) for one in preemption.said_by_people(tx, agent, row)]
    found = list(reversed(found))[:TURN_ENVELOPES]
    for number in found:
        envelopes.hold(tx, number, boot, clock.now())
    return found


def taken(tx: Tx, run: int, numbers: Sequence[int], now: int) -> None:
    """Give a run what its turn has taken. If it has ended meanwhile, that is settled as the run was."""
    row = tx.execute("SELECT status, agent FROM run WHERE id = ?", (run,)).fetchone()
    for number in numbers:
        tx.execute("INSERT OR IGNORE INTO run_envelope (run, envelope) VALUES (?, ?)", (run, number))
        if row["status"] == "completed":
            envelopes.done(tx, number, now, read_in=f"r{run}")
        elif row["status"] != "running":
            envelopes.free(tx, number)
    _wake_if_over(tx, row)


def give_back(tx: Tx, run: int, numbers: Sequence[int]) -> None:
    """Make due again what a turn did not take: its agent never saw it."""
    for number in numbers:
        envelopes.free(tx, number, given=False)
    _wake_if_over(tx, tx.execute("SELECT status, agent FROM run WHERE id = ?", (run,)).fetchone())


def _wake_if_over(tx: Tx, run: Row) -> None:
    """Wake the agent if its run has ended: when the next turn was looked for, this mail was held."""
    if run["status"] != "running":
        tx.arrived_for.append(run["agent"])


def given_later(tx: Tx, run: int, known: Sequence[int]) -> tuple[int, ...]:
    """Return the envelopes of a run that it was given after it had begun with those that are known."""
    rows: list[Row] = tx.execute("SELECT envelope FROM run_envelope WHERE run = ?", (run,)).fetchall()
    return tuple(int(row["envelope"]) for row in rows if row["envelope"] not in known)
