"""Single envelopes: read one; acknowledge or move it for its recipient; cancel or retry it for its sender."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.envelope import Box, Lane, Status, Waits
from ..core.errors import NotFound, TooLate
from .connection import Connection, Row
from .group_commit import Tx

COLUMNS = """
SELECT e.id, e.message, e.recipient, e.binding, e.status, e.priority, e.box, e.arrived, e.waits, e.wake_at,
       e.held_by, e.handovers, e.attempts, e.error_kind, e.error_text, e.error_at, e.read_at, e.acked_at,
       e.done_at,
       m.conversation, m.seq, m.thread, m.reply_to, m.sender, m.from_boss, m.channel, m.subject, m.type,
       m.text, m.attachments, m.interruptible, m.auto, m.deliver_at, m.run, m.trace, m.hops, m.metadata,
       m.created_at, m.arrived_at,
       s.kind || ':' || s.name AS from_address, r.kind || ':' || r.name AS to_address,
       coalesce(m.from_name, u.name, g.display) AS from_name,
       CASE c.kind WHEN 'group' THEN c.name END AS group_name
FROM envelope e
JOIN message m ON m.id = e.message
JOIN address s ON s.id = m.sender
JOIN address r ON r.id = e.recipient
JOIN conversation c ON c.id = m.conversation
LEFT JOIN user u ON u.address = m.sender
LEFT JOIN agent g ON g.address = m.sender
"""
QUOTED = 400  # characters to read of a message replied to; less is ever shown


EnvelopeRow = dict[str, Any]  # not a Row, which searches its forty columns for each name


def fetch(connection: Connection | Tx, ids: Sequence[int]) -> list[EnvelopeRow]:
    """Return the envelopes with these ids, in this order; unknown ids are left out."""
    marks = ",".join("?" * len(ids))
    cursor = connection.execute(f"{COLUMNS} WHERE e.id IN ({marks})", ids)
    names = [column[0] for column in cursor.description]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    by_id = {facts["id"]: facts for facts in found}
    return [by_id[number] for number in ids if number in by_id]


def visible(connection: Connection | Tx, number: int, viewer: int | None) -> EnvelopeRow:
    """Return an envelope that the viewer sent or received (None sees all); else raise NotFound."""
    rows = fetch(connection, [number])
    if not rows or not (viewer is None or _sees(rows[0], viewer)):
        raise NotFound(what="envelope", value=f"e{number}")
    return rows[0]


def _sees(row: EnvelopeRow, viewer: int) -> bool:
    received = row["recipient"] == viewer and row["arrived"] is not None
    return received or row["sender"] == viewer


def quotes(connection: Connection | Tx, rows: Iterable[EnvelopeRow], viewer: int | None) -> dict[int, str]:
    """Return the beginnings of the messages replied to, by id; only of those that the viewer may see."""
    parents = {row["reply_to"] for row in rows} - {None}
    if not parents:
        return {}
    found = connection.execute(
        f"""
        SELECT p.id, substr(p.text, 1, {QUOTED}) AS text FROM message p
        WHERE p.id IN ({",".join("?" * len(parents))}) AND p.deleted_at IS NULL
          AND (? IS NULL OR p.sender = ? OR EXISTS (
              SELECT 1 FROM envelope e WHERE e.message = p.id AND e.recipient = ? AND e.arrived IS NOT NULL))
        """,
        (*parents, viewer, viewer, viewer),
    )
    return {row["id"]: row["text"] for row in found}


def recipients(connection: Connection, message: int) -> list[str]:
    """Return the addresses of all recipients of a message."""
    rows = connection.execute(
        """
        SELECT a.kind || ':' || a.name AS address FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? ORDER BY e.id
        """,
        (message,),
    )
    return [row["address"] for row in rows]


def thread_of(connection: Connection, message: int) -> int:
    """Return the thread of a message; for an unknown message its own id, which is an empty thread."""
    row = connection.execute("SELECT ifnull(thread, id) FROM message WHERE id = ?", (message,)).fetchone()
    return int(row[0]) if row else message


# --- changes by the recipient --------------------------------------------------------


def mark_read(tx: Tx, ids: Iterable[int], recipient: int, now: int) -> int:
    """Mark envelopes as read; return how many were unread before."""
    return sum(
        tx.execute(
            "UPDATE envelope SET read_at = ? WHERE id = ? AND read_at IS NULL", (now, row["id"])
        ).rowcount
        for row in _received(tx, ids, recipient)
    )


def acknowledge(tx: Tx, ids: Iterable[int], recipient: int, now: int) -> int:
    """Acknowledge envelopes; return how many were not acknowledged before. A pending one is then done."""
    changed = 0
    for row in _received(tx, ids, recipient):
        if row["status"] in (Status.FAILED, Status.CANCELLED):
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state=Status(row["status"]).word)
        if row["held_by"] is not None:
            raise TooLate(id=f"e{row['id']}", action="acknowledged", state="being delivered")
        changed += _acknowledge(tx, row["id"], now)
    return changed


def acknowledge_due(tx: Tx, recipient: int, upto: int, limit: int, now: int) -> int:
    """Acknowledge due envelopes up to an arrival number, at most `limit`, oldest first; return how many."""
    rows = tx.execute(
        """
        SELECT id FROM envelope INDEXED BY envelope_box
        WHERE recipient = ? AND box = 0 AND status = 0 AND arrived <= ? AND held_by IS NULL AND waits IS NULL
        ORDER BY arrived LIMIT ?
        """,
        (recipient, upto, limit),
    ).fetchall()
    return sum(_acknowledge(tx, row["id"], now) for row in rows)


def _acknowledge(tx: Tx, number: int, now: int) -> int:
    return tx.execute(
        """
        UPDATE envelope SET acked_at = ?1, read_at = ifnull(read_at, ?1), done_at = ifnull(done_at, ?1),
               status = 1, waits = NULL, wake_at = NULL, claimed_by = NULL
        WHERE id = ?2 AND acked_at IS NULL
        """,
        (now, number),
    ).rowcount


def put_into(tx: Tx, ids: Iterable[int], recipient: int, box: Box, now: int) -> int:
    """Move envelopes to another box; return how many moved.

    A pending one that leaves the inbox is done: it must not wait where nobody looks.
    """
    changed = 0
    for row in _received(tx, ids, recipient):
        if row["held_by"] is not None:
            raise TooLate(id=f"e{row['id']}", action="moved", state="being delivered")
        settles = row["status"] == Status.PENDING and box is not Box.INBOX
        changed += tx.execute(
            "UPDATE envelope SET box = ? WHERE id = ? AND box <> ?", (int(box), row["id"], int(box))
        ).rowcount
        if box is Box.INBOX:
            tx.arrived_for.append(recipient)
        if settles:
            tx.execute(
                """
                UPDATE envelope SET status = 1, done_at = ?, waits = NULL, wake_at = NULL, claimed_by = NULL
                WHERE id = ?
                """,
                (now, row["id"]),
            )
    return changed


def _received(tx: Tx, ids: Iterable[int], recipient: int) -> list[Row]:
    """Return these envelopes; raise NotFound if one did not arrive at this recipient: then none changes."""
    rows = []
    for number in ids:
        row = tx.execute(
            "SELECT id, status, held_by FROM envelope WHERE id = ? AND recipient = ? AND arrived IS NOT NULL",
            (number, recipient),
        ).fetchone()
        if row is None:
            raise NotFound(what="envelope", value=f"e{number}")
        rows.append(row)
    return rows


# --- changes by the sender -----------------------------------------------------------


def cancel(tx: Tx, ids: Iterable[int], sender: int | None, now: int) -> int:
    """Cancel pending envelopes that nobody holds; return how many. The sender None may cancel any."""
    changed = 0
    for number in ids:
        row = visible(tx, number, None)
        if sender is not None and row["sender"] != sender:
            raise NotFound(what="envelope", value=f"e{number}")
        if row["status"] == Status.CANCELLED:
            continue
        if row["status"] != Status.PENDING:
            raise TooLate(id=f"e{number}", action="cancelled", state=Status(row["status"]).word)
        if row["held_by"] is not None or row["waits"] == Waits.LEASE:
            raise TooLate(id=f"e{number}", action="cancelled", state="being delivered")
        tx.execute(
            "UPDATE envelope SET status = 3, done_at = ?, waits = NULL, wake_at = NULL WHERE id = ?",
            (now, number),
        )
        changed += 1
    return changed


def retry(tx: Tx, ids: Iterable[int], sender: int | None, now: int) -> tuple[int, set[Lane]]:
    """Make failed envelopes pending again; return how many, and the lanes to wake. None may retry any."""
    changed, lanes = 0, set()
    for number in dict.fromkeys(ids):
        row = visible(tx, number, None)
        if sender is not None and row["sender"] != sender:
            raise NotFound(what="envelope", value=f"e{number}")
        if row["status"] != Status.FAILED:
            raise TooLate(id=f"e{number}", action="retried", state=Status(row["status"]).word)
        _check_recipient(tx, row)
        deferred = row["arrived"] is None
        tx.execute(
            """
            UPDATE envelope SET status = 0, done_at = NULL, first_failed_at = ?, held_by = NULL,
                   waits = ?, wake_at = ? WHERE id = ?
            """,
            # The 24 hours until it is given up begin again.
            (now, int(Waits.DEFERRED) if deferred else None, row["deliver_at"] if deferred else None, number),
        )
        changed += 1
        if not deferred:
            tx.arrived_for.append(row["recipient"])
        if row["binding"] is not None and not deferred:
            lanes.add(Lane(row["recipient"], row["binding"]))
    return changed, lanes


def _check_recipient(tx: Tx, row: EnvelopeRow) -> None:
    """Raise TooLate if the recipient was deleted or the account is no longer bound."""
    gone = tx.execute(
        """
        SELECT a.retired_at IS NOT NULL OR ifnull(b.removed_at, 0) <> 0 FROM envelope e
        JOIN address a ON a.id = e.recipient LEFT JOIN binding b ON b.id = e.binding WHERE e.id = ?
        """,
        (row["id"],),
    ).fetchone()[0]
    if gone:
        state = f"for {row['to_address']}, which no longer exists"
        raise TooLate(id=f"e{row['id']}", action="retried", state=state)


NEXT_START = 2**62  # the `wake_at` of held envelopes: the next start of a daemon looks at them
