"""The policy: the permission levels of operations that the boss changed from the declared ones."""

from __future__ import annotations

import json

from .connection import Connection
from .group_commit import Tx


def get(connection: Connection | Tx) -> dict[str, str]:
    """Return the changed levels: operation -> level, by name."""
    row = connection.execute("SELECT value FROM config WHERE key = 'policy'").fetchone()
    found: dict[str, str] = json.loads(row["value"]) if row else {}
    return found


def put(tx: Tx, levels: dict[str, str]) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO config (key, value) VALUES ('policy', ?)",
        (json.dumps(levels, sort_keys=True),),
    )
