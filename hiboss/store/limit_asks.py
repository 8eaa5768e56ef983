"""Limit asks: who has reached a limit asks the boss to go on.

An agent whose run would exceed one is paused. What an answer does is in agent_pauses.py. When the agent is
resumed in another way, its limits are changed or the day of its budget ends, the open ask is cancelled there.

A schedule beyond a quota is not stored. Its ask has a subject: SCHEDULES, or the interval. The answer counts
for what is tried afterwards, and the asker is told it.
"""

from __future__ import annotations

from ..core.errors import ScheduleQuota
from ..core.schedule_times import Timing
from . import agent_pauses, ask_replies, asks, run_limits, schedules
from .agent_pauses import GO_ON
from .asks import NewAsk
from .connection import Row
from .group_commit import Tx
from .run_limits import Bounds

TOMORROW = "wait until tomorrow"
STAY = "leave it paused"
NO = "no"
SCHEDULES, INTERVAL = "schedules", "every "  # subjects; the interval in milliseconds follows


def pause_over_limit(tx: Tx, agent: Row, mail: Row, bounds: Bounds, now: int) -> bool:
    """Pause the agent and ask the boss, if a run for this mail would exceed a limit; return whether so."""
    trace = str(mail["trace"])
    too_far = run_limits.over_trace_limit(tx, trace, int(mail["hops"]), bounds, now)
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


# --- schedules -----------------------------------------------------------------------


def schedule_over_quota(
    tx: Tx, owner: int, timing: Timing, now: int, *, changed: int | None = None
) -> ScheduleQuota | None:
    """Ask the boss about a schedule that exceeds a quota, and return the error; None if it exceeds none.

    Raise it after the COMMIT. `changed`: the schedule that gets this timing; None: a new one. The boss has
    no quota.
    """
    boss = tx.cache.reach().boss
    if owner == boss:
        return None
    most, least = tx.settings.schedules_per_caller, round(tx.settings.schedule_least_seconds * 1000)
    number, shortest = schedules.number_of(tx, owner, changed, now), timing.shortest(now)
    if number < most and (shortest is None or shortest >= least):
        return None
    before = tx.execute(
        """
        SELECT id, state, answer, subject FROM ask INDEXED BY ask_asker
        WHERE asker = ? AND state IN ('open', 'answered') AND kind = 'limit' AND subject IS NOT NULL
        ORDER BY id
        """,
        (owner,),
    ).fetchall()
    who = ask_replies.address_of(tx, owner)
    more = [one for one in before if one["subject"] == SCHEDULES]
    if number >= most * (1 + sum(one["answer"] == GO_ON for one in more)):
        why = f"{who} has {number} schedules and wants another one"
        return _over(tx, owner, boss, (why, SCHEDULES, f"May it have {most} more?"), "per_caller", more, now)
    often = [one for one in before if one["subject"].startswith(INTERVAL)]
    as_often = [one for one in often if shortest is not None and _interval(one) <= shortest]
    if shortest is None or shortest >= least or any(one["answer"] == GO_ON for one in as_often):
        return None
    why = f"{who} wants a schedule that sends every {shortest / 1000:g} s"
    asked = [one for one in often if one["state"] == "open" or _interval(one) >= shortest]
    return _over(
        tx,
        owner,
        boss,
        (why, f"{INTERVAL}{shortest}", "May it send that often?"),
        "least_seconds",
        asked,
        now,
    )


def _interval(ask: Row) -> int:
    return int(ask["subject"].removeprefix(INTERVAL))


def _over(
    tx: Tx,
    owner: int,
    boss: int | None,
    new: tuple[str, str, str],
    setting: str,
    before: list[Row],
    now: int,
) -> ScheduleQuota:
    """Return the error, with the ask that is open or was denied last; else ask the boss now."""
    why, subject, question = new
    last = before[-1] if before else None
    if last is not None and last["answer"] not in (None, GO_ON):
        said = f'the boss has answered "{last["answer"]}" (q{last["id"]})'
    elif last is not None and last["state"] == "open":
        said = f"the boss is asked (q{last['id']}): try again after the answer"
    elif boss is None:
        said = "there is no boss yet"
    else:
        question = f"{why}. {question}"
        made = asks.create(tx, NewAsk(owner, boss, question, (GO_ON, NO), kind="limit", subject=subject), now)
        said = f"the boss is asked (q{made.id}): try again after the answer"
    return ScheduleQuota(why=why, setting=f"schedules.{setting}", said=said)
