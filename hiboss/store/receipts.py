"""What is known of how far envelopes got: their rows, the runs that had them, their posts and forwards.

It only reads. What of it somebody is told, and in which words, is in hiboss/api/receipts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.envelope import Lane, Status
from . import lanes
from .connection import Connection, Row

Facts = dict[str, Any]  # the columns of an envelope, and of its message


class Posts(NamedTuple):
    """The chunks of an envelope for a channel: how many are planned and posted, and when."""

    planned: int = 0
    posted: int = 0
    first: int | None = None
    last: int | None = None
    taken_back: int | None = (
        None  # when the last of them was taken back; None: one of them stands, or none was
    )


class Known(NamedTuple):
    """All that is known of one envelope."""

    envelope: Facts
    run: Row | None = None  # the last run of its recipient that had it
    session_turn: Row | None = None  # the last turn of an open session that was told of it
    posts: Posts = Posts()
    forwards: Sequence[Row] = ()  # the envelopes that post it to chats of the boss
    lane: Row | None = None  # of what is due: the line it stands in, if that waits or is paused


def of_envelopes(connection: Connection, numbers: Sequence[int]) -> list[Known]:
    """Return what is known of these envelopes, in this order; unknown ids are left out."""
    if not numbers:
        return []
    rows = {row["id"]: row for row in _envelopes(connection, numbers)}
    runs: dict[int, Row] = {}
    turns: dict[int, Row] = {}
    for row in _runs(connection, numbers):
        runs[row["envelope"]] = row
        if row["attached"] is not None and row["submitted_at"] is not None:
            turns[row["envelope"]] = row
    posts = _posts(connection, [number for number, row in rows.items() if row["binding"] is not None])
    forwards: dict[int, list[Row]] = {}
    for row in _forwards(connection, {row["message"] for row in rows.values()}):
        forwards.setdefault(row["forwards"], []).append(row)
    return [
        Known(
            envelope=rows[one],
            run=runs.get(one),
            session_turn=turns.get(one),
            posts=posts.get(one, Posts()),
            forwards=tuple(forwards.get(one, ())),
            lane=_lane(connection, rows[one]),
        )
        for one in numbers
        if one in rows
    ]


def _lane(connection: Connection, row: Facts) -> Row | None:
    """Return the lane of a due envelope, or its account, if that waits or is paused."""
    if row["status"] != Status.PENDING or row["arrived"] is None:
        return None
    if row["waits"] is not None or row["held_by"] is not None:
        return None
    lane = Lane(row["recipient"], row["binding"])
    for one in (lane, lane.account) if lane.binding is not None else (lane,):
        found = lanes.get(connection, one)
        if found is not None and found["state"] in ("waiting", "paused"):
            return found
    return None


def _envelopes(connection: Connection, numbers: Sequence[int]) -> list[Facts]:
    cursor = connection.execute(
        f"""
        SELECT e.id, e.message, e.recipient, e.binding, e.status, e.box, e.arrived, e.waits, e.wait_until,
               e.held_by, e.claim, e.handovers, e.handed_at, e.attempts, e.unconfirmed, e.error_kind,
               e.error_text, e.error_at, e.done_at, e.read_at, e.acked_at, e.ack_by, e.snoozed_until,
               e.context, e.forwards, e.routed_from, m.sender, m.created_at, m.deliver_at, m.arrived_at,
               r.kind AS recipient_kind, r.kind || ':' || r.name AS recipient_address,
               (SELECT f.kind || ':' || f.name FROM address f
                WHERE f.id = e.routed_from AND f.id <> e.recipient) AS routed_from_address
        FROM envelope e JOIN message m ON m.id = e.message JOIN address r ON r.id = e.recipient
        WHERE e.id IN ({",".join("?" * len(numbers))})
        """,
        tuple(numbers),
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _runs(connection: Connection, envelopes: Sequence[int]) -> list[Row]:
    """Return the runs of the recipients that had these envelopes, oldest first."""
    # Of the recipient: what was routed on had runs of the one before it, too.
    return connection.execute(
        f"""
        SELECT x.envelope, r.id, r.status, r.attached, r.submitted_at, r.held_at, r.seen_at
        FROM run_envelope x INDEXED BY run_envelope_envelope JOIN run r ON r.id = x.run
        JOIN envelope e ON e.id = x.envelope AND e.recipient = r.agent
        WHERE x.envelope IN ({",".join("?" * len(envelopes))}) ORDER BY r.id
        """,
        tuple(envelopes),
    ).fetchall()


def _posts(connection: Connection, envelopes: Sequence[int]) -> dict[int, Posts]:
    if not envelopes:
        return {}
    rows = connection.execute(
        f"""
        SELECT envelope, count(*), count(posted_at), min(posted_at), max(posted_at),
               iif(count(deleted_at) = count(posted_at), max(deleted_at), NULL)
        FROM post WHERE envelope IN ({",".join("?" * len(envelopes))}) GROUP BY envelope
        """,
        tuple(envelopes),
    )
    return {row[0]: Posts(*row[1:]) for row in rows.fetchall()}


def _forwards(connection: Connection, messages: set[int]) -> list[Row]:
    return connection.execute(
        f"""
        SELECT e.id, e.forwards, e.addressed, a.kind || ':' || a.name AS address
        FROM envelope e INDEXED BY envelope_message JOIN address a ON a.id = e.recipient
        WHERE e.message IN ({",".join("?" * len(messages))}) AND e.forwards IS NOT NULL ORDER BY e.id
        """,
        tuple(messages),
    ).fetchall()
