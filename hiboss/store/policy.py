"""What the boss decided about who may do what: the levels that differ from those declared."""

from __future__ import annotations

import json

from .connection import Connection
from .group_commit import Tx


def get(connection: Connection | Tx) -> dict[str, str]:
    """Operation -> level, by name."""
    row = connection.execute("SELECT value FROM config WHERE key = 'policy'").fetchone()
    found: dict[str, str] = json.loads(row["value"]) if row else {}
    return found


def put(tx: Tx, levels: dict[str, str]) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO config (key, value) VALUES ('policy', ?)",
        (json.dumps(levels, sort_keys=True),),
    )
