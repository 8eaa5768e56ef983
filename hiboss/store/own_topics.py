"""Topics that agents have in private chats of the boss, and the chats that are his.

What an agent with a topic of its own sends to the boss is posted in that topic (`topics.of_agent`), and what
he writes there goes to it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS, Address
from ..core.envelope import Lane
from ..core.escaping import quote
from . import notices
from .connection import Connection, Row
from .group_commit import Tx
from .topics import add_place


def chats_of_boss(connection: Connection, binding: int) -> list[Row]:
    """Return the private chats of the boss that a binding posts to."""
    return connection.execute(
        """
        SELECT c.id, c.platform_id, c.address FROM contact c JOIN binding b ON b.id = c.binding
        WHERE c.binding = ? AND c.state = 'boss' AND b.removed_at IS NULL AND c.address IS NOT NULL
        ORDER BY c.id
        """,
        (binding,),
    ).fetchall()


def missing(connection: Connection, binding: int) -> list[Row]:
    """Return the topics that are wanted and not there: which agent, in which chat of the boss."""
    return connection.execute(
        """
        SELECT c.id AS contact, c.platform_id AS chat, a.id AS agent, a.name, b.adapter,
               ifnull(g.display, a.name) AS title
        FROM binding_agent ba JOIN binding b ON b.id = ba.binding AND b.removed_at IS NULL
        JOIN agent g ON g.address = ba.agent JOIN address a ON a.id = ba.agent AND a.retired_at IS NULL
        JOIN contact c ON c.binding = b.id AND c.state = 'boss'
        WHERE b.id = ? AND ba.own_topic
          AND NOT EXISTS (SELECT 1 FROM place p WHERE p.contact = c.id AND p.agent = ba.agent
                          AND p.address IS NOT c.address)
        ORDER BY c.id, ba.leads DESC, a.id
        """,
        (binding,),
    ).fetchall()


def add(tx: Tx, binding: int, wanted: Row, topic: str, now: int) -> None:
    """Store the topic that was made for an agent."""
    address = Address("channel", f"{wanted['adapter']}:{wanted['chat']}/{topic}")
    entry = tx.cache.live_address(address) or tx.cache.add_address(address)
    add_place(tx, entry.id, binding, wanted["contact"], now)
    tx.execute(
        "UPDATE place SET agent = ? WHERE address = ? AND binding = ?", (wanted["agent"], entry.id, binding)
    )


def lost(tx: Tx, lane: Lane) -> bool:
    """Forget a topic in a chat of the boss that is not there any more; return False if it is none.

    What is to be posted there goes to the chat, and an agent that had the topic gets a new one.
    """
    row = tx.execute(
        """
        DELETE FROM place WHERE address = ?1 AND binding = ?2
          AND contact IN (SELECT c.id FROM contact c WHERE c.state = 'boss' AND c.address <> ?1)
          AND NOT EXISTS (SELECT 1 FROM user u WHERE u.reach = ?1 AND u.reach_by = ?2)
        RETURNING contact
        """,
        (lane.address, lane.binding),
    ).fetchone()
    if row is None:
        return False
    chat = tx.execute("SELECT platform_id FROM contact WHERE id = ?", (row["contact"],)).fetchone()
    tx.chats_for.append((lane.binding or 0, chat["platform_id"]))
    return True


def give_up(tx: Tx, binding: int, wanted: Row, why: str, now: int) -> None:
    """An agent cannot have a topic of its own there: it goes on without one, and the boss is told."""
    tx.execute(
        "UPDATE binding_agent SET own_topic = 0 WHERE binding = ? AND agent = ?", (binding, wanted["agent"])
    )
    text = (
        f"agent:{wanted['name']} has no topic of its own: {quote(why)}\n"
        f"Then bind agent:{wanted['name']} to {wanted['adapter']} again, as before and with --topic."
    )
    notices.notify(tx, BOSS, text, now)
