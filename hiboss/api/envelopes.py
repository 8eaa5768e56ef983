"""Operations that list and show envelopes.

Sending is in `sending`, marking in `envelope_marks`, claiming in `leases`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids, shown_envelope
from ..core.envelope import Box, Kind, Status
from ..store import controls, envelope_details, envelope_rows, paging
from ..store.connection import Connection
from . import kept_answers, receipts
from .addresses import acting_for, every_id
from .auth import Caller
from .context import Context
from .message_filters import tags
from .operation import Id, Level, Params, Timezone, operation
from .param_sizes import Word
from .request_limits import page_size
from .send_shapes import Tag

EVENT = Kind.EVENT.word


class List(Params):
    box: Literal["inbox", "outbox", "archived", "trash", "snoozed", "all"] | None = Field(
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
    conversation: Id | None = Field(None, description="only this conversation, like c4")
    scope: Tag | None = Field(None, description="only what is about this, like {type: module, value: auth}")
    ref: Tag | None = Field(
        None,
        description="only what refers to this, like {type: issue, value: 42} or {type: mention, value: nex}",
    )
    mentions: bool = Field(False, description="only what mentions the owner of the box, by name or role")
    mention_role: Word | None = Field(None, description="only what mentions this role, like reviewer")
    snoozed: bool = Field(False, description="only what was put off: the same as box snoozed")
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
            int,
            Field(description="how many match, if count was given; counted up to 1000"),
        ]
    ]
    total_capped: NotRequired[
        Annotated[bool, Field(description="with `total`; true: there are more than that")]
    ]
    timezone: Timezone


class Get(Params):
    id: Id = Field(description="the envelope, like e81")


class EnvelopeDetail(TypedDict):
    envelope: Annotated[envelope_json.EnvelopeJson, Field(description="with its whole text")]
    recipients: Annotated[list[str], Field(description="the addresses of all envelopes of the message")]
    receipt: Annotated[receipts.Receipt, Field(description="how far it got, and when")]
    timezone: Timezone


@operation(
    "envelope.list",
    level=Level.RESTRICTED,
    effect="read",
    plans=True,
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
        errors.BadText,
        errors.TooLarge,
    ),
)
def listed(
    context: Context, caller: Caller, params: List
) -> EnvelopePage | Coroutine[Any, Any, EnvelopePage]:
    """List envelopes of a box, newest first; it changes nothing."""
    query = _query(context, caller, params)
    exact_to = context.settings.count_exact_to if params.count else None
    key = ("envelope.list", query, caller.sees, exact_to, context.settings.page_bytes)

    def read(connection: Connection) -> EnvelopePage:
        make = partial(_page, context, connection, query, caller, exact_to)
        return kept_answers.answer(connection, key, make)

    if query.filtered or params.count:
        return context.store.read_in_thread(read)
    return context.store.read(read)


def _page(
    context: Context, connection: Connection, query: paging.Query, caller: Caller, exact_to: int | None
) -> EnvelopePage:
    page = paging.page(connection, query)
    shown = envelopes_json(context, page.ids, caller)
    position = page.first(len(shown)).next
    result: EnvelopePage = {
        "envelopes": shown,
        "next": position.text(context.store.epoch) if position else None,
        "timezone": context.timezone,
    }
    if exact_to is not None:
        total = paging.count(connection, query, exact_to)
        result["total"], result["total_capped"] = total.number, total.capped
    return result


def envelopes_json(
    context: Context, numbers: Sequence[int], caller: Caller, most_bytes: int | None = None
) -> list[envelope_json.EnvelopeJson]:
    """Return the first of these envelopes as JSON: as many as fit into a page, and at least one.

    It was checked before that the caller may see them. The reason of a control is for those whom it concerns.
    """
    if not numbers:
        return []

    def read(connection: Connection) -> list[envelope_json.EnvelopeJson]:
        rows = paging.shown(connection, numbers, most_bytes or context.settings.page_bytes)
        details = envelope_details.of_page(connection, rows, caller.sees)
        return [shown_envelope.envelope(row, context.home, details) for row in rows]

    found = context.store.read(read)
    for one in found:
        if one["type"] == EVENT and (control := (one["metadata"] or {}).get("control")) is not None:
            parties = (one["from"], one["to"], control.get("to"))
            concerned = caller.is_boss or str(caller.address) in parties
            one["text"], one["metadata"] = controls.shown(one["text"], one["metadata"], concerned=concerned)
    return found


def _query(context: Context, caller: Caller, params: List) -> paging.Query:
    statuses = tuple(Status)
    if params.status is not None:
        statuses = (Status[params.status.upper()],)
    elif params.unread:
        statuses = (Status.PENDING, Status.DONE, Status.FAILED)  # what was cancelled need not be read

    def moment(text: str | None) -> int | None:
        return None if text is None else clock.parse(text, now=clock.now(), zone=context.zone)

    # Failures concern the sender: an inbox would show hardly any.
    failed = params.status == "failed" and params.box is None and params.thread is None and not params.address
    every_box = params.box == "all"
    if params.snoozed and params.box not in (None, "snoozed"):
        raise errors.InvalidParams(detail="what is snoozed is in a box of its own: leave out box")
    box = "snoozed" if params.snoozed else params.box
    if every_box and not caller.is_boss:
        raise errors.BossOnly(what="the box all", caller=caller.name)
    if every_box and params.address is not None:
        raise errors.InvalidParams(detail="box all has the envelopes of everybody: leave out address")
    owner = acting_for(context.store, caller, params.address)
    return paging.Query(
        owner=owner,
        every_box=every_box,
        outbox=box == "outbox" or (failed and not caller.is_boss),
        everywhere=failed and caller.is_boss,
        whole_thread=box is None and params.thread is not None,
        sees_all=caller.is_boss and params.address is None,
        box=Box[box.upper()] if box in ("archived", "trash", "snoozed") else Box.INBOX,
        statuses=statuses,
        unread=params.unread,
        senders=None if params.sender is None else every_id(context.store, caller, params.sender),
        recipients=None if params.to is None else every_id(context.store, caller, params.to),
        thread=_thread(context, caller, params.thread),
        conversation=None if params.conversation is None else ids.number(params.conversation, "conversation"),
        tags=tags(context, owner, params.scope, params.ref, params.mentions, params.mention_role),
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
    """Show one envelope in full, and how far it got; it changes nothing."""
    number, now = ids.number(params.id, "envelope"), clock.now()
    row = context.store.read(lambda c: envelope_rows.visible(c, number, caller.sees))
    return {
        "envelope": envelopes_json(context, [number], caller)[0],
        "recipients": context.store.read(lambda c: envelope_rows.recipients(c, row["message"])),
        "receipt": context.store.read(lambda c: receipts.of_envelopes(c, [number], caller.sees, now))[number],
        "timezone": context.timezone,
    }
