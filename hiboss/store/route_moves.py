"""Carry out `control route`: decide about it, and move pending envelopes from one agent to another.

Moved mail keeps its message and its conversation; only its recipient is another one, who has not tried it.
Everything is one transaction, also if thousands are moved. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ..core.address import BACKGROUND, SYSTEM, Address
from ..core.envelope import Priority, Status, Waits
from ..core.events import EnvelopeRouted
from . import ask_holders, conversation_routes, envelopes, forwarding
from .connection import Row
from .control_targets import Target
from .controls import APPLIED, REFUSED, TOO_LATE, Decision, Order
from .group_commit import Tx
from .writer_cache import LiveAddress

# What can be moved: nobody has it in hand. Notices are about their recipient, and stay with it.
_MOVABLE = f"""
    e.status = 0 AND e.held_by IS NULL AND e.waits IS NOT {int(Waits.LEASE)} AND e.forwards IS NULL
    AND e.priority <> {int(Priority.NOTICE)}
"""
_PENDING = f"""
SELECT e.id, e.message, e.recipient, e.routed_from, e.arrived, m.sender, m.conversation
FROM envelope e INDEXED BY envelope_box JOIN message m ON m.id = e.message
WHERE e.recipient = ?1 AND e.box = 0 AND e.status = 0 AND {_MOVABLE}
"""
_ORDER = " ORDER BY e.arrived IS NULL, e.arrived, e.id"


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
    if _real(tx, envelope["message"], to.id) is not None:
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
    rows = tx.execute(_PENDING + _ORDER, (order.agent,)).fetchall()
    fit = [row for row in rows if row["sender"] != to.id and _real(tx, row["message"], to.id) is None]
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
    return move(tx, found, agent, now)


def waiting(tx: Tx, conversation: int, holder: LiveAddress, agent: LiveAddress) -> list[Row]:
    """Return what waits for an agent in a conversation, with whoever has it now.

    Not what is deferred: where that goes is decided when it arrives.
    """
    whose = "e.routed_from IS NULL" if holder.id == agent.id else "e.routed_from = ?3"
    values = () if holder.id == agent.id else (agent.id,)
    return tx.execute(
        f"""
        {_PENDING} AND m.conversation = ?2 AND e.arrived IS NOT NULL AND {whose}
        AND NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}') {_ORDER}
        """,
        (holder.id, conversation, *values),
    ).fetchall()


def follow(tx: Tx, conversation: int, agent: int, numbers: Sequence[int], now: int) -> bool:
    """Let due mail of an agent follow the route of its conversation; False: there is none, or it stays.

    It was in hand when the route was made, and its run did not end it.
    """
    found = conversation_routes.find(tx, conversation, agent)
    if found is None:
        return False
    marks = ",".join("?" * len(numbers))
    rows = tx.execute(
        f"""
        SELECT e.id, e.message, e.recipient, e.routed_from, e.arrived, m.sender, m.conversation
        FROM envelope e JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
        WHERE e.id IN ({marks}) AND s.fold <> '{SYSTEM.fold}' AND {_MOVABLE} {_ORDER}
        """,
        list(numbers),
    ).fetchall()
    return move(tx, rows, found.destination, now, copy_to=found.agent if found.handed_over else None) > 0


# --- moving --------------------------------------------------------------------------


def move(tx: Tx, rows: Iterable[Row], to: LiveAddress, now: int, copy_to: LiveAddress | None = None) -> int:
    """Give pending envelopes that nobody holds to another recipient; return how many.

    `copy_to`: who reads along. Who wrote one of them does not get it. If the recipient has a copy, that
    becomes its mail.
    """
    moved, places = 0, set()
    for row in rows:
        if row["sender"] == to.id:
            continue
        was = row["routed_from"] or row["recipient"]
        had = tx.execute(_OF_RECIPIENT, (row["message"], to.id)).fetchone()
        if had is None:
            envelopes.reroute(tx, row["id"], to, None if was == to.id else was, now)
            number = row["id"]
        else:
            envelopes.end(tx, row["id"], now)
            number = had["id"]
            if had["routed_from"] == to.id:
                envelopes.make_real(tx, number)
        if copy_to is not None and tx.execute(_OF_RECIPIENT, (row["message"], copy_to.id)).fetchone() is None:
            _copy(tx, row["message"], copy_to, now)
        ask_holders.follow(tx, row["message"])
        moved += 1
        places.add(row["conversation"])
        tx.facts.append(EnvelopeRouted(now, number, row["recipient"]))
        if row["arrived"] is not None and to.id == tx.cache.reach().boss:
            forwarding.arrived(tx, number, now)
    for conversation in sorted(places):
        conversation_routes.enter(tx, conversation, to.id)
    if moved:
        tx.arrived_for.append(to.id)
    return moved


_OF_RECIPIENT = "SELECT id, routed_from FROM envelope WHERE message = ? AND recipient = ?"


def _copy(tx: Tx, message: int, reader: LiveAddress, now: int) -> None:
    envelopes.insert(
        tx, message, reader, None, Priority.NORMAL, None, now, context=True, routed_from=reader.id
    )


def _real(tx: Tx, message: int, recipient: int) -> int | None:
    """Return the envelope by which somebody got a message, if that is no copy."""
    row = tx.execute(_OF_RECIPIENT, (message, recipient)).fetchone()
    return None if row is None or row["routed_from"] == recipient else int(row["id"])
