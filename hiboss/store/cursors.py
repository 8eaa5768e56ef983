"""How far an agent, or one of its sessions, was told of its mail: an arrival number."""

from __future__ import annotations

from .database import Connection
from .writer import Tx


def get(connection: Connection | Tx, holder: int, session: str) -> int:
    row = connection.execute(
        "SELECT position FROM cursor WHERE holder = ? AND session = ?", (holder, session)
    ).fetchone()
    return int(row["position"]) if row else 0


def put(tx: Tx, holder: int, session: str, position: int, now: int) -> None:
    """It only ever moves forward: two polls at once must not take each other back."""
    tx.execute(
        """
        INSERT INTO cursor (holder, session, position, updated_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (holder, session) DO UPDATE SET position = max(position, ?3), updated_at = ?4
        """,
        (holder, session, position, now),
    )
