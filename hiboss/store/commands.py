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
from . import conversations, notices, places
from .connection import Connection, Row
from .group_commit import Tx
from .intake import ACT
from .speakers import speaker


class Order(NamedTuple):
    """A command of the boss, and the chat where he gave it."""

    number: int  # of the update
    binding: int
    command: str
    arguments: str  # provisional: no command has any yet
    where: str  # the address of the chat or topic
    conversation: int | None  # of this chat with the agents of the binding; None: there is none yet
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
        raw = json.dumps(json.loads(row["raw"])["raw"], separators=(",", ":"))
        # A space: it must not look like one that acts.
        tx.execute("UPDATE platform_update SET raw = ? WHERE id = ?", (f" {raw}", number))
        return None
    where = Address("channel", f"{adapter}:{inbound.place}")
    entry = tx.cache.live_address(where)
    return Order(
        number=number,
        binding=binding,
        command=inbound.command or "",
        arguments=inbound.arguments,
        where=str(where),
        conversation=_conversation(tx, (who.sender, *who.to)),
        boss=chief["address"],
        place=Lane(entry.id, binding) if entry is not None and who.place is not None else None,
    )


def _conversation(tx: Tx, parties: tuple[Address, ...]) -> int | None:
    entries = [tx.cache.live_address(one) for one in parties]
    key = conversations.key(one.id for one in entries if one is not None)
    row = tx.execute("SELECT id FROM conversation WHERE key = ?", (key,)).fetchone()
    return None if row is None or None in entries else int(row["id"])


def runs(connection: Connection, order: Order) -> list[Row]:
    """Return the runs of the binding's agents that work for the conversation of the chat."""
    return connection.execute(
        """
        SELECT r.id, a.name FROM run r INDEXED BY run_running JOIN address a ON a.id = r.agent
        JOIN binding_agent ba ON ba.agent = r.agent AND ba.binding = ?
        WHERE r.status = 'running' AND ? IN (r.conversation, r.reply_conversation) ORDER BY r.id
        """,
        (order.binding, order.conversation),
    ).fetchall()


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
