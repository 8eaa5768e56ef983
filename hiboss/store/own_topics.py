"""Topics that agents have in private chats of the boss, and the chats that are his.

What an agent with a topic of its own sends to the boss is posted in that topic (`topics.of_agent`), and what
he writes there goes to it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS, Address
from ..core.contracts.failures import TOPIC_NOT_FOUND
from ..core.envelope import Lane
from ..core.escaping import quote
from . import envelopes, lanes, notices
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


def missing(connection: Connection | Tx, binding: int) -> list[Row]:
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
                          AND p.address IS NOT c.address AND p.gone_at IS NULL)
        ORDER BY c.id, ba.leads DESC, a.id
        """,
        (binding,),
    ).fetchall()


def add(tx: Tx, binding: int, wanted: Row, topic: str, now: int) -> None:
    """Store the topic that was made for an agent. What waits for the one that it had before goes there."""
    gone = _gone(tx, binding, wanted)
    for one in gone:  # before a new place of this chat waits for what the others are told to wait for
        go_on(tx, one, now)
    address = Address("channel", f"{wanted['adapter']}:{wanted['chat']}/{topic}")
    entry = tx.cache.live_address(address) or tx.cache.add_address(address)
    add_place(tx, entry.id, binding, wanted["contact"], now)
    tx.execute(
        "UPDATE place SET agent = ?, gone_at = NULL WHERE address = ? AND binding = ?",
        (wanted["agent"], entry.id, binding),
    )
    for one in gone:
        _move(tx, one, entry.id)


def _gone(tx: Tx, binding: int, wanted: Row) -> list[Lane]:
    """Return the topics of an agent in a chat of the boss that are gone."""
    rows = tx.execute(
        """
        SELECT address FROM place WHERE contact = ? AND binding = ? AND agent = ? AND gone_at IS NOT NULL
        ORDER BY address
        """,
        (wanted["contact"], binding, wanted["agent"]),
    ).fetchall()
    return [Lane(row["address"], binding) for row in rows]


def go_on(tx: Tx, lane: Lane, now: int) -> None:
    """Let what waits for a topic that was to be made again wait no more."""
    state = lanes.get(tx, lane)
    if state is not None and state["error_kind"] == TOPIC_NOT_FOUND:
        lanes.reopen(tx, lane, now)
    tx.posts_for.append(lane)


def _move(tx: Tx, old: Lane, new: int) -> None:
    """Give all that waits for one topic to another, in its order, also what is partly posted."""
    if old.address == new:
        return
    lane = Lane(new, old.binding)
    envelopes.readdress(tx, old.address, new, "binding = ?3 AND status = 0 AND held_by IS NULL", old.binding)
    state = lanes.get(tx, old)
    partly = None if state is None else state["partly_posted"]
    if partly is not None and lanes.present(tx, old, partly) == lane:
        tx.execute("UPDATE lane SET partly_posted = NULL WHERE partly_posted = ?", (partly,))
        lanes.note_partly_posted(tx, lane, partly)
    tx.execute("UPDATE place SET agent = NULL WHERE address = ? AND binding = ?", old)
    tx.posts_for.append(lane)


def give_up(tx: Tx, binding: int, wanted: Row, why: str, now: int) -> None:
    """An agent cannot have a topic of its own there: it goes on without one, and the boss is told.

    What waits for one that it had goes to the chat.
    """
    for one in _gone(tx, binding, wanted):
        go_on(tx, one, now)
    tx.execute(
        "UPDATE binding_agent SET own_topic = 0 WHERE binding = ? AND agent = ?", (binding, wanted["agent"])
    )
    text = (
        f"agent:{wanted['name']} has no topic of its own: {quote(why)}\n"
        f"Then bind agent:{wanted['name']} to {wanted['adapter']} again, as before and with --topic."
    )
    notices.notify(tx, BOSS, text, now)
