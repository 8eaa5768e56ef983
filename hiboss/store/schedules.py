"""Schedules: store and fire them, and record the outcome of each slot."""

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

GRACE_MS = 60_000  # a slot that is at most this late counts as on time
CATCH_UP = 100  # slots fired at once after a downtime, at most
STEPS = 1_000  # slots computed one by one in one transaction, at most
CHUNK = 50  # schedules in one transaction

_SELECT = """
SELECT s.*, a.kind || ':' || a.name AS owner_address FROM schedule s JOIN address a ON a.id = s.owner
WHERE s.deleted_at IS NULL
"""


# --- storing -------------------------------------------------------------------------


def insert(tx: Tx, owner: int, columns: dict[str, Any], now: int) -> int:
    """Store a schedule, set its next slot, and return its id."""
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
    """Set the next slot after now; none while the schedule is disabled."""
    row = tx.execute("SELECT * FROM schedule WHERE id = ?", (number,)).fetchone()
    live = row["enabled"] and row["deleted_at"] is None
    if row["next_at"] is not None and row["next_at"] <= now:
        if live:
            return  # it is due: firing sets the next slot
        _record_missed(tx, number, [row["next_at"]], now, reason="it was disabled")
    slot = timing(tx, row).after(now) if live else None
    if live and row["at"] is not None and slot is None and not _settled(tx, number, row["at"]):
        slot = row["at"]  # a single time that has just passed is fired late
    tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (slot, number))


def _settled(tx: Tx | Connection, number: int, slot: int) -> bool:
    found = tx.execute(
        "SELECT 1 FROM schedule_slot WHERE schedule = ? AND slot = ?", (number, slot)
    ).fetchone()
    return found is not None


def delete(tx: Tx, number: int, now: int) -> None:
    tx.execute("UPDATE schedule SET deleted_at = ?, next_at = NULL, enabled = 0 WHERE id = ?", (now, number))


def end_of_owner(tx: Tx, owner: int, now: int) -> None:
    """Delete the schedules of a deleted owner."""
    tx.execute(
        """
        UPDATE schedule SET deleted_at = ?, next_at = NULL, enabled = 0
        WHERE owner = ? AND deleted_at IS NULL
        """,
        (now, owner),
    )


def follow_boss(tx: Tx, now: int) -> None:
    """Set the next slots again after the boss's time zone changed, for schedules without their own zone."""
    for row in tx.execute(
        f"{_SELECT} AND s.timezone IS NULL AND s.cron IS NOT NULL AND s.enabled"
    ).fetchall():
        arm(tx, row["id"], now)


def get(connection: Connection | Tx, number: int, owner: int | None) -> Row:
    """Return a schedule of this owner (None: of anybody); raise NotFound if there is none."""
    row: Row | None = connection.execute(f"{_SELECT} AND s.id = ?", (number,)).fetchone()
    if row is None or (owner is not None and row["owner"] != owner):
        raise NotFound(what="schedule", value=f"s{number}", where="hiboss cron list")
    return row


def list_all(connection: Connection, owner: int | None) -> list[Row]:
    if owner is None:
        return connection.execute(f"{_SELECT} ORDER BY s.id").fetchall()
    return connection.execute(f"{_SELECT} AND s.owner = ? ORDER BY s.id", (owner,)).fetchall()


def is_spent(connection: Connection, row: Row) -> bool:
    """Tell whether a schedule for a single time has fired or was missed."""
    return row["at"] is not None and _settled(connection, row["id"], row["at"])


def slots(connection: Connection, number: int, limit: int) -> list[Row]:
    """Return the outcomes of the last slots, newest first."""
    return connection.execute(
        "SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY slot DESC LIMIT ?", (number, limit)
    ).fetchall()


def timing(connection: Connection | Tx, row: Row) -> Timing:
    """Return the timing of a schedule, in its own zone or the boss's."""
    name = row["timezone"] or boss_timezone(connection)
    return Timing(row["cron"], row["every_ms"], row["at"], clock.zone(name), row["created_at"])


# --- firing --------------------------------------------------------------------------


def fire_due(tx: Tx, now: int) -> list[Accepted]:
    """Fire the due schedules and set their next slots, in one transaction; return what was sent."""
    rows = tx.execute(
        f"{_SELECT} AND s.next_at IS NOT NULL AND s.next_at <= ? ORDER BY s.next_at LIMIT ?", (now, CHUNK)
    ).fetchall()
    fired: list[Accepted] = []
    for row in rows:
        broken = _broken(tx, row)
        if broken is None:
            fired += _fire_overdue(tx, row, now)
        else:  # it must not keep the others, and deferred mail, from being woken
            _disable(tx, row, row["next_at"], broken, now)
    return fired


def _broken(tx: Tx, row: Row) -> str | None:
    """Return why a stored schedule cannot be used any more, like a time zone that the machine lost."""
    try:
        timing(tx, row).after(row["next_at"])
        draft(tx, row, row["next_at"])
    except HibossError as error:
        return error.message
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # damaged from outside
        return f"its row cannot be read ({type(error).__name__})"
    return None


def _disable(tx: Tx, row: Row, slot: int, why: str, now: int) -> None:
    """Disable a schedule that cannot send, record the slot as failed, and tell its owner."""
    if not _settled(tx, row["id"], slot):
        _record(tx, row["id"], slot, "failed", now, reason=why)
    tx.execute("UPDATE schedule SET enabled = 0, next_at = NULL WHERE id = ?", (row["id"],))
    text = f"Schedule s{row['id']} could not send and is disabled: {why}"
    notices.notify(tx, parse_address(row["owner_address"]), text, now)


def _fire_overdue(tx: Tx, row: Row, now: int) -> list[Accepted]:
    when = timing(tx, row)
    first = _skip_long_past(tx, row["id"], when, row["next_at"], now)
    overdue, following = _overdue(when, first, now)
    wanted: list[int] = []
    if following is not None and following <= now:  # more than STEPS: these are too old to be fired
        _record_missed(tx, row["id"], overdue[:-CATCH_UP], now)
        following = overdue[-CATCH_UP]  # the last ones may still have to be fired
    else:
        wanted = _wanted(row["catch_up"], overdue, now)
        _record_missed(tx, row["id"], overdue[: len(overdue) - len(wanted)], now)
    tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (following, row["id"]))
    fired = [accepted for slot in wanted if (accepted := _fire_slot(tx, row["id"], slot, now))]
    if following is None:
        tx.execute("UPDATE schedule SET enabled = 0 WHERE id = ?", (row["id"],))
    return fired


def _skip_long_past(tx: Tx, number: int, when: Timing, first: int, now: int) -> int:
    """Record the slots of an interval in a long downtime without computing each; return the next one."""
    if when.every_ms is None:
        return first
    skipped = (now - first) // when.every_ms + 1 - STEPS
    if skipped <= 0:
        return first
    last = first + (skipped - 1) * when.every_ms
    _record_missed(tx, number, [first, last], now, number_of=skipped)
    return last + when.every_ms


def _overdue(when: Timing, first: int, now: int) -> tuple[list[int], int | None]:
    """Return the slots from the first up to now, at most STEPS, and the slot after them."""
    found: list[int] = []
    slot: int | None = first
    while slot is not None and slot <= now and len(found) < STEPS:
        found.append(slot)
        slot = when.after(slot)
    return found, slot


def _wanted(catch_up: str, overdue: list[int], now: int) -> list[int]:
    """Return the overdue slots to fire: the last ones, as many as `catch_up` says."""
    on_time = [slot for slot in overdue if slot >= now - GRACE_MS]
    if catch_up == "all":
        return overdue[-CATCH_UP:]
    if catch_up == "once" and len(on_time) < len(overdue):  # after a downtime: one for all its slots
        return overdue[-1:]
    return on_time


def _fire_slot(tx: Tx, number: int, slot: int, now: int) -> Accepted | None:
    row = get(tx, number, None)
    if _settled(tx, number, slot):
        return None
    if not row["enabled"]:  # the slot before it could not be sent
        _record_missed(tx, number, [slot], now, reason="it was disabled")
        return None
    if row["overlap"] == "skip" and _is_pending(tx, row["last_message"]):
        _record(tx, number, slot, "skipped", now, reason="the message before is not done")
        return None
    return fire(tx, row, slot, now)


def run(tx: Tx, row: Row, now: int) -> Accepted | None:
    """Fire a schedule now, outside its times: under a slot that is not its next one and not used yet."""
    slot = now
    while slot == row["next_at"] or _settled(tx, row["id"], slot):
        slot += 1
    return fire(tx, row, slot, now)


def fire(tx: Tx, row: Row, slot: int, now: int) -> Accepted | None:
    """Send the message of a schedule; if it cannot be sent, disable the schedule and tell its owner."""
    try:
        accepted = messages.insert(tx, draft(tx, row, slot), now)
    except HibossError as error:
        _disable(tx, row, slot, error.message, now)
        return None
    if now - slot >= 1_000:  # then it is shown as late
        tx.execute("UPDATE message SET deliver_at = ? WHERE id = ?", (slot, accepted.message))
    _record(tx, row["id"], slot, "fired", now, message=accepted.message)
    tx.execute("UPDATE schedule SET last_message = ? WHERE id = ?", (accepted.message, row["id"]))
    return accepted


def draft(tx: Tx, row: Row, slot: int) -> Draft:
    """Return the draft that a schedule sends for a slot; its key makes it unique."""
    kept = json.loads(row["draft"])
    system = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    key = f"s{row['id']}@{slot}"
    return Draft(
        sender=parse_address(kept["from"]),
        caller=system.id,  # nobody else can use its keys
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
    reason: str = "the daemon was not running",
) -> None:
    while missed and _settled(tx, number, missed[0]):  # recorded before: the clock was set back since
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
