"""Pause and resume agents: by the boss, by a limit, or until a time."""

from __future__ import annotations

from ..core.address import BACKGROUND
from ..core.events import AgentChanged
from . import ask_closing, run_limits
from .connection import Row
from .group_commit import Tx
from .run_limits import Bounds

LIMITS = ("guard", "budget")  # the kinds of pauses that an agent asks the boss to end
GO_ON = "go on"  # the answer that ends one


def pause(
    tx: Tx,
    agent: int,
    kind: str,
    why: str,
    now: int,
    *,
    by: int | None = None,
    until: int | None = None,
    reached: tuple[str, int] | None = None,
) -> bool:
    """Pause an agent and return whether that changed something.

    `by`: who does it by a right to (kind boss); None: the boss himself, or hiboss.
    `reached`: the trace that is at its limit, and the hops of its mail.
    If it is paused already, the first reason stays. But the boss, and a revoked token, come before a limit:
    they do not end with the day. What the limit stopped is kept for the resume. And what the boss pauses
    is his, whoever else paused it before: only he resumes it.
    """
    tx.arrived_for.append(agent)  # wakes those who wait for news of this agent
    trace, hops = reached or (None, None)
    changed = tx.execute(
        """
        UPDATE agent SET paused_at = ?1, paused_kind = ?2, paused_by = ?8, paused_why = ?3, paused_until = ?4,
               paused_trace = ifnull(?5, paused_trace), paused_hops = ifnull(?6, paused_hops)
        WHERE address = ?7 AND (paused_at IS NULL
            OR (?2 = 'boss' AND ?8 IS NULL AND (paused_kind IN ('budget', 'guard') OR paused_by IS NOT NULL))
            OR (?2 = 'tokens' AND paused_kind <> 'tokens'))
        """,
        (now, kind, why, until, trace, hops, agent, by),
    ).rowcount
    if changed:
        tx.facts.append(AgentChanged(now, agent))
        if kind not in LIMITS:
            ask_closing.cancel_limits(tx, agent, f"it was paused: {why}", now)
    return bool(changed)


def held_by_boss(agent: Row) -> str | None:
    """Return why only the boss resumes an agent that is paused; None: who has the right may, or it is not."""
    if agent["paused_at"] is None or agent["paused_by"] is not None:
        return None
    if agent["paused_kind"] == "boss":
        return f"the boss paused agent:{agent['name']}: only the boss lets it go on"
    if agent["paused_kind"] in LIMITS:
        return f"agent:{agent['name']} has reached a limit: only the boss lets it go on"
    return f"the tokens of agent:{agent['name']} are revoked: only the boss lets it go on"


def resume(tx: Tx, agent: Row, bounds: Bounds, now: int) -> bool:
    """Resume an agent; return whether it was paused. A limit that paused it allows the same amount again."""
    if agent["paused_at"] is None:
        return False
    if agent["paused_kind"] == "budget":
        tx.execute("UPDATE agent SET budget_from = ? WHERE address = ?", (now, agent["id"]))
    if agent["paused_trace"] is not None:
        run_limits.extend(tx, agent["paused_trace"], agent["paused_hops"], bounds, now)
    _clear(tx, agent["id"], now)
    tx.arrived_for.append(agent["id"])  # wakes the runner
    return True


def resume_within_budget(tx: Tx, agent: Row, bounds: Bounds, now: int) -> None:
    """Resume an agent that was paused by its budget, if its changed limits allow it now."""
    if agent["paused_kind"] == "budget" and run_limits.over_budget(tx, agent, bounds) is None:
        _clear(tx, agent["id"], now)
        tx.arrived_for.append(agent["id"])


def resume_due(tx: Tx, now: int) -> list[int]:
    """Resume the agents whose pause ends by now, and return their address ids."""
    rows = tx.execute(
        """
        SELECT address FROM agent INDEXED BY agent_paused
        WHERE paused_until IS NOT NULL AND paused_until <= ?
        """,
        (now,),
    ).fetchall()
    for row in rows:
        _clear(tx, row["address"], now)
        tx.arrived_for.append(row["address"])
    return [row["address"] for row in rows]


def _clear(tx: Tx, agent: int, now: int) -> None:
    tx.facts.append(AgentChanged(now, agent))
    ask_closing.cancel_limits(tx, agent, "it is not paused any more", now)
    tx.execute(
        """
        UPDATE agent SET paused_at = NULL, paused_kind = NULL, paused_by = NULL, paused_why = NULL,
               paused_until = NULL, paused_trace = NULL, paused_hops = NULL
        WHERE address = ?
        """,
        (agent,),
    )


def answered(tx: Tx, ask: Row, now: int) -> None:
    """Resume an agent that reached a limit, if the boss answered its ask so (limit_asks.py)."""
    if ask["state"] != "answered" or ask["answer"] != GO_ON:
        return
    agent = tx.execute(
        """
        SELECT address AS id, paused_at, paused_kind, paused_trace, paused_hops FROM agent
        WHERE address = ? AND deleted_at IS NULL AND paused_kind IN ('guard', 'budget')
        """,
        (ask["asker"],),
    ).fetchone()
    if agent is not None:
        resume(tx, agent, Bounds(tx.settings.hops, tx.settings.runs_per_trace, now, now), now)
        background = tx.cache.live_address(BACKGROUND)
        tx.arrived_for += [] if background is None else [background.id]  # its tasks waited too
