"""The record of schedules: the outcome of each slot. A slot is recorded once.

A row stands for one slot, or for several missed ones in a row (`slot` to `last_slot`). The rows of
one era never overlap. An era ends for an interval when the clock is set back: then the same times
come again, and they are other slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .connection import Connection, Row
from .group_commit import Tx


class Series(NamedTuple):
    """The slots of one schedule in one era."""

    schedule: int
    era: int


def series(row: Row) -> Series:
    """Return the present slots of a schedule."""
    return Series(row["id"], row["era"])


def covering(tx: Tx | Connection, of: Series, slot: int) -> Row | None:
    """Return the record that contains this slot; None if it is not recorded yet."""
    row = covering_or_before(tx, of, slot)
    return row if row is not None and row["last_slot"] >= slot else None


def covering_or_before(tx: Tx | Connection, of: Series, slot: int) -> Row | None:
    """Return the record that contains this slot, or the last one before it."""
    row: Row | None = tx.execute(
        "SELECT * FROM schedule_slot WHERE schedule = ? AND era = ? AND slot <= ? ORDER BY slot DESC LIMIT 1",
        (*of, slot),
    ).fetchone()
    return row


def is_recorded(tx: Tx | Connection, of: Series, slot: int) -> bool:
    return covering(tx, of, slot) is not None


def first_free(tx: Tx, of: Series, slot: int) -> int:
    """Return the first time from `slot` on that is not recorded."""
    while (row := covering(tx, of, slot)) is not None:
        slot = row["last_slot"] + 1
    return slot


def next_recorded(tx: Tx, of: Series, slot: int) -> int | None:
    """Return the first recorded slot from `slot` on; None if there is none."""
    row = tx.execute(
        "SELECT min(slot) FROM schedule_slot WHERE schedule = ? AND era = ? AND slot >= ?", (*of, slot)
    ).fetchone()
    found: int | None = row[0]
    return found


def any_after(connection: Connection | Tx, of: Series, moment: int) -> bool:
    """Tell whether a slot after this moment is recorded: then the clock was set back."""
    row = connection.execute(
        "SELECT last_slot FROM schedule_slot WHERE schedule = ? AND era = ? ORDER BY slot DESC LIMIT 1", of
    ).fetchone()
    return row is not None and row["last_slot"] > moment


def last(connection: Connection, schedule: int, limit: int) -> list[Row]:
    """Return the outcomes of the last slots, newest first."""
    return connection.execute(
        "SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY era DESC, slot DESC LIMIT ?",
        (schedule, limit),
    ).fetchall()


def record(
    tx: Tx,
    of: Series,
    slot: int,
    outcome: str,
    now: int,
    *,
    reason: str | None = None,
    message: int | None = None,
) -> None:
    tx.execute(
        """
        INSERT INTO schedule_slot (schedule, era, slot, last_slot, outcome, reason, message, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (*of, slot, slot, outcome, reason, message, now),
    )


def record_missed(
    tx: Tx,
    of: Series,
    missed: list[int],
    now: int,
    *,
    number: int | None = None,
    reason: str = "the daemon was not running",
    after: Callable[[int], int | None] | None = None,
) -> None:
    """Record slots in a row as missed, in one row if nothing else is recorded between them.

    `number`: how many there are, if `missed` names only the first and the last; nothing may be
    recorded between these. `after` returns the slot that follows another one: slots that follow a
    row of missed ones are added to that row.
    """
    for some in [missed] if number is not None else _unrecorded(tx, of, missed):
        counted = number or len(some)
        before = covering_or_before(tx, of, some[0]) if after is not None else None
        if (
            after is not None
            and before is not None
            and (before["outcome"], before["reason"]) == ("missed", reason)
            and after(before["last_slot"]) == some[0]
        ):
            tx.execute(
                """
                UPDATE schedule_slot SET last_slot = ?, number = number + ?, at = ?
                WHERE schedule = ? AND era = ? AND slot = ?
                """,
                (some[-1], counted, now, *of, before["slot"]),
            )
        else:
            tx.execute(
                """
                INSERT INTO schedule_slot (schedule, era, slot, last_slot, number, outcome, reason, at)
                VALUES (?, ?, ?, ?, ?, 'missed', ?, ?)
                """,
                (*of, some[0], some[-1], counted, reason, now),
            )


def _unrecorded(tx: Tx, of: Series, slots: list[int]) -> list[list[int]]:
    """Return the slots that are not recorded yet, cut where a record lies between two of them."""
    if not slots:
        return []
    begin = covering(tx, of, slots[0])
    rows = tx.execute(
        "SELECT slot, last_slot FROM schedule_slot WHERE schedule = ? AND era = ? AND slot BETWEEN ? AND ?"
        " ORDER BY slot",
        (*of, slots[0] if begin is None else begin["slot"], slots[-1]),
    ).fetchall()
    parts: list[list[int]] = [[]]
    for slot in slots:
        while rows and rows[0]["last_slot"] < slot:
            rows.pop(0)
            parts.append([])
        if not rows or slot < rows[0]["slot"]:
            parts[-1].append(slot)
    return [part for part in parts if part]


def forget_missed_after(tx: Tx, of: Series, moment: int) -> int | None:
    """Delete the missed slots after a moment: the clock was set back, so their time has not come.

    Return the first deleted one, if it is not after that moment itself; its row is to be made again.
    """
    rows = tx.execute(
        """
        DELETE FROM schedule_slot
        WHERE schedule = ?1 AND era = ?2 AND outcome = 'missed' AND last_slot > ?3
          AND slot >= ifnull((SELECT max(slot) FROM schedule_slot
                              WHERE schedule = ?1 AND era = ?2 AND slot <= ?3), ?3)
        RETURNING slot
        """,
        (*of, moment),
    ).fetchall()
    found = min((row["slot"] for row in rows), default=None)
    return found if found is not None and found <= moment else None
