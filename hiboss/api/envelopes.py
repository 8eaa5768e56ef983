"""Operations about envelopes: looking, and dealing with them. Sending is in `sending`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.address import BOSS
from ..core.envelope import Box, Status
from ..core.errors import InvalidParams, UnknownAddress
from ..store import addresses, counters, envelopes, paging
from ..store.group_commit import Tx
from .addresses import acting_for, resolve
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation

Id = str | int
Ids = Annotated[list[Id], Field(min_length=1, max_length=100)]
ACK_CHUNK = 500


class List(Params):
    box: Literal["inbox", "outbox", "archived", "trash"] | None = Field(
        None, description="inbox when not given, and outbox for what failed; with a thread, all of it"
    )
    status: Literal["pending", "done", "failed", "cancelled"] | None = None
    unread: bool = False
    arrived: bool = Field(False, description="only what has arrived, nothing deferred (for the boss)")
    sender: str | None = Field(None, alias="from")
    to: str | None = None
    thread: Id | None = None
    created_after: str | None = None
    created_before: str | None = None
    page_size: int | None = None
    after: str | None = Field(None, description="the `next` of the page before")
    oldest_first: bool = False
    count: bool = Field(False, description="also say how many there are in all")
    address: str | None = Field(None, description="whose box (for the boss)")


class Listed(TypedDict):
    envelopes: list[envelope_json.EnvelopeJson]
    next: str | None
    total: NotRequired[int | str]
    timezone: str


class Get(Params):
    id: Id


class Got(TypedDict):
    envelope: envelope_json.EnvelopeJson
    recipients: list[str]
    timezone: str


class Mark(Params):
    ids: Ids
    address: str | None = Field(None, description="for whom (for the boss)")


class Ack(Params):
    ids: Annotated[list[Id], Field(max_length=100)] = Field(default_factory=list)
    all: bool = Field(False, description="everything due in the inbox")
    up_to: Id | None = Field(None, description="with all: no further than this envelope")
    address: str | None = Field(None, description="for whom (for the boss)")


class Marked(TypedDict):
    changed: int


class Read(TypedDict):
    changed: int
    envelopes: list[envelope_json.EnvelopeJson]
    timezone: str


@operation(
    "envelope.list",
    level=Level.RESTRICTED,
    params=List,
    result=Listed,
    errors=(
        errors.BadAddress,
        errors.BadTime,
        errors.BadId,
        errors.BadCursor,
        errors.NotFound,
        errors.Gap,
        errors.UnknownAddress,
        errors.BossOnly,
        errors.InvalidParams,
    ),
)
async def listed(context: Context, caller: Caller, params: List) -> Listed:
    """One page of a box, newest first; looking changes nothing."""
    query = _query(context, caller, params)
    store = context.store
    if query.filtered or params.count:
        page = await store.read_in_thread(lambda c: paging.page(c, query))
    else:
        page = store.read(lambda c: paging.page(c, query))
    result: Listed = {
        "envelopes": envelopes_json(context, page.ids, caller.sees),
        "next": page.next.text(store.epoch) if page.next else None,
        "timezone": context.timezone,
    }
    if params.count:
        exact_to = context.settings.count_exact_to
        result["total"] = await store.read_in_thread(lambda c: paging.count(c, query, exact_to))
    return result


def envelopes_json(
    context: Context, numbers: list[int], viewer: int | None
) -> list[envelope_json.EnvelopeJson]:
    """Envelopes that were found to be visible to the viewer; None sees all."""
    if not numbers:
        return []
    rows = context.store.read(lambda c: envelopes.fetch(c, numbers))
    quotes = context.store.read(lambda c: envelopes.quotes(c, rows, viewer))
    return [envelope_json.envelope(row, context.home, quotes) for row in rows]


def _query(context: Context, caller: Caller, params: List) -> paging.Query:
    now, zone = clock.now(), context.zone
    statuses = tuple(Status)
    if params.status is not None:
        statuses = (Status[params.status.upper()],)
    elif params.unread:
        statuses = (Status.PENDING, Status.DONE, Status.FAILED)  # what was taken back need not be read

    def moment(text: str | None) -> int | None:
        return None if text is None else clock.parse(text, now=now, zone=zone)

    # What fails lies with whoever sent it: asked for without a box, an inbox would nearly always be empty.
    failed = params.status == "failed" and params.box is None and params.thread is None and not params.address
    return paging.Query(
        owner=acting_for(context.store, caller, params.address),
        outbox=params.box == "outbox" or (failed and not caller.is_boss),
        everywhere=failed and caller.is_boss,
        whole_thread=params.box is None and params.thread is not None,
        sees_all=caller.is_boss and params.address is None,
        box=Box[params.box.upper()] if params.box in ("archived", "trash") else Box.INBOX,
        statuses=statuses,
        unread=params.unread,
        senders=_namesakes(context, params.sender),
        recipients=_namesakes(context, params.to),
        thread=_thread(context, caller, params.thread),
        created_after=moment(params.created_after),
        created_before=moment(params.created_before),
        oldest_first=params.oldest_first,
        with_deferred=caller.is_boss and not params.arrived,
        limit=page_size(context, params.page_size),
        after=None if params.after is None else paging.Position.parse(params.after, context.store.epoch),
    )


def _namesakes(context: Context, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    address = resolve(context.store, text)
    found = context.store.read(lambda c: addresses.namesakes(c, address))
    if not found:
        raise UnknownAddress(
            address=text, hint=context.store.read(lambda c: addresses.near_address(c, address))
        )
    return found


def _thread(context: Context, caller: Caller, given: Id | None) -> int | None:
    """A thread by its own id, or by any message or envelope in it."""
    if given is None:
        return None
    kind, number = ids.parse(given, "thread", "message", "envelope")
    if kind == "envelope":
        row = context.store.read(lambda c: envelopes.visible(c, number, caller.sees))
        return int(row["thread"] or row["message"])
    return number if kind == "thread" else context.store.read(lambda c: envelopes.thread_of(c, number))


def page_size(context: Context, given: int | None) -> int:
    limit = context.settings.page_size_limit
    if given is None:
        return context.settings.page_size
    if not 1 <= given <= limit:
        raise InvalidParams(detail=f"page_size (-n) is {given} and may be 1 to {limit}")
    return given


@operation(
    "envelope.get",
    level=Level.RESTRICTED,
    params=Get,
    result=Got,
    errors=(errors.NotFound, errors.BadId),
)
async def get(context: Context, caller: Caller, params: Get) -> Got:
    """One envelope in full; looking changes nothing."""
    number = ids.number(params.id, "envelope")
    row = context.store.read(lambda c: envelopes.visible(c, number, caller.sees))
    return {
        "envelope": envelopes_json(context, [number], caller.sees)[0],
        "recipients": context.store.read(lambda c: envelopes.recipients(c, row["message"])),
        "timezone": context.timezone,
    }


_READ_ERRORS = (
    errors.BadAddress,
    errors.NotFound,
    errors.OtherBox,
    errors.BadId,
    errors.UnknownAddress,
    errors.BossOnly,
)
_MARK_ERRORS = (*_READ_ERRORS, errors.TooLate)


@operation("envelope.read", level=Level.RESTRICTED, params=Mark, result=Read, errors=_READ_ERRORS)
async def read(context: Context, caller: Caller, params: Mark) -> Read:
    """Show envelopes of one's own box and mark them read."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    changed = await _mark(context, caller, params, envelopes.mark_read)
    return {
        "changed": changed,
        "envelopes": envelopes_json(context, numbers, caller.sees),
        "timezone": context.timezone,
    }


@operation(
    "envelope.ack",
    level=Level.RESTRICTED,
    params=Ack,
    result=Marked,
    errors=(*_MARK_ERRORS, errors.InvalidParams),
)
async def ack(context: Context, caller: Caller, params: Ack) -> Marked:
    """Say that envelopes are dealt with: each becomes done, and read."""
    if params.all == bool(params.ids) or (params.up_to is not None and not params.all):
        raise InvalidParams(
            detail="give ids (--id), or all (--all), and with all an up_to (--up-to) if you like"
        )
    if not params.all:
        return {"changed": await _mark(context, caller, params, envelopes.acknowledge)}
    return {"changed": await _ack_all(context, caller, params)}


async def _ack_all(context: Context, caller: Caller, params: Ack) -> int:
    """In chunks, so that others can write in between; what arrives meanwhile is not touched."""
    owner = acting_for(context.store, caller, params.address)
    upto = context.store.read(counters.last_arrived)
    if params.up_to is not None:
        number = ids.number(params.up_to, "envelope")
        row = context.store.read(lambda c: envelopes.visible(c, number, owner))
        if row["recipient"] != owner or row["arrived"] is None:
            raise errors.NotFound(what="envelope", value=f"e{number}")
        upto = row["arrived"]
    changed = 0
    while True:
        now = clock.now()
        done = await context.write(
            caller,
            lambda tx: envelopes.acknowledge_due(tx, owner, upto, ACK_CHUNK, now),  # noqa: B023 - awaited here
        )
        changed += done
        if done < ACK_CHUNK:
            return changed


@operation("envelope.archive", level=Level.RESTRICTED, params=Mark, result=Marked, errors=_MARK_ERRORS)
async def archive(context: Context, caller: Caller, params: Mark) -> Marked:
    """Put envelopes into the archive; a pending one is settled with that."""
    return {"changed": await _mark(context, caller, params, _into(Box.ARCHIVED))}


@operation("envelope.trash", level=Level.RESTRICTED, params=Mark, result=Marked, errors=_MARK_ERRORS)
async def trash(context: Context, caller: Caller, params: Mark) -> Marked:
    """Put envelopes into the trash; a pending one is settled with that. Nothing is deleted."""
    return {"changed": await _mark(context, caller, params, _into(Box.TRASH))}


@operation("envelope.restore", level=Level.RESTRICTED, params=Mark, result=Marked, errors=_MARK_ERRORS)
async def restore(context: Context, caller: Caller, params: Mark) -> Marked:
    """Put envelopes from archive or trash back into the inbox."""
    return {"changed": await _mark(context, caller, params, _into(Box.INBOX))}


Marking = Callable[[Tx, list[int], int, int], int]


def _into(box: Box) -> Marking:
    return lambda tx, numbers, owner, now: envelopes.put_into(tx, numbers, owner, box, now)


async def _mark(context: Context, caller: Caller, params: Mark | Ack, marking: Marking) -> int:
    """All the ids given, or none: a change for the recipient, in one transaction."""
    owner = acting_for(context.store, caller, params.address)
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()
    try:
        return await context.write(caller, lambda tx: marking(tx, numbers, owner, now))
    except errors.NotFound:
        if caller.is_boss and params.address is None:
            _say_whose(context, numbers)
        raise


def _say_whose(context: Context, numbers: list[int]) -> None:
    """The boss sees all, and acts for others only by naming them."""
    for row in context.store.read(lambda c: envelopes.fetch(c, numbers)):
        if row["to_address"] != str(BOSS):
            raise errors.OtherBox(id=f"e{row['id']}", address=row["to_address"])
