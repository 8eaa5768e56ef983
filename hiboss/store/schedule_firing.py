"""Fire schedules: send what is due, and catch up after a downtime.

One transaction does a bounded amount of work (`WORK`), so that nobody waits long for the writer; what
is left is due in the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..core.address import parse_address
from ..core.envelope import Accepted
from ..core.errors import HibossError
from ..core.escaping import quote
from ..core.schedule_times import Timing
from . import messages, notices, schedule_slots, schedules
from .connection import Row
from .group_commit import Tx
from .schedule_slots import series

GRACE_MS = 60_000  # a slot that is at most this late counts as on time
CATCH_UP = 100  # slots fired for one schedule after a downtime, at most
LONG_AGO = -(2**62)  # before every slot
WORK = 500  # slots computed and envelopes sent in one transaction, about

MaySend = Callable[[Tx, int], None]  # raises if the holder of this address may not send now


class Origin(NamedTuple):
    """The run in which somebody fires a schedule by hand; what it sends belongs to that run."""

    run: int
    trace: str
    hops: int


def fire_due(tx: Tx, now: int, may_send: MaySend) -> list[Accepted]:
    """Fire due schedules and set their next slots, in one transaction; return what was sent.

    At most about WORK slots and envelopes; what is left stays due.
    """
    fired: list[Accepted] = []
    work = WORK
    # What is on time comes first: nobody else waits while a schedule makes up for a long downtime.
    on_time = now - GRACE_MS - 1
    for number in schedules.due(tx, on_time, now, WORK) + schedules.due(tx, LONG_AGO, on_time, WORK):
        if work <= 0:
            break
        row = schedules.get(tx, number, None)
        broken = schedules.broken(tx, row, row["next_at"])
        if broken is None:
            sent, used = _fire_overdue(tx, row, now, may_send, work)
            fired += sent
            work -= used
        else:  # it must not keep the others, and deferred mail, from being woken
            _disable(tx, row, row["next_at"], broken, now)
            work -= 1
    return fired


def _disable(tx: Tx, row: Row, slot: int, why: str, now: int) -> None:
    """Disable a schedule that cannot send, record the slot as failed, and tell its owner."""
    if not schedule_slots.is_recorded(tx, series(row), slot):
        schedule_slots.record(tx, series(row), slot, "failed", now, reason=why)
    tx.execute("UPDATE schedule SET enabled = 0, next_at = NULL WHERE id = ?", (row["id"],))
    text = f"Schedule s{row['id']} could not send and is disabled: {quote(why)}"
    # It belongs to the conversation in which the schedule was made.
    made = tx.execute("SELECT reply_message FROM run WHERE id = ?", (row["run"],)).fetchone()
    about = None if made is None else made["reply_message"]
    notices.notify(tx, parse_address(row["owner_address"]), text, now, about=about)


def _fire_overdue(tx: Tx, row: Row, now: int, may_send: MaySend, work: int) -> tuple[list[Accepted], int]:
    """Fire the overdue slots of one schedule, or a part of them; return what was sent and the work done."""
    when = schedules.timing(tx, row)
    first = _skip_long_past(tx, row, when, now)
    most = CATCH_UP + max(work, CATCH_UP)  # the last hundred may have to be fired, so more must be known
    overdue, following = _overdue(when, first, now, most)
    wanted: list[int] = []
    if following is not None and following <= now:  # not all: these are too old to be fired
        missed = overdue[:-CATCH_UP]
        following = overdue[-CATCH_UP]  # the last ones may still have to be fired
    else:
        wanted = _wanted(row["catch_up"], overdue, now)
        missed = overdue[: len(overdue) - len(wanted)]
    schedule_slots.record_missed(tx, series(row), missed, now, after=when.after)
    used = len(overdue)
    fired: list[Accepted] = []
    for place, slot in enumerate(wanted):
        if used > work and place:
            following = slot
            break
        accepted = _fire_slot(tx, row["id"], slot, now, may_send)
        if accepted is not None:
            fired.append(accepted)
            used += len(accepted.envelopes)
    _move_on(tx, row["id"], following)
    return fired, used


def _move_on(tx: Tx, number: int, following: int | None) -> None:
    """Set the next slot, unless the schedule was disabled because it could not send."""
    if following is None:
        tx.execute("UPDATE schedule SET next_at = NULL, enabled = 0 WHERE id = ?", (number,))
    else:
        tx.execute("UPDATE schedule SET next_at = ? WHERE id = ? AND enabled", (following, number))


def _skip_long_past(tx: Tx, row: Row, when: Timing, now: int) -> int:
    """Record the slots of an interval in a long downtime without computing each; return the next one."""
    first: int = row["next_at"]
    if when.every_ms is None:
        return first
    skipped = (now - first) // when.every_ms + 1 - CATCH_UP
    recorded = schedule_slots.next_recorded(tx, series(row), first)
    if recorded is not None:  # the clock was set back a little, and what follows is recorded
        skipped = min(skipped, -(-(recorded - first) // when.every_ms))
    if skipped <= 0 or schedule_slots.is_recorded(tx, series(row), first):
        return first
    last = first + (skipped - 1) * when.every_ms
    schedule_slots.record_missed(tx, series(row), [first, last], now, number=skipped, after=when.after)
    return last + when.every_ms


def _overdue(when: Timing, first: int, now: int, most: int) -> tuple[list[int], int | None]:
    """Return the slots from the first up to now, at most so many, and the slot after them."""
    found: list[int] = []
    for slot in when.slots_from(first):
        if slot > now or len(found) == most:
            return found, slot
        found.append(slot)
    return found, None


def _wanted(catch_up: str, overdue: list[int], now: int) -> list[int]:
    """Return the overdue slots to fire: the last ones, as many as `catch_up` says."""
    on_time = [slot for slot in overdue if slot >= now - GRACE_MS]
    if catch_up == "all":
        return overdue[-CATCH_UP:]
    if catch_up == "once" and len(on_time) < len(overdue):  # after a downtime: one for all its slots
        return overdue[-1:]
    return on_time


def _fire_slot(tx: Tx, number: int, slot: int, now: int, may_send: MaySend) -> Accepted | None:
    row = schedules.get(tx, number, None)
    if schedule_slots.is_recorded(tx, series(row), slot):
        return None
    if not row["enabled"]:  # the slot before it could not be sent
        schedule_slots.record_missed(tx, series(row), [slot], now, reason="it was disabled")
        return None
    if row["overlap"] == "skip" and _is_pending(tx, row["last_message"]):
        schedule_slots.record(tx, series(row), slot, "skipped", now, reason="the message before is not done")
        return None
    done = _fire(tx, row, slot, now, may_send)
    return None if isinstance(done, str) else done


def run(tx: Tx, row: Row, now: int, may_send: MaySend, origin: Origin | None) -> Accepted | str:
    """Fire a schedule now, outside its times: under a slot that is not its next one and not used yet.

    Return what was sent, or why nothing was.
    """
    slot = schedule_slots.first_free(tx, series(row), now)
    broken = schedules.broken(tx, row, now)
    if broken is not None:
        _disable(tx, row, slot, broken, now)
        return broken
    if slot == row["next_at"]:
        slot = schedule_slots.first_free(tx, series(row), slot + 1)
    return _fire(tx, row, slot, now, may_send, origin)


def _fire(
    tx: Tx, row: Row, slot: int, now: int, may_send: MaySend, origin: Origin | None = None
) -> Accepted | str:
    """Send the message of a schedule; if it cannot be sent, disable it, tell its owner, and return why."""
    try:
        may_send(tx, row["owner"])
        draft = schedules.draft(tx, row, slot=slot)
        if origin is not None:
            draft = draft._replace(run=origin.run, trace=origin.trace, hops=origin.hops + 1)
        accepted = messages.insert(tx, draft, now)
    except HibossError as error:
        _disable(tx, row, slot, error.message, now)
        return error.message
    if now - slot >= 1_000:  # then it is shown as late
        tx.execute("UPDATE message SET deliver_at = ? WHERE id = ?", (slot, accepted.message))
    schedule_slots.record(tx, series(row), slot, "fired", now, message=accepted.message)
    tx.execute("UPDATE schedule SET last_message = ? WHERE id = ?", (accepted.message, row["id"]))
    return accepted


def _is_pending(tx: Tx, message: int | None) -> bool:
    if message is None:
        return False
    # Not its forwards: what waits for a phone that is off is in the boss's box.
    found = tx.execute(
        "SELECT 1 FROM envelope WHERE message = ? AND status = 0 AND forwards IS NULL", (message,)
    ).fetchone()
    return found is not None
