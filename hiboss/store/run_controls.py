"""What pause, resume and cancel do to a target, in one transaction: each returns what it came to.

Processes follow after COMMIT (hiboss/agents/controls.py). What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.contracts.failures import Failure
from ..core.envelope import Lane, Status, Waits
from . import agent_pauses, agents, giving_up, lanes, run_cancels, run_pauses, run_settlement
from .connection import Row
from .control_targets import Target
from .controls import APPLIED, REFUSED, TOO_LATE, Decision, Order, together
from .group_commit import Tx
from .run_limits import Bounds

NOTHING = "nothing runs there"
CannotStop = Callable[[Row], str | None]  # why a run cannot be stopped, by its row; None: it can


# --- pause ---------------------------------------------------------------------------


def pause(tx: Tx, order: Order, target: Target, now: int, cannot: CannotStop) -> Decision:
    """Pause runs; of an agent, also the agent itself, which then gets no turns."""
    if order.agent is not None:
        return _pause_agent(tx, order, target, now, cannot)
    return over_runs(target, lambda run: _pause_run(tx, order, run, now, cannot, hold_lane=True))


def over_runs(target: Target, one: Callable[[Row], Decision]) -> Decision:
    """Do something to each run that works there; too late if there is none."""
    if target.runs:
        return together(one(run) for run in target.runs if is_meant(target, run))
    if target.run is not None:
        return Decision(TOO_LATE, f"r{target.run['id']} has ended ({target.run['status']})")
    return Decision(TOO_LATE, NOTHING)


def is_meant(target: Target, run: Row) -> bool:
    """Tell whether a run is meant: those that are about to end only if nothing else works there."""
    others = [one for one in target.runs if one["ends_as"] is None]
    return run["ends_as"] is None or not others


def ends(run: Row) -> Decision | None:
    """Return that it is too late for a run that is about to end; None: it goes on."""
    if run["ends_as"] is None:
        return None
    return Decision(TOO_LATE, f"r{run['id']} is about to end ({run['ends_as']})")


def _pause_run(tx: Tx, order: Order, run: Row, now: int, cannot: CannotStop, *, hold_lane: bool) -> Decision:
    if (late := ends(run)) is not None:
        return late
    if run["paused_at"] is not None:
        return Decision(REFUSED, f"r{run['id']} is paused already")
    if (why := cannot(run)) is not None:
        return Decision(REFUSED, f"r{run['id']} cannot be paused: {why}")
    run_pauses.pause(tx, run, order.actor, now, hold_lane=hold_lane)
    return Decision(APPLIED, changed=(run["id"],))


def _pause_agent(tx: Tx, order: Order, target: Target, now: int, cannot: CannotStop) -> Decision:
    """Pause an agent and its runs. What cannot be stopped goes on, and is said."""
    assert order.agent is not None
    row = _agent(tx, order.agent)
    if row is None:
        return Decision(TOO_LATE, "it was deleted")
    found = [_pause_run(tx, order, run, now, cannot, hold_lane=False) for run in target.runs]
    by = None if order.is_boss else order.actor
    if agent_pauses.pause(tx, order.agent, "boss", order.explanation, now, by=by):
        found.append(Decision(APPLIED))
    elif row["paused_kind"] in agent_pauses.LIMITS:  # that stays, with its ask: only the boss ends it
        found.append(Decision(REFUSED, f"agent:{row['name']} is paused already, by a limit"))
    return together(found or [Decision(REFUSED, f"agent:{row['name']} is paused already")])


# --- resume --------------------------------------------------------------------------


def resume(tx: Tx, order: Order, target: Target, now: int, bounds: Bounds) -> Decision:
    """Resume runs, with the lanes that were paused with them; of an agent: everything that holds it."""
    if order.agent is not None:
        return _resume_agent(tx, order, target, now, bounds)
    woken = _resume_held(tx, target, now)
    if woken and not target.runs:
        return Decision(APPLIED, woken=woken)
    found = over_runs(target, lambda run: _resume_run(tx, run, now))
    return together([Decision(APPLIED, woken=woken), found]) if woken else found


def _resume_held(tx: Tx, target: Target, now: int) -> tuple[int, ...]:
    """Let what comes again begin whose runs have ended in their pause; return their agents."""
    return tuple(run["agent"] for run in target.held if run_pauses.resume(tx, run, now))


def _resume_run(tx: Tx, run: Row, now: int) -> Decision:
    if (late := ends(run)) is not None:
        return late
    if run_pauses.resume(tx, run, now):
        return Decision(APPLIED, changed=(run["id"],), woken=(run["agent"],))
    return Decision(REFUSED, f"r{run['id']} is not paused")


def _resume_agent(tx: Tx, order: Order, target: Target, now: int, bounds: Bounds) -> Decision:
    assert order.agent is not None
    agent, lane = order.agent, Lane(order.agent, None)
    row = _agent(tx, agent)
    if row is None:
        return Decision(TOO_LATE, "it was deleted")
    if not order.is_boss and (why := agent_pauses.held_by_boss(row)) is not None:
        return Decision(REFUSED, why)
    # In this order: a run opens the lane that was paused with it.
    changed = tuple(run["id"] for run in target.runs if run_pauses.resume(tx, run, now))
    begins = bool(_resume_held(tx, target, now))
    opened = lanes.resume(tx, lane, now) is not None or lanes.reopen(tx, lane, now) or begins
    resumed = agent_pauses.resume(tx, row, bounds, now)
    if changed or opened or resumed:
        return Decision(APPLIED, changed=changed, woken=(agent,))
    return Decision(REFUSED, f"agent:{row['name']} is not paused")


def _agent(tx: Tx, number: int) -> Row | None:
    return agents.by_id(tx, number)


# --- cancel --------------------------------------------------------------------------


def cancel(tx: Tx, order: Order, target: Target, now: int) -> Decision:
    """Tell runs to end; what they work on is cancelled, or due again (`requeue`)."""
    held = [_cancel_held(tx, order, run, now) for run in target.held]
    if target.envelope is not None and not target.runs and not held:
        return _cancel_pending(tx, order, target.envelope, now)
    if held and not target.runs:
        return together(held)
    return together([*held, over_runs(target, lambda run: _cancel_run(tx, order, run))])


def _cancel_held(tx: Tx, order: Order, run: Row, now: int) -> Decision:
    """Cancel what a run worked on that has ended in its pause, and let its agent have other turns."""
    if not order.requeue:
        run_settlement.cancel_held(tx, run, order.explanation, order.actor, now)
    run_pauses.resume(tx, run, now)
    return Decision(APPLIED, woken=(run["agent"],))


def _cancel_run(tx: Tx, order: Order, run: Row) -> Decision:
    if (late := ends(run)) is not None:
        return late
    ends_as = run_cancels.REQUEUED if order.requeue else run_cancels.CANCELLED
    run_cancels.note(tx, run["id"], order.explanation, order.actor, ends_as)
    return Decision(APPLIED, ended=(run["id"],))


def _cancel_pending(tx: Tx, order: Order, envelope: Row, now: int) -> Decision:
    """Cancel an envelope that no run works on."""
    name = f"e{envelope['id']}"
    if envelope["status"] != Status.PENDING:
        return Decision(TOO_LATE, f"{name} is {Status(envelope['status']).word}")
    if envelope["held_by"] is not None:
        return Decision(TOO_LATE, f"{name} is being delivered")
    if envelope["waits"] == Waits.LEASE:
        return Decision(REFUSED, f"{name} is claimed by a session, which hiboss cannot end")
    if order.requeue:
        return Decision(TOO_LATE, f"{NOTHING}: {name} waits for its turn")
    failure = Failure("cancelled", order.explanation)
    giving_up.cancel(tx, [envelope["id"]], failure, now, not_told=order.actor)
    return Decision(APPLIED)
