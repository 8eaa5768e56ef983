"""Operations about schedules: messages sent repeatedly, or once at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..core import clock, errors, ids, schedule_times
from ..core.envelope import Accepted, Draft
from ..core.errors import InvalidParams, ScheduleQuota
from ..core.schedule_times import Timing
from ..routing.message_files import Prepared
from ..store import destinations, limit_asks, schedule_firing, schedule_slots, schedules
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.schedule_firing import Origin
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .request_limits import fitting
from .schedule_shapes import (
    ById,
    Create,
    CronTimes,
    Explain,
    List,
    ScheduleFields,
    ScheduleJson,
    ScheduleList,
    ScheduleRun,
    Set,
    Slot,
)
from .send_shapes import Send
from .sending import draft_of
from .uploads import files_of, handed_by

LONGEST_INTERVAL_MS = 366 * 24 * 3_600_000
SHORTEST_INTERVAL_MS = 1_000
SLOTS_SHOWN = 20

_CONTENT_ERRORS = (
    errors.BadCron,
    errors.BadDuration,
    errors.BadTime,
    errors.TooFar,
    errors.BadTimezone,
    errors.BadAddress,
    errors.BadText,
    errors.EmptyMessage,
    errors.NoRecipient,
    errors.UnknownRecipient,
    errors.UnknownSender,
    errors.NotBound,
    errors.TooLarge,
    errors.AttachmentMissing,
    errors.AttachmentUnreadable,
    errors.AttachmentForbidden,
    errors.AttachmentOutside,
    errors.AttachmentPrivate,
    errors.ScheduleQuota,
    InvalidParams,
)
_ID_ERRORS = (errors.NotFound, errors.BadId)


@operation(
    "cron.create",
    level=Level.STANDARD,
    effect="change",
    params=Create,
    result=ScheduleJson,
    errors=(*_CONTENT_ERRORS, errors.BossOnly, errors.BadId, errors.NotFound),
)
async def create(context: Context, caller: Caller, params: Create) -> ScheduleJson:
    """Create a schedule that sends a message: by cron expression, at an interval, or once."""
    when = _when(context, params)
    if len(when) != 1:
        raise InvalidParams(detail="give the time in one way: cron (--cron), every (--every) or at (--at)")
    sending = Send.model_validate(_message_fields(params) | {"from": params.sender})
    sending = sending.model_copy(update={"from_boss": params.from_boss, "from_name": params.from_name})
    handed = handed_by(caller, sending.uploads)
    columns = {**when, **_options(context, params)}
    if caller.run is not None and caller.trace is not None:
        columns |= schedules.origin(caller.run, caller.trace, caller.hops)
    files = files_of(context, caller, sending.attachments)
    prepared = await context.router.prepare(draft_of(context, caller, sending), files, handed)
    draft, now = prepared.draft, clock.now()
    timing = _timing(context, when, now)  # not in the write: the zone is read on this thread's connection

    def write(tx: Tx) -> Row | ScheduleQuota:
        context.auth.check_may_send(tx, caller.id)
        over = limit_asks.schedule_over_quota(tx, caller.id, timing, now)
        if over is not None:
            return over
        prepared.use(tx)
        kept = {**_kept(draft), "addresses": destinations.check(tx, draft)}
        stored = {**columns, "draft": _as_json(kept)}
        return schedules.get(tx, schedules.insert(tx, caller.id, stored, now), None)

    row = await context.router.store_prepared(prepared, lambda: _write(context, caller, write))
    return _scheduled(context, row)


async def _write(context: Context, caller: Caller, write: Callable[[Tx], Row | ScheduleQuota]) -> Row:
    """Write a schedule; raise when the boss must be asked, after the COMMIT of the question."""
    done = await context.write(caller, write)
    if isinstance(done, ScheduleQuota):
        raise done
    return done


@operation(
    "cron.set",
    level=Level.STANDARD,
    effect="change",
    params=Set,
    result=ScheduleJson,
    errors=(*_CONTENT_ERRORS, *_ID_ERRORS),
)
async def change(context: Context, caller: Caller, params: Set) -> ScheduleJson:
    """Change a schedule; what is not given stays as it is."""
    number = ids.number(params.id, "schedule")
    if not params.model_fields_set - {"id"}:
        raise InvalidParams(
            detail="nothing to change: give at least one option, like every (--every) or text (--text)"
        )
    before = context.store.read(lambda c: schedules.get(c, number, caller.sees))
    when = _when(context, params)
    if len(when) > 1:
        raise InvalidParams(detail="give the time in one way: cron (--cron), every (--every) or at (--at)")
    options = _options(context, params)
    prepared, content = await _content(context, caller, params, schedules.stored_message(before))
    now = clock.now()
    timing = _timing(context, when, now)

    def write(tx: Tx) -> Row | ScheduleQuota:
        row = schedules.get(tx, number, caller.sees)
        context.auth.check_may_send(tx, row["owner"])
        if when and not caller.is_boss:
            over = limit_asks.schedule_over_quota(tx, row["owner"], timing, now, changed=number)
            if over is not None:
                return over
        prepared.use(tx)
        message = schedules.stored_message(row) | content  # of this moment: another one may have changed it
        if "to" in content:  # whoever has these names now is meant
            message["addresses"] = {message["from"]: message["addresses"].get(message["from"])}
        message["addresses"] |= destinations.check(tx, schedules.draft(tx, row, message))
        columns = {**options, **_new_time(tx, caller, row, when), "draft": _as_json(message)}
        schedules.change(tx, number, columns, now)
        return schedules.get(tx, number, None)

    row = await context.router.store_prepared(prepared, lambda: _write(context, caller, write))
    return _scheduled(context, row)


@operation("cron.list", level=Level.RESTRICTED, params=List, result=ScheduleList, errors=(errors.BadId,))
def listed(context: Context, caller: Caller, params: List) -> ScheduleList:
    """List the caller's own schedules; for the boss all. Large texts make several pages."""
    after = 0 if params.after is None else ids.number(params.after, "schedule")

    def read(connection: Connection) -> ScheduleList:
        rows = schedules.list_all(connection, caller.sees, after)
        shown, more = fitting(context, (_to_json(context, row) for row in rows))
        return {"schedules": shown, "next": shown[-1]["id"] if more else None}

    return context.store.read(read)


@operation("cron.show", level=Level.RESTRICTED, params=ById, result=ScheduleJson, errors=_ID_ERRORS)
def show(context: Context, caller: Caller, params: ById) -> ScheduleJson:
    """Show one schedule, with the outcome of its last times."""
    number = ids.number(params.id, "schedule")
    row = context.store.read(lambda c: schedules.get(c, number, caller.sees))
    slots = context.store.read(lambda c: schedule_slots.last(c, number, SLOTS_SHOWN))
    return {**_to_json(context, row), "slots": [_slot(one) for one in slots]}


@operation(
    "cron.enable",
    level=Level.STANDARD,
    effect="idempotent",
    params=ById,
    result=ScheduleJson,
    errors=_ID_ERRORS,
)
async def enable(context: Context, caller: Caller, params: ById) -> ScheduleJson:
    """Enable a schedule from now on; times that passed while it was disabled are not sent."""
    return await _switch(context, caller, params, 1)


@operation(
    "cron.disable",
    level=Level.STANDARD,
    effect="idempotent",
    params=ById,
    result=ScheduleJson,
    errors=_ID_ERRORS,
)
async def disable(context: Context, caller: Caller, params: ById) -> ScheduleJson:
    """Disable a schedule until it is enabled again."""
    return await _switch(context, caller, params, 0)


@operation(
    "cron.delete",
    level=Level.STANDARD,
    effect="destructive",
    params=ById,
    result=ScheduleRun,
    errors=_ID_ERRORS,
)
async def delete(context: Context, caller: Caller, params: ById) -> ScheduleRun:
    """Delete a schedule; what it has sent stays."""
    number = ids.number(params.id, "schedule")
    now = clock.now()

    def write(tx: Tx) -> None:
        schedules.get(tx, number, caller.sees)
        schedules.delete(tx, number, now)

    await context.write(caller, write)
    return {"id": f"s{number}", "fired": False, "ids": [], "why": None}


@operation(
    "cron.run", level=Level.STANDARD, effect="change", params=ById, result=ScheduleRun, errors=_ID_ERRORS
)
async def run(context: Context, caller: Caller, params: ById) -> ScheduleRun:
    """Send a schedule's message now; its times stay as they are."""
    number = ids.number(params.id, "schedule")
    now = clock.now()
    origin = None if caller.run is None else Origin(caller.run, caller.trace or "", caller.hops)

    def write(tx: Tx) -> Accepted | str:
        row = schedules.get(tx, number, caller.sees)
        return schedule_firing.run(tx, row, now, context.auth.check_may_send, origin)

    done = await context.write(caller, write)
    if isinstance(done, str):
        return {"id": f"s{number}", "fired": False, "ids": [], "why": done}
    context.router.accepted(done)
    return {"id": f"s{number}", "fired": True, "ids": [f"e{one}" for one in done.envelopes], "why": None}


@operation(
    "cron.explain",
    level=Level.OPEN,
    elsewhere=Level.RESTRICTED,
    params=Explain,
    result=CronTimes,
    errors=(errors.BadCron, errors.BadTimezone, InvalidParams),
)
def explain(context: Context, caller: Caller, params: Explain) -> CronTimes:
    """Show the next times of a cron expression."""
    if not 1 <= params.count <= 100:
        raise InvalidParams(detail=f"count (--count) is {params.count}; it can be 1 to 100")
    expression, name = schedule_times.check(params.cron), params.timezone or context.timezone
    zone = clock.zone(name)
    slots = schedule_times.cron_slots(expression, clock.now(), zone)
    found = [slot for slot, _ in zip(slots, range(params.count), strict=False)]
    return {
        "cron": expression,
        "timezone": str(zone),
        "next": [clock.iso(slot) for slot in found],
        "local": [clock.local(slot, zone) for slot in found],
    }


async def _switch(context: Context, caller: Caller, params: ById, enabled: int) -> ScheduleJson:
    number = ids.number(params.id, "schedule")
    now = clock.now()

    def write(tx: Tx) -> Row:
        schedules.get(tx, number, caller.sees)
        schedules.change(tx, number, {"enabled": enabled}, now)
        return schedules.get(tx, number, None)

    return _scheduled(context, await context.write(caller, write))


def _when(context: Context, params: ScheduleFields) -> dict[str, Any]:
    """Return the columns of the given times."""
    when: dict[str, Any] = {}
    if params.cron is not None:
        when["cron"] = schedule_times.check(params.cron)
    if params.every is not None:
        length = clock.duration(params.every, most=LONGEST_INTERVAL_MS)
        if length < SHORTEST_INTERVAL_MS:
            raise errors.BadDuration(value=params.every[:40], why=": the shortest is 1s")
        when["every_ms"] = length
    if params.at is not None:
        now = clock.now()
        moment = clock.deliver_at(params.at, now=now, zone=context.zone)
        when["at"] = clock.parse(params.at, now=now, zone=context.zone) if moment is None else moment
    return when


def _timing(context: Context, when: dict[str, Any], now: int) -> Timing:
    return Timing(when.get("cron"), when.get("every_ms"), when.get("at"), context.zone, now)


def _options(context: Context, params: ScheduleFields) -> dict[str, Any]:
    """Return the columns of the given options besides time and message; an empty text removes one."""
    columns: dict[str, Any] = {}
    if params.timezone is not None:
        columns["timezone"] = str(clock.zone(params.timezone)) if params.timezone else None
    if params.name is not None:
        columns["name"] = context.settings.check_word("name", params.name) or None
    for name in ("catch_up", "overlap"):
        if getattr(params, name) is not None:
            columns[name] = getattr(params, name)
    return columns


def _message_fields(params: ScheduleFields) -> dict[str, Any]:
    """Return the given parameters that describe the message, as envelope.send takes them."""
    names = ("to", "text", "subject", "type", "priority", "attachments", "uploads")
    return {name: getattr(params, name) for name in names if getattr(params, name) is not None}


def _new_time(tx: Tx, caller: Caller, row: Row, when: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a schedule that gets another time; none without one."""
    if not when:
        return {}
    columns = {"cron": None, "every_ms": None, "at": None} | when
    if schedules.is_spent(tx, row):
        columns["enabled"] = 1  # its only time was over, and now it has a new one
    repeats = columns["at"] is None
    if repeats and row["at"] is None and row["enabled"]:
        return columns  # it would send anyway, so it stays in its trace
    if caller.run is not None and caller.trace is not None:
        columns |= schedules.origin(caller.run, caller.trace, caller.hops)
    return columns


async def _content(
    context: Context, caller: Caller, params: Set, stored: dict[str, Any]
) -> tuple[Prepared, dict[str, Any]]:
    """Return what the parameters change in the stored message, checked like a new message.

    Files and uploads that are given replace all that it has.
    """
    given = _message_fields(params)
    asked = Send.model_validate({"to": stored["to"], "text": stored["text"], "type": stored["type"]} | given)
    draft = draft_of(context, None, asked, sender=stored["from"])
    prepared = await context.router.prepare(
        draft,
        files_of(context, caller, params.attachments or ()),
        handed_by(caller, params.uploads or []),
        kept_files=bool(stored["attachments"]),
    )
    changed = {*given, *(["attachments"] if "uploads" in given else [])}
    return prepared, {name: value for name, value in _kept(prepared.draft).items() if name in changed}


def _as_json(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


def _kept(draft: Draft) -> dict[str, Any]:
    """Return a draft as it is stored with a schedule; `addresses` is added when it is checked."""
    return {
        "from": str(draft.sender),
        "to": [str(address) for address in draft.to],
        "text": draft.text,
        "subject": draft.subject,
        "type": draft.kind.word,
        "priority": draft.priority.word,
        "attachments": [file.facts() for file in draft.attachments],
        "from_boss": draft.from_boss,
        "from_name": draft.from_name,
    }


def _scheduled(context: Context, row: Row) -> ScheduleJson:
    """Tell the scheduler the next time of a new or changed schedule, and return the schedule."""
    if row["next_at"] is not None:
        context.scheduler.nudge(row["next_at"])
    return _to_json(context, row)


def _to_json(context: Context, row: Row) -> ScheduleJson:
    draft = schedules.stored_message(row)
    return {
        "id": f"s{row['id']}",
        "name": row["name"],
        "owner": row["owner_address"],
        "from": draft["from"],
        "to": draft["to"],
        "cron": row["cron"],
        "every_seconds": None if row["every_ms"] is None else row["every_ms"] / 1000,
        "at": clock.iso_or_none(row["at"]),
        "timezone": row["timezone"] or context.timezone,
        "catch_up": row["catch_up"],
        "overlap": row["overlap"],
        "enabled": bool(row["enabled"]),
        "next_at": clock.iso_or_none(row["next_at"]),
        "subject": draft["subject"],
        "text": draft["text"],
        "priority": draft["priority"],
        "attachments": [file["name"] for file in draft["attachments"]],
        "created_at": clock.iso(row["created_at"]),
    }


def _slot(row: Row) -> Slot:
    return {
        "slot": clock.iso(row["slot"]),
        "last_slot": clock.iso(row["last_slot"]),
        "number": row["number"],
        "outcome": row["outcome"],
        "reason": row["reason"],
        "message": None if row["message"] is None else f"m{row['message']}",
    }
