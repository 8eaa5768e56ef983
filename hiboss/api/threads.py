"""Operations about threads: a message, and everything that answers it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.message_json import MessageJson, MessageRow, agent_id
from ..core.shortening import shorten
from ..store import message_chains, message_walks, thread_lists
from ..store.connection import Connection
from ..store.paging import Position, Query, Total
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .message_filters import Paged, skipped, tags, thread
from .message_lists import Totals, messages_json, messages_page
from .operation import Id, Level, Params, Timezone, operation
from .request_limits import page_size
from .send_shapes import Tag

TITLE, PREVIEW = 80, 120  # characters


class ThreadJson(TypedDict):
    thread_id: Annotated[str, Field(description="like t57: the number of its first message")]
    title: Annotated[str, Field(description="the subject of its first message, or the first line of that")]
    created_by: Annotated[str, Field(description="who wrote it: the name of an agent, else an address")]
    created_at: Annotated[str, Field(description="when that was")]


class ListedThread(ThreadJson):
    message_count: Annotated[
        int,
        Field(
            description="how many messages that you may see it has in your conversations; in a group that "
            "you joined later, at most 1,000"
        ),
    ]
    unread_count: Annotated[int, Field(description="how many of them you have not read")]
    last_activity: Annotated[str, Field(description="when the last of them arrived")]
    last_sender: Annotated[str, Field(description="who wrote that: the name of an agent, else an address")]
    preview: Annotated[str, Field(description="the beginning of that; empty: it was deleted, or has no text")]


class List(Paged):
    scope: Tag | None = Field(
        None, description="only threads with a message about this, like {type: module, value: auth}"
    )
    address: str | None = Field(None, description="whose threads (only for the boss)")


class ThreadPage(Totals):
    threads: Annotated[list[ListedThread], Field(description="the last active first")]


class OfThread(Params):
    thread_id: Id = Field(description="the thread: t57, or a message or envelope in it")


class Get(Paged, OfThread):  # in this order thread_id, which is required, comes first
    sort_order: Literal["asc", "desc"] = Field("asc", description="asc: the oldest first")
    address: str | None = Field(
        None, description="as whom: what they see of it, and have read (only for the boss)"
    )


class ThreadDetail(Totals):
    thread: Annotated[ListedThread, Field(description="what is known of it")]
    messages: Annotated[list[MessageJson], Field(description="the oldest first, or as asked for")]


class Chain(Params):
    id: Id = Field(description="an envelope or a message, like e81 or m57")


class ChainLink(TypedDict):
    message: Annotated[MessageJson | None, Field(description="null: here are messages that you may not see")]


class ThreadChain(TypedDict):
    thread_id: Annotated[str, Field(description="the thread that it is in, like t57")]
    chain: Annotated[
        list[ChainLink],
        Field(description="from the first message to the one asked for, each answers the one before"),
    ]
    left_out: Annotated[
        int, Field(description="how many more there are at the beginning, for which is no room")
    ]
    timezone: Timezone


@operation(
    "thread.list",
    level=Level.RESTRICTED,
    effect="read",
    params=List,
    result=ThreadPage,
    errors=(
        errors.BadAddress,
        errors.BadCursor,
        errors.BossOnly,
        errors.Gap,
        errors.InvalidParams,
        errors.UnknownAddress,
    ),
)
async def listed(context: Context, caller: Caller, params: List) -> ThreadPage:
    """List the threads of the conversations that you are in, the last active first."""

    def read(connection: Connection) -> ThreadPage:
        viewer = acting_for(context.store, caller, params.address)
        wanted = tags(context, viewer, params.scope, None, mentions=False, mention_role=None)
        tag, size = wanted[0] if wanted else None, page_size(context, params.page_size)
        before, after = skipped(params, size), _position(context, params)
        exact_to = context.settings.count_exact_to
        counted = thread_lists.page(connection, viewer, tag, None, exact_to)
        if after is None and before + size <= exact_to:
            wide = counted.first(before + size)
        else:
            wide = thread_lists.page(connection, viewer, tag, after, before + size)
        is_cut = tag is not None and thread_lists.is_cut(connection, tag)
        total = Total(len(counted.found), counted.more or is_cut)
        return {
            "threads": [_listed(connection, one, viewer, viewer) for one in wide.ids[before:]],
            "total": total.number,
            "total_capped": total.capped,
            "page": None if params.cursor is not None else params.page or 1,
            "page_size": size,
            "total_pages": total.pages(size),
            "next": wide.next.text(context.store.epoch) if wide.next else None,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _position(context: Context, params: Paged) -> Position | None:
    if params.cursor is None:
        return None
    found = Position.parse(params.cursor, context.store.epoch)
    found.check(thread_lists.KIND, "a")
    return found


@operation(
    "thread.get",
    level=Level.RESTRICTED,
    effect="read",
    params=Get,
    result=ThreadDetail,
    errors=(
        errors.BadAddress,
        errors.BadCursor,
        errors.BadId,
        errors.BossOnly,
        errors.Gap,
        errors.InvalidParams,
        errors.NotFound,
        errors.TooLarge,
        errors.UnknownAddress,
    ),
)
async def get(context: Context, caller: Caller, params: Get) -> ThreadDetail:
    """Show a thread with its messages, the oldest first. It marks nothing as read."""

    def read(connection: Connection) -> ThreadDetail:
        owner = acting_for(context.store, caller, params.address)
        viewer = caller.sees if params.address is None else owner
        number = thread(context, params.thread_id, viewer)
        query = Query(
            owner=owner,
            viewer=viewer,
            thread=number,
            oldest_first=params.sort_order == "asc",
            limit=page_size(context, params.page_size),
            after=None if params.cursor is None else Position.parse(params.cursor, context.store.epoch),
        )
        shown = _listed(connection, number, owner, viewer)
        totals, messages = messages_page(context, connection, caller, query, params, message_walks.walk)
        return {"thread": shown, "messages": messages, **totals}

    return await context.store.read_in_thread(read)


def _listed(connection: Connection, number: int, owner: int, viewer: int | None) -> ListedThread:
    known = thread_lists.facts(connection, number, owner, viewer)
    first, last = known.first, known.last
    return {
        "thread_id": f"t{number}",
        "title": _title(first),
        "created_by": agent_id(first["sender_kind"], first["sender_name"]),
        "created_at": clock.iso(first["created_at"]),
        "message_count": known.messages,
        "unread_count": known.unread,
        "last_activity": clock.iso(last["arrived_at"] or last["created_at"]),
        "last_sender": agent_id(last["sender_kind"], last["sender_name"]),
        "preview": "" if last["deleted_at"] is not None else shorten(last["text"], PREVIEW),
    }


def _title(row: MessageRow) -> str:
    """Return the subject, or the first line that says something; nothing of a deleted message."""
    if row["deleted_at"] is not None:
        return ""
    lines: Any = filter(None, (line.strip() for line in row["text"].splitlines()))
    return shorten(row["subject"] or next(lines, ""), TITLE)


@operation(
    "thread.chain",
    level=Level.RESTRICTED,
    params=Chain,
    result=ThreadChain,
    errors=(errors.BadId, errors.NotFound),
)
def chain(context: Context, caller: Caller, params: Chain) -> ThreadChain:
    """Show what a message answers, and what that answers, up to the first message of the thread."""
    given = ids.parse(params.id, "envelope", "message")

    def read(connection: Connection) -> ThreadChain:
        found = message_chains.up_to_root(connection, given, caller.sees)
        # From the one asked for back: if there is no room for all, the first ones are left out.
        seen = [one for one in reversed(found.links) if one is not None]
        shown = {
            one["message_id"]: one for one in messages_json(context, connection, seen, caller.id, caller)
        }
        links: list[ChainLink] = []
        for number in reversed(found.links):
            if number is not None and f"m{number}" not in shown:
                break
            links.append({"message": None if number is None else shown[f"m{number}"]})
        return {
            "thread_id": f"t{found.thread}",
            "chain": links[::-1],
            "left_out": found.left_out + len(found.links) - len(links),
            "timezone": context.timezone,
        }

    return context.store.read(read)
