"""Where it is shown that somebody types: in the chats where a message of theirs would be posted now."""

from __future__ import annotations

from ..core.address import BOSS
from ..core.envelope import Lane
from . import breaker, forwarding, recipients
from .connection import Connection, Row
from .live_posts import Target, place_name

LOOKED_THROUGH = 50  # the last messages of the conversation, for the account that the other one wrote by


def takes_part(connection: Connection, address: int, conversation: int) -> bool:
    """Tell whether somebody is in a conversation, or got it from an agent that is."""
    row = connection.execute(
        """
        SELECT 1 FROM participant WHERE conversation = ?1 AND address = ?2 AND left_seq IS NULL
        UNION ALL SELECT 1 FROM conversation_route WHERE conversation = ?1 AND destination = ?2
        """,
        (conversation, address),
    ).fetchone()
    return row is not None


def targets(connection: Connection, who: int, conversation: int) -> list[Target]:
    """Return the chats in which to show that somebody types. Only those that they may post to."""
    typist = connection.execute(
        """
        SELECT a.kind, a.fold, ifnull(r.agent, a.id) AS speaker FROM address a
        LEFT JOIN conversation_route r ON r.conversation = ?2 AND r.destination = a.id WHERE a.id = ?1
        """,
        (who, conversation),
    ).fetchone()
    rows = connection.execute(
        """
        SELECT a.id, a.kind, a.fold FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.left_seq IS NULL AND a.retired_at IS NULL AND a.id <> ? ORDER BY a.id
        """,
        (conversation, who),
    ).fetchall()
    found = [_lane(connection, typist, one, conversation) for one in rows]
    made = [_target(connection, lane) for lane in found if lane is not None]
    return [one for one in made if one is not None]


def _lane(connection: Connection, typist: Row, other: Row, conversation: int) -> Lane | None:
    """Return by which account the other one is reached, and in which chat; None: in none."""
    asked = _last_message(connection, conversation, other["id"])
    if other["kind"] == "channel":
        if typist["kind"] == "agent" and breaker.get(connection) is not None:
            return None  # it may post to nobody but the boss
        for_all = typist["fold"] == BOSS.fold
        account = recipients.account_for(connection, typist["speaker"], other["id"], asked, for_all=for_all)
        return None if account is None else Lane(other["id"], account[0])
    if other["fold"] == BOSS.fold and typist["kind"] == "agent":
        return forwarding.answer_place(connection, typist["speaker"], asked)
    return None


def _last_message(connection: Connection, conversation: int, sender: int) -> int | None:
    row = connection.execute(
        """
        SELECT id FROM (SELECT id, sender FROM message INDEXED BY message_seq
                        WHERE conversation = ?1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT ?3)
        WHERE sender = ?2 LIMIT 1
        """,
        (conversation, sender, LOOKED_THROUGH),
    ).fetchone()
    return None if row is None else int(row["id"])


def _target(connection: Connection, lane: Lane) -> Target | None:
    row = connection.execute(
        """
        SELECT a.name, p.contact FROM place p JOIN address a ON a.id = p.address
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE p.address = ? AND p.binding = ? AND p.gone_at IS NULL
        """,
        (lane.address, lane.binding),
    ).fetchone()
    return None if row is None else Target(lane, place_name(row["name"]), row["contact"])
