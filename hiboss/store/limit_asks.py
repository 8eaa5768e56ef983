"""Limit asks: an agent that has reached a limit is paused and asks the boss to go on.

What an answer does is in agent_pauses.py. When the agent is resumed in another way, its limits are changed or
the day of its budget ends, the open ask is cancelled there.
"""

from __future__ import annotations

from . import agent_pauses, asks, run_limits
from .agent_pauses import GO_ON
from .asks import NewAsk
from .connection import Row
from .group_commit import Tx
from .run_limits import Bounds

TOMORROW = "wait until tomorrow"
STAY = "leave it paused"


def pause_over_limit(tx: Tx, agent: Row, mail: Row, bounds: Bounds, now: int) -> bool:
    """Pause the agent and ask the boss, if a run for this mail would exceed a limit; return whether so."""
    trace = str(mail["trace"])
    too_far = run_limits.over_trace_limit(tx, trace, int(mail["hops"]), bounds)
    if too_far is not None:
        if agent_pauses.pause(tx, agent["id"], "guard", too_far, now, reached=(trace, int(mail["hops"]))):
            end = f"To end this trace instead, first run: hiboss envelope cancel e{mail['id']}"
            _ask(tx, agent, f"{too_far}. Its mail waits. May it go on?\n{end}", STAY, now)
        return True
    too_much = run_limits.over_budget(tx, agent, bounds)
    if too_much is not None:
        if agent_pauses.pause(tx, agent["id"], "budget", too_much, now, until=bounds.day_ends):
            waits = "Its mail waits until tomorrow. May it go on today, with the same amount again?"
            _ask(tx, agent, f"{too_much}. {waits}", TOMORROW, now)
        return True
    return False


def _ask(tx: Tx, agent: Row, question: str, otherwise: str, now: int) -> None:
    """Ask the boss; not before there is one."""
    boss = tx.cache.reach().boss
    if boss is None:
        return
    text = f"agent:{agent['name']} is paused: {question}"
    asks.create(tx, NewAsk(agent["id"], boss, text, (GO_ON, otherwise), kind="limit"), now)
