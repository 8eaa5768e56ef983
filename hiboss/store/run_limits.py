"""Guards: errands that go on for too long, agents that use up too much, and letting them go on.

An agent that a guard stops is paused, and the boss is asked; nothing is lost meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

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


def too_far(tx: Tx, trace: str, hops: int, bounds: Bounds) -> str | None:
    allowed = tx.execute("SELECT hops, runs FROM trace_limit WHERE trace = ?", (trace,)).fetchone()
    most_hops = allowed["hops"] if allowed else bounds.hops
    if hops >= most_hops:
        return f"the errand {trace} has gone through {hops} hands"
    most_runs = allowed["runs"] if allowed else bounds.runs
    runs = _runs(tx, trace)
    return f"the errand {trace} has taken {runs} runs" if runs >= most_runs else None


def _runs(tx: Tx, trace: str) -> int:
    return int(tx.execute("SELECT count(*) FROM run WHERE trace = ?", (trace,)).fetchone()[0])


def over_budget(tx: Tx, agent: Row, bounds: Bounds) -> str | None:
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


# --- pausing and letting go on -------------------------------------------------------


def extend(tx: Tx, trace: str, bounds: Bounds) -> None:
    hops = _most_hops(tx, trace)
    tx.execute(
        """
        INSERT INTO trace_limit (trace, hops, runs) VALUES (?1, ?2, ?3)
        ON CONFLICT (trace) DO UPDATE SET hops = ?2, runs = ?3
        """,
        (trace, hops + bounds.hops, _runs(tx, trace) + bounds.runs),
    )


def _most_hops(tx: Tx, trace: str) -> int:
    """How far the runs of an errand have come; what they have sent is one further."""
    row = tx.execute("SELECT max(hops) FROM run WHERE trace = ?", (trace,)).fetchone()
    return int(row[0] or 0) + 1
