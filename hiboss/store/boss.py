"""The boss's row: name and time zone. Where the boss is reached: see forwarding.py."""

from __future__ import annotations

from ..core.address import BOSS
from .connection import Connection, Row
from .group_commit import Tx


def find_boss(connection: Connection | Tx) -> Row | None:
    """Return the boss's address id, name, time zone, and where he is reached; None before setup."""
    row: Row | None = connection.execute(
        """
        SELECT u.address, u.name, u.timezone, a.kind || ':' || a.name AS reach, u.reach_by, u.forward
        FROM user u LEFT JOIN address a ON a.id = u.reach WHERE u.boss = 1
        """
    ).fetchone()
    return row


def boss_timezone(connection: Connection | Tx) -> str:
    """Return the name of the boss's time zone; UTC before setup."""
    row = find_boss(connection)
    return str(row["timezone"]) if row and row["timezone"] else "UTC"


def add_boss(tx: Tx, name: str, timezone: str, now: int) -> int:
    """Add the boss and return the address id."""
    entry = tx.cache.add_address(BOSS)
    tx.execute(
        "INSERT INTO user (address, name, boss, timezone, created_at) VALUES (?, ?, 1, ?, ?)",
        (entry.id, name, timezone, now),
    )
    return entry.id


def change_boss(tx: Tx, name: str | None, timezone: str | None) -> None:
    tx.execute(
        "UPDATE user SET name = ifnull(?, name), timezone = ifnull(?, timezone) WHERE boss = 1",
        (name, timezone),
    )
