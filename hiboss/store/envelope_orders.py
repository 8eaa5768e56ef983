"""Controls about one pending envelope: set the run of its agent aside for it, or change its priority.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BACKGROUND
from ..core.envelope import Lane, Priority, Status, Waits
from . import agents, envelopes, preemption
from .connection import Row
from .control_targets import Target
from .controls import APPLIED, REFUSED, TOO_LATE, Decision, Order
from .group_commit import Tx

_ENVELOPE = """
    SELECT e.id, e.message, e.recipient, e.binding, e.status, e.priority, e.arrived, e.waits, e.held_by,
           a.kind || ':' || a.name AS address, a.fold,
           (SELECT x.run FROM run_envelope x INDEXED BY run_envelope_envelope JOIN run r ON r.id = x.run
            WHERE x.envelope = e.id AND r.status = 'running') AS run
    FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient WHERE e.id = ?
"""


# --- preempt -------------------------------------------------------------------------


def preempt(tx: Tx, order: Order, target: Target, now: int) -> Decision:
    """Set the run of an agent aside for a pending envelope of its own, if that can be done."""
    row = tx.execute(_ENVELOPE, (order.envelope,)).fetchone()
    against = _about_envelope(tx, row, order)
    if against is not None:
        return against
    run = preemption.running(tx, row["recipient"])
    against = _about_run(row, run, target) or _about_agent(tx, row, now)
    if against is not None or run is None:
        return against or _late("nothing runs")
    # Critical: until it is done nothing but a person's next words there come before it.
    envelopes.set_priority(tx, row["id"], Priority.CRITICAL)
    preemption.set_aside(tx, run["id"], row["id"], order.explanation, order.actor)
    return Decision(APPLIED, ended=(run["id"],))


def _about_envelope(tx: Tx, row: Row, order: Order) -> Decision | None:
    """Return what an envelope itself says against setting a run aside for it; None: nothing."""
    what = f"e{row['id']}"
    if row["fold"] == BACKGROUND.fold:
        return _refused(f"{what} is a task for the background, which waits for no other run")
    if agents.with_provider(tx, row["recipient"]) is None:
        return _refused(f"{what} is for {row['address']}, who gets no turns")
    if order.agent not in (None, row["recipient"]):
        return _refused(f"{what} is for {row['address']}")
    if (late := _too_late(row)) is not None:
        return late
    if row["arrived"] is None or row["waits"] in (Waits.DEFERRED, Waits.SNOOZE):
        return _refused(f"{what} is deferred: it is not there yet")
    if row["priority"] == Priority.NOTICE:
        return _refused(f"{what} is a notice, which starts no turn")
    return None


def _too_late(row: Row) -> Decision | None:
    """Return a decision if an envelope is settled, or in somebody's hands; else None."""
    what = f"e{row['id']}"
    if row["status"] != Status.PENDING:
        return _late(f"{what} is {Status(row['status']).word}")
    if row["run"] is not None:
        return _late(f"r{row['run']} works on {what}")
    if row["held_by"] is not None or row["waits"] == Waits.LEASE:
        return _late(f"{what} is being delivered")
    return None


def _about_run(row: Row, run: Row | None, target: Target) -> Decision | None:
    """Return what the turn of the agent says against setting it aside; None: nothing."""
    if target.run is not None and (run is None or run["id"] != target.run["id"]):
        return _other_run(row, target.run)
    if run is None:
        return _late(f"{row['address']} has no turn now that could be set aside for e{row['id']}")
    if target.conversation not in (None, run["conversation"], run["reply_conversation"]):
        where = f"c{target.conversation}"
        return _late(f"nothing runs in {where}; r{run['id']} is in c{run['conversation']}")
    if run["ends_as"] is not None:
        return _late(f"r{run['id']} is ending already")
    why = preemption.why_not(run)
    return None if why is None else _refused(why)


def _other_run(row: Row, run: Row) -> Decision:
    name = f"r{run['id']}"
    if run["agent"] != row["recipient"]:
        return _refused(
            f"e{row['id']} is for {row['address']}, and {name} is a run of agent:{run['agent_name']}"
        )
    if run["status"] != "running":
        return _late(f"{name} has ended: it is {run['status']}")
    return _refused(f"{name} is a task in the background, and e{row['id']} does not wait for it")


def _about_agent(tx: Tx, row: Row, now: int) -> Decision | None:
    if preemption.may_begin(tx, row["recipient"], now):
        return None
    return _refused(f"{row['address']} is paused or waits: e{row['id']} would not be its next turn")


# --- priority ------------------------------------------------------------------------


def prioritize(tx: Tx, order: Order, target: Target, now: int) -> Decision:
    """Give one pending delivery another priority; its lane is woken after COMMIT."""
    assert order.level is not None
    row = tx.execute(_ENVELOPE, (order.envelope,)).fetchone()
    if (late := _too_late(row)) is not None:
        return late
    if row["priority"] == Priority.NOTICE:
        return _refused(f"e{row['id']} is a notice, which starts no turn")
    envelopes.set_priority(tx, row["id"], order.level)
    if row["waits"] is None and row["binding"] is not None:
        tx.posts_for.append(Lane(row["recipient"], row["binding"]))
    elif row["waits"] is None:
        tx.arrived_for.append(row["recipient"])
    return Decision(APPLIED)


def _late(why: str) -> Decision:
    return Decision(TOO_LATE, why)


def _refused(why: str) -> Decision:
    return Decision(REFUSED, why)
