"""Who has read a message: each recipient has an envelope of it, and its own mark."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.message_json import agent_id
from .connection import Connection
from .group_commit import Tx

LISTED = 20  # readers of one message, at most


def envelopes_of(connection: Connection | Tx, messages: Sequence[int], recipient: int) -> list[int]:
    """Return the envelopes of these messages that arrived for somebody."""
    rows = connection.execute(
        f"""
        SELECT id FROM envelope
        WHERE message IN ({",".join("?" * len(messages))}) AND recipient = ? AND arrived IS NOT NULL
        """,
        (*messages, recipient),
    )
    return [row["id"] for row in rows.fetchall()]


def others(connection: Connection | Tx, messages: Sequence[int], reader: int) -> dict[int, list[str]]:
    """Return those who have read these messages too, by message: the first of them, named like authors."""
    rows = connection.execute(
        f"""
        SELECT e.message, a.kind, a.name
        FROM envelope e JOIN reading r ON r.envelope = e.id JOIN address a ON a.id = r.reader
        WHERE e.message IN ({",".join("?" * len(messages))}) AND r.read = 1 AND r.reader <> ?
        GROUP BY e.message, r.reader ORDER BY e.message, min(r.at), r.reader
        """,
        (*messages, reader),
    )
    found: dict[int, list[str]] = {}
    for row in rows.fetchall():
        names = found.setdefault(row["message"], [])
        if len(names) < LISTED:
            names.append(agent_id(row["kind"], row["name"]))
    return found
