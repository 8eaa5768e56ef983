"""Move mail from one recipient to another, by routes and handoffs.

Moved mail keeps its message, its conversation and its envelope; only its recipient is another one, who has
not tried it. So a message is settled once, whoever has it, and its sender knows it by one id. What takes a
Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.address import SYSTEM, Address
from ..core.envelope import Priority, Status, Waits
from ..core.events import EnvelopeRouted
from . import ask_holders, conversation_routes, envelopes, forwarding
from .connection import Row
from .group_commit import Tx
from .writer_cache import LiveAddress

# What can be moved: nobody has it in hand. Notices are about their recipient, and stay with it.
_MOVABLE = f"""
    e.held_by IS NULL AND e.waits IS NOT {int(Waits.LEASE)} AND e.forwards IS NULL
    AND e.priority <> {int(Priority.NOTICE)}
"""
_ROWS = "SELECT e.id, e.message, e.recipient, e.routed_from, e.arrived, m.sender, m.conversation"
_IN_BOX = f"""
{_ROWS} FROM envelope e INDEXED BY envelope_box JOIN message m ON m.id = e.message
WHERE e.recipient = ?1 AND e.box = 0 AND {_MOVABLE}
"""
_OF_OTHERS = f"NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}')"
_ORDER = " ORDER BY e.arrived IS NULL, e.arrived, e.id"
# A person's mail is done on arrival. What she has neither read nor answered waits all the same.
_UNREAD = """
    e.status = 1 AND e.read_at IS NULL AND e.context = 0 AND m.deleted_at IS NULL
    AND m.id NOT IN (SELECT a.reply_to FROM message a INDEXED BY message_seq
                     WHERE a.conversation = ?2 AND a.seq IS NOT NULL AND a.sender = ?1
                       AND a.reply_to IS NOT NULL)
"""
# What a person put off, and then neither read nor answered, is due when it wakes.
_WOKEN = """
    e.status = 1 AND e.routed_from <> e.recipient AND e.read_at IS NULL AND e.context = 0
    AND m.deleted_at IS NULL AND EXISTS (SELECT 1 FROM user u WHERE u.address = e.recipient)
    AND NOT EXISTS (SELECT 1 FROM message a INDEXED BY message_thread WHERE a.thread = ifnull(m.thread, m.id)
                    AND a.reply_to = m.id AND a.sender = e.recipient AND a.seq IS NOT NULL)
"""


# --- what waits ----------------------------------------------------------------------


def all_waiting(tx: Tx, agent: int) -> list[Row]:
    """Return all that waits for an agent, also what is deferred or snoozed, in its order."""
    everything = _IN_BOX.replace("e.box = 0", "e.box IN (0, 3)")
    return tx.execute(f"{everything} AND e.status = 0 {_ORDER}", (agent,)).fetchall()


def waiting(tx: Tx, conversation: int, holder: LiveAddress, agent: LiveAddress) -> list[Row]:
    """Return what waits for an agent in a conversation, with whoever has it now.

    Not what is deferred: where that goes is decided when it arrives.
    """
    whose = "e.routed_from IS NULL" if holder.id == agent.id else "e.routed_from = ?3"
    values = () if holder.id == agent.id else (agent.id,)
    state = _UNREAD if holder.address.kind == "user" else "e.status = 0"
    return tx.execute(
        f"""
        {_IN_BOX} AND m.conversation = ?2 AND e.arrived IS NOT NULL AND {whose} AND {state}
        AND {_OF_OTHERS} {_ORDER}
        """,
        (holder.id, conversation, *values),
    ).fetchall()


def has_real(tx: Tx, message: int, recipient: int) -> bool:
    """Tell whether somebody got a message, and not only a copy of it."""
    row = tx.execute(_OF_RECIPIENT, (message, recipient)).fetchone()
    return row is not None and row["routed_from"] != recipient


# --- what is due, and belongs to somebody else ---------------------------------------


def routed(tx: Tx, numbers: Sequence[int]) -> set[int]:
    """Return which of these envelopes were routed to who has them."""
    marks = ",".join("?" * len(numbers))
    found = f"SELECT id FROM envelope WHERE id IN ({marks}) AND routed_from <> recipient"
    return {row["id"] for row in tx.execute(found, list(numbers))}


def follow(tx: Tx, conversation: int, agent: int, numbers: Sequence[int], now: int) -> bool:
    """Let due mail of an agent go to who has its conversation now; False: that is the agent itself.

    It was in hand, or settled, when the route was made or ended, and it is due again.
    """
    if conversation_routes.find(tx, conversation, agent) is None and not routed(tx, numbers):
        return False
    marks = ",".join("?" * len(numbers))
    rows = tx.execute(
        f"""
        {_ROWS} FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id IN ({marks}) AND (e.status = 0 OR ({_WOKEN})) AND {_MOVABLE} AND {_OF_OTHERS} {_ORDER}
        """,
        list(numbers),
    ).fetchall()
    moved = 0
    for row in rows:
        owner = row["routed_from"] or row["recipient"]
        route = conversation_routes.find(tx, conversation, owner)
        if row["routed_from"] is not None and not _by_conversation(tx, row):
            continue  # it was routed alone
        if route is not None:
            moved += move(tx, [row], route.destination, now, route.agent if route.handed_over else None)
        elif (home := _address(tx, owner)) is not None:
            moved += move(tx, [row], home, now)
    return moved > 0


def follow_waited(tx: Tx, number: int, now: int) -> int | None:
    """Let an envelope whose lease or snooze has ended go to who has its conversation now; None: it stays."""
    found = """
        SELECT m.conversation, e.recipient FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?
    """
    row = tx.execute(found, (number,)).fetchone()
    if not follow(tx, row["conversation"], row["recipient"], [number], now):
        return None
    return int(tx.execute(found, (number,)).fetchone()["recipient"])


def _by_conversation(tx: Tx, row: Row) -> bool:
    """Tell whether mail was routed to who has it with its conversation, and not alone or with a whole box."""
    # The record of a control about an agent may lie in the same conversation: its target tells.
    found = tx.execute(
        """
        SELECT json_extract(m.metadata, '$.control.target') LIKE 'c%' AS whole FROM control c
        JOIN message m ON m.id = c.message
        WHERE c.event IN ('route', 'handoff') AND c.outcome = 'applied' AND c.destination = ?1
          AND CASE WHEN c.envelope IS NOT NULL THEN c.envelope = ?2
                   WHEN json_extract(m.metadata, '$.control.target') LIKE 'c%' THEN c.conversation = ?3
                   ELSE c.agent = ?4 OR c.agent IN (SELECT had.destination FROM control had
                        WHERE had.conversation = ?3 AND had.id < c.id) END
        ORDER BY c.id DESC LIMIT 1
        """,
        (row["recipient"], row["id"], row["conversation"], row["routed_from"]),
    ).fetchone()
    return found is not None and bool(found["whole"])


# --- moving --------------------------------------------------------------------------

_OF_RECIPIENT = "SELECT id, routed_from, status FROM envelope WHERE message = ? AND recipient = ?"


def move(tx: Tx, rows: Iterable[Row], to: LiveAddress, now: int, copy_to: LiveAddress | None = None) -> int:
    """Give envelopes that nobody holds to another recipient; return how many.

    `copy_to`: who reads along. Who wrote one of them does not get it.
    """
    moved, places = 0, set()
    for row in rows:
        if row["sender"] == to.id:
            continue
        changed = row["recipient"] != to.id and _give(tx, row, to, now)
        if copy_to is not None and tx.execute(_OF_RECIPIENT, (row["message"], copy_to.id)).fetchone() is None:
            _copy(tx, row["message"], copy_to, now)
        if not changed:
            continue
        ask_holders.follow(tx, row["message"])
        moved += 1
        places.add(row["conversation"])
        tx.facts.append(EnvelopeRouted(now, row["id"], row["recipient"]))
        if row["arrived"] is not None and to.id == tx.cache.reach().boss:
            box = tx.execute(_OF_RECIPIENT, (row["message"], to.id)).fetchone()
            forwarding.arrived(tx, box["id"], now)
    for conversation in sorted(places):
        conversation_routes.enter(tx, conversation, to.id)
    if moved:
        tx.arrived_for.append(to.id)
    return moved


def _give(tx: Tx, row: Row, to: LiveAddress, now: int) -> bool:
    """Give one envelope to somebody else; False: it stays.

    If that one has a copy, they change places. If it has the message in the place of another agent, it
    deals with it once, and this one becomes a copy; but not if it has given that up.
    """
    number, message, was = row["id"], row["message"], row["routed_from"] or row["recipient"]
    had = tx.execute(_OF_RECIPIENT, (message, to.id)).fetchone()
    before = _address(tx, row["recipient"])
    whose = None if was == to.id else was
    if had is None:
        envelopes.reroute(tx, number, to, whose, now)
        if before is not None and before.address.kind == "user":  # a person keeps what she got
            envelopes.swap_forwards(tx, message, number, _copy(tx, message, before, now))
        return True
    if had["routed_from"] != to.id:
        if had["status"] in (Status.FAILED, Status.CANCELLED) or before is None:
            return False
        envelopes.reroute(tx, number, before, before.id, now)
        return True
    holder = before or LiveAddress(row["recipient"], to.address)
    # A message has one envelope for a recipient: the copy stands aside for a moment, where there is none.
    aside = tx.execute(
        "SELECT id FROM address WHERE id NOT IN (SELECT recipient FROM envelope WHERE message = ?) LIMIT 1",
        (message,),
    ).fetchone()["id"]
    envelopes.reroute(tx, had["id"], LiveAddress(aside, holder.address), aside, now)
    envelopes.reroute(tx, number, to, whose, now)
    envelopes.reroute(tx, had["id"], holder, holder.id, now)
    envelopes.swap_forwards(tx, message, number, had["id"])
    return True


def _address(tx: Tx, number: int) -> LiveAddress | None:
    """Return somebody who is not deleted."""
    row = tx.execute(
        "SELECT kind, name FROM address WHERE id = ? AND retired_at IS NULL", (number,)
    ).fetchone()
    return None if row is None else LiveAddress(number, Address(row["kind"], row["name"]))


def _copy(tx: Tx, message: int, reader: LiveAddress, now: int) -> int:
    return envelopes.insert(
        tx, message, reader, None, Priority.NORMAL, None, now, context=True, routed_from=reader.id
    )
