"""Schedules: what they send and when, firing them, and what became of each slot."""

from __future__ import annotations

import json
from typing import Any

from ..core import clock
from ..core.address import SYSTEM, parse_address
from ..core.envelope import Accepted, Attachment, Draft, Kind, Priority
from ..core.errors import HibossError, NotFound
from ..core.schedule_times import Timing
from . import messages, notices
from .boss import boss_timezone
from .connection import Connection, Row
from .group_commit import Tx

GRACE_MS = 60_000  # so late, a slot still counts as met
CATCH_UP = 100  # slots fired at once after a downtime, at most
STEPS = 1_000  # slots counted through in one transaction
CHUNK = 50  # schedules in one transaction

_SELECT = """
SELECT s.*, a.kind || ':' || a.name AS owner_address FROM schedule s JOIN address a ON a.id = s.owner
WHERE s.deleted_at IS NULL
"""


# --- keeping them --------------------------------------------------------------------


def insert(tx: Tx, owner: int, columns: dict[str, Any], now: int) -> int:
    known = {"owner": owner, "created_at": now, **columns}
    cursor = tx.execute(
        f"INSERT INTO schedule ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})",
        tuple(known.values()),
    )
    number = int(cursor.lastrowid or 0)
    arm(tx, number, now)
    return number


def change(tx: Tx, number: int, columns: dict[str, Any], now: int) -> None:
    if columns:
        tx.execute(
            f"UPDATE schedule SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
            (*columns.values(), number),
        )
    arm(tx, number, now)


def arm(tx: Tx, number: int, now: int) -> None:
    """Set the next slot, from now on; none while it is disabled."""
    row = tx.execute("SELECT * FROM schedule WHERE id = ?", (number,)).fetchone()
    live = row["enabled"] and row["deleted_at"] is None
    if row["next_at"] is not None and row["next_at"] <= now:
        if live:
            return  # it is fired first, and goes on from there
        _record_missed(tx, number, [row["next_at"]], now, reason="it was disabled")
    slot = timing(tx, row).after(now) if live else None
    if live and row["at"] is not None and slot is None and not _settled(tx, number, row["at"]):
        slot = row["at"]  # a single time that has just passed is late, not gone
    tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (slot, number))


def _settled(tx: Tx | Connection, number: int, slot: int) -> bool:
    found = tx.execute(
        "SELECT 1 FROM schedule_slot WHERE schedule = ? AND slot = ?", (number, slot)
    ).fetchone()
    return found is not None


def delete(tx: Tx, number: int, now: int) -> None:
    tx.execute("UPDATE schedule SET deleted_at = ?, next_at = NULL, enabled = 0 WHERE id = ?", (now, number))


def end_of_owner(tx: Tx, owner: int, now: int) -> None:
    tx.execute(
        """
        UPDATE schedule SET deleted_at = ?, next_at = NULL, enabled = 0
        WHERE owner = ? AND deleted_at IS NULL
        """,
        (now, owner),
    )


def follow_boss(tx: Tx, now: int) -> None:
    """The boss's zone has changed: schedules without a zone of their own follow."""
    for row in tx.execute(
        f"{_SELECT} AND s.timezone IS NULL AND s.cron IS NOT NULL AND s.enabled"
    ).fetchall():
        arm(tx, row["id"], now)


def get(connection: Connection | Tx, number: int, owner: int | None) -> Row:
    """One schedule, when it is the owner's; None sees all."""
    row: Row | None = connection.execute(f"{_SELECT} AND s.id = ?", (number,)).fetchone()
    if row is None or (owner is not None and row["owner"] != owner):
        raise NotFound(what="schedule", value=f"s{number}", where="hiboss cron list")
    return row


def listed(connection: Connection, owner: int | None) -> list[Row]:
    if owner is None:
        return connection.execute(f"{_SELECT} ORDER BY s.id").fetchall()
    return connection.execute(f"{_SELECT} AND s.owner = ? ORDER BY s.id", (owner,)).fetchall()


def is_spent(connection: Connection, row: Row) -> bool:
    """Whether a single time has come and gone."""
    return row["at"] is not None and _settled(connection, row["id"], row["at"])


def slots(connection: Connection, number: int, limit: int) -> list[Row]:
    """What became of the last slots, newest first."""
    return connection.execute(
        "SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY slot DESC LIMIT ?", (number, limit)
    ).fetchall()


def timing(connection: Connection | Tx, row: Row) -> Timing:
    name = row["timezone"] or boss_timezone(connection)
    return Timing(row["cron"], row["every_ms"], row["at"], clock.zone(name), row["created_at"])


# --- firing --------------------------------------------------------------------------


def fire_due(tx: Tx, now: int) -> list[Accepted]:
    """Fire what is due and advance, in one transaction; nothing waits for a recipient."""
    rows = tx.execute(
        f"{_SELECT} AND s.next_at IS NOT NULL AND s.next_at <= ? ORDER BY s.next_at LIMIT ?", (now, CHUNK)
    ).fetchall()
    fired: list[Accepted] = []
    for row in rows:
        fired += _fire_overdue(tx, row, now)
    return fired


def _fire_overdue(tx: Tx, row: Row, now: int) -> list[Accepted]:
    when = timing(tx, row)
    first = _skip_ages(tx, row["id"], when, row["next_at"], now)
    overdue, following = _overdue(when, first, now)
    wanted: list[int] = []
    if following is not None and following <= now:  # more than can be counted at once: these are long gone
        _record_missed(tx, row["id"], overdue[:-CATCH_UP], now)
        following = overdue[-CATCH_UP]  # the last ones may yet be wanted
    else:
        wanted = _wanted(row["catch_up"], overdue, now)
        _record_missed(tx, row["id"], overdue[: len(overdue) - len(wanted)], now)
    tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (following, row["id"]))
    fired = [accepted for slot in wanted if (accepted := _fire_slot(tx, row["id"], slot, now))]
    if following is None:
        tx.execute("UPDATE schedule SET enabled = 0 WHERE id = ?", (row["id"],))
    return fired


def _skip_ages(tx: Tx, number: int, when: Timing, first: int, now: int) -> int:
    """Of an interval the slots of a long downtime need not be counted one by one."""
    if when.every_ms is None:
        return first
    ages = (now - first) // when.every_ms + 1 - STEPS
    if ages <= 0:
        return first
    last = first + (ages - 1) * when.every_ms
    _record_missed(tx, number, [first, last], now, number_of=ages)
    return last + when.every_ms


def _overdue(when: Timing, first: int, now: int) -> tuple[list[int], int | None]:
    """Slots from the first up to now, a limited number, and the one after them."""
    found: list[int] = []
    slot: int | None = first
    while slot is not None and slot <= now and len(found) < STEPS:
        found.append(slot)
        slot = when.after(slot)
    return found, slot


def _wanted(catch_up: str, overdue: list[int], now: int) -> list[int]:
    """Which of the overdue slots are fired: the last ones, as many as the schedule wants."""
    met = [slot for slot in overdue if slot >= now - GRACE_MS]
    if catch_up == "all":
        return overdue[-CATCH_UP:]
    if catch_up == "once" and len(met) < len(overdue):  # there was a downtime: one for all of it
        return overdue[-1:]
    return met


def _fire_slot(tx: Tx, number: int, slot: int, now: int) -> Accepted | None:
    row = get(tx, number, None)
    if _settled(tx, number, slot):
        return None
    if not row["enabled"]:  # the slot before could not be sent
        _record_missed(tx, number, [slot], now, reason="it was disabled")
        return None
    if row["overlap"] == "skip" and _is_pending(tx, row["last_message"]):
        _record(tx, number, slot, "skipped", now, reason="the one before is not done")
        return None
    return fire(tx, row, slot, now)


def run(tx: Tx, row: Row, now: int) -> Accepted | None:
    """Fire beside its own times: in a millisecond that is none of them and not taken yet."""
    slot = now
    while slot == row["next_at"] or _settled(tx, row["id"], slot):
        slot += 1
    return fire(tx, row, slot, now)


def fire(tx: Tx, row: Row, slot: int, now: int) -> Accepted | None:
    """Send what a schedule sends; what cannot be sent disables it, and its owner is told."""
    try:
        accepted = messages.insert(tx, draft(tx, row, slot), now)
    except HibossError as error:
        _record(tx, row["id"], slot, "failed", now, reason=error.message)
        tx.execute("UPDATE schedule SET enabled = 0, next_at = NULL WHERE id = ?", (row["id"],))
        text = f"Schedule s{row['id']} could not send and is disabled: {error.message}"
        notices.notify(tx, parse_address(row["owner_address"]), text, now)
        return None
    if now - slot >= 1_000:  # so that it is labelled late
        tx.execute("UPDATE message SET deliver_at = ? WHERE id = ?", (slot, accepted.message))
    _record(tx, row["id"], slot, "fired", now, message=accepted.message)
    tx.execute("UPDATE schedule SET last_message = ? WHERE id = ?", (accepted.message, row["id"]))
    return accepted


def draft(tx: Tx, row: Row, slot: int) -> Draft:
    kept = json.loads(row["draft"])
    system = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    key = f"s{row['id']}@{slot}"
    return Draft(
        sender=parse_address(kept["from"]),
        caller=system.id,  # whose keys nobody else can use
        sees_all=True,
        to=tuple(parse_address(one) for one in kept["to"]),
        text=kept["text"],
        subject=kept["subject"],
        kind=Kind[kept["type"].upper()],
        priority=Priority[kept["priority"].upper()],
        attachments=tuple(Attachment(**one) for one in kept["attachments"]),
        from_boss=kept["from_boss"],
        from_name=kept["from_name"],
        key=key,
        digest=key.encode(),
    )


def _is_pending(tx: Tx, message: int | None) -> bool:
    if message is None:
        return False
    found = tx.execute("SELECT 1 FROM envelope WHERE message = ? AND status = 0", (message,)).fetchone()
    return found is not None


def _record_missed(
    tx: Tx,
    number: int,
    missed: list[int],
    now: int,
    *,
    number_of: int | None = None,
    reason: str = "no daemon ran",
) -> None:
    while missed and _settled(tx, number, missed[0]):  # the clock was set back, and armed anew
        missed = missed[1:]
    if missed:
        tx.execute(
            """
            INSERT INTO schedule_slot (schedule, slot, last_slot, number, outcome, reason, at)
            VALUES (?, ?, ?, ?, 'missed', ?, ?)
            """,
            (number, missed[0], missed[-1], number_of or len(missed), reason, now),
        )


def _record(
    tx: Tx,
    number: int,
    slot: int,
    outcome: str,
    now: int,
    *,
    reason: str | None = None,
    message: int | None = None,
) -> None:
    tx.execute(
        """
        INSERT INTO schedule_slot (schedule, slot, last_slot, outcome, reason, message, at)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (number, slot, slot, outcome, reason, message, now),
    )
