"""Topics that are gone, as the platform says: what is for one is posted to its chat, and says so in front.

An agent's own topic in a chat of the boss is made again (own_topics.py): what is for it waits for that, but
not long. What comes in from a topic shows that it is there. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.contracts.failures import TOPIC_NOT_FOUND
from ..core.envelope import Lane
from . import lanes, own_topics, posts
from .connection import Row
from .group_commit import Tx
from .lane_facts import tell_waiting

WAIT_MS = 60_000  # for a topic that is made again


class Lost(NamedTuple):
    """What becomes of what waits for a topic that is gone."""

    until: int | None  # it waits so long for the new topic; None: it goes to the chat now


def lost(tx: Tx, lane: Lane, envelope: int, now: int) -> Lost | None:
    """Note that a topic is gone: an envelope could not be posted there. None: it is no topic, or known."""
    row = tx.execute(
        """
        UPDATE place SET gone_at = (SELECT max(?3, ifnull(max(p.posted_at) + 1, 0)) FROM post p
                                    WHERE p.envelope = ?4)
        WHERE address = ?1 AND binding = ?2 AND gone_at IS NULL
          AND (SELECT c.address FROM contact c WHERE c.id = place.contact) <> ?1
        RETURNING contact, agent
        """,
        (lane.address, lane.binding, now, envelope),
    ).fetchone()
    if row is None:
        return None
    posts.plan_anew(tx, lane, envelope)
    if not _is_made_again(tx, lane, row):
        return Lost(None)
    chat = tx.execute("SELECT platform_id FROM contact WHERE id = ?", (row["contact"],)).fetchone()
    tx.chats_for.append((lane.binding or 0, chat["platform_id"]))
    return Lost(_hold(tx, lane, now))


def _is_made_again(tx: Tx, lane: Lane, place: Row) -> bool:
    missing = own_topics.missing(tx, lane.binding or 0)
    return any((one["contact"], one["agent"]) == (place["contact"], place["agent"]) for one in missing)


def _hold(tx: Tx, lane: Lane, now: int) -> int | None:
    """Let a lane wait for its new topic; return until when. The platform has answered: it does not fail."""
    text = "this topic is gone, and another one is made"
    row = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, wake_at, not_before, error_kind, error_text, error_at)
        VALUES (?1, ?2, 'waiting', ?3, ?3, ?4, ?5, ?6)
        ON CONFLICT ({lanes.PLACE}, {lanes.BINDING}) DO UPDATE SET
            state = iif(state = 'paused', state, 'waiting'), wake_at = iif(state = 'paused', NULL, ?3),
            not_before = ?3, failures = 0, first_failed_at = NULL, boss_told_at = NULL,
            error_kind = ?4, error_text = ?5, error_at = ?6
        RETURNING wake_at
        """,
        (lane.address, lane.binding, now + WAIT_MS, TOPIC_NOT_FOUND, text, now),
    ).fetchone()
    tell_waiting(tx, lane, row["wake_at"], now)
    return None if row["wake_at"] is None else int(row["wake_at"])


def is_there(tx: Tx, lane: Lane, now: int) -> None:
    """Note that a topic exists that was thought to be gone: something came in from it."""
    tx.execute("UPDATE place SET gone_at = NULL WHERE address = ? AND binding = ?", lane)
    posts.plan_anew(tx, lane)
    own_topics.go_on(tx, lane, now)
