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
from . import agent_routing, conversations, notices, places
from .connection import Connection, Row
from .group_commit import Tx
from .intake import ACT, as_it_came
from .speakers import speaker
from .writer_cache import LiveAddress


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
    return Order(
        number=number,
        binding=binding,
        command=inbound.command or "",
        arguments=inbound.arguments,
        where=str(where),
        agents=agents,
        conversations=_conversations(tx, who.sender, agents),
        boss=chief["address"],
        place=Lane(entry.id, binding) if entry is not None and who.place is not None else None,
    )


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


def end(tx: Tx, order: Order, answer: str, now: int) -> None:
    """Store that a command was carried out, and answer the boss; nothing if that was done already."""
    kept = json.dumps({"command": order.command, "arguments": order.arguments})
    row = tx.execute(
        """
        UPDATE platform_update SET outcome = 'command', raw = ?, error = NULL
        WHERE id = ? AND outcome IS NULL RETURNING id
        """,
        (kept, order.number),
    ).fetchone()
    if row is not None:
        notices.answer_command(tx, order.place, answer, now)
