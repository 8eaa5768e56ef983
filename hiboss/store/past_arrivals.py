"""Mail that arrived in a box between two arrival numbers: for those who were away, and follow again."""

from __future__ import annotations

from ..core.events import EnvelopesArrived
from .connection import Connection


def between(
    connection: Connection, recipient: int, after: int, up_to: int, limit: int
) -> list[EnvelopesArrived]:
    """Return the first that arrived for somebody after one number, up to another, as they were told then."""
    rows = connection.execute(
        """
        SELECT e.id, e.arrived, e.message, m.conversation, m.seq, m.sender,
               max(m.created_at, ifnull(m.deliver_at, 0)) AS at
        FROM envelope e INDEXED BY envelope_box JOIN message m ON m.id = e.message
        WHERE e.recipient = ? AND e.box IN (0, 1, 2, 3) AND e.status IN (0, 1, 2, 3)
          AND e.arrived > ? AND e.arrived <= ?
        ORDER BY e.arrived LIMIT ?
        """,
        (recipient, after, up_to, limit),
    )
    return [
        EnvelopesArrived(
            at=row["at"],
            message=row["message"],
            conversation=row["conversation"],
            seq=row["seq"],
            sender=row["sender"],
            numbers=[row["id"]],
            recipients=[recipient],
            last=row["arrived"],
        )
        for row in rows
    ]
