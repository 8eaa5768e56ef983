"""Forwards: what arrives for the boss is also posted to a chat of his.

A forward is one more envelope of the same message: its recipient is the chat, and `forwards` names the
envelope in the boss's box. It goes to the chat where he asked what the message answers; else to the
place of `boss.reach`, if `boss.forward` says so. The mail itself is in the box, so a forward that fails
loses nothing. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import Address
from ..core.envelope import Lane, Priority, Status
from . import envelopes, topics
from .accounts import SAME_ACCOUNT
from .connection import Connection, Row
from .group_commit import Tx
from .stray_forwards import WAITING
from .writer_cache import LiveAddress


def arrived(tx: Tx, box: int, now: int) -> None:
    """Forward what arrived in the boss's box, if it is to be posted to a chat of his.

    It is not posted where it was written, nor twice.
    """
    row = tx.execute("SELECT message, priority FROM envelope WHERE id = ?", (box,)).fetchone()
    place = place_of(tx, box)
    if place is not None:
        to_place(tx, box, row["message"], Priority(row["priority"]), place, now)


def place_of(tx: Tx, box: int) -> Lane | None:
    """Return to which chat of the boss something in his box is to be posted; None: to none."""
    row = tx.execute(
        """
        SELECT e.priority, m.sender, m.reply_to, asked.place AS asked_at, m.place AS written_at
        FROM envelope e JOIN message m ON m.id = e.message LEFT JOIN message asked ON asked.id = m.reply_to
        WHERE e.id = ?
        """,
        (box,),
    ).fetchone()
    asked_at = _asked_at(tx, row["reply_to"], row["asked_at"], row["sender"])
    place = asked_at or reached(tx, row["priority"], row["sender"])
    return place if place is not None and place.address != row["written_at"] else None


def to_place(tx: Tx, box: int, message: int, priority: Priority, place: Lane, now: int) -> None:
    """Forward what is in the boss's box to this chat of his; not if it was posted there before."""
    earlier = _posted(tx, message, place)
    if any(one["status"] != Status.CANCELLED or one["addressed"] for one in earlier):
        return
    tx.posts_for.append(place)
    for one in earlier:
        if one["recipient"] == place.address:  # it was cancelled when this chat was not his any more
            envelopes.forward_again(tx, one["id"], place, now)
            return
    name = tx.execute("SELECT kind, name FROM address WHERE id = ?", (place.address,)).fetchone()
    chat = LiveAddress(place.address, Address(*name))
    # Notices have a priority of their own in boxes only: a lane of a channel does not look for it.
    shown = Priority.NORMAL if priority == Priority.NOTICE else priority
    envelopes.insert(tx, message, chat, place.binding, shown, None, now, forwards=box)


def reached(tx: Tx, priority: int, sender: int) -> Lane | None:
    """Return the place of `boss.reach`, or the sender's topic there, if mail of this priority is posted."""
    reach = tx.cache.reach()
    important = priority in (Priority.CRITICAL, Priority.HIGH, Priority.NOTICE)
    wanted = reach.forward == "all" or (reach.forward == "important" and important)
    return topics.of_agent(tx, sender, reach.place) if wanted and reach.place is not None else None


def _asked_at(tx: Tx | Connection, message: int | None, place: int | None, agent: int) -> Lane | None:
    """Return the lane by which the boss's question came in, if it is still a chat of his.

    If that was a topic that is gone: the topic that the agent has in that chat now.
    """
    if place is None:
        return None
    row = tx.execute(
        f"""
        SELECT p.address, p.binding, p.gone_at FROM platform_update u
        JOIN place p ON p.address = ? AND p.binding IN {SAME_ACCOUNT.format("u.binding")}
        JOIN contact c ON c.id = p.contact AND c.state = 'boss'
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE u.message = ?
        """,
        (place, message),
    ).fetchone()
    if row is None:
        return None
    lane = Lane(row["address"], row["binding"])
    return lane if row["gone_at"] is None else topics.of_agent(tx, agent, lane)


def _posted(tx: Tx, message: int, place: Lane) -> list[Row]:
    """Return the envelopes by which a message was posted to this place or forwarded before."""
    return tx.execute(
        """
        SELECT id, recipient, status, addressed OR forwards IS NULL AS addressed FROM envelope
        WHERE message = ? AND (recipient = ? OR forwards IS NOT NULL)
        """,
        (message, place.address),
    ).fetchall()


def answer_place(connection: Connection | Tx, agent: int, reply_message: int | None) -> Lane | None:
    """Return where an agent's answer to this message is forwarded, if it is for the boss; None: nowhere."""
    asked = connection.execute("SELECT place FROM message WHERE id = ?", (reply_message,)).fetchone()
    there = _asked_at(connection, reply_message, asked["place"], agent) if asked else None
    if there is not None:
        return there
    row = connection.execute(
        "SELECT reach, reach_by FROM user WHERE boss = 1 AND forward = 'all' AND reach IS NOT NULL"
    ).fetchone()
    return None if row is None else topics.of_agent(connection, agent, Lane(row["reach"], row["reach_by"]))


# --- boss.reach ----------------------------------------------------------------------


def places(connection: Connection | Tx, address: int) -> list[Lane]:
    """Return by which accounts a private chat can be reached: those that may post to it."""
    rows = connection.execute(
        """
        SELECT p.address, p.binding FROM place p
        JOIN contact c ON c.id = p.contact AND c.state IN ('allowed', 'boss') AND c.kind = 'private'
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE p.address = ? ORDER BY p.binding
        """,
        (address,),
    ).fetchall()
    return [Lane(row["address"], row["binding"]) for row in rows]


def set_reach(tx: Tx, place: Lane | None, now: int) -> int:
    """Let mail for the boss be posted to a chat, which is then his; None: to no chat.

    The chat it was before is not his any more: somebody who named a wrong one must be able to mend it.
    What waits to be posted there is posted to the new one, if there is one. Return how much waited.
    """
    if place == tx.cache.reach().place:
        return 0
    old = tx.execute(
        """
        UPDATE contact SET state = iif(platform_id IN (SELECT i.platform_id FROM identity i JOIN binding b
                   ON b.adapter = i.adapter WHERE b.id = contact.binding), 'boss', 'allowed'), decided_at = ?
        WHERE state = 'boss' AND id IN (
            SELECT p.contact FROM user u JOIN place p ON p.address = u.reach AND p.binding = u.reach_by
            WHERE u.boss = 1) RETURNING id
        """,
        (now,),
    ).fetchone()
    tx.execute(
        "UPDATE user SET reach = ?, reach_by = ? WHERE boss = 1",
        (None, None) if place is None else (place.address, place.binding),
    )
    if place is not None:
        tx.execute(
            """
            UPDATE contact SET state = 'boss', decided_at = ?
            WHERE id = (SELECT contact FROM place WHERE address = ? AND binding = ?)
            """,
            (now, place.address, place.binding),
        )
    tx.cache.forget_reach()
    # What is in hand is not among them: `lanes.claim` looks at it if it could not be posted.
    waited = [] if old is None else tx.execute(WAITING, (old["id"],)).fetchall()
    for forward in waited:
        go_elsewhere(tx, forward["id"], forward["forwards"], now)
    return len(waited)


def go_elsewhere(tx: Tx, forward: int, box: int, now: int) -> None:
    """Cancel a forward whose chat is not the boss's any more, and forward the mail to where he is now."""
    envelopes.end(tx, forward, now)
    tx.execute("UPDATE lane SET partly_posted = NULL WHERE partly_posted = ?", (forward,))
    arrived(tx, box, now)


def set_forward(tx: Tx, forward: str) -> None:
    """Set what is posted there: all, important or off."""
    tx.execute("UPDATE user SET forward = ? WHERE boss = 1", (forward,))
    tx.cache.forget_reach()


def end_reach(tx: Tx, binding: int, now: int, chat: int | None = None) -> tuple[str, int] | None:
    """Forget the place of `boss.reach` if this account, or this chat of it, cannot be used any more.

    `chat`: the id of its contact. Return the address of the place, and how much waited to be posted
    there; None if it is another one.
    """
    row = tx.execute(
        """
        SELECT a.kind || ':' || a.name AS address FROM user u JOIN address a ON a.id = u.reach
        JOIN place p ON p.address = u.reach AND p.binding = u.reach_by
        WHERE u.boss = 1 AND u.reach_by = ?1 AND (?2 IS NULL OR p.contact = ?2)
        """,
        (binding, chat),
    ).fetchone()
    if row is None:
        return None
    return str(row["address"]), set_reach(tx, None, now)
