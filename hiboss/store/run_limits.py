"""Limits of runs: hops and runs of a trace, and the daily budget of an agent.

An agent that reaches a limit is paused (agent_pauses.py) and the boss is asked; its mail waits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .connection import Connection, Row
from .group_commit import Tx

_OF_A_SLOT = re.compile(r"(s[0-9]+)@")  # a trace that a slot of this schedule began (schedules.py)


DAY_MS = 24 * 3_600_000
QUARTER_MS = 15 * 60 * 1000  # the days of all time zones begin with a quarter of an hour


class Bounds(NamedTuple):
    """The limits of a trace, and the boss's day for which budgets count (milliseconds)."""

    hops: int
    runs: int
    day_begins: int
    day_ends: int


class Spent(NamedTuple):
    tokens: int
    cost: float


def over_trace_limit(tx: Tx, trace: str, hops: int, bounds: Bounds, now: int) -> str | None:
    """Return the reason why another run of this trace would exceed a limit; None if it would not."""
    allowed = tx.execute(
        "SELECT hops, runs FROM trace_limit WHERE trace = ?", (_limited_as(trace),)
    ).fetchone()
    most_hops = allowed["hops"] if allowed else bounds.hops
    if hops >= most_hops:
        return f"the trace {trace} has reached {hops} hops"
    most_runs = allowed["runs"] if allowed else bounds.runs
    runs = _runs(tx, trace, now)
    return f"the trace {trace} has reached {runs} runs in a day" if runs >= most_runs else None


def _limited_as(trace: str) -> str:
    """Return what a raised limit is stored for: the trace, or the schedule of a trace that a slot began.

    Otherwise the boss would be asked again at each slot of a schedule that needs more.
    """
    found = _OF_A_SLOT.match(trace)
    return trace if found is None else found[1]


def _runs(tx: Tx, trace: str, now: int) -> int:
    """Count the runs of a trace in 24 hours: a daily reminder stays in the trace of the run that made it.

    Those that could do nothing do not count: a lane error, or a daemon that ended.
    """
    row = tx.execute(
        """
        SELECT count(*) FROM run
        WHERE trace = ? AND error_scope IS NOT 'lane' AND status <> 'interrupted' AND started_at > ?
        """,
        (trace, now - DAY_MS),
    ).fetchone()
    return int(row[0])


def over_budget(tx: Tx, agent: Row, bounds: Bounds) -> str | None:
    """Return the reason why the agent is over its daily budget; None if it is not."""
    if agent["daily_tokens"] is None and agent["daily_cost"] is None:
        return None
    # Counted from the last resume by the boss, if that was today.
    used = spent(tx, agent, max(bounds.day_begins, agent["budget_from"] or 0))
    if agent["daily_tokens"] is not None and used.tokens >= agent["daily_tokens"]:
        return f"it has used {used.tokens} of its {agent['daily_tokens']} tokens a day"
    if agent["daily_cost"] is not None and used.cost >= agent["daily_cost"]:
        return f"it has used ${used.cost:.2f} of its ${agent['daily_cost']:.2f} a day"
    return None


def spent(connection: Connection | Tx, agent: Row, since: int) -> Spent:
    """Return the tokens and the cost of an agent's runs since a moment."""
    whole = -(-since // QUARTER_MS)  # days begin with one; a resume by the boss may be in the middle of one
    row = connection.execute(
        """
        SELECT sum(tokens), sum(cost) FROM (
            SELECT tokens, cost FROM usage WHERE agent = ?1 AND quarter >= ?3
            UNION ALL
            SELECT ifnull(tokens_in, 0) + ifnull(tokens_out, 0), ifnull(cost, 0)
            FROM run INDEXED BY run_day
            WHERE agent = ?1 AND started_at >= ?2 AND started_at < ?3 * ?4 AND status <> 'running'
            UNION ALL
            SELECT ifnull(tokens_in, 0) + ifnull(tokens_out, 0), ifnull(cost, 0)
            FROM run INDEXED BY run_running WHERE status = 'running' AND agent = ?1 AND started_at >= ?2)
        """,
        (agent["id"], since, whole, QUARTER_MS),
    ).fetchone()
    return Spent(int(row[0] or 0), float(row[1] or 0.0))


def add_usage(tx: Tx, run: int) -> None:
    """Add what a run used to its quarter of an hour. Called once, when the run has ended."""
    tx.execute(
        """
        INSERT INTO usage (agent, quarter, tokens, cost)
        SELECT agent, started_at / ?2, ifnull(tokens_in, 0) + ifnull(tokens_out, 0), ifnull(cost, 0)
        FROM run WHERE id = ?1 AND coalesce(tokens_in, tokens_out, cost) IS NOT NULL
        ON CONFLICT (agent, quarter)
        DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost
        """,
        (run, QUARTER_MS),
    )


def extend(tx: Tx, trace: str, reached: int, bounds: Bounds, now: int) -> None:
    """Allow a trace as many more hops and runs as it had at first; `reached`: the hops of its mail."""
    hops = max(reached, _most_hops(tx, trace))
    tx.execute(
        """
        INSERT INTO trace_limit (trace, hops, runs) VALUES (?1, ?2, ?3)
        ON CONFLICT (trace) DO UPDATE SET hops = ?2, runs = ?3
        """,
        (_limited_as(trace), hops + bounds.hops, _runs(tx, trace, now) + bounds.runs),
    )


def _most_hops(tx: Tx, trace: str) -> int:
    """Return the hops of the messages that the runs of a trace sent last: one more than the runs have."""
    row = tx.execute("SELECT max(hops) FROM run WHERE trace = ?", (trace,)).fetchone()
    return int(row[0] or 0) + 1
