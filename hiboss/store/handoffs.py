"""Carry out `control handoff`: give a conversation to another agent or a person, with a summary, and back.

The outgoing agent writes the summary: with the order, if it gives the conversation away itself; else it is
asked for one. Until that comes, the last messages are the summary. What others wrote is quoted
(core/escaping.py). What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS, SYSTEM, Address
from ..core.envelope import Draft, Priority
from ..core.escaping import mark_lines, name, quote, visible
from . import conversation_routes, last_messages, messages, notices
from .control_targets import Target
from .controls import APPLIED, REFUSED, Decision, Order
from .group_commit import Tx
from .moved_mail import move
from .route_moves import cannot_get, hand_over, live, still_works, take_back, whose
from .writer_cache import LiveAddress

NAME_CHARACTERS = 60


def handoff(tx: Tx, order: Order, target: Target, now: int) -> Decision:
    """Decide about an order to hand a conversation over, and carry it out."""
    to = live(tx, order.to)
    agent = to if isinstance(to, str) else whose(tx, order, to)
    if isinstance(to, str) or isinstance(agent, str):
        return Decision(REFUSED, str(to if isinstance(to, str) else agent))
    assert order.conversation is not None
    number, before = order.conversation, conversation_routes.find(tx, order.conversation, agent.id)
    if to.id == agent.id:
        if before is None:
            return Decision(REFUSED, f"{agent.address} has c{number} itself")
        return Decision(
            APPLIED,
            still_works(target, number),
            recorded=lambda tx, _: _give_back(tx, order, number, agent, now),
        )
    if (why := cannot_get(tx, number, to)) is not None:
        return Decision(REFUSED, why)
    if before is not None and before.destination.id == to.id and before.handed_over:
        return Decision(REFUSED, f"{to.address} has c{number} already")

    def apply(tx: Tx, control: int) -> None:
        outgoing = agent if before is None else before.destination
        quoted = last_messages.lines(tx, number)
        if order.actor != outgoing.id:
            _ask_for_summary(tx, number, outgoing, to, now)
        hand_over(tx, number, agent, to, control, now, handed_over=True)
        _tell_destination(tx, order, number, (agent, outgoing, to), quoted, now)
        if outgoing.id not in (agent.id, order.actor):
            _tell(
                tx,
                number,
                outgoing,
                f"{_named(tx, number)} is not with you any more: {to.address} has it.",
                now,
            )

    return Decision(APPLIED, still_works(target, number), recorded=apply)


def _give_back(tx: Tx, order: Order, number: int, agent: LiveAddress, now: int) -> None:
    """Return a conversation to its agent, and tell both. Its next turn shows what was said meanwhile."""
    before = conversation_routes.find(tx, number, agent.id)
    assert before is not None
    take_back(tx, number, agent, now)
    reason = f" Reason: {quote(order.reason)}" if order.reason else ""
    told = f"{_named(tx, number)} is with you again; {before.destination.address} had it.{reason}"
    meanwhile = " Your next turn there shows what was said meanwhile." if before.handed_over else ""
    _tell(tx, number, agent, told + meanwhile, now)
    if before.destination.id != order.actor:
        _tell(
            tx,
            number,
            before.destination,
            f"{_named(tx, number)} is with {agent.address} again.{reason}",
            now,
        )


# --- when somebody is deleted --------------------------------------------------------


def end_of(tx: Tx, gone: int, now: int) -> None:
    """End all routes to and from somebody who is about to be deleted. Mail goes back to whose it was."""
    for number, route in conversation_routes.of_destination(tx, gone):
        back = take_back(tx, number, route.agent, now)
        text = (
            f"{route.destination.address} is deleted: {_named(tx, number)} is with {route.agent.address} "
            f"again{f', and {back} envelopes that waited' if back else ''}."
        )
        notices.notify(tx, BOSS, text, now)
        _tell(tx, number, route.agent, f"{_named(tx, number)} is with you again.", now)
    for number, route in conversation_routes.of_agent(tx, gone):
        conversation_routes.end(tx, number, route.agent.id)
        _tell(
            tx,
            number,
            route.destination,
            f"{route.agent.address} is deleted: {_named(tx, number)} ends with it.",
            now,
        )
    _return_single(tx, gone, now)


def _return_single(tx: Tx, gone: int, now: int) -> None:
    """Give back what was routed to somebody envelope by envelope, if its agent is there."""
    rows = tx.execute(
        """
        SELECT e.id, e.message, e.recipient, e.routed_from, e.arrived, m.sender, m.conversation,
               a.kind, a.name
        FROM envelope e INDEXED BY envelope_box JOIN message m ON m.id = e.message
        JOIN address a ON a.id = e.routed_from AND a.retired_at IS NULL
        WHERE e.recipient = ?1 AND e.box = 0 AND e.status = 0 AND e.held_by IS NULL AND e.waits IS NOT 2
          AND e.routed_from <> ?1 ORDER BY e.arrived IS NULL, e.arrived, e.id
        """,
        (gone,),
    ).fetchall()
    for row in rows:
        move(tx, [row], LiveAddress(row["routed_from"], Address(row["kind"], row["name"])), now)


# --- what is said --------------------------------------------------------------------


def _tell_destination(
    tx: Tx,
    order: Order,
    number: int,
    who: tuple[LiveAddress, LiveAddress, LiveAddress],
    quoted: list[str],
    now: int,
) -> None:
    agent, outgoing, to = who
    if order.actor == to.id:
        lines = [f"You have {_named(tx, number)} now, in place of {agent.address}."]
    else:
        lines = [f"{order.by} gave you {_named(tx, number)}, in place of {agent.address}."]
    if order.reason and order.actor != outgoing.id:
        lines.append(f"Reason: {quote(order.reason)}")
    if to.address.kind == "user":
        lines.append("What is written there comes to you. To answer: hiboss reply ENVELOPE TEXT")
        lines.append(f"To give it back: hiboss control handoff --conversation c{number} --to {agent.address}")
    else:
        lines.append("What is written there comes to you, and your answers go there.")
    summary = (order.meta or {}).get("summary") or order.reason
    if order.actor == outgoing.id and isinstance(summary, str):
        lines += [f"The summary of {outgoing.address}:", mark_lines(summary)]
    elif quoted:
        lines += [f"The last messages there ({len(quoted)}):", *quoted]
    else:
        lines.append("Nothing was said there yet.")
    _tell(tx, number, to, "\n".join(lines), now)


def _ask_for_summary(tx: Tx, number: int, outgoing: LiveAddress, to: LiveAddress, now: int) -> None:
    """Ask the outgoing agent for a summary where it remembers: in the conversation. It is not said there.

    Where its final text goes is decided by `stand_ins.summary_for`.
    """
    row = tx.execute(
        """
        SELECT reply FROM agent WHERE address = ? AND provider IS NOT NULL AND mode = 'run'
          AND paused_at IS NULL AND deleted_at IS NULL
        """,
        (outgoing.id,),
    ).fetchone()
    if row is None or not _has_spoken(tx, number, outgoing.id):
        return
    how = "Your final text goes to"
    if row["reply"] != "auto":
        how = f"Send it with: hiboss send {to.address} TEXT. It goes to"
    text = (
        f"This conversation (c{number}) is given to {to.address}. Write a short summary for {to.address}: "
        f"what it is about, what you promised, what is open. {how} {to.address}, and to nobody else."
    )
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(outgoing.address,),
        text=text,
        conversation=number,
    )
    conversation_routes.enter(tx, number, entry.id)
    messages.insert(tx, draft, now)


def _has_spoken(tx: Tx, conversation: int, agent: int) -> bool:
    """Tell whether an agent had a turn in a conversation: else it knows nothing of it."""
    row = tx.execute(
        """
        SELECT 1 FROM message m INDEXED BY message_seq
        WHERE m.conversation = ?2 AND m.seq IS NOT NULL AND m.sender = ?1 LIMIT 1
        """,
        (agent, conversation),
    ).fetchone()
    return row is not None


def _tell(tx: Tx, number: int, to: LiveAddress, text: str, now: int) -> None:
    """Send something about a handoff. It starts no turn: the next one of the conversation shows it."""
    entry = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    draft = Draft(
        sender=SYSTEM,
        caller=entry.id,
        sees_all=True,
        to=(to.address,),
        text=text,
        # For a person it is mail that somebody acts on, and no notice that can wait until the morning.
        priority=Priority.NOTICE if to.address.kind == "agent" else Priority.NORMAL,
        auto=True,
        about=number,
    )
    messages.insert(tx, draft, now)


def _named(tx: Tx, conversation: int) -> str:
    """Return a conversation as people know it: by its other parties."""
    rows = tx.execute(
        """
        SELECT a.kind || ':' || a.name AS address,
               (SELECT c.name FROM place p JOIN contact c ON c.id = p.contact
                WHERE p.address = a.id AND c.name IS NOT NULL LIMIT 1) AS known
        FROM participant q JOIN address a ON a.id = q.address
        WHERE q.conversation = ? AND q.role <> 'guest' AND q.left_seq IS NULL AND a.kind <> 'agent'
        ORDER BY a.id
        """,
        (conversation,),
    ).fetchall()
    known = [(visible(row["address"]), row["known"]) for row in rows[:3]]
    shown = [f"{address} {name(given, NAME_CHARACTERS)}" if given else address for address, given in known]
    return f"conversation c{conversation}" + (f" ({', '.join(shown)})" if shown else "")
