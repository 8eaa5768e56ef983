"""Carry out `control route`: decide about it, and give mail of one agent to another (moved_mail.py).

Everything is one transaction, also if thousands are moved. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from functools import partial

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.envelope import Status, Waits
from . import conversation_routes, notices
from .connection import Row
from .control_targets import Target
from .controls import APPLIED, REFUSED, TOO_LATE, Decision, Order
from .group_commit import Tx
from .moved_mail import all_waiting, has_real, move, waiting
from .writer_cache import LiveAddress


def route(tx: Tx, order: Order, target: Target, now: int) -> Decision:
    """Decide about an order to route mail to another agent, and carry it out."""
    to = live(tx, order.to)
    if isinstance(to, str):
        return Decision(REFUSED, to)
    if to.address.kind != "agent":
        return Decision(
            REFUSED, f"route gives mail to an agent; to give a conversation to {to.address}: handoff"
        )
    if target.envelope is not None:
        return _one(tx, target.envelope, to, target, now)
    if order.conversation is None:
        return _all(tx, order, to, target, now)
    return in_conversation(tx, order, target, to, now)


def live(tx: Tx, number: int | None) -> LiveAddress | str:
    """Return somebody who can get mail; or why nobody can be meant."""
    row = tx.execute("SELECT id, kind, name, retired_at FROM address WHERE id = ?", (number,)).fetchone()
    address = Address(row["kind"], row["name"])
    if row["retired_at"] is not None:
        return f"{address} was deleted"
    if address.kind not in ("agent", "user") or address in (SYSTEM, BACKGROUND):
        return f"{address} is no agent and no person: it has no box for this mail"
    return LiveAddress(row["id"], address)


# --- one envelope, and all of an agent -----------------------------------------------


def _one(tx: Tx, envelope: Row, to: LiveAddress, target: Target, now: int) -> Decision:
    number = f"e{envelope['id']}"
    of = tx.execute("SELECT kind, name FROM address WHERE id = ?", (envelope["recipient"],)).fetchone()
    recipient = Address(of["kind"], of["name"])
    if recipient.kind != "agent" or recipient == BACKGROUND:
        return Decision(REFUSED, f"{number} is for {recipient}; only mail for an agent can be routed")
    if envelope["status"] != Status.PENDING:
        return Decision(TOO_LATE, f"{number} is {Status(envelope['status']).word}")
    if envelope["held_by"] is not None:
        return Decision(TOO_LATE, f"{number} is in hand: {_in_hand(target)}")
    if envelope["waits"] == Waits.LEASE:
        return Decision(TOO_LATE, f"a session of {recipient} has claimed {number}")
    if envelope["recipient"] == to.id:
        return Decision(REFUSED, f"{to.address} has {number} already")
    if envelope["sender"] == to.id:
        return Decision(REFUSED, f"{to.address} wrote {number} itself")
    if has_real(tx, envelope["message"], to.id):
        return Decision(REFUSED, f"{to.address} has got the same message itself")
    move(tx, [envelope], to, now)
    return Decision(APPLIED)


def _in_hand(target: Target) -> str:
    works = f"r{target.runs[0]['id']}" if target.runs else "a run"
    return (
        f"{works} works on it. To have it back: hiboss control cancel --run {works} --requeue; "
        "or preempt it for another envelope"
    )


def _all(tx: Tx, order: Order, to: LiveAddress, target: Target, now: int) -> Decision:
    """Move all that waits for an agent; what is in hand stays."""
    if order.agent == to.id:
        return Decision(REFUSED, f"{to.address} has its mail already")
    rows = all_waiting(tx, order.agent or 0)
    fit = [row for row in rows if row["sender"] != to.id and not has_real(tx, row["message"], to.id)]
    busy = [f"r{one['id']}" for one in target.runs]
    works = f"{', '.join(busy)} {'keeps' if len(busy) == 1 else 'keep'} what it has in hand" if busy else None
    stays = len(rows) - len(fit)
    left = f"{stays} stay: {to.address} wrote them, or has got them itself" if stays else None
    if not fit:
        return Decision(TOO_LATE, "; ".join(filter(None, ["nothing waits there that can move", left, works])))
    move(tx, fit, to, now)
    return Decision(APPLIED, "; ".join(filter(None, [f"moved: {len(fit)}", left, works])))


# --- a conversation ------------------------------------------------------------------


def in_conversation(tx: Tx, order: Order, target: Target, to: LiveAddress, now: int) -> Decision:
    """Decide about a route for a conversation: now and later, or not any more."""
    agent = whose(tx, order, to)
    if isinstance(agent, str):
        return Decision(REFUSED, agent)
    assert order.conversation is not None
    number = order.conversation
    before = conversation_routes.find(tx, number, agent.id)
    if to.id == agent.id:
        if before is None:
            return Decision(REFUSED, f"{agent.address} gets its mail of c{number} itself")
        return Decision(APPLIED, still_works(target, number), recorded=partial(_back, number, agent, now))
    if (why := cannot_get(tx, number, to)) is not None:
        return Decision(REFUSED, why)
    if before is not None and before.destination.id == to.id and not before.handed_over:
        return Decision(REFUSED, f"{to.address} gets the mail of {agent.address} in c{number} already")

    def apply(tx: Tx, control: int) -> None:
        hand_over(tx, number, agent, to, control, now, handed_over=False)

    return Decision(APPLIED, still_works(target, number), recorded=apply)


def _back(number: int, agent: LiveAddress, now: int, tx: Tx, control: int) -> None:
    take_back(tx, number, agent, now)


def whose(tx: Tx, order: Order, to: LiveAddress) -> LiveAddress | str:
    """Return the agent whose mail in a conversation is meant; or why none is."""
    number = order.conversation
    rows = tx.execute(
        """
        SELECT a.id, a.kind, a.name FROM participant p JOIN agent g ON g.address = p.address
        JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.left_seq IS NULL AND p.role <> 'guest' AND g.deleted_at IS NULL
        ORDER BY a.id
        """,
        (number,),
    ).fetchall()
    agents = {row["id"]: LiveAddress(row["id"], Address(row["kind"], row["name"])) for row in rows}
    if order.agent is not None and order.agent not in agents:
        return f"the agent that was named is no party of c{number}, so no mail there is for it"
    named = next((one for one in (order.agent, to.id, order.actor) if one in agents), None)
    if named is not None:
        return agents[named]
    if len(agents) == 1:
        return next(iter(agents.values()))
    routed = [one.agent for one in tx.cache.routes().of.get(number or 0, ())]
    if len(routed) == 1:
        return routed[0]
    if not agents:
        return f"c{number} has no agent whose mail could be routed"
    names = ", ".join(str(one.address) for one in agents.values())
    return f"c{number} has several agents ({names}): name the one with --agent"


def cannot_get(tx: Tx, conversation: int, to: LiveAddress) -> str | None:
    """Return why somebody cannot get mail of others in a conversation; None: it can.

    A party gets its own there. So there are no chains of routes, and no circles.
    """
    if to.id in conversation_routes.members(tx, conversation):
        return f"{to.address} is a party of c{conversation} itself"
    return None


def still_works(target: Target, conversation: int) -> str | None:
    """Return what to say of runs that work in the conversation: they go on."""
    busy = [f"r{one['id']}" for one in target.runs if one["conversation"] == conversation]
    return f"{', '.join(busy)} may end what it works on there; its answer still goes out" if busy else None


def hand_over(
    tx: Tx,
    conversation: int,
    agent: LiveAddress,
    to: LiveAddress,
    control: int,
    now: int,
    *,
    handed_over: bool,
) -> None:
    """Give a conversation to a destination: what waits there, and what comes later."""
    before = conversation_routes.find(tx, conversation, agent.id)
    holder = agent if before is None else before.destination
    conversation_routes.put(tx, conversation, agent.id, to.id, control, handed_over=handed_over)
    move(tx, waiting(tx, conversation, holder, agent), to, now, copy_to=agent if handed_over else None)


def take_back(tx: Tx, conversation: int, agent: LiveAddress, now: int) -> int:
    """Give a conversation back to its agent, with what waits there; return how much."""
    before = conversation_routes.find(tx, conversation, agent.id)
    if before is None:
        return 0
    found = waiting(tx, conversation, before.destination, agent)
    conversation_routes.end(tx, conversation, agent.id)
    back = move(tx, found, agent, now)
    if back and before.destination.address.kind == "user":
        text = (
            f"{before.destination.address} had neither read nor answered {back} envelopes of conversation "
            f"c{conversation}: {agent.address} gets them."
        )
        notices.notify(tx, BOSS, text, now)
    return back
