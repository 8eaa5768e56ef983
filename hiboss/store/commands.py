"""Commands that the boss gives in a chat: whether one is his, what it is about, and what became of it.

Until it has been carried out the update waits (hiboss/store/intake.py), so that a daemon that died in
between carries it out after its next start. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

from ..core.address import Address
from ..core.contracts.inbound import Inbound
from ..core.envelope import Lane
from . import agent_routing, control_targets, conversations, notices, pairing, places
from .connection import Connection, Row
from .group_commit import Tx
from .intake import ACT, as_it_came
from .live_posts import Target
from .speakers import speaker
from .turn_origins import Origin
from .writer_cache import LiveAddress

LARGEST_ID = 2**63  # the numbers of runs are below


class Order(NamedTuple):
    """A command of the boss, and the chat where he gave it."""

    number: int  # of the update
    binding: int
    command: str
    arguments: str  # what follows the command
    where: str  # the address of the chat or topic
    agents: tuple[
        int, ...
    ]  # those it is about: of the topic, or all that the binding serves; the first leads
    conversations: tuple[int, ...]  # of this chat with them, as far as there are any
    boss: int  # his address id
    place: Lane | None  # where he is answered, if it is a chat of his; None: where his notices go
    given: Origin | None = None  # the message with the command, if it is in a chat of his


def begin(tx: Tx, binding: int, adapter: str, number: int, inbound: Inbound) -> Order | None:
    """Return what a command is about that the boss gave; None if there is nothing to carry out.

    What is not the boss's is an ordinary message: it is left to be digested.
    """
    waits = "SELECT raw FROM platform_update WHERE id = ? AND outcome IS NULL"
    row = tx.execute(waits, (number,)).fetchone()
    if row is None or not row["raw"].startswith(ACT):
        return None  # it was carried out, or left to be digested, meanwhile; or the binding has ended
    inbound = replace(inbound, chat=places.present_chat(tx, binding, inbound.chat))
    who = speaker(tx, binding, adapter, inbound, None)
    chief = tx.execute("SELECT address FROM user WHERE boss = 1").fetchone()
    if not who.from_boss or chief is None:
        tx.execute("UPDATE platform_update SET raw = ? WHERE id = ?", (as_it_came(row["raw"]), number))
        return None
    where = Address("channel", f"{adapter}:{inbound.place}")
    entry = tx.cache.live_address(where)
    agents = _agents(tx, binding, entry)
    place = Lane(entry.id, binding) if entry is not None and who.place is not None else None
    return Order(
        number=number,
        binding=binding,
        command=inbound.command or "",
        arguments=inbound.arguments,
        where=str(where),
        agents=agents,
        conversations=_conversations(tx, who.sender, agents),
        boss=chief["address"],
        place=place,
        given=_given(tx, place, inbound),
    )


def _given(tx: Tx, place: Lane | None, inbound: Inbound) -> Origin | None:
    """Return where a command stands in a chat of the boss."""
    if place is None or inbound.message is None:
        return None
    row = tx.execute("SELECT contact FROM place WHERE address = ? AND binding = ?", place).fetchone()
    if row is None:
        return None
    return Origin(Target(place, inbound.place, row["contact"]), inbound.message)


def _agents(tx: Tx, binding: int, place: LiveAddress | None) -> tuple[int, ...]:
    """Return the agents of a place: the one whose topic it is, or all of the binding."""
    own = tx.execute(
        "SELECT agent FROM place WHERE address = ? AND binding = ? AND agent IS NOT NULL",
        (place.id if place else None, binding),
    ).fetchone()
    served = [int(one["id"]) for one in agent_routing.served(tx, binding)]
    return (own["agent"],) if own is not None and own["agent"] in served else tuple(served)


def _conversations(tx: Tx, sender: Address, agents: tuple[int, ...]) -> tuple[int, ...]:
    entry = tx.cache.live_address(sender)
    keys = [conversations.key((entry.id, one)) for one in agents] if entry is not None else []
    rows = tx.execute(f"SELECT id FROM conversation WHERE key IN ({','.join('?' * len(keys))})", keys)
    return tuple(int(row["id"]) for row in rows)


def runs(connection: Connection, order: Order) -> list[Row]:
    """Return the runs of the binding's agents that work for the conversation of the chat."""
    rows = connection.execute(
        """
        SELECT r.id, r.agent, a.name, r.conversation, r.reply_conversation
        FROM run r INDEXED BY run_running JOIN address a ON a.id = r.agent
        WHERE r.status = 'running' ORDER BY r.id
        """
    ).fetchall()
    ours = {*order.conversations}
    return [
        one
        for one in rows
        if one["agent"] in order.agents and ours & {one["conversation"], one["reply_conversation"]}
    ]


def held(connection: Connection, order: Order) -> list[Row]:
    """Return the runs of them that have ended in a pause: what they worked on waits for the resume."""
    found = {
        row["id"]: row
        for one in order.conversations
        for row in control_targets.held(connection, control_targets.WORKS_IN, one)
        if row["agent"] in order.agents
    }
    return [found[number] for number in sorted(found)]


def stopped_before(connection: Connection, order: Order, why: str) -> list[Row]:
    """Return the runs that a command has cancelled already: the daemon died before that was noted."""
    return connection.execute(
        """
        SELECT r.id, a.name FROM platform_update u JOIN run r ON r.ended_at >= u.received_at
        JOIN address a ON a.id = r.agent
        WHERE u.id = ? AND r.cancelled_by = ? AND r.cancelled_why = ? AND r.status = 'cancelled' ORDER BY r.id
        """,
        (order.number, order.boss, why),
    ).fetchall()


def end(tx: Tx, order: Order, answer: str, now: int) -> None:
    """Store that a command was carried out, and answer the boss; nothing if that was done already."""
    kept = json.dumps({"command": order.command, "arguments": order.arguments})
    if _carried_out(tx, order.number, kept):
        notices.answer_command(tx, order.place, answer, now)


def _carried_out(tx: Tx, number: int, kept: str) -> bool:
    row = tx.execute(
        """
        UPDATE platform_update SET outcome = 'command', raw = ?, error = NULL
        WHERE id = ? AND outcome IS NULL RETURNING id
        """,
        (kept, number),
    ).fetchone()
    return row is not None


# --- a press on the Stop of an answer that grows -----------------------------------------


class Stop(NamedTuple):
    """Somebody stopped an answer while it grew in a chat of theirs."""

    number: int  # of the update
    runs: tuple[int, ...]  # that work on that answer now
    by: int  # the address id of who did it
    boss: bool  # it was the boss
    where: str  # the address of the chat
    place: Lane


def begin_stop(tx: Tx, binding: int, adapter: str, number: int, inbound: Inbound) -> Stop | None:
    """Return what a press on Stop is about; None if there is nothing to do, which is then stored.

    In a private chat the boss stops any answer that is shown to him, and others those to what they wrote.
    After a restart the run has another number: it is found by what it works on.
    """
    waits = "SELECT 1 FROM platform_update WHERE id = ? AND outcome IS NULL"
    if tx.execute(waits, (number,)).fetchone() is None:
        return None
    inbound = replace(inbound, chat=places.present_chat(tx, binding, inbound.chat))
    who = speaker(tx, binding, adapter, inbound, None)
    place = Address("channel", f"{adapter}:{inbound.place}")
    entry, sender = tx.cache.live_address(place), tx.cache.live_address(who.sender)
    found: tuple[int, ...] = ()
    if entry is not None and sender is not None and inbound.chat_kind == "private":
        found = _growing(tx, inbound.draft or 0, None if who.from_boss else entry.id)
    if not found or entry is None or sender is None:
        tx.execute("UPDATE platform_update SET outcome = 'ignored', raw = NULL WHERE id = ?", (number,))
        return None
    return Stop(number, found, sender.id, who.from_boss, str(place), Lane(entry.id, binding))


def _growing(tx: Tx, run: int, writer: int | None) -> tuple[int, ...]:
    """Return the runs that work on the same as this one; with `writer`, if it was written in this place."""
    if not 0 < run < LARGEST_ID:
        return ()
    rows = tx.execute(
        """
        SELECT DISTINCT r.id FROM run o JOIN run_envelope y ON y.run = o.id
        JOIN run_envelope z INDEXED BY run_envelope_envelope ON z.envelope = y.envelope
        JOIN run r ON r.id = z.run AND r.status = 'running'
        WHERE o.id = ?1 AND o.status IN ('running', 'interrupted') AND (?2 IS NULL OR EXISTS (
            SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
            JOIN message m ON m.id = e.message WHERE x.run = o.id AND ?2 IN (m.sender, m.place)))
        ORDER BY r.id
        """,
        (run, writer),
    ).fetchall()
    return tuple(int(row["id"]) for row in rows)


def end_stop(tx: Tx, stop: Stop, answer: str, now: int) -> None:
    """Store that a press on Stop was carried out, and answer it in its chat."""
    if not _carried_out(tx, stop.number, json.dumps({"stop": stop.runs})) or not answer:
        return
    if stop.boss:
        notices.answer_command(tx, stop.place, answer, now)
    else:
        pairing.post(tx, stop.place, "Stopped.", now)
