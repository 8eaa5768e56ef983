"""Topics of chats: each is a place with an address of its own, and whether it may be used says the chat."""

from __future__ import annotations

from ..core.address import Address
from ..core.envelope import Lane
from . import chat_pacing
from .connection import Connection
from .group_commit import Tx
from .writer_cache import LiveAddress


def meet_topic(tx: Tx, address: Address, sender: LiveAddress, now: int) -> LiveAddress | None:
    """Store the place of a topic in which nobody has written yet, for somebody who may post to its chat.

    Return None if there is no such chat.
    """
    chat, _, topic = address.name.partition("/")
    whole = tx.cache.live_address(Address("channel", chat)) if topic else None
    if whole is None:
        return None
    rows = tx.execute(
        """
        SELECT c.id, c.binding FROM contact c JOIN binding b ON b.id = c.binding
        WHERE c.address = ?1 AND c.state IN ('allowed', 'boss') AND b.threads AND b.removed_at IS NULL
          AND (?2 OR EXISTS (SELECT 1 FROM binding_agent a WHERE a.binding = b.id AND a.agent = ?3))
        """,
        (whole.id, sender.address.kind == "user", sender.id),
    ).fetchall()
    if not rows:
        return None
    entry = tx.cache.add_address(address)
    for row in rows:
        add_place(tx, entry.id, row["binding"], row["id"], now)
    return entry


def add_place(tx: Tx, address: int, binding: int, contact: int, now: int) -> None:
    """Store that a binding receives and posts there; a new topic waits if its chat was told to."""
    cursor = tx.execute(
        "INSERT OR IGNORE INTO place (address, binding, contact) VALUES (?, ?, ?)",
        (address, binding, contact),
    )
    if cursor.rowcount:
        chat_pacing.follow(tx, Lane(address, binding), now)


def of_agent(tx: Tx | Connection, agent: int, lane: Lane) -> Lane:
    """Return the topic that an agent has in the chat of this place; the place itself if it has none.

    The chat itself can be the agent's too (`contacts.route`): that is no topic.
    """
    row = tx.execute(
        """
        SELECT own.address FROM place p JOIN place own ON own.contact = p.contact AND own.binding = p.binding
        JOIN contact c ON c.id = p.contact AND c.address IS NOT own.address
        JOIN binding_agent ba ON ba.binding = p.binding AND ba.agent = own.agent AND ba.own_topic
        WHERE p.address = ? AND p.binding = ? AND own.agent = ?
        ORDER BY own.gone_at IS NOT NULL, own.address LIMIT 1
        """,
        (lane.address, lane.binding, agent),
    ).fetchone()
    return lane if row is None else Lane(row["address"], lane.binding)
