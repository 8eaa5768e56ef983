"""Operations about schedules: what is sent again and again, or once at its time."""

from __future__ import annotations

import json
from typing import Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids, schedule_times
from ..core.envelope import Draft
from ..core.errors import InvalidParams
from ..store import messages, schedules
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation
from .sending import Send, draft_of

Id = str | int
LONGEST_INTERVAL = 366 * 24 * 3_600_000
SHORTEST_INTERVAL = 1_000
SLOTS_SHOWN = 20


class Content(Params):
    cron: str | None = Field(None, description="five fields as in cron(5), or @daily and the like")
    every: str | None = Field(None, description="an interval of elapsed time, like 90s or 2h")
    at: str | None = Field(None, description="once: +2h, an ISO 8601 time, or one in the boss's zone")
    to: str | list[str] | None = None
    text: str | None = None
    subject: str | None = None
    type: Literal["text", "markdown", "json", "html"] | None = None
    priority: Literal["critical", "high", "normal", "low"] | None = None
    attachments: list[str] | None = Field(None, description="absolute paths, copied now")
    timezone: str | None = Field(None, description="of the cron expression; the boss's when not given")
    catch_up: Literal["skip", "once", "all"] | None = Field(None, description="after a downtime")
    overlap: Literal["skip", "queue"] | None = Field(None, description="while the one before is not done")
    name: str | None = None


class Create(Content):
    sender: str | None = Field(
        None, alias="from", description="in whose name (for the boss only; user:boss when not given)"
    )
    from_boss: bool = False
    from_name: str | None = None


class One(Params):
    id: Id


class Set(Content, One):
    """The id first: what must be given comes before what may be."""


class Explain(Params):
    cron: str
    timezone: str | None = None
    count: int = 5


class Slot(TypedDict):
    slot: str
    last_slot: str
    number: int
    outcome: str
    reason: str | None
    message: str | None


ScheduleJson = TypedDict(
    "ScheduleJson",
    {
        "id": str,
        "name": str | None,
        "owner": str,
        "from": str,
        "to": list[str],
        "cron": str | None,
        "every_seconds": float | None,
        "at": str | None,
        "timezone": str,
        "catch_up": str,
        "overlap": str,
        "enabled": bool,
        "next_at": str | None,
        "subject": str | None,
        "text": str,
        "priority": str,
        "attachments": list[str],
        "created_at": str,
        "slots": NotRequired[list[Slot]],
    },
)


class Listed(TypedDict):
    schedules: list[ScheduleJson]


class Ran(TypedDict):
    id: str
    fired: bool
    ids: list[str]


class Explained(TypedDict):
    cron: str
    timezone: str
    next: list[str]
    local: list[str]


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
    errors.AttachmentPrivate,
    InvalidParams,
)
_ONE_ERRORS = (errors.NotFound, errors.BadId)


@operation(
    "cron.create",
    level=Level.STANDARD,
    params=Create,
    result=ScheduleJson,
    errors=(*_CONTENT_ERRORS, errors.BossOnly),
)
async def create(context: Context, caller: Caller, params: Create) -> ScheduleJson:
    """Send a message by a schedule: cron, every so often, or once at a time."""
    when = _when(context, params)
    if len(when) != 1:
        raise InvalidParams(detail="say when, in one way: cron (--cron), every (--every) or at (--at)")
    sending = Send.model_validate(_sending(params) | {"from": params.sender})
    sending = sending.model_copy(update={"from_boss": params.from_boss, "from_name": params.from_name})
    draft = await context.router.prepare(draft_of(context, caller, sending), sending.attachments)
    columns = {**when, **_manner(context, params), "draft": _kept(draft)}
    now = clock.now()

    def write(tx: Tx) -> Row:
        messages.check(tx, draft)
        return schedules.get(tx, schedules.insert(tx, caller.id, columns, now), None)

    return _armed(context, await context.write(caller, write))


@operation(
    "cron.set",
    level=Level.STANDARD,
    params=Set,
    result=ScheduleJson,
    errors=(*_CONTENT_ERRORS, *_ONE_ERRORS),
)
async def change(context: Context, caller: Caller, params: Set) -> ScheduleJson:
    """Change a schedule; what is not given stays as it is."""
    number = ids.number(params.id, "schedule")
    if not params.model_fields_set - {"id"}:
        raise InvalidParams(detail="there is nothing to change: give what should be otherwise")
    before = context.store.read(lambda c: schedules.get(c, number, caller.sees))
    when = _when(context, params)
    if len(when) > 1:
        raise InvalidParams(detail="say when in one way: cron (--cron), every (--every) or at (--at)")
    if when:
        when = {"cron": None, "every_ms": None, "at": None} | when
        if context.store.read(lambda c: schedules.is_spent(c, before)):
            when["enabled"] = 1  # a new time for what had only one
    kept = json.loads(before["draft"])
    given = _sending(params)
    asked = Send.model_validate({"to": kept["to"], "text": kept["text"], "type": kept["type"]} | given)
    draft = draft_of(context, None, asked, sender=kept["from"])
    draft = await context.router.prepare(
        draft, params.attachments or [], kept_files=bool(kept["attachments"])
    )
    names = given.keys() - {"attachments"} | ({"attachments"} if params.attachments is not None else set())
    merged = kept | {name: value for name, value in json.loads(_kept(draft)).items() if name in names}
    columns = {**when, **_manner(context, params), "draft": json.dumps(merged, ensure_ascii=False)}
    now = clock.now()

    def write(tx: Tx) -> Row:
        schedules.get(tx, number, caller.sees)
        messages.check(tx, draft)
        schedules.change(tx, number, columns, now)
        return schedules.get(tx, number, None)

    return _armed(context, await context.write(caller, write))


@operation("cron.list", level=Level.RESTRICTED, result=Listed)
async def listed(context: Context, caller: Caller, params: Params) -> Listed:
    """One's own schedules; for the boss all."""
    rows = context.store.read(lambda c: schedules.listed(c, caller.sees))
    return {"schedules": [_to_json(context, row) for row in rows]}


@operation("cron.show", level=Level.RESTRICTED, params=One, result=ScheduleJson, errors=_ONE_ERRORS)
async def show(context: Context, caller: Caller, params: One) -> ScheduleJson:
    """One schedule, with what became of its last slots."""
    number = ids.number(params.id, "schedule")
    row = context.store.read(lambda c: schedules.get(c, number, caller.sees))
    slots = context.store.read(lambda c: schedules.slots(c, number, SLOTS_SHOWN))
    return {**_to_json(context, row), "slots": [_slot(one) for one in slots]}


@operation("cron.enable", level=Level.STANDARD, params=One, result=ScheduleJson, errors=_ONE_ERRORS)
async def enable(context: Context, caller: Caller, params: One) -> ScheduleJson:
    """Let a schedule go on, from now; what was due meanwhile is not made up for."""
    return await _switch(context, caller, params, 1)


@operation("cron.disable", level=Level.STANDARD, params=One, result=ScheduleJson, errors=_ONE_ERRORS)
async def disable(context: Context, caller: Caller, params: One) -> ScheduleJson:
    """Hold a schedule until it is enabled again."""
    return await _switch(context, caller, params, 0)


@operation("cron.delete", level=Level.STANDARD, params=One, result=Ran, errors=_ONE_ERRORS)
async def delete(context: Context, caller: Caller, params: One) -> Ran:
    """Take a schedule away; what it has sent stays."""
    number = ids.number(params.id, "schedule")
    now = clock.now()

    def write(tx: Tx) -> None:
        schedules.get(tx, number, caller.sees)
        schedules.delete(tx, number, now)

    await context.write(caller, write)
    return {"id": f"s{number}", "fired": False, "ids": []}


@operation("cron.run", level=Level.STANDARD, params=One, result=Ran, errors=_ONE_ERRORS)
async def run(context: Context, caller: Caller, params: One) -> Ran:
    """Send what a schedule sends now; its own times stay as they are."""
    number = ids.number(params.id, "schedule")
    now = clock.now()
    accepted = await context.write(
        caller, lambda tx: schedules.run(tx, schedules.get(tx, number, caller.sees), now)
    )
    if accepted is not None:
        context.router.accepted(accepted)
    found = [f"e{one}" for one in accepted.envelopes] if accepted else []
    return {"id": f"s{number}", "fired": accepted is not None, "ids": found}


@operation(
    "cron.explain",
    level=Level.OPEN,
    params=Explain,
    result=Explained,
    errors=(errors.BadCron, errors.BadTimezone, InvalidParams),
)
async def explain(context: Context, caller: Caller, params: Explain) -> Explained:
    """When a cron expression would be due next."""
    if not 1 <= params.count <= 100:
        raise InvalidParams(detail=f"count (--count) is {params.count} and may be 1 to 100")
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


async def _switch(context: Context, caller: Caller, params: One, enabled: int) -> ScheduleJson:
    number = ids.number(params.id, "schedule")
    now = clock.now()

    def write(tx: Tx) -> Row:
        schedules.get(tx, number, caller.sees)
        schedules.change(tx, number, {"enabled": enabled}, now)
        return schedules.get(tx, number, None)

    return _armed(context, await context.write(caller, write))


def _when(context: Context, params: Content) -> dict[str, Any]:
    """The columns that say when, of what was given."""
    when: dict[str, Any] = {}
    if params.cron is not None:
        when["cron"] = schedule_times.check(params.cron)
    if params.every is not None:
        length = clock.duration(params.every, most=LONGEST_INTERVAL)
        if length < SHORTEST_INTERVAL:
            raise errors.BadDuration(value=params.every[:40], why=": at least 1s is possible")
        when["every_ms"] = length
    if params.at is not None:
        now = clock.now()
        moment = clock.deliver_at(params.at, now=now, zone=context.zone)
        when["at"] = clock.parse(params.at, now=now, zone=context.zone) if moment is None else moment
    return when


def _manner(context: Context, params: Content) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if params.timezone is not None:
        columns["timezone"] = str(clock.zone(params.timezone)) if params.timezone else None
    if params.name is not None:
        columns["name"] = context.settings.check_word("name", params.name) or None
    for name in ("catch_up", "overlap"):
        if getattr(params, name) is not None:
            columns[name] = getattr(params, name)
    return columns


def _sending(params: Content) -> dict[str, Any]:
    names = ("to", "text", "subject", "type", "priority", "attachments")
    return {name: getattr(params, name) for name in names if getattr(params, name) is not None}


def _kept(draft: Draft) -> str:
    kept = {
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
    return json.dumps(kept, ensure_ascii=False)


def _armed(context: Context, row: Row) -> ScheduleJson:
    if row["next_at"] is not None:
        context.scheduler.nudge(row["next_at"])
    return _to_json(context, row)


def _to_json(context: Context, row: Row) -> ScheduleJson:
    kept = json.loads(row["draft"])
    return {
        "id": f"s{row['id']}",
        "name": row["name"],
        "owner": row["owner_address"],
        "from": kept["from"],
        "to": kept["to"],
        "cron": row["cron"],
        "every_seconds": None if row["every_ms"] is None else row["every_ms"] / 1000,
        "at": clock.iso_or_none(row["at"]),
        "timezone": row["timezone"] or context.timezone,
        "catch_up": row["catch_up"],
        "overlap": row["overlap"],
        "enabled": bool(row["enabled"]),
        "next_at": clock.iso_or_none(row["next_at"]),
        "subject": kept["subject"],
        "text": kept["text"],
        "priority": kept["priority"],
        "attachments": [file["name"] for file in kept["attachments"]],
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
