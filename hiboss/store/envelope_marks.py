"""What a recipient does with an envelope: read, acknowledge, snooze, move to another box.

Only this module, envelopes.py and readings.py write to the table. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core import events
from ..core.envelope import Box, Status, Waits
from ..core.errors import TooLate
from . import ack_deadlines, offers, readings
from .connection import Row
from .envelope_rows import received
from .envelopes import done
from .group_commit import Tx

READ_AT_ONCE = 5_000  # envelopes in one transaction, so that other writers wait at most for these


# --- reading -------------------------------------------------------------------------


def mark_read(
    tx: Tx, ids: Iterable[int], recipient: int, now: int, *, reader: int | None = None, session: str = ""
) -> int:
    """Mark envelopes as read; return how many were unread before.

    `reader`: who does that in the place of the recipient. `session`: of the reader, if it has a name.
    """
    rows = received(tx, ids, recipient)
    return sum(readings.note_read(tx, row["id"], reader, session, now) for row in rows)


def mark_all_read(
    tx: Tx, recipient: int, upto: int, now: int, *, reader: int | None = None, session: str = ""
) -> int:
    """Mark everything unread in an inbox as read up to an arrival number, in one statement; return how much.

    At most READ_AT_ONCE, the oldest first. What arrives meanwhile has a larger number, and what comes back.
    """
    which = """
        SELECT id FROM envelope INDEXED BY envelope_unread
        WHERE recipient = ? AND unread = 1 AND ifnull(due_again, arrived) <= ?
        ORDER BY ifnull(due_again, arrived) LIMIT ?
    """
    rows = tx.execute(which, (recipient, upto, READ_AT_ONCE)).fetchall()
    numbers = [row["id"] for row in rows]
    return mark_together(tx, numbers, recipient if reader is None else reader, session, now)


def mark_together(tx: Tx, numbers: Sequence[int], reader: int, session: str, now: int) -> int:
    """Mark unread envelopes as read, all in one statement; return how many."""
    if numbers:
        readings.note_read_together(tx, numbers, reader, session, now)
    return len(numbers)


# --- acknowledging -------------------------------------------------------------------


def acknowledge(tx: Tx, number: int, now: int, *, reader: int | None = None, session: str = "") -> int:
    """Acknowledge an envelope; a pending one is then done. Return 0 if it was acknowledged before."""
    row = tx.execute(
        """
        UPDATE envelope SET acked_at = ?1, done_at = ifnull(done_at, ?1), status = 1,
               waits = NULL, wait_until = NULL, claim = NULL
        WHERE id = ?2 AND acked_at IS NULL RETURNING read_at, offered AND NOT context AS takes
        """,
        (now, number),
    ).fetchone()
    if row is None:
        return 0
    if row["read_at"] is None:
        readings.note_read(tx, number, reader, session, now, tell=False)
    if row["takes"]:  # also without a claim: it has dealt with it
        offers.take(tx, number, now)
    tx.facts.append(events.EnvelopeAcknowledged(now, number))
    return 1


# --- snoozing ------------------------------------------------------------------------


def snooze(tx: Tx, ids: Iterable[int], recipient: int, until: int, now: int) -> int:
    """Hide envelopes until a time, when they arrive again, unread; return how many were not so before."""
    changed = 0
    for row in received(tx, ids, recipient):
        _check_free(row, "snoozed")
        if row["status"] in (Status.FAILED, Status.CANCELLED):
            raise TooLate(id=f"e{row['id']}", action="snoozed", state=Status(row["status"]).word)
        number = tx.execute(
            """
            UPDATE envelope SET waits = ?1, wait_until = ?2, snoozed_until = ?2, box = ?3
            WHERE id = ?4 AND snoozed_until IS NOT ?2
            """,
            (int(Waits.SNOOZE), until, int(Box.SNOOZED), row["id"]),
        ).rowcount
        if number:
            tx.facts.append(events.EnvelopeSnoozed(now, row["id"], until))
        changed += number
    return changed


def unsnooze(tx: Tx, ids: Iterable[int], recipient: int, now: int) -> int:
    """Wake snoozed envelopes now; return how many were snoozed."""
    changed = 0
    for row in received(tx, ids, recipient):
        if row["waits"] == Waits.SNOOZE:
            wake(tx, row["id"])
            tx.facts.append(events.EnvelopeDue(now, row["id"]))
            tx.arrived_for.append(recipient)
            changed += 1
    return changed


def wake(tx: Tx, number: int) -> None:
    """End the snooze of an envelope: it arrives again in the inbox, as new."""
    # Unread: else nothing would tell its recipient. Who had read it before is still known (readings.py).
    tx.execute(
        """
        UPDATE envelope SET waits = NULL, wait_until = NULL, read_at = NULL, arrived = ?, due_again = NULL
        WHERE id = ? AND waits = ?
        """,
        (tx.cache.next_arrived(), number, int(Waits.SNOOZE)),
    )


def end_snoozes(tx: Tx, message: int) -> None:
    """Put what is snoozed of a deleted message back, so that it does not wake anybody."""
    query = "UPDATE envelope SET waits = NULL, wait_until = NULL WHERE message = ? AND waits = ?"
    tx.execute(query, (message, int(Waits.SNOOZE)))


def come_back(tx: Tx, message: int) -> None:
    """Announce what is unread of a message again, with its deadline: it was deleted, or has another text."""
    rows = tx.execute(
        "SELECT id, recipient FROM envelope WHERE message = ? AND status < 2 AND binding IS NULL", (message,)
    ).fetchall()
    for row in rows:
        again = "UPDATE envelope SET due_again = ? WHERE id = ? AND unread = 1"
        tx.execute(again, (tx.cache.next_arrived(), row["id"]))
        ack_deadlines.put_again(tx, row["id"])
        tx.arrived_for.append(row["recipient"])


# --- boxes ---------------------------------------------------------------------------


def put_into(tx: Tx, ids: Iterable[int], recipient: int, box: Box, now: int) -> int:
    """Move envelopes to another box; return how many moved. A snooze ends with that.

    A pending one that leaves the inbox is done: it must not wait where nobody looks.
    """
    changed = 0
    for row in received(tx, ids, recipient):
        _check_no_post(row, "moved")
        if row["held_by"] is not None:
            raise TooLate(id=f"e{row['id']}", action="moved", state="being delivered")
        if box is Box.INBOX and row["waits"] == Waits.SNOOZE:
            changed += unsnooze(tx, [row["id"]], recipient, now)
            continue
        settles = row["status"] == Status.PENDING and box is not Box.INBOX
        returns = box is Box.INBOX and row["box"] != box
        back = tx.cache.next_arrived() if returns else None
        if tx.execute(
            "UPDATE envelope SET box = ?1, due_again = ifnull(?2, due_again) WHERE id = ?3 AND box <> ?1",
            (int(box), back, row["id"]),
        ).rowcount:
            tx.facts.append(events.EnvelopeMoved(now, row["id"], box.word))
            changed += 1
        if returns:
            tx.arrived_for.append(recipient)
        if settles:
            done(tx, row["id"], now)
            ack_deadlines.put_again(tx, row["id"])  # nobody has acknowledged it
        if settles or row["waits"] == Waits.SNOOZE:
            no_wait = "waits = NULL, wait_until = NULL, claim = NULL"
            tx.execute(f"UPDATE envelope SET {no_wait} WHERE id = ?", (row["id"],))
    return changed


def _check_no_post(row: Row, action: str) -> None:
    """Raise TooLate for what waits to be posted to a chat: only its sender can take it back."""
    if row["binding"] is not None and row["status"] == Status.PENDING:
        state = "waiting to be posted: hiboss envelope cancel takes it back"
        raise TooLate(id=f"e{row['id']}", action=action, state=state)


def _check_free(row: Row, action: str) -> None:
    """Raise TooLate if somebody has an envelope in hand, or it waits to be posted."""
    _check_no_post(row, action)
    if row["held_by"] is not None:
        raise TooLate(id=f"e{row['id']}", action=action, state="being delivered")
    if row["waits"] == Waits.LEASE:
        raise TooLate(id=f"e{row['id']}", action=action, state="claimed: acknowledge or release it")
