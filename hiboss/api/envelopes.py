"""Operations that list and mark envelopes. Sending is in `sending`, claiming in `leases`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.address import BOSS
from ..core.envelope import Box, Status
from ..core.errors import InvalidParams
from ..store import acknowledgements, counters, envelope_rows, envelopes, paging, reactions
from ..store.connection import Connection
from ..store.group_commit import Tx
from . import receipts
from .addresses import acting_for, every_id
from .auth import Caller
from .context import Context
from .operation import ChangedCount, Id, Ids, Level, Params, Timezone, operation
from .request_limits import page_size

ACK_CHUNK = 500  # envelopes in one transaction, so that other writers wait at most for these


class List(Params):
    box: Literal["inbox", "outbox", "archived", "trash", "all"] | None = Field(
        None,
        description="default inbox; with status failed: outbox; with a thread: every box. all: each envelope "
        "of everybody in the order of ids, also forwards (only for the boss)",
    )
    status: Literal["pending", "done", "failed", "cancelled"] | None = Field(
        None, description="only envelopes with this status"
    )
    unread: bool = Field(False, description="only what was not read, and not what was cancelled")
    arrived: bool = Field(False, description="only what has arrived, nothing deferred (only for the boss)")
    sender: str | None = Field(None, alias="from", description="only from this address or name")
    to: str | None = Field(None, description="only to this address or name")
    thread: Id | None = Field(None, description="only this thread: t57, or a message or envelope in it")
    created_after: str | None = Field(None, description="a time, like -2h or 2026-01-27")
    created_before: str | None = Field(None, description="a time, like -2h or 2026-01-27")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    after: str | None = Field(None, description="the `next` of the previous page")
    oldest_first: bool = Field(False, description="turn the order around")
    count: bool = Field(False, description="also count all that match, as `total`")
    address: str | None = Field(None, description="whose box (only for the boss)")


class EnvelopePage(TypedDict):
    envelopes: Annotated[list[envelope_json.EnvelopeJson], Field(description="newest first, or as asked for")]
    next: Annotated[
        str | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    total: NotRequired[
        Annotated[
            int | str,
            Field(description="how many match, if count was given; a text over the limit, like 1000+"),
        ]
    ]
    timezone: Timezone


class Get(Params):
    id: Id = Field(description="the envelope, like e81")


class EnvelopeDetail(TypedDict):
    envelope: Annotated[envelope_json.EnvelopeJson, Field(description="with its whole text")]
    recipients: Annotated[list[str], Field(description="the addresses of all envelopes of the message")]
    receipt: Annotated[
        receipts.Receipt | None, Field(description="how far it got with an open session; null: none had it")
    ]
    timezone: Timezone


class Mark(Params):
    ids: Ids = Field(description="envelopes, like e81; all of them, or with one wrong id none")
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class Ack(Params):
    ids: Annotated[list[Id], Field(max_length=100)] = Field(
        default_factory=list, description="envelopes, like e81; all of them, or with one wrong id none"
    )
    all: bool = Field(False, description="everything that is due in the inbox")
    up_to: Id | None = Field(None, description="with all: this envelope and those that arrived before it")
    claim: Id | None = Field(
        None, description="with ids: your claim, like k7; refused when another claim has one of them now"
    )
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class ReadEnvelopes(TypedDict):
    changed: Annotated[int, Field(description="how many were unread")]
    envelopes: Annotated[list[envelope_json.EnvelopeJson], Field(description="in the order of the ids")]
    timezone: Timezone


@operation(
    "envelope.list",
    level=Level.RESTRICTED,
    effect="read",
    params=List,
    result=EnvelopePage,
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
async def listed(context: Context, caller: Caller, params: List) -> EnvelopePage:
    """List envelopes of a box, newest first; it changes nothing."""
    query = _query(context, caller, params)

    def read(connection: Connection) -> EnvelopePage:
        page = paging.page(connection, query)
        shown = envelopes_json(context, page.ids, caller.sees)
        position = page.first(len(shown)).next
        result: EnvelopePage = {
            "envelopes": shown,
            "next": position.text(context.store.epoch) if position else None,
            "timezone": context.timezone,
        }
        if params.count:
            result["total"] = paging.count(connection, query, context.settings.count_exact_to)
        return result

    if query.filtered or params.count:
        return await context.store.read_in_thread(read)
    return context.store.read(read)


def envelopes_json(
    context: Context, numbers: Sequence[int], viewer: int | None, most_bytes: int | None = None
) -> list[envelope_json.EnvelopeJson]:
    """Return the first of these envelopes as JSON: as many as fit into a page, and at least one.

    The caller has checked that the viewer (None: the boss) may see them.
    """
    if not numbers:
        return []

    def read(connection: Connection) -> list[envelope_json.EnvelopeJson]:
        shown = paging.fitting(connection, numbers, most_bytes or context.settings.page_bytes)
        rows = envelope_rows.fetch(connection, shown)
        quotes = envelope_rows.quotes(connection, rows, viewer)
        given = reactions.of_messages(connection, [row["message"] for row in rows])
        return [envelope_json.envelope(row, context.home, quotes, given) for row in rows]

    return context.store.read(read)


def _query(context: Context, caller: Caller, params: List) -> paging.Query:
    now, zone = clock.now(), context.zone
    statuses = tuple(Status)
    if params.status is not None:
        statuses = (Status[params.status.upper()],)
    elif params.unread:
        statuses = (Status.PENDING, Status.DONE, Status.FAILED)  # what was cancelled need not be read

    def moment(text: str | None) -> int | None:
        return None if text is None else clock.parse(text, now=now, zone=zone)

    # Failures concern the sender: an inbox would show hardly any.
    failed = params.status == "failed" and params.box is None and params.thread is None and not params.address
    every_box = params.box == "all"
    if every_box and not caller.is_boss:
        raise errors.BossOnly(what="the box all", caller=caller.name)
    if every_box and params.address is not None:
        raise errors.InvalidParams(detail="box all has the envelopes of everybody: leave out address")
    return paging.Query(
        owner=acting_for(context.store, caller, params.address),
        every_box=every_box,
        outbox=params.box == "outbox" or (failed and not caller.is_boss),
        everywhere=failed and caller.is_boss,
        whole_thread=params.box is None and params.thread is not None,
        sees_all=caller.is_boss and params.address is None,
        box=Box[params.box.upper()] if params.box in ("archived", "trash") else Box.INBOX,
        statuses=statuses,
        unread=params.unread,
        senders=None if params.sender is None else every_id(context.store, params.sender),
        recipients=None if params.to is None else every_id(context.store, params.to),
        thread=_thread(context, caller, params.thread),
        created_after=moment(params.created_after),
        created_before=moment(params.created_before),
        oldest_first=params.oldest_first,
        with_deferred=caller.is_boss and not params.arrived,
        limit=page_size(context, params.page_size),
        after=None if params.after is None else paging.Position.parse(params.after, context.store.epoch),
    )


def _thread(context: Context, caller: Caller, given: Id | None) -> int | None:
    """Return the id of a thread, given by its own id or by a message or envelope in it."""
    if given is None:
        return None
    kind, number = ids.parse(given, "thread", "message", "envelope")
    if kind == "envelope":
        row = context.store.read(lambda c: envelope_rows.visible(c, number, caller.sees))
        return int(row["thread"] or row["message"])
    return number if kind == "thread" else context.store.read(lambda c: envelope_rows.thread_of(c, number))


@operation(
    "envelope.get",
    level=Level.RESTRICTED,
    params=Get,
    result=EnvelopeDetail,
    errors=(errors.NotFound, errors.BadId),
)
def get(context: Context, caller: Caller, params: Get) -> EnvelopeDetail:
    """Show one envelope in full; it changes nothing."""
    number = ids.number(params.id, "envelope")
    row = context.store.read(lambda c: envelope_rows.visible(c, number, caller.sees))
    return {
        "envelope": envelopes_json(context, [number], caller.sees)[0],
        "recipients": context.store.read(lambda c: envelope_rows.recipients(c, row["message"])),
        "receipt": receipts.of_envelope(context.store, number),
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


@operation(
    "envelope.read",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Mark,
    result=ReadEnvelopes,
    errors=(*_READ_ERRORS, errors.TooLarge),
)
async def read(context: Context, caller: Caller, params: Mark) -> ReadEnvelopes:
    """Show envelopes and mark them as read."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    most = context.settings.page_bytes

    def mark(tx: Tx, numbers: list[int], owner: int, now: int) -> int:
        changed = envelopes.mark_read(tx, numbers, owner, now)  # first: it refuses the ids of others
        _check_fit(tx, numbers, most)
        return changed

    changed = await _mark(context, caller, params, mark)
    if caller.attached is not None:
        context.runner.attached.turns.fetched(caller.attached, numbers)
    shown, timezone = context.store.read(
        lambda _: (envelopes_json(context, numbers, caller.sees, most), context.timezone)
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
    errors=(*_MARK_ERRORS, errors.InvalidParams),
)
async def ack(context: Context, caller: Caller, params: Ack) -> ChangedCount:
    """Acknowledge envelopes: each becomes done and read."""
    if params.all == bool(params.ids) or (params.up_to is not None and not params.all):
        raise InvalidParams(detail="give either ids, or all (--all); up_to (--up-to) goes only with all")
    if params.all and params.claim is not None:
        raise InvalidParams(detail="claim (--claim) goes only with ids: all leaves out what is claimed")
    if not params.all:
        claim = None if params.claim is None else ids.number(params.claim, "claim")
        marking = partial(acknowledgements.acknowledge, claim=claim)
        return {"changed": await _mark(context, caller, params, marking)}
    return {"changed": await _ack_all(context, caller, params)}


async def _ack_all(context: Context, caller: Caller, params: Ack) -> int:
    """Acknowledge in chunks, so that others can write in between. What arrives meanwhile is left alone."""
    owner = acting_for(context.store, caller, params.address)
    upto = context.store.read(counters.last_arrived)
    if params.up_to is not None:
        number = ids.number(params.up_to, "envelope")
        row = context.store.read(lambda c: envelope_rows.visible(c, number, owner))
        if row["recipient"] != owner or row["arrived"] is None:
            raise errors.NotFound(what="envelope", value=f"e{number}")
        upto = row["arrived"]
    changed = 0
    while True:
        now = clock.now()
        done = await context.write(
            caller,
            lambda tx: acknowledgements.acknowledge_due(tx, owner, upto, ACK_CHUNK, now),  # noqa: B023 - awaited here
        )
        changed += done
        if done < ACK_CHUNK:
            return changed


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
    return {"changed": await _mark(context, caller, params, _into(Box.ARCHIVED))}


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
    return {"changed": await _mark(context, caller, params, _into(Box.TRASH))}


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
    return {"changed": await _mark(context, caller, params, _into(Box.INBOX))}


# A change in the store: transaction, envelope ids, owner, now; returns how many changed.
Marking = Callable[[Tx, list[int], int, int], int]


def _into(box: Box) -> Marking:
    return lambda tx, numbers, owner, now: envelopes.put_into(tx, numbers, owner, box, now)


async def _mark(context: Context, caller: Caller, params: Mark | Ack, marking: Marking) -> int:
    """Mark all the given envelopes of one recipient in one transaction, or none of them."""
    owner = acting_for(context.store, caller, params.address)
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()
    try:
        return await context.write(caller, lambda tx: marking(tx, numbers, owner, now))
    except errors.NotFound:
        if caller.is_boss and params.address is None:
            _raise_other_box(context, numbers)
        raise


def _raise_other_box(context: Context, numbers: list[int]) -> None:
    """Tell the boss in whose box an envelope is: the boss acts for others only by naming them."""
    for row in context.store.read(lambda c: envelope_rows.fetch(c, numbers)):
        if row["to_address"] != str(BOSS):
            raise errors.OtherBox(id=f"e{row['id']}", address=row["to_address"])
