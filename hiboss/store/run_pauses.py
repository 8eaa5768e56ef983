"""Pause and resume runs: their rows, and the lane of an agent that is held with its run.

Processes are stopped, and go on, after COMMIT (hiboss/agents/controls.py); what is stored here decides,
also after a crash. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.envelope import Lane
from ..core.events import AgentChanged, RunPaused
from . import run_cancels
from .connection import Connection, Row
from .group_commit import Tx
from .lane_facts import tell_waiting
from .lane_index import BINDING, PLACE

TOO_LONG = "it was paused for longer than {seconds:g} seconds; it begins again when it is resumed"


def pause(tx: Tx, run: Row, by: int, now: int, *, hold_lane: bool) -> bool:
    """Record that somebody has paused a run; return False if it is already, or has ended, or ends.

    `hold_lane`: the agent gets no other turn meanwhile. A task in the background has no lane.
    """
    changed = tx.execute(
        """
        UPDATE run SET paused_at = ?, paused_by = ?
        WHERE id = ? AND status = 'running' AND paused_at IS NULL AND ends_as IS NULL
        """,
        (now, by, run["id"]),
    ).rowcount
    if not changed:
        return False
    if hold_lane and run["kind"] == "turn":
        _hold_lane(tx, run["agent"], run["id"], now)
    tx.facts.append(RunPaused(now, run["id"], run["agent"], run["followed_in"], paused=True))
    tx.facts.append(AgentChanged(now, run["agent"]))
    return True


def _hold_lane(tx: Tx, agent: int, run: int, now: int) -> None:
    """Pause the lane of an agent because of a run; not if somebody has paused it already."""
    changed = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, paused_run) VALUES (?1, NULL, 'paused', ?2)
        ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET state = 'paused', wake_at = NULL, paused_run = ?2
        WHERE state <> 'paused'
        """,
        (agent, run),
    ).rowcount
    if changed:
        tell_waiting(tx, Lane(agent, None), None, now)


def resume(tx: Tx, run: Row, now: int) -> bool:
    """Record that a run goes on, and open the lane that was paused with it; return False if neither was so.

    A run that was ended during its pause comes again: with the lane, and a task in the background because
    nobody holds it any more (run_start.py).
    """
    changed = tx.execute(
        """
        UPDATE run SET paused_ms = paused_ms + max(0, ?1 - paused_at), paused_at = NULL, paused_by = NULL
        WHERE id = ?2 AND status = 'running' AND paused_at IS NOT NULL AND ends_as IS NULL
        """,
        (now, run["id"]),
    ).rowcount
    opened = let_go(tx, run["id"])
    opened = run_cancels.open_lane(tx, run["agent"], run["id"]) or (opened and run["kind"] == "background")
    if changed:
        tx.facts.append(RunPaused(now, run["id"], run["agent"], run["followed_in"], paused=False))
        tx.facts.append(AgentChanged(now, run["agent"]))
    return bool(changed) or opened


def let_go(tx: Tx, run: int) -> bool:
    """Forget the pause of a run that has ended in it; return whether it has."""
    return bool(
        tx.execute(
            "UPDATE run SET paused_by = NULL WHERE id = ? AND status <> 'running' AND paused_by IS NOT NULL",
            (run,),
        ).rowcount
    )


def resume_with_lane(tx: Tx, lane: Lane, now: int) -> int | None:
    """Record that the run goes on that the lane of an agent was paused with; return it. None: there is none.

    The lane itself is for the caller (`lanes.resume`).
    """
    held = tx.execute(
        f"SELECT paused_run FROM lane WHERE {PLACE} = ? AND {BINDING} = ?", (lane.address, lane.binding or 0)
    ).fetchone()
    if held is not None and held["paused_run"] is not None:
        let_go(tx, held["paused_run"])
    row = tx.execute(
        f"""
        UPDATE run SET paused_ms = paused_ms + max(0, ?3 - paused_at), paused_at = NULL, paused_by = NULL
        WHERE id = (SELECT paused_run FROM lane WHERE {PLACE} = ?1 AND {BINDING} = ?2)
          AND status = 'running' AND paused_at IS NOT NULL AND ends_as IS NULL
        RETURNING id, agent, iif(kind = 'turn', reply_conversation, NULL) AS conversation
        """,
        (lane.address, lane.binding or 0, now),
    ).fetchone()
    if row is None:
        return None
    tx.facts.append(RunPaused(now, row["id"], row["agent"], row["conversation"], paused=False))
    return int(row["id"])


def end_after(tx: Tx, run: int, paused_at: int, seconds: float) -> bool:
    """Tell a run to end that is paused since this time; return False if it is not any more.

    A task in the background is not ended: nothing would hold it, so it would begin again at once.
    """
    row = tx.execute(
        "SELECT 1 FROM run WHERE id = ? AND paused_at = ? AND kind = 'turn'", (run, paused_at)
    ).fetchone()
    return row is not None and run_cancels.note(
        tx, run, TOO_LONG.format(seconds=seconds), None, run_cancels.PAUSED
    )


def paused_at(connection: Connection | Tx, run: int) -> int | None:
    """Return since when a run is paused; None: it is not, or it is told to end."""
    row = connection.execute(
        "SELECT paused_at FROM run WHERE id = ? AND status = 'running' AND ends_as IS NULL", (run,)
    ).fetchone()
    return None if row is None else row["paused_at"]


def stands_still(tx: Tx, run: int) -> bool:
    """Tell whether somebody has paused a run whose provider has finished: it is settled when it goes on."""
    return paused_at(tx, run) is not None
