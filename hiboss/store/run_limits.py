"""Guards: errands that go on for too long, agents that use up too much, and letting them go on.

An agent that a guard stops is paused, and the boss is asked; nothing is lost meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import BOSS
from . import notices
from .connection import Connection, Row
from .group_commit import Tx


class Bounds(NamedTuple):
    """How far an errand may go, and the day of the boss for which budgets count."""

    hops: int
    runs: int
    day_begins: int
    day_ends: int


class Spent(NamedTuple):
    tokens: int
    cost: float


def stops(tx: Tx, agent: Row, mail: Row, bounds: Bounds, now: int) -> bool:
    """Whether this agent must not begin a run for this mail; then it is paused, and the boss told."""
    trace = str(mail["trace"])
    too_far = _too_far(tx, trace, int(mail["hops"]), bounds)
    if too_far is not None:
        pause(tx, agent["id"], "guard", too_far, now, trace=trace)
        ending = f"\nTo end it there, first: hiboss envelope cancel --as boss --id e{mail['id']}"
        _tell(tx, agent["name"], too_far, "to let it go on", now, ending)
        return True
    too_much = _too_much(tx, agent, bounds)
    if too_much is not None:
        pause(tx, agent["id"], "budget", too_much, now, until=bounds.day_ends)
        _tell(tx, agent["name"], f"{too_much}; it goes on tomorrow", "to let it go on today", now)
        return True
    return False


def _too_far(tx: Tx, trace: str, hops: int, bounds: Bounds) -> str | None:
    allowed = tx.execute("SELECT hops, runs FROM errand WHERE trace = ?", (trace,)).fetchone()
    most_hops = allowed["hops"] if allowed else bounds.hops
    if hops >= most_hops:
        return f"the errand {trace} has gone through {hops} hands"
    most_runs = allowed["runs"] if allowed else bounds.runs
    runs = _runs(tx, trace)
    return f"the errand {trace} has taken {runs} runs" if runs >= most_runs else None


def _runs(tx: Tx, trace: str) -> int:
    return int(tx.execute("SELECT count(*) FROM run WHERE trace = ?", (trace,)).fetchone()[0])


def _too_much(tx: Tx, agent: Row, bounds: Bounds) -> str | None:
    if agent["daily_tokens"] is None and agent["daily_cost"] is None:
        return None
    # Since the boss last let it go on, if that was today.
    used = spent(tx, agent, max(bounds.day_begins, agent["budget_from"] or 0))
    if agent["daily_tokens"] is not None and used.tokens >= agent["daily_tokens"]:
        return f"it has used {used.tokens} of its {agent['daily_tokens']} tokens a day"
    if agent["daily_cost"] is not None and used.cost >= agent["daily_cost"]:
        return f"it has used ${used.cost:.2f} of its ${agent['daily_cost']:.2f} a day"
    return None


def spent(connection: Connection | Tx, agent: Row, since: int) -> Spent:
    """What an agent has used up since a moment."""
    row = connection.execute(
        """
        SELECT sum(ifnull(tokens_in, 0) + ifnull(tokens_out, 0)), sum(ifnull(cost, 0))
        FROM run INDEXED BY run_day WHERE agent = ? AND started_at >= ?
        """,
        (agent["id"], since),
    ).fetchone()
    return Spent(int(row[0] or 0), float(row[1] or 0.0))


def _tell(tx: Tx, name: str, why: str, what: str, now: int, ending: str = "") -> None:
    command = f"hiboss agent resume --as boss --name {name}"
    text = f"agent:{name} is paused: {why}.\nIts mail waits. {what.capitalize()}: {command}{ending}"
    notices.notify(tx, BOSS, text, now)


# --- pausing and letting go on -------------------------------------------------------


def pause(
    tx: Tx, agent: int, kind: str, why: str, now: int, *, until: int | None = None, trace: str | None = None
) -> bool:
    """Whether it was not paused before; a first reason stays."""
    tx.arrived_for.append(agent)  # whoever looks on hears of it
    return bool(
        tx.execute(
            """
            UPDATE agent SET paused_at = ?, paused_kind = ?, paused_why = ?, paused_until = ?,
                   paused_trace = ?
            WHERE address = ? AND paused_at IS NULL
            """,
            (now, kind, why, until, trace, agent),
        ).rowcount
    )


def resume(tx: Tx, agent: Row, bounds: Bounds, now: int) -> bool:
    """Let an agent go on: what a guard has stopped gets as much again. Whether it was paused."""
    if agent["paused_at"] is None:
        return False
    if agent["paused_kind"] == "budget":
        tx.execute("UPDATE agent SET budget_from = ? WHERE address = ?", (now, agent["id"]))
    if agent["paused_kind"] == "guard" and agent["paused_trace"] is not None:
        _extend(tx, agent["paused_trace"], bounds)
    _clear(tx, agent["id"])
    tx.arrived_for.append(agent["id"])  # whoever gives it turns looks again
    return True


def relax(tx: Tx, agent: Row, bounds: Bounds) -> None:
    """The limits of an agent were changed: one that is paused for what it may use now goes on."""
    if agent["paused_kind"] == "budget" and _too_much(tx, agent, bounds) is None:
        _clear(tx, agent["id"])
        tx.arrived_for.append(agent["id"])


def _extend(tx: Tx, trace: str, bounds: Bounds) -> None:
    hops = _most_hops(tx, trace)
    tx.execute(
        """
        INSERT INTO errand (trace, hops, runs) VALUES (?1, ?2, ?3)
        ON CONFLICT (trace) DO UPDATE SET hops = ?2, runs = ?3
        """,
        (trace, hops + bounds.hops, _runs(tx, trace) + bounds.runs),
    )


def _most_hops(tx: Tx, trace: str) -> int:
    """How far the runs of an errand have come; what they have sent is one further."""
    row = tx.execute("SELECT max(hops) FROM run WHERE trace = ?", (trace,)).fetchone()
    return int(row[0] or 0) + 1


def wake(tx: Tx, now: int) -> list[int]:
    """Those whose pause was until now."""
    rows = tx.execute(
        """
        SELECT address FROM agent INDEXED BY agent_paused
        WHERE paused_until IS NOT NULL AND paused_until <= ?
        """,
        (now,),
    ).fetchall()
    for row in rows:
        _clear(tx, row["address"])
        tx.arrived_for.append(row["address"])
    return [row["address"] for row in rows]


def _clear(tx: Tx, agent: int) -> None:
    tx.execute(
        """
        UPDATE agent SET paused_at = NULL, paused_kind = NULL, paused_why = NULL, paused_until = NULL,
               paused_trace = NULL
        WHERE address = ?
        """,
        (agent,),
    )
