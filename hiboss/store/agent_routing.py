"""Which agent of a binding gets what comes in from a chat, and whether it is for an agent at all.

The first of these counts: the agent that wrote what it replies to; the agent that it names first, like
`@kai please`; the agent of its topic or chat; the agent that leads the binding. What takes a Tx runs inside
the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.contracts.inbound import Inbound
from .connection import Connection, Row
from .group_commit import Tx

_FIRST_WORDS = 2  # the account may be named before the agent: @nexbot @kai please


class Routed(NamedTuple):
    """Who gets something."""

    to: tuple[Address, ...]  # one agent; empty: the binding serves none any more
    context: bool = False  # it was said in a group, and is for nobody of us


def served(tx: Tx | Connection, binding: int) -> list[Row]:
    """Return the agents that a binding serves; the one that leads it is the first."""
    return tx.execute(
        """
        SELECT a.id, a.kind, a.name, a.fold, ba.leads, ba.own_topic FROM binding_agent ba
        JOIN address a ON a.id = ba.agent JOIN binding b ON b.id = ba.binding
        WHERE ba.binding = ? AND b.removed_at IS NULL AND a.retired_at IS NULL
        ORDER BY ba.leads DESC, ba.agent
        """,
        (binding,),
    ).fetchall()


def route(tx: Tx, binding: int, adapter: str, inbound: Inbound, writer: int | None) -> Routed:
    """Return who gets what came in. `writer`: who wrote what it replies to, by address id."""
    agents = served(tx, binding)
    if not agents:
        return Routed(())
    chosen = (
        next((one for one in agents if one["id"] == writer), None)
        or _named(agents, inbound.text)
        or _of_place(tx, binding, adapter, inbound, agents)
    )
    agent = chosen or agents[0]
    to = (Address(agent["kind"], agent["name"]),)
    return Routed(to, context=not _is_for_us(tx, binding, agents, inbound, writer))


def _named(agents: list[Row], text: str) -> Row | None:
    """Return the agent that a text names at its beginning."""
    for word in text.split(maxsplit=_FIRST_WORDS)[:_FIRST_WORDS]:
        if not word.startswith("@"):
            return None
        fold = f"agent:{word[1:].rstrip(',:;.!?')}".lower()
        for one in agents:
            if one["fold"] == fold:
                return one
    return None


def _of_place(tx: Tx, binding: int, adapter: str, inbound: Inbound, agents: list[Row]) -> Row | None:
    """Return the agent of a topic; of a topic that has none, that of its chat."""
    for place in dict.fromkeys((inbound.place, inbound.chat)):
        entry = tx.cache.live_address(Address("channel", f"{adapter}:{place}"))
        row = tx.execute(
            "SELECT agent FROM place WHERE address = ? AND binding = ?",
            (entry.id if entry else None, binding),
        ).fetchone()
        for one in agents:
            if row is not None and one["id"] == row["agent"]:
                return one
    return None


def _is_for_us(tx: Tx, binding: int, agents: list[Row], inbound: Inbound, writer: int | None) -> bool:
    """Tell whether something in a group is for an agent, by what the binding says of groups."""
    if inbound.chat_kind == "private":
        return True
    row = tx.execute("SELECT groups FROM binding WHERE id = ?", (binding,)).fetchone()
    replied = inbound.replied or any(one["id"] == writer for one in agents)
    if row["groups"] == "always" or replied:
        return True
    named = inbound.mentioned or inbound.kind == "command" or _named(agents, inbound.text) is not None
    return bool(row["groups"] == "mentioned" and named)
