"""The house itself: the boss, the epoch, the boot number, and how much lies where."""

from __future__ import annotations

from typing import Any

from ..core.address import BOSS
from .connection import Connection, Row
from .group_commit import Tx


def boss(connection: Connection | Tx) -> Row | None:
    """The boss's name and zone; None before set-up."""
    row: Row | None = connection.execute(
        "SELECT u.address, u.name, u.timezone FROM user u WHERE u.boss = 1"
    ).fetchone()
    return row


def add_boss(tx: Tx, name: str, timezone: str, now: int) -> int:
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


def note_seen(tx: Tx, seen: dict[int, int]) -> None:
    """When callers were last seen, by address id."""
    for address, moment in seen.items():
        tx.execute("UPDATE agent SET last_seen_at = ? WHERE address = ?", (moment, address))
        tx.execute("UPDATE user SET last_seen_at = ? WHERE address = ?", (moment, address))


def epoch(connection: Connection) -> str:
    row = connection.execute("SELECT value FROM config WHERE key = 'epoch'").fetchone()
    return str(row["value"])


def next_boot(tx: Tx) -> int:
    """The number of this life of the daemon."""
    row = tx.execute("UPDATE counter SET value = value + 1 WHERE name = 'boot' RETURNING value").fetchone()
    return int(row["value"])


def last_arrived(connection: Connection | Tx) -> int:
    return int(connection.execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()["value"])


def counts(connection: Connection, exact_to: int) -> dict[str, Any]:
    """How much there is of everything: exact up to a limit, then '1000+'."""

    def number(sql: str) -> int | str:
        found: int = connection.execute(f"SELECT count(*) FROM ({sql} LIMIT {exact_to + 1})").fetchone()[0]
        return f"{exact_to}+" if found > exact_to else found

    return {
        "agents": number("SELECT 1 FROM agent WHERE deleted_at IS NULL"),
        "due": number(
            "SELECT 1 FROM envelope INDEXED BY envelope_due "
            "WHERE status = 0 AND arrived IS NOT NULL AND waits IS NULL"
        ),
        "deferred": number(
            "SELECT 1 FROM envelope INDEXED BY envelope_wake WHERE wake_at IS NOT NULL AND waits = 0"
        ),
        # Box by box and address by address, since no index is kept over failures alone.
        "failed": number(
            "SELECT 1 FROM address a CROSS JOIN (SELECT 0 AS box UNION ALL SELECT 1 UNION ALL SELECT 2) b "
            "CROSS JOIN envelope e INDEXED BY envelope_box "
            "ON e.recipient = a.id AND e.box = b.box AND e.status = 2"
        ),
    }
