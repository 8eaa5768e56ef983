"""Mail that was not acknowledged in time: its sender and the boss are told, once."""

from __future__ import annotations

from ..core.address import BOSS, Address
from ..core.clock import local, zone
from ..core.escaping import quote, visible
from ..core.events import EnvelopeOverdue
from . import notices
from .boss import boss_timezone
from .connection import Row
from .group_commit import Tx

CHUNK = 100  # in one transaction
QUOTED = 200  # characters of the text in a notice


def tell(tx: Tx, now: int) -> int:
    """Tell of the mail that was not acknowledged in time, at most CHUNK; return of how much."""
    rows = tx.execute(_OVERDUE, (now, CHUNK)).fetchall()
    for row in rows:
        if row["deleted_at"] is None:
            tx.execute("UPDATE ack_deadline SET told_at = ? WHERE envelope = ?", (now, row["id"]))
        else:
            tx.execute("DELETE FROM ack_deadline WHERE envelope = ?", (row["id"],))
        if row["deleted_at"] is not None:
            continue
        tx.facts.append(EnvelopeOverdue(now, row["id"]))
        # Not who has the name of a sender that was deleted.
        senders = [Address(row["kind"], row["name"])] if row["retired_at"] is None else []
        text = _text(tx, row)
        for one in dict.fromkeys([*senders, BOSS]):
            if one.kind in ("agent", "user"):
                notices.notify(tx, one, text, now, about=row["message"], quotes=True)
    return len(rows)


_OVERDUE = """
    SELECT e.id, e.message, d.at, m.text, m.deleted_at, s.kind, s.name, s.retired_at,
           r.kind || ':' || r.name AS recipient
    FROM ack_deadline d JOIN envelope e ON e.id = d.envelope JOIN message m ON m.id = e.message
    JOIN address s ON s.id = m.sender JOIN address r ON r.id = e.recipient
    WHERE d.told_at IS NULL AND d.at <= ? ORDER BY d.at LIMIT ?
"""


def _text(tx: Tx, row: Row) -> str:
    at = local(row["at"], zone(boss_timezone(tx)))
    return (
        f"e{row['id']} from {row['kind']}:{visible(row['name'])} was not acknowledged by "
        f"{visible(row['recipient'])} until {at}: {quote(row['text'], QUOTED)}\n"
        f"How far it got: hiboss trace e{row['id']}"
    )
