"""The last messages of a conversation, one line each: for who gets it from another, or has lost its memory.

What others wrote is quoted (core/escaping.py).
"""

from __future__ import annotations

from ..core.address import SYSTEM
from ..core.clock import local, zone
from ..core.envelope import Kind
from ..core.escaping import name, quote, visible
from .boss import boss_timezone
from .connection import Connection, Row
from .group_commit import Tx

MESSAGES = 20
CHARACTERS = 500  # of each of them
NAME_CHARACTERS = 60


def lines(connection: Connection | Tx, conversation: int, viewer: int | None = None) -> list[str]:
    """Return the last messages, oldest first. `viewer`: only what it wrote, or got and dealt with."""
    rows = connection.execute(
        """
        SELECT m.id, m.created_at, substr(m.text, 1, ?2) AS text, m.from_boss,
               coalesce(m.from_name, u.name, g.display) AS from_name,
               json_array_length(ifnull(m.attachments, '[]')) AS files, a.kind || ':' || a.name AS address
        FROM message m INDEXED BY message_seq JOIN address a ON a.id = m.sender
        LEFT JOIN user u ON u.address = m.sender LEFT JOIN agent g ON g.address = m.sender
        WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.deleted_at IS NULL AND m.type <> ?3
          AND a.fold <> ?5 AND m.about IS NULL AND (?6 IS NULL OR m.sender = ?6 OR EXISTS (
              SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?6 AND e.status <> 0))
        ORDER BY m.seq DESC LIMIT ?4
        """,
        (conversation, CHARACTERS + 1, int(Kind.EVENT), MESSAGES, SYSTEM.fold, viewer),
    ).fetchall()
    times = zone(boss_timezone(connection))
    return [_line(row, local(row["created_at"], times)) for row in reversed(rows)]


def _line(row: Row, at: str) -> str:
    known = f" {name(row['from_name'], NAME_CHARACTERS)}" if row["from_name"] else ""
    boss = " [boss]" if row["from_boss"] else ""
    files = f" ({row['files']} files)" if row["files"] else ""
    return (
        f"- m{row['id']} {at} {visible(row['address'])}{known}{boss}: {quote(row['text'], CHARACTERS)}{files}"
    )
