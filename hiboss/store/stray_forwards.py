"""Strays: forwards to a chat that is not the boss's any more. They must not be posted, nor retried.

What its sender sent to the address of the chat is none: who may post there may go on.
"""

from __future__ import annotations

from .connection import Connection
from .group_commit import Tx

# Of an envelope `e` that goes to a channel: whether that is a chat of the boss.
IN_HIS_CHAT = """
    EXISTS (SELECT 1 FROM place p JOIN contact c ON c.id = p.contact AND c.state = 'boss'
            WHERE p.address = e.recipient AND p.binding = e.binding)
"""
STRAYS = f"CASE WHEN e.forwards IS NULL OR e.addressed THEN 0 ELSE NOT {IN_HIS_CHAT} END"
# The forwards to the places of a chat that are pending and that nobody holds.
WAITING = """
    SELECT e.id, e.forwards FROM place p JOIN envelope e INDEXED BY envelope_box
        ON e.recipient = p.address AND e.box = 0 AND e.status = 0 AND e.binding = p.binding
    WHERE p.contact = ? AND e.forwards IS NOT NULL AND NOT e.addressed AND e.held_by IS NULL ORDER BY e.id
"""


def strays(connection: Connection | Tx, number: int) -> bool:
    """Tell whether an envelope is a stray."""
    row = connection.execute(f"SELECT {STRAYS} FROM envelope e WHERE e.id = ?", (number,)).fetchone()
    return bool(row[0])
