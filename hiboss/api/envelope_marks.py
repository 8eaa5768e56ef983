"""Operations of recipients: read, acknowledge and snooze envelopes, and move them to another box."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.address import BOSS
from ..core.envelope import Box
from ..core.errors import InvalidParams
from ..store import acknowledgements, counters, envelope_marks, envelope_rows, paging
from ..store.group_commit import Tx
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .envelopes import envelopes_json
from .operation import ChangedCount, Id, Ids, Level, Params, Timezone, operation
from .param_sizes import Word

ACK_CHUNK = 500  # envelopes in one transaction, so that other writers wait at most for these
WHICH = "envelopes, like e81, or messages, like m57; all of them, or with one wrong id none"
EITHER = "give either ids, or all (--all); up_to (--up-to) goes only with all"


class Mark(Params):
    ids: Ids = Field(description=WHICH)
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class MarkAll(Params):
    ids: Annotated[list[Id], Field(max_length=100)] = Field(default_factory=list, description=WHICH)
    all: bool = Field(False, description="everything in the inbox that is meant, instead of ids")
    up_to: Id | None = Field(None, description="with all: this envelope and those that arrived before it")
    session: Word = Field("", description="your session, if it has a name: it is kept in read_by")
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class Ack(MarkAll):
    claim: Id | None = Field(
        None, description="with ids: your claim, like k7; refused when another claim has one of them now"
    )


class Snooze(Params):
    ids: Ids = Field(description=WHICH)
    until: str = Field(description="when they come back: +1h, an ISO 8601 time, or a time in the boss's zone")
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class ReadEnvelopes(TypedDict):
    changed: Annotated[int, Field(description="how many were unread")]
    envelopes: Annotated[
        list[envelope_json.EnvelopeJson], Field(description="in the order of the ids; with all: none")
    ]
    timezone: Timezone


class SnoozedCount(ChangedCount):
    until: Annotated[str, Field(description="when they come back")]
    timezone: Timezone


_READ_ERRORS = (
    errors.BadAddress,
    errors.NotFound,
    errors.OtherBox,
    errors.BadId,
    errors.UnknownAddress,
    errors.BossOnly,
)
_MARK_ERRORS = (*_READ_ERRORS, errors.TooLate)


@operation(
    "envelope.read",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=MarkAll,
    result=ReadEnvelopes,
    errors=(*_READ_ERRORS, errors.TooLarge, errors.BadText, errors.InvalidParams),
)
async def read(context: Context, caller: Caller, params: MarkAll) -> ReadEnvelopes:
    """Show envelopes and mark them as read; or mark all that is unread in the inbox, without showing it."""
    _check_which(params)
    who = _reader(context, caller, params.session)
    if params.all:
        marking_all = partial(envelope_marks.mark_all_read, **who)
        changed = await _mark_all(context, caller, params, marking_all, envelope_marks.READ_AT_ONCE)
        return {"changed": changed, "envelopes": [], "timezone": context.timezone}
    most = context.settings.page_bytes

    def mark(tx: Tx, numbers: list[int], owner: int, now: int) -> int:
        changed = envelope_marks.mark_read(tx, numbers, owner, now, **who)  # first: it refuses ids of others
        _check_fit(tx, numbers, most)
        return changed

    changed, numbers = await _mark(context, caller, params, mark)
    if caller.attached is not None:
        context.runner.attached.turns.fetched(caller.attached, numbers)
    shown, timezone = context.store.read(
        lambda _: (envelopes_json(context, numbers, caller, most), context.timezone)
    )
    return {"changed": changed, "envelopes": shown, "timezone": timezone}


def _check_fit(tx: Tx, numbers: list[int], most: int) -> None:
    """Raise if these are more than one answer shows: then none is marked as read."""
    shown = paging.fitting(tx, numbers, most)
    if len(shown) < len(numbers):
        advice = f" (limits.page_bytes); read the first {len(shown)} of these ids, then the others"
        size = f"more than {most} bytes with {len(numbers)} envelopes"
        raise errors.TooLarge(what="the answer", size=size, limit=f"{most} bytes", advice=advice)


@operation(
    "envelope.ack",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Ack,
    result=ChangedCount,
    errors=(*_MARK_ERRORS, errors.InvalidParams, errors.BadText, errors.TooLarge),
)
async def ack(context: Context, caller: Caller, params: Ack) -> ChangedCount:
    """Acknowledge envelopes: each becomes done and read."""
    _check_which(params)
    if params.all and params.claim is not None:
        raise InvalidParams(detail="claim (--claim) goes only with ids: all leaves out what is claimed")
    who = _reader(context, caller, params.session)
    if not params.all:
        claim = None if params.claim is None else ids.number(params.claim, "claim")
        marking = partial(acknowledgements.acknowledge, claim=claim, **who)
        return {"changed": (await _mark(context, caller, params, marking)).changed}

    def due(tx: Tx, owner: int, upto: int, now: int) -> int:
        return acknowledgements.acknowledge_due(tx, owner, upto, ACK_CHUNK, now, **who)

    return {"changed": await _mark_all(context, caller, params, due, ACK_CHUNK)}


def _check_which(params: MarkAll) -> None:
    if params.all == bool(params.ids) or (params.up_to is not None and not params.all):
        raise InvalidParams(detail=EITHER)


class _Reader(TypedDict):
    reader: int
    session: str


def _reader(context: Context, caller: Caller, session: str) -> _Reader:
    """Return who reads, and in which session: a run and an open session are known by their tokens."""
    context.settings.check_word("session", session)
    return {"reader": caller.id, "session": session or caller.session}


# A change in the store: transaction, owner, the last arrival number, now; returns how many changed.
MarkingAll = Callable[[Tx, int, int, int], int]


async def _mark_all(
    context: Context, caller: Caller, params: MarkAll, marking: MarkingAll, at_once: int
) -> int:
    """Mark what has arrived by now, or up to an envelope. What arrives meanwhile is left alone.

    A large box in several transactions, so that others can write in between.
    """
    owner = acting_for(context.store, caller, params.address)
    upto = context.store.read(counters.last_arrived)
    if params.up_to is not None:
        number = ids.number(params.up_to, "envelope")
        row = context.store.read(lambda c: envelope_rows.visible(c, number, owner))
        if row["recipient"] != owner or row["arrived"] is None:
            raise errors.NotFound(what="envelope", value=f"e{number}")
        upto = context.store.read(lambda c: envelope_rows.place(c, number))
    changed = 0
    while True:
        now = clock.now()
        done = await context.write(caller, lambda tx: marking(tx, owner, upto, now))  # noqa: B023 - awaited here
        changed += done
        if done < at_once:
            return changed


@operation(
    "envelope.snooze",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Snooze,
    result=SnoozedCount,
    errors=(*_MARK_ERRORS, errors.BadTime, errors.TooFar, errors.InvalidParams),
)
async def snooze(context: Context, caller: Caller, params: Snooze) -> SnoozedCount:
    """Hide envelopes until a time. Then they arrive again, as unread."""
    until = clock.deliver_at(params.until, now=clock.now(), zone=context.zone)
    if until is None:
        past = f"until (--until) {params.until[:60]} is in the past"
        raise InvalidParams(detail=f"{past}; give a later time, like +1h")

    def mark(tx: Tx, numbers: list[int], owner: int, now: int) -> int:
        return envelope_marks.snooze(tx, numbers, owner, until, now)

    changed, _ = await _mark(context, caller, params, mark)
    context.scheduler.nudge(until)
    return {"changed": changed, "until": clock.iso(until), "timezone": context.timezone}


@operation(
    "envelope.unsnooze",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Mark,
    result=ChangedCount,
    errors=_READ_ERRORS,
)
async def unsnooze(context: Context, caller: Caller, params: Mark) -> ChangedCount:
    """Bring snoozed envelopes back now. They arrive again, as unread."""
    return {"changed": (await _mark(context, caller, params, envelope_marks.unsnooze)).changed}


@operation(
    "envelope.archive",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Mark,
    result=ChangedCount,
    errors=_MARK_ERRORS,
)
async def archive(context: Context, caller: Caller, params: Mark) -> ChangedCount:
    """Move envelopes to the archive; a pending one becomes done."""
    return {"changed": (await _mark(context, caller, params, _into(Box.ARCHIVED))).changed}


@operation(
    "envelope.trash",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Mark,
    result=ChangedCount,
    errors=_MARK_ERRORS,
)
async def trash(context: Context, caller: Caller, params: Mark) -> ChangedCount:
    """Move envelopes to the trash; a pending one becomes done. Nothing is deleted."""
    return {"changed": (await _mark(context, caller, params, _into(Box.TRASH))).changed}


@operation(
    "envelope.restore",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Mark,
    result=ChangedCount,
    errors=_MARK_ERRORS,
)
async def restore(context: Context, caller: Caller, params: Mark) -> ChangedCount:
    """Move envelopes from the archive or the trash back to the inbox."""
    return {"changed": (await _mark(context, caller, params, _into(Box.INBOX))).changed}


# A change in the store: transaction, envelope ids, owner, now; returns how many changed.
Marking = Callable[[Tx, list[int], int, int], int]


def _into(box: Box) -> Marking:
    return lambda tx, numbers, owner, now: envelope_marks.put_into(tx, numbers, owner, box, now)


class _Marked(NamedTuple):
    changed: int
    numbers: list[int]  # the envelopes that the ids mean


async def _mark(
    context: Context, caller: Caller, params: Mark | MarkAll | Snooze, marking: Marking
) -> _Marked:
    """Mark all the given envelopes of one recipient in one transaction, or none of them."""
    owner = acting_for(context.store, caller, params.address)
    given = [ids.parse(one, "envelope", "message") for one in params.ids]
    now = clock.now()

    def write(tx: Tx) -> _Marked:
        numbers = envelope_rows.own(tx, given, owner)
        return _Marked(marking(tx, numbers, owner, now), numbers)

    try:
        return await context.write(caller, write)
    except errors.NotFound:
        if caller.is_boss and params.address is None:
            _raise_other_box(context, [number for kind, number in given if kind == "envelope"])
        raise


def _raise_other_box(context: Context, numbers: list[int]) -> None:
    """Tell the boss in whose box an envelope is: the boss acts for others only by naming them."""
    if not numbers:
        return
    for row in context.store.read(lambda c: envelope_rows.fetch(c, numbers)):
        if row["to_address"] != str(BOSS):
            raise errors.OtherBox(id=f"e{row['id']}", address=row["to_address"])
