"""How far an agent, or one of its sessions, was told of its mail: an arrival number."""

from __future__ import annotations

from .connection import Connection
from .group_commit import Tx


def get(connection: Connection | Tx, holder: int, session: str) -> int:
    row = connection.execute(
        "SELECT position FROM poll_position WHERE holder = ? AND session = ?", (holder, session)
    ).fetchone()
    return int(row["position"]) if row else 0


def advance(tx: Tx, holder: int, session: str, step: tuple[int, int], now: int) -> bool:
    """From where one looked to where one was told; False when another poll was told meanwhile."""
    before, position = step
    if get(tx, holder, session) != before:
        return False
    tx.execute(
        """
        INSERT INTO poll_position (holder, session, position, updated_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (holder, session) DO UPDATE SET position = ?3, updated_at = ?4
        """,
        (holder, session, position, now),
    )
    return True
