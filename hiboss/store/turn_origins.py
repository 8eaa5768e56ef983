"""Where people wrote what an agent works on, and what waits for it: signs and notes are shown there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.envelope import Lane
from .connection import Connection, Row
from .group_commit import Tx
from .live_posts import Target, place_name

LOOKED_THROUGH = 50  # of what waits for an agent
_ORIGIN = """
    SELECT {which}, a.name, a.id AS address, u.binding, p.contact, u.platform_id,
           m.id AS message
    FROM envelope e JOIN message m ON m.id = e.message AND m.context = 0
    JOIN platform_update u INDEXED BY platform_update_message
        ON u.message = m.id AND u.platform_id IS NOT NULL AND u.outcome IN ('accepted', 'edited')
    JOIN binding b ON b.id = u.binding AND b.removed_at IS NULL
    JOIN address a ON a.id = ifnull(m.place, m.sender)
    JOIN place p ON p.address = a.id AND p.binding = u.binding
"""


class Origin(NamedTuple):
    """Where a message was written that an agent works on, or that waits for it."""

    target: Target
    platform_id: str  # of the message, there
    message: int | None = None  # None: a command, which is no message


class Behind(NamedTuple):
    """The run that an agent's mail waits for."""

    run: int
    own: bool  # it is a run of that agent; else all places for runs are taken
    agent: str  # the name of the agent that has the mail


def origins(connection: Connection | Tx, envelopes: Sequence[int]) -> list[Origin]:
    """Return where the messages of these envelopes were written; none for what came by no channel."""
    marks = ",".join("?" * len(envelopes))
    # Of an album, the first part: SQLite takes the other columns from the row with the minimum.
    rows = connection.execute(
        f"{_ORIGIN.format(which='min(u.id)')} WHERE e.id IN ({marks}) GROUP BY e.id ORDER BY e.id",
        tuple(envelopes),
    ).fetchall()
    return [_origin(row) for row in rows]


def waiting(connection: Connection | Tx, agent: int, before: int) -> list[Origin]:
    """Return in which places people wait for an agent that has not begun with what they wrote.

    One for each place, with the last message there; not what arrived after `before`.
    """
    rows = connection.execute(
        f"""
        {_ORIGIN.format(which="max(e.id)")}
        WHERE e.id IN (
            SELECT id FROM envelope INDEXED BY envelope_due
            WHERE recipient = ?1 AND binding IS NULL AND status = 0 AND arrived IS NOT NULL AND waits IS NULL
              AND held_by IS NULL ORDER BY priority, arrived LIMIT {LOOKED_THROUGH})
          AND m.arrived_at <= ?2
        GROUP BY a.id, u.binding ORDER BY e.id
        """,
        (agent, before),
    ).fetchall()
    return [_origin(row) for row in rows]


def _origin(row: Row) -> Origin:
    lane = Lane(row["address"], row["binding"])
    target = Target(lane, place_name(row["name"]), row["contact"], row["platform_id"])
    return Origin(target, row["platform_id"], row["message"])


def behind(connection: Connection | Tx, agent: int, most: int) -> Behind | None:
    """Return the run that an agent's mail waits for: its own, or the first one if `most` runs are active.

    None: it waits for no run, or the agent gets no turns now.
    """
    rows = connection.execute(
        """
        SELECT r.id, r.agent = g.address AS own, a.name
        FROM agent g JOIN address a ON a.id = g.address JOIN run r INDEXED BY run_running
        WHERE g.address = ? AND g.paused_at IS NULL AND g.mode = 'run' AND r.status = 'running'
        ORDER BY own DESC, r.id
        """,
        (agent,),
    ).fetchall()
    if not rows or (not rows[0]["own"] and len(rows) < most):
        return None
    return Behind(rows[0]["id"], bool(rows[0]["own"]), rows[0]["name"])
