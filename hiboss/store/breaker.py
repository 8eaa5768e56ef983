"""The breaker: while it is pulled nobody gets a turn, schedules hold, and what agents post holds.

It is one row, so it survives restarts. It is pulled together with the notes on all runs that end for it,
in one transaction; their processes are ended after the COMMIT (hiboss/agents/breaker.py). What it holds is
in breaker_holds.py. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import os

from ..core.errors import PulledAgain
from ..core.escaping import quote
from ..core.events import AgentChanged, BreakerPulled, BreakerReleased
from . import run_cancels
from .connection import Connection, Row
from .group_commit import Tx

REASON_SHOWN = 200  # characters


def get(connection: Connection | Tx) -> Row | None:
    """Return when and why it was pulled, and by whom (`address`); None if it is not pulled."""
    row: Row | None = connection.execute(
        """
        SELECT b.pulled_at, b.reason, b.pull, a.kind || ':' || a.name AS address
        FROM breaker b LEFT JOIN address a ON a.id = b.pulled_by
        """
    ).fetchone()
    return row


def why(row: Row) -> str:
    """Return in words why nobody works while the breaker is pulled."""
    reason = f": {quote(row['reason'], REASON_SHOWN)}" if row["reason"] else ""
    return f"the breaker is pulled{reason} (hiboss go)"


def new_pull() -> str:
    """Return the id of a new pull."""
    return os.urandom(8).hex()


def pull(tx: Tx, by: int | None, reason: str | None, now: int, number: str) -> bool:
    """Pull the breaker, and note on every run that it ends for that. Return False if it was pulled before.

    `by`: who did it; None: the command line, while the daemon did not answer. `number`: the id of this pull.
    What somebody has cancelled stays cancelled.
    """
    changed = tx.execute(
        "INSERT OR IGNORE INTO breaker (id, pulled_at, pulled_by, reason, pull) VALUES (1, ?, ?, ?, ?)",
        (now, by, reason or None, number),
    ).rowcount
    if not changed:
        tx.execute("UPDATE breaker SET pull = ?", (number,))
    for run in tx.execute("SELECT id FROM run INDEXED BY run_running WHERE status = 'running'").fetchall():
        run_cancels.note(tx, run["id"], ended_for(reason), by, run_cancels.STOPPED)
    if changed:
        tx.facts.append(BreakerPulled(now, by))
        _tell_of_agents(tx, now)
    return bool(changed)


def ended_for(reason: str | None) -> str:
    """Return in words why a run was ended."""
    return f"the breaker was pulled: {quote(reason, REASON_SHOWN)}" if reason else "the breaker was pulled"


def release(tx: Tx, by: int | None, now: int, number: str | None = None) -> bool:
    """Release the breaker; return False if it was not pulled. Whoever waited is woken after the COMMIT.

    `number`: the pull that is meant; empty: none; None: whatever is. Raise PulledAgain if another one came
    after it: a request that was carried out late would undo that one.
    """
    row = get(tx)
    if number is not None and row is not None and row["pull"] != number:
        raise PulledAgain()
    changed = tx.execute("DELETE FROM breaker").rowcount
    if changed:
        tx.facts.append(BreakerReleased(now, by))
        _tell_of_agents(tx, now)
        rows = tx.execute("SELECT id FROM address WHERE kind = 'agent' AND retired_at IS NULL")
        tx.arrived_for += [row["id"] for row in rows]  # also agent:background
    return bool(changed)


def _tell_of_agents(tx: Tx, now: int) -> None:
    """Tell that the state of every agent is another one."""
    rows = tx.execute("SELECT address FROM agent WHERE deleted_at IS NULL")
    tx.facts += [AgentChanged(now, row["address"]) for row in rows]


# --- the runs that it ended ----------------------------------------------------------


def stopped_runs(connection: Connection | Tx, pulled_at: int) -> list[Row]:
    """Return the runs that have ended since the breaker was pulled, or are still ending.

    Also those that somebody had told to end before: none starts while it is pulled.
    """
    return connection.execute(
        """
        SELECT r.id, r.agent, r.kind, r.status, a.name FROM (
            SELECT * FROM run INDEXED BY run_running WHERE status = 'running'
            UNION ALL
            SELECT * FROM run INDEXED BY run_told
            WHERE ends_as IS NOT NULL AND ended_at >= ? AND status <> 'running') r
        JOIN address a ON a.id = r.agent ORDER BY r.id
        """,
        (pulled_at,),
    ).fetchall()


def recorded_runs(connection: Connection) -> list[Row]:
    """Return the runs that are stored as running, with their processes."""
    return connection.execute(
        """
        SELECT r.id, r.pid, r.pid_started, a.name FROM run r INDEXED BY run_running
        JOIN address a ON a.id = r.agent WHERE r.status = 'running' ORDER BY r.id
        """
    ).fetchall()
