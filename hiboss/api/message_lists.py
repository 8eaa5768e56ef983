"""Operations that list and show messages: each once, however many recipients it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors, ids, message_json
from ..core.envelope import Kind
from ..core.message_json import MessageJson
from ..store import controls, message_rows, message_walks, paging, unread_counts
from ..store.connection import Connection
from ..store.paging import Page, Query, Total, Walk
from . import kept_answers
from .auth import Caller
from .context import Context
from .message_filters import FILTER_ERRORS, MessageFilters, Paged, check_flat, message_query, skipped
from .operation import Id, Level, Params, Timezone, operation


class Totals(TypedDict):
    """Which page this is, and how much there is in all."""

    total: Annotated[int, Field(description="how many match, counted up to 1000")]
    total_capped: Annotated[bool, Field(description="true: there are more than `total`")]
    page: Annotated[
        int | None, Field(description="the number of this page; null: it was asked for by cursor")
    ]
    page_size: Annotated[int, Field(description="how many a page has at most")]
    total_pages: Annotated[int | None, Field(description="null: there are more than were counted")]
    next: Annotated[str | None, Field(description="the `cursor` of the next page; null: this is the last")]
    timezone: Timezone


class MessagePage(Totals):
    messages: Annotated[list[MessageJson], Field(description="the newest first, or as asked for")]
    unread: Annotated[
        int,
        Field(description="what you have not read: in the thread or conversation asked for, else the inbox"),
    ]
    unread_capped: Annotated[bool, Field(description="true: there is more than `unread`")]


class Get(Params):
    message_id: Id = Field(description="the message, like m57, or an envelope of it, like e81")


class MessageDetail(TypedDict):
    message: Annotated[MessageJson, Field(description="with its whole content")]
    timezone: Timezone


@operation(
    "message.list",
    level=Level.RESTRICTED,
    effect="read",
    params=MessageFilters,
    result=MessagePage,
    errors=FILTER_ERRORS,
)
async def listed(context: Context, caller: Caller, params: MessageFilters) -> MessagePage:
    """List messages, newest first: without a filter those in your inbox. It marks nothing as read.

    With a thread, a conversation, tags, a run or an author: what you received and what you sent.
    """
    check_flat(caller, params)
    walk = message_walks.walk_by_change if params.sort_by == "updated_at" else message_walks.walk

    def make(connection: Connection, query: Query) -> MessagePage:
        unread = _unread(connection, query, context.settings.count_exact_to)
        totals, messages = messages_page(context, connection, caller, query, params, walk)
        return {"messages": messages, "unread": unread.number, "unread_capped": unread.capped, **totals}

    def read(connection: Connection) -> MessagePage:
        query, limits = message_query(context, caller, params), context.settings
        which = (query, walk, params.page, params.cursor, limits.count_exact_to, limits.page_bytes)
        key = ("message.list", caller.id, caller.sees, which, repr(query.meta))  # where True is not 1
        return kept_answers.answer(connection, key, partial(make, connection, query))

    return await context.store.read_in_thread(read)


def messages_page(
    context: Context, connection: Connection, caller: Caller, query: Query, params: Paged, walk: Walk
) -> tuple[Totals, list[MessageJson]]:
    """Return one page of messages, as many as fit into an answer, with the totals."""
    before = skipped(params, query.limit)
    total = message_walks.count(connection, query, context.settings.count_exact_to)
    wide = paging.page(connection, replace(query, limit=before + query.limit), walk)
    page = Page(wide.found[before:], wide.more)
    messages = messages_json(context, connection, page.ids, query.owner, caller)
    if params.page is not None and len(messages) < len(page.ids):
        _refuse_cut(context, len(messages))
    position = page.first(len(messages)).next
    totals: Totals = {
        "total": total.number,
        "total_capped": total.capped,
        "page": None if params.cursor is not None else params.page or 1,
        "page_size": query.limit,
        "total_pages": total.pages(query.limit),
        "next": position.text(context.store.epoch) if position else None,
        "timezone": context.timezone,
    }
    return totals, messages


def _refuse_cut(context: Context, fitting: int) -> None:
    """Raise, since by their numbers the pages after this one would not have what it leaves out."""
    most = context.settings.page_bytes
    advice = f" (limits.page_bytes); only {fitting} fit: ask for fewer (page_size), or page by cursor"
    raise errors.TooLarge(
        what="the page", size=f"more than {most} bytes", limit=f"{most} bytes", advice=advice
    )


def messages_json(
    context: Context, connection: Connection, numbers: Sequence[int], owner: int, caller: Caller
) -> list[MessageJson]:
    """Return the first of these messages as JSON: as many as fit into a page, and at least one.

    The caller of this has checked that they may be seen. `owner`: whose reading is told.
    """
    if not numbers:
        return []
    shown = paging.fitting(connection, numbers, context.settings.page_bytes, "message")
    rows = message_rows.fetch(connection, shown, owner)
    about = message_rows.about(connection, shown)
    found = [message_json.message(row, context.home, about) for row in rows]
    return [_discreet(one, caller) for one in found]


def _discreet(one: MessageJson, caller: Caller) -> MessageJson:
    """Show the reason of a control to those whom it concerns."""
    control = one["meta"].get("control") if one["body"]["format"] == Kind.EVENT.word else None
    if not isinstance(control, dict):
        return one
    concerned = caller.is_boss or caller.address is None
    if caller.address is not None:
        own = str(caller.address)
        concerned |= own in (*one["to"], control.get("to"))
        concerned |= one["agent_id"] in (own, caller.address.name)
    one["body"]["content"], one["meta"] = controls.shown(
        one["body"]["content"], one["meta"], concerned=concerned
    )
    return one


def _unread(connection: Connection, query: Query, exact_to: int) -> Total:
    if query.thread is not None:
        return unread_counts.of_thread(connection, query.owner, query.thread, exact_to)
    if query.conversation is not None:
        return unread_counts.of_conversation(connection, query.owner, query.conversation, exact_to)
    return unread_counts.of_box(connection, query.owner, exact_to)


@operation(
    "message.get",
    level=Level.RESTRICTED,
    params=Get,
    result=MessageDetail,
    errors=(errors.NotFound, errors.BadId),
)
def get(context: Context, caller: Caller, params: Get) -> MessageDetail:
    """Show one message in full. It marks nothing as read."""
    given = ids.parse(params.message_id, "message", "envelope")

    def read(connection: Connection) -> MessageJson:
        number = message_rows.visible(connection, given, caller.sees)
        return messages_json(context, connection, [number], caller.id, caller)[0]

    return {"message": context.store.read(read), "timezone": context.timezone}
