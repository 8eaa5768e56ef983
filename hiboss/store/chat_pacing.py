"""Pacing belongs to the chat: a wait that the platform names in one topic holds all topics of that chat.

Each topic is a lane of its own (store/lanes.py), and each of them gets the wait. A lane that only waits
for another topic has no failures of its own. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from .connection import Connection
from .group_commit import Tx
from .lane_facts import tell_waiting
from .lane_index import BINDING, PLACE

_HOLD = f"""
    ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET
        state = CASE state WHEN 'paused' THEN 'paused' ELSE 'waiting' END,
        wake_at = CASE state WHEN 'paused' THEN NULL ELSE max(excluded.not_before, ifnull(wake_at, 0)) END,
        not_before = max(excluded.not_before, ifnull(not_before, 0)),
        error_kind = iif(failures, error_kind, excluded.error_kind),
        error_text = iif(failures, error_text, excluded.error_text),
        error_at = iif(failures, error_at, excluded.error_at)
"""


def chat_of(connection: Connection | Tx, lane: Lane) -> tuple[int | None, bool]:
    """Return the contact that a lane posts to, and whether it is a group or a channel; None: not known."""
    row = connection.execute(
        """
        SELECT c.id, c.kind FROM place p JOIN contact c ON c.id = p.contact
        WHERE p.address = ? AND p.binding = ?
        """,
        (lane.address, lane.binding),
    ).fetchone()
    return (None, False) if row is None else (row["id"], row["kind"] != "private")


def hold(tx: Tx, lane: Lane, failure: Failure, until: int, now: int, *, itself: bool = False) -> None:
    """Let the other topics of a chat wait too: a time that the platform names counts for the whole chat.

    `itself`: this one too. It was named for something that is no delivery, so nothing has failed.
    """
    rows = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, wake_at, not_before, error_kind, error_text, error_at)
        SELECT o.address, o.binding, 'waiting', ?3, ?3, ?4, ?5, ?6
        FROM place p JOIN place o ON o.contact = p.contact AND (?7 OR o.address <> p.address)
        WHERE p.address = ?1 AND p.binding = ?2
        {_HOLD} RETURNING address, binding, wake_at
        """,
        (lane.address, lane.binding, until, failure.kind, failure.text, now, itself),
    ).fetchall()
    for row in rows:
        tell_waiting(tx, Lane(row["address"], row["binding"]), row["wake_at"], now)


def share(tx: Tx, contact: int, now: int) -> None:
    """Let all topics of a chat wait that was two until now, if one of these was told to."""
    row = tx.execute(
        """
        SELECT l.* FROM place p JOIN lane l ON ifnull(l.address, 0) = p.address AND l.binding = p.binding
        WHERE p.contact = ? AND l.not_before > ? ORDER BY l.not_before DESC LIMIT 1
        """,
        (contact, now),
    ).fetchone()
    if row is not None:
        failure = Failure(row["error_kind"] or "waits", row["error_text"] or "")
        hold(tx, Lane(row["address"], row["binding"]), failure, row["not_before"], now)


def merge(tx: Tx, gone: int, kept: int) -> None:
    """Give the lanes of one address to another: where both have one, the stricter state counts."""
    tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, wake_at, not_before, tried_at, failures, first_failed_at,
                          error_kind, error_text, error_at, boss_told_at, partly_posted)
        SELECT ?2, binding, state, wake_at, not_before, tried_at, failures, first_failed_at,
               error_kind, error_text, error_at, boss_told_at,
               (SELECT id FROM envelope WHERE id = partly_posted AND recipient = ?2)
        FROM lane WHERE address = ?1
        ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET
            state = CASE WHEN 'paused' IN (state, excluded.state) THEN 'paused'
                         WHEN 'waiting' IN (state, excluded.state) THEN 'waiting' ELSE 'open' END,
            wake_at = CASE
                WHEN 'paused' IN (state, excluded.state) THEN NULL
                WHEN 'waiting' IN (state, excluded.state)
                THEN max(ifnull(wake_at, 0), ifnull(excluded.wake_at, 0),
                         ifnull(not_before, 0), ifnull(excluded.not_before, 0)) END,
            not_before = nullif(max(ifnull(not_before, 0), ifnull(excluded.not_before, 0)), 0),
            failures = max(failures, excluded.failures),
            first_failed_at = iif(excluded.failures > failures, excluded.first_failed_at, first_failed_at),
            error_kind = iif(excluded.failures > failures, excluded.error_kind,
                             ifnull(error_kind, excluded.error_kind)),
            error_text = iif(excluded.failures > failures, excluded.error_text,
                             ifnull(error_text, excluded.error_text)),
            error_at = iif(excluded.failures > failures, excluded.error_at,
                           ifnull(error_at, excluded.error_at)),
            boss_told_at = iif(excluded.failures > failures, excluded.boss_told_at, boss_told_at),
            tried_at = max(ifnull(tried_at, 0), ifnull(excluded.tried_at, 0)),
            partly_posted = ifnull(partly_posted, excluded.partly_posted)
        """,
        (gone, kept),
    )
    tx.execute("DELETE FROM lane WHERE address = ?", (gone,))


def follow(tx: Tx, lane: Lane, now: int) -> None:
    """Let a new topic of a chat wait if the chat was told to. Called when its place is stored."""
    row = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, wake_at, not_before, error_kind, error_text, error_at)
        SELECT p.address, p.binding, 'waiting', l.not_before, l.not_before, l.error_kind, l.error_text,
               l.error_at
        FROM place p JOIN place o ON o.contact = p.contact AND o.address <> p.address
        JOIN lane l ON ifnull(l.address, 0) = o.address AND ifnull(l.binding, 0) = o.binding
        WHERE p.address = ?1 AND p.binding = ?2 AND l.not_before > ?3
        ORDER BY l.not_before DESC LIMIT 1
        {_HOLD} RETURNING wake_at
        """,
        (lane.address, lane.binding, now),
    ).fetchone()
    if row is not None:
        tell_waiting(tx, lane, row["wake_at"], now)
