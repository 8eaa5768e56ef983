"""Read single envelopes: all that is known of one, and what it replies to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ..core.errors import NotFound
from ..core.shown_envelope import ShownEnvelope
from .connection import Connection, Row
from .group_commit import Tx
from .visibility import sees

SHOWN = """
SELECT e.id, e.message, m.conversation, m.seq, m.thread, m.reply_to,
       CASE WHEN m.place IS NOT NULL THEN
            (SELECT p.kind || ':' || p.name FROM address p WHERE p.id = m.place)
       END AS place_address,
       s.kind || ':' || s.name AS sender_address, m.from_boss,
       coalesce(m.from_name, u.name, g.display) AS from_name, m.channel,
       CASE c.kind WHEN 'group' THEN c.name END AS group_name,
       r.kind || ':' || r.name AS to_address, e.forwards,
       CASE WHEN e.routed_from <> e.recipient THEN
            (SELECT f.kind || ':' || f.name FROM address f WHERE f.id = e.routed_from)
       END AS routed_from_address,
       m.subject, m.type, m.text, m.attachments, e.status, e.waits, e.priority, e.box, e.snoozed_until,
       m.interruptible, m.auto, e.context OR m.context OR e.routed_from IS e.recipient AS context,
       m.deliver_at, m.arrived_at, m.created_at, m.edited_at, m.deleted_at, m.deleted_why,
       e.read_at, e.acked_at, e.ack_by, e.done_at, e.attempts, e.handovers, e.held_by, e.preempted_by,
       e.error_kind, e.error_text, e.error_at, m.run, m.trace, m.hops, m.metadata
FROM envelope e
JOIN message m ON m.id = e.message
JOIN address s ON s.id = m.sender
JOIN address r ON r.id = e.recipient
JOIN conversation c ON c.id = m.conversation
LEFT JOIN user u ON u.address = m.sender
LEFT JOIN agent g ON g.address = m.sender
"""
FACTS = """
SELECT e.id, e.message, e.recipient, e.binding, e.status, e.arrived, e.waits, e.held_by, e.forwards,
       e.addressed, m.sender, m.thread, m.deliver_at, m.deleted_at,
       s.kind || ':' || s.name AS sender_address, r.kind || ':' || r.name AS to_address
FROM envelope e
JOIN message m ON m.id = e.message
JOIN address s ON s.id = m.sender
JOIN address r ON r.id = e.recipient
"""
QUOTED = 400  # characters to read of a message replied to; less is ever shown


EnvelopeRow = dict[str, Any]  # not a Row, which searches its columns for each name


def shown(connection: Connection, ids: Sequence[int]) -> list[ShownEnvelope]:
    """Return the envelopes with these ids as they are shown, in this order; unknown ids are left out."""
    cursor = connection.cursor()
    cursor.row_factory = _shown
    by_id = {row.id: row for row in cursor.execute(_select(SHOWN, len(ids)), ids)}
    return [by_id[number] for number in ids if number in by_id]


def fetch(connection: Connection | Tx, ids: Sequence[int]) -> list[EnvelopeRow]:
    """Return what rules ask of the envelopes with these ids, in this order; unknown ids are left out."""
    found = {row["id"]: dict(row) for row in connection.execute(_select(FACTS, len(ids)), ids)}
    return [found[number] for number in ids if number in found]


def _shown(_: object, row: tuple[Any, ...]) -> ShownEnvelope:
    return ShownEnvelope._make(row)


@cache
def _select(columns: str, number: int) -> str:
    """Return the statement for so many ids: the same text each time, whose hash is known."""
    return f"{columns} WHERE e.id IN ({','.join('?' * number)})"


def visible(connection: Connection | Tx, number: int, viewer: int | None) -> EnvelopeRow:
    """Return an envelope that the viewer sent or received (None sees all); else raise NotFound."""
    rows = fetch(connection, [number])
    if not rows or not (viewer is None or _sees(rows[0], viewer)):
        raise NotFound(what="envelope", value=f"e{number}")
    return rows[0]


def place(connection: Connection | Tx, number: int) -> int:
    """Return the arrival number of an envelope that has arrived; of what came back, that of its return."""
    query = "SELECT ifnull(due_again, arrived) FROM envelope WHERE id = ?"
    return int(connection.execute(query, (number,)).fetchone()[0])


def _sees(row: EnvelopeRow, viewer: int) -> bool:
    received = row["recipient"] == viewer and row["arrived"] is not None
    return received or _sent(row, viewer)


def sent(connection: Connection | Tx, number: int, sender: int | None) -> EnvelopeRow:
    """Return an envelope that the sender sent (None: anybody); else raise NotFound."""
    row = visible(connection, number, None)
    if sender is not None and not _sent(row, sender):
        raise NotFound(what="envelope", value=f"e{number}")
    return row


def own(tx: Tx, given: Iterable[tuple[str, int]], recipient: int) -> list[int]:
    """Return the envelopes that a recipient means by the ids of envelopes or of messages.

    A message means the one that arrived for this recipient; raise NotFound if there is none. Whether the
    envelopes are its own is checked by `received`.
    """
    found = []
    for kind, number in given:
        if kind == "message":
            row = tx.execute(
                "SELECT id FROM envelope WHERE message = ? AND recipient = ? AND arrived IS NOT NULL",
                (number, recipient),
            ).fetchone()
            if row is None:
                raise NotFound(what="message", value=f"m{number}")
            number = int(row["id"])
        found.append(number)
    return found


def received(tx: Tx, ids: Iterable[int], recipient: int) -> list[Row]:
    """Return these envelopes; raise NotFound if one did not arrive at this recipient: then none changes."""
    rows = []
    for number in ids:
        row = tx.execute(
            """
            SELECT id, status, box, held_by, claim, waits, binding FROM envelope
            WHERE id = ? AND recipient = ? AND arrived IS NOT NULL
            """,
            (number, recipient),
        ).fetchone()
        if row is None:
            raise NotFound(what="envelope", value=f"e{number}")
        rows.append(row)
    return rows


def _sent(row: EnvelopeRow, viewer: int) -> bool:
    """Tell whether somebody sent this. Where the boss has it forwarded to is not for its sender to know."""
    return bool(row["sender"] == viewer and (row["forwards"] is None or row["addressed"]))


def quotes(
    connection: Connection | Tx, replied_to: Iterable[int | None], viewer: int | None
) -> dict[int, str]:
    """Return the beginnings of messages replied to, by id; only of those that the viewer may see."""
    parents = set(replied_to) - {None}
    if not parents:
        return {}
    found = connection.execute(
        f"""
        SELECT m.id, substr(m.text, 1, {QUOTED}) AS text FROM message m
        WHERE (?1 IS NULL OR {sees("?1")}) AND m.deleted_at IS NULL
          AND m.id IN ({",".join("?" * len(parents))})
        """,
        (viewer, *parents),
    )
    return {row["id"]: row["text"] for row in found}


def recipients(connection: Connection, message: int) -> list[str]:
    """Return the addresses of all recipients of a message, without the chats to which it was forwarded."""
    rows = connection.execute(
        """
        SELECT a.kind || ':' || a.name AS address FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? AND e.forwards IS NULL ORDER BY e.id
        """,
        (message,),
    )
    return [row["address"] for row in rows]


def thread_of(connection: Connection, message: int) -> int:
    """Return the thread of a message; for an unknown message its own id, which is an empty thread."""
    row = connection.execute("SELECT ifnull(thread, id) FROM message WHERE id = ?", (message,)).fetchone()
    return int(row[0]) if row else message
