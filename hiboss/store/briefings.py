"""What a briefing reads of the store: the first unread mail, groups and schedules of an agent or a person."""

from __future__ import annotations

from typing import NamedTuple

from .connection import Connection, Row
from .envelope_rows import QUOTED

COUNTED = 1_000  # unread envelopes and conversations, at most


class Unread(NamedTuple):
    """How much is unread, and the newest of it."""

    number: int
    capped: bool  # there is more
    newest: list[Row]


def unread(connection: Connection, address: int, shown: int) -> Unread:
    """Return how much of an inbox is unread, and the newest of it, by the order in which it came."""
    chosen = "FROM envelope INDEXED BY envelope_unread WHERE recipient = ?1 AND unread = 1"
    number = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 {chosen} LIMIT ?2)", (address, COUNTED + 1)
    ).fetchone()[0]
    rows = connection.execute(
        f"""
        SELECT e.id, m.created_at, iif(m.deleted_at IS NULL, m.subject, NULL) AS subject,
               iif(m.deleted_at IS NULL, substr(m.text, 1, {QUOTED}), '') AS text,
               a.kind || ':' || a.name AS sender
        FROM (SELECT id, message, ifnull(due_again, arrived) AS place {chosen}
              ORDER BY ifnull(due_again, arrived) DESC LIMIT ?2) e
        JOIN message m ON m.id = e.message JOIN address a ON a.id = ifnull(m.place, m.sender)
        ORDER BY e.place DESC
        """,
        (address, shown),
    ).fetchall()
    return Unread(min(number, COUNTED), number > COUNTED, rows)


def groups(connection: Connection, address: int, shown: int) -> list[Row]:
    """Return the groups that somebody is in, those joined last first, at most `shown` and one more."""
    return connection.execute(
        """
        SELECT c.name, p.role, (SELECT ifnull(sum(number), 0) FROM unread
                                WHERE address = ?1 AND conversation = c.id) AS unread
        FROM (SELECT conversation, role FROM participant INDEXED BY participant_address
              WHERE address = ?1 AND left_seq IS NULL AND role <> 'guest'
              ORDER BY conversation DESC LIMIT ?2) p
        JOIN conversation c ON c.id = p.conversation
        WHERE c.kind = 'group' AND c.archived_at IS NULL AND c.deleted_at IS NULL
        ORDER BY c.id DESC LIMIT ?3
        """,
        (address, COUNTED, shown + 1),
    ).fetchall()


def next_schedules(connection: Connection, owner: int, shown: int) -> list[Row]:
    """Return the schedules of somebody that fire next, at most `shown` and one more."""
    return connection.execute(
        f"""
        SELECT id, name, next_at, json_extract(draft, '$.to') AS recipients,
               substr(json_extract(draft, '$.text'), 1, {QUOTED}) AS text
        FROM schedule INDEXED BY schedule_owner
        WHERE owner = ? AND deleted_at IS NULL AND next_at IS NOT NULL AND json_valid(draft)
        ORDER BY next_at, id LIMIT ?
        """,
        (owner, shown + 1),
    ).fetchall()


def number_of_others(connection: Connection, agent: int) -> int:
    """Return how many other agents there are."""
    query = "SELECT count(*) FROM agent WHERE deleted_at IS NULL AND address <> ?"
    return int(connection.execute(query, (agent,)).fetchone()[0])


def living(connection: Connection, address: int) -> str | None:
    """Return the address of an agent or a person by id; None if it was deleted, or is neither."""
    row = connection.execute(
        """
        SELECT a.kind || ':' || a.name AS address FROM address a
        WHERE a.id = ?1 AND a.retired_at IS NULL
          AND (EXISTS (SELECT 1 FROM agent WHERE address = ?1)
               OR EXISTS (SELECT 1 FROM user WHERE address = ?1))
        """,
        (address,),
    ).fetchone()
    return None if row is None else str(row["address"])
