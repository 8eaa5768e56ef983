"""Poll positions: the arrival number up to which an agent, or one of its sessions, was shown its mail."""

from __future__ import annotations

from .connection import Connection
from .group_commit import Tx


def get(connection: Connection | Tx, holder: int, session: str) -> int:
    """Return the position; 0 before the first poll."""
    row = connection.execute(
        "SELECT position FROM poll_position WHERE holder = ? AND session = ?", (holder, session)
    ).fetchone()
    return int(row["position"]) if row else 0


def advance(tx: Tx, holder: int, session: str, step: tuple[int, int], now: int) -> bool:
    """Advance the position by `step` (from, to); return False if another poll advanced it meanwhile."""
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
