"""Due envelopes, in the order in which they are claimed.

By priority, then by arrival. After it has waited 15 minutes, every envelope counts as critical.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import SYSTEM
from ..core.envelope import Lane, Priority
from .connection import Connection
from .envelopes import NEXT_START
from .group_commit import Tx

CRITICAL_AFTER_MS = 15 * 60 * 1000
LOOKED_THROUGH = 1_000  # rows of each priority when one conversation is asked for: bounds the cost of a turn


class Due(NamedTuple):
    id: int
    conversation: int
    leads: bool = False  # it leads the next turn of its agent, whatever else is due


def due(
    connection: Connection | Tx,
    recipient: int,
    now: int,
    limit: int,
    *,
    conversation: int | None = None,
    binding: int | None = None,
    notices: bool = True,
) -> list[Due]:
    """Return a recipient's first due envelopes that nobody holds; all, or those of one conversation.

    `notices`: False: none of them.
    """
    ranked = []
    walked, rank = None, Priority.CRITICAL
    looked_at = limit if conversation is None else LOOKED_THROUGH
    # No notice goes to a channel.
    walks = _OF_ALL if notices and binding is None else _OF_MAIL
    rows = connection.execute(walks, (recipient, binding, looked_at)).fetchall()
    for number, arrived, row_conversation, since, priority in rows:
        if priority != walked:
            walked, rank = priority, Priority.CRITICAL
        # Those that waited long come first; after a fresh one there are no more of them, unless
        # the clock was set back, and then the order of arrival counts.
        if since > now - CRITICAL_AFTER_MS:
            rank = priority
        if conversation in (None, row_conversation):
            ranked.append((rank, arrived, Due(number, row_conversation)))
    return [found for _, _, found in sorted(ranked)[:limit]]


# Walk the index once for each priority, one after the other. In one statement: a claim from a lane
# needs the first of each, and four statements cost three times as much as their rows.
def _walks(*priorities: Priority) -> str:
    return " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT e.id, e.arrived, m.conversation, m.arrived_at AS since, e.priority
            FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
            WHERE e.recipient = ?1 AND e.binding IS ?2 AND e.priority = {priority:d} AND e.status = 0
              AND e.arrived IS NOT NULL AND e.waits IS NULL AND e.held_by IS NULL
            ORDER BY e.arrived LIMIT ?3)
        """
        for priority in priorities
    )


MAIL = tuple(priority for priority in Priority if priority is not Priority.NOTICE)
_OF_ALL, _OF_MAIL = _walks(*Priority), _walks(*MAIL)


_NOTICES = f"""
    SELECT id FROM (
        SELECT e.id, e.arrived, m.about
        FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
        WHERE e.recipient = ?1 AND e.binding IS NULL AND e.priority = ?2 AND e.status = 0
          AND e.arrived IS NOT NULL AND e.waits IS NULL AND e.held_by IS NULL
        ORDER BY e.arrived DESC LIMIT {LOOKED_THROUGH})
    WHERE about = ?3 OR about IS NULL ORDER BY arrived LIMIT ?4
"""


def notices(connection: Connection | Tx, recipient: int, conversation: int, limit: int) -> list[int]:
    """Return a recipient's first due notices of this conversation, or of none, that nobody holds.

    They are looked for among the latest LOOKED_THROUGH.
    """
    values = (recipient, int(Priority.NOTICE), conversation, limit)
    return [row["id"] for row in connection.execute(_NOTICES, values)]


def count(connection: Connection, recipient: int, exact_to: int, *, with_held: bool = False) -> int | str:
    """Return how many are due: exact up to a limit, then '1000+'. `with_held`: also those being delivered.

    Not those of a run that was cancelled, and is ending: they will be cancelled too.
    """
    found: int = connection.execute(
        """
        SELECT count(*) FROM (
            SELECT 1 FROM envelope e INDEXED BY envelope_due
            WHERE recipient = ?1 AND binding IS NULL AND status = 0 AND arrived IS NOT NULL
              AND waits IS NULL AND (held_by IS NULL OR ?3 AND NOT EXISTS (
                  SELECT 1 FROM run_envelope x JOIN run r ON r.id = x.run
                  WHERE x.envelope = e.id AND r.status = 'running' AND r.ends_as = 'cancelled')) LIMIT ?2)
        """,
        (recipient, exact_to + 1, with_held),
    ).fetchone()[0]
    return f"{exact_to}+" if found > exact_to else found


def oldest(connection: Connection) -> int | None:
    """Return when the oldest due envelope arrived; None if none is due. Reads the first row of each walk."""
    row = connection.execute(
        """
        SELECT min((SELECT m.arrived_at FROM envelope e INDEXED BY envelope_due
                    JOIN message m ON m.id = e.message
                    WHERE e.recipient = a.id AND e.binding IS a.binding AND e.priority = p.priority
                      AND e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL
                    ORDER BY e.arrived LIMIT 1))
        FROM (SELECT id, NULL AS binding FROM address WHERE kind <> 'channel' AND retired_at IS NULL
              UNION ALL SELECT address, binding FROM place) a
        CROSS JOIN (SELECT 0 AS priority UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3
                    UNION ALL SELECT 4) p
        """
    ).fetchone()
    found: int | None = row[0]
    return found


def first_answer(connection: Connection | Tx, lane: Lane, now: int) -> int | None:
    """Return the answer of a run that goes before what came earlier in its lane; None: there is none.

    If the same run sent something there before its answer, that goes first, and so does what hiboss itself
    says, like that the work begins again. What is urgent goes before all of them.
    It looks through all that is due in the lane, so it is for those that post once a second.
    """
    first = due(connection, lane.address, now, 1, binding=lane.binding)
    if not first:
        return None
    row = connection.execute(
        """
        WITH due AS (
            SELECT e.id, e.arrived, m.run, m.auto, m.sender FROM envelope e INDEXED BY envelope_due
            JOIN message m ON m.id = e.message
            WHERE e.recipient = ?1 AND e.binding = ?2 AND e.status = 0 AND e.arrived IS NOT NULL
              AND e.waits IS NULL AND e.held_by IS NULL)
        SELECT d.id FROM due d
        JOIN (SELECT run FROM due WHERE auto AND run IS NOT NULL ORDER BY arrived LIMIT 1) a
            ON d.run = a.run OR d.sender = (SELECT id FROM address WHERE fold = ?5 AND retired_at IS NULL)
        WHERE (SELECT priority FROM envelope WHERE id = ?3) >= ?4
        ORDER BY d.arrived LIMIT 1
        """,
        (lane.address, lane.binding, first[0].id, int(Priority.NORMAL), SYSTEM.fold),
    ).fetchone()
    return None if row is None else int(row["id"])


def in_hand(tx: Tx, lane: Lane) -> list[int]:
    """Return the envelopes of a lane that this daemon holds."""
    held = "SELECT id FROM envelope INDEXED BY envelope_wake WHERE wake_at = ?"
    rows = tx.execute(f"{held} AND recipient = ? AND binding IS ?", (NEXT_START, lane.address, lane.binding))
    return [row["id"] for row in rows.fetchall()]
