"""Schedules: store them, set their next slots, and return the message that a slot sends.

Firing is in schedule_firing.py, the record of slots in schedule_slots.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..core import clock
from ..core.address import Address, parse_address
from ..core.envelope import Attachment, Draft, Kind, Priority
from ..core.errors import HibossError, NotFound, UnknownRecipient, UnknownSender
from ..core.schedule_times import Timing
from . import schedule_slots
from .boss import boss_timezone
from .connection import Connection, Row
from .group_commit import Tx
from .schedule_slots import series

NOTICED_MS = 2_000  # a changed clock is noticed within this time; what is set meanwhile is right already
FOREVER = 2**62
CHUNK = 100  # schedules in one transaction, where each of them is looked at

_SELECT = """
SELECT s.*, a.kind || ':' || a.name AS owner_address, ifnull(u.boss, 0) AS owner_is_boss
FROM schedule s JOIN address a ON a.id = s.owner LEFT JOIN user u ON u.address = s.owner
WHERE s.deleted_at IS NULL
"""


# --- storing -------------------------------------------------------------------------


def insert(tx: Tx, owner: int, columns: dict[str, Any], now: int) -> int:
    """Store a schedule, set its next slot, and return its id."""
    known = {"owner": owner, "created_at": now, "begun_at": now, **columns}
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
        schedule_slots.record_missed(tx, series(row), [row["next_at"]], now, reason="it was disabled")
    slot = timing(tx, row).after(now) if live else None
    if live and row["at"] is not None and slot is None:
        if _is_spent(tx, row):
            tx.execute("UPDATE schedule SET enabled = 0 WHERE id = ?", (number,))
        else:
            slot = row["at"]  # a single time that has just passed is fired late
    if slot is not None and row["every_ms"] is not None:
        # If the clock was set back while it was disabled, it counts from now, and its slots come again.
        begun = min(row["begun_at"], now)
        slot = min(slot, now + row["every_ms"])
        era = row["era"] + schedule_slots.any_after(tx, series(row), now)
        tx.execute("UPDATE schedule SET era = ?, begun_at = ? WHERE id = ?", (era, begun, number))
    tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (slot, number))


def _is_spent(tx: Tx | Connection, row: Row) -> bool:
    return schedule_slots.is_recorded(tx, series(row), row["at"])


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


def follow_chat(tx: Tx, adapter: str, old: str, new: str, ids: Mapping[int, int]) -> None:
    """Rewrite the schedules that send to a chat, or a topic of it, which has another id now.

    `ids`: the address ids of its places before, and what they are now.
    """
    rows = tx.execute(
        "SELECT id, draft FROM schedule WHERE deleted_at IS NULL AND instr(draft, 'channel:')"
    ).fetchall()
    for row in rows:
        try:
            kept = json.loads(row["draft"])
            sender, *to = [_renamed(one, adapter, old, new) for one in (kept["from"], *kept["to"])]
            known = {
                _renamed(one, adapter, old, new): ids.get(number, number)
                for one, number in kept["addresses"].items()
            }
        except (HibossError, LookupError, TypeError, ValueError, AttributeError):
            continue  # damaged from outside: it is disabled when it is due
        changed = json.dumps(
            {**kept, "from": sender, "to": list(dict.fromkeys(to)), "addresses": known}, ensure_ascii=False
        )
        if changed != row["draft"]:
            tx.execute("UPDATE schedule SET draft = ? WHERE id = ?", (changed, row["id"]))


def _renamed(text: str, adapter: str, old: str, new: str) -> str:
    """Return an address with the new id of the chat, if it is in that chat."""
    address = parse_address(text)
    chat, slash, topic = address.name.partition("/")
    if address.kind != "channel" or chat != f"{adapter}:{old}":
        return text
    return str(Address("channel", f"{adapter}:{new}{slash}{topic}"))


def follow_boss(tx: Tx, now: int, after: int = 0) -> int | None:
    """Set the next slots again after the boss's time zone changed, for schedules without their own zone.

    Of CHUNK schedules with an id above `after`; return the id to continue with, or None after the last one.
    """
    rows = tx.execute(
        f"{_SELECT} AND s.id > ? AND s.timezone IS NULL AND s.cron IS NOT NULL AND s.enabled"
        " ORDER BY s.id LIMIT ?",
        (after, CHUNK),
    ).fetchall()
    for row in rows:
        if broken(tx, row, now) is None:
            arm(tx, row["id"], now)
    return rows[-1]["id"] if len(rows) == CHUNK else None


def after_clock_step(tx: Tx, now: int, step_ms: int, after: int = 0) -> int | None:
    """Correct the schedules after the clock was set back by `step_ms` (0: unknown; below 0: set forward).

    An interval is elapsed time: it continues, and the times that come again are slots of another era.
    For a cron expression, slots that were sent stay sent; those recorded as missed whose time has not
    come any more are due at their time. Looks at CHUNK schedules with an id above `after`; returns
    the id to continue with, or None after the last one.
    """
    if step_ms < 0:
        tx.execute(  # what was due before that stays due; what was set since then is right
            """
            UPDATE schedule SET next_at = next_at - ?1, begun_at = begun_at - ?1
            WHERE every_ms IS NOT NULL AND next_at > ?2 AND next_at <= ?2 + every_ms + ?3
            """,
            (step_ms, now + step_ms, NOTICED_MS),
        )
        return None
    rows = tx.execute(
        f"{_SELECT} AND s.id > ? AND s.at IS NULL AND s.enabled AND s.next_at > ? ORDER BY s.id LIMIT ?",
        (after, now, CHUNK),
    ).fetchall()
    for row in rows:
        if broken(tx, row, now) is not None:
            continue  # it is disabled when it is due
        if row["every_ms"] is None:
            again = schedule_slots.forget_missed_after(tx, series(row), now)
            _continue_at(tx, row, again if again is not None else timing(tx, row).after(now))
        elif row["next_at"] > now + min(step_ms - NOTICED_MS if step_ms else FOREVER, row["every_ms"]):
            schedule_slots.forget_missed_after(tx, series(row), now)
            slot = min(row["next_at"] - step_ms, now + row["every_ms"])
            tx.execute(
                "UPDATE schedule SET era = era + 1, begun_at = ? WHERE id = ?",
                (slot - row["every_ms"], row["id"]),
            )
            _continue_at(tx, row, slot)
    return rows[-1]["id"] if len(rows) == CHUNK else None


def _continue_at(tx: Tx, row: Row, slot: int | None) -> None:
    if slot is not None:
        tx.execute("UPDATE schedule SET next_at = ? WHERE id = ?", (slot, row["id"]))


# --- reading -------------------------------------------------------------------------


def get(connection: Connection | Tx, number: int, owner: int | None) -> Row:
    """Return a schedule of this owner (None: of anybody); raise NotFound if there is none."""
    row: Row | None = connection.execute(f"{_SELECT} AND s.id = ?", (number,)).fetchone()
    if row is None or (owner is not None and row["owner"] != owner):
        raise NotFound(what="schedule", value=f"s{number}", where="hiboss cron list")
    return row


def list_all(connection: Connection, owner: int | None, after: int = 0) -> Iterator[Row]:
    """Yield the schedules of an owner (None: of anybody) above the id `after`; each is read when needed."""
    which, values = ("", ()) if owner is None else (" AND s.owner = ?", (owner,))
    yield from connection.execute(f"{_SELECT} AND s.id > ?{which} ORDER BY s.id", (after, *values))


def due(tx: Tx, after: int, until: int, limit: int) -> list[int]:
    """Return the ids of the schedules whose next slot is after one moment and not after another, by slot."""
    rows = tx.execute(
        """
        SELECT id FROM schedule INDEXED BY schedule_next
        WHERE next_at IS NOT NULL AND next_at > ? AND next_at <= ? ORDER BY next_at, id LIMIT ?
        """,
        (after, until, limit),
    ).fetchall()
    return [row["id"] for row in rows]


def broken(tx: Tx, row: Row, moment: int) -> str | None:
    """Return why a stored schedule cannot be used any more, like a time zone that the machine lost."""
    try:
        timing(tx, row).after(moment)
        draft(tx, row)
    except HibossError as error:
        return error.message
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # damaged from outside
        return f"its row cannot be read ({type(error).__name__})"
    return None


def number_of(connection: Connection | Tx, owner: int, but: int | None, now: int) -> int:
    """Count the schedules of an owner that can still send, or could if they were enabled; not `but`."""
    row = connection.execute(
        """
        SELECT count(*) FROM schedule INDEXED BY schedule_owner
        WHERE owner = ? AND deleted_at IS NULL AND (at IS NULL OR at > ?) AND id IS NOT ?
        """,
        (owner, now, but),
    ).fetchone()
    return int(row[0])


def is_spent(connection: Connection | Tx, row: Row) -> bool:
    """Tell whether a schedule for a single time has fired or was missed."""
    return row["at"] is not None and _is_spent(connection, row)


def timing(connection: Connection | Tx, row: Row) -> Timing:
    """Return the timing of a schedule, in its own zone or the boss's."""
    name = row["timezone"] or boss_timezone(connection)
    return Timing(row["cron"], row["every_ms"], row["at"], clock.zone(name), row["begun_at"])


# --- the message ---------------------------------------------------------------------


def origin(run: int, trace: str, hops: int) -> dict[str, Any]:
    """Return the columns of a schedule whose time is set in a run with this trace and these hops.

    What it sends belongs to the trace of the run and is one hop further, like all that a run sends: so
    nothing escapes the limits by a schedule.
    """
    return {"run": run, "trace": trace, "hops": hops + 1}


def stored_message(row: Row) -> dict[str, Any]:
    """Return the message of a schedule as it is stored; of a damaged one, what can be read."""
    try:
        found = json.loads(row["draft"])
    except ValueError:
        found = None
    empty = {"from": row["owner_address"], "to": [], "text": "", "subject": None, "type": "text"}
    more = {"priority": "normal", "attachments": [], "from_boss": False, "from_name": None, "addresses": {}}
    return empty | more | (found if isinstance(found, dict) else {})


def draft(tx: Tx, row: Row, kept: dict[str, Any] | None = None, slot: int = 0) -> Draft:
    """Return what a schedule sends for a slot, with the rights that its owner has.

    `kept`: a message to check instead of the stored one. Raise if a name belongs to another one by now.
    """
    kept = json.loads(row["draft"]) if kept is None else kept
    sender, to = parse_address(kept["from"]), tuple(parse_address(one) for one in kept["to"])
    for address, error in ((sender, UnknownSender), *((one, UnknownRecipient) for one in to)):
        known, entry = kept["addresses"].get(str(address)), tx.cache.live_address(address)
        if entry is not None and known is not None and entry.id != known:
            raise error(address=str(address), hint=" any more (another one has the name now)")
    return Draft(
        sender=sender,
        caller=row["owner"],
        sees_all=bool(row["owner_is_boss"]),
        to=to,
        text=kept["text"],
        subject=kept["subject"],
        kind=Kind[kept["type"].upper()],
        priority=Priority[kept["priority"].upper()],
        attachments=tuple(Attachment(**one) for one in kept["attachments"]),
        from_boss=kept["from_boss"],
        from_name=kept["from_name"],
        run=row["run"],
        trace=row["trace"] or f"s{row['id']}@{clock.iso(slot)}",
        hops=row["hops"],
    )
