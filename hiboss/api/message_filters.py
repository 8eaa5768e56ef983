"""Filters of lists, as requests write them, and what they mean to the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ..core import clock, errors, ids
from ..core.envelope import Box, Kind
from ..store import list_query, message_rows
from ..store.list_query import FLAT, AnyTag, Position, Query
from .addresses import acting_for, address_id, every_id
from .auth import Caller
from .context import Context
from .operation import Id, Params
from .param_sizes import Word
from .request_limits import page_size
from .runs import full_trace
from .send_shapes import Tag

DEEPEST = 1_000  # rows that pages by number reach; further on only by cursor
Scalar = str | int | float | bool | None

FILTER_ERRORS = (
    errors.BadAddress,
    errors.BadCursor,
    errors.BadId,
    errors.BadText,
    errors.BadTime,
    errors.BossOnly,
    errors.Gap,
    errors.InvalidParams,
    errors.NotFound,
    errors.TooBroad,
    errors.TooLarge,
    errors.UnknownAddress,
)


class Paged(Params):
    """A page, by its number or by a cursor."""

    page: int | None = Field(None, description="its number, from 1; by default the first")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    cursor: str | None = Field(None, description="the `next` of the page before, instead of `page`")


class MessageFilters(Paged):
    box: Literal["inbox", "outbox", "archived", "trash", "snoozed"] | None = Field(
        None, description="only what is in this box of yours; outbox: what you sent"
    )
    thread_id: Id | None = Field(None, description="only this thread: t57, or a message or envelope in it")
    conversation_id: Id | None = Field(None, description="only this conversation, like c4")
    author_id: str | None = Field(None, description="only from this address or name")
    type: Literal["text", "markdown", "json", "html", "event"] | None = Field(
        None, description="only of this format"
    )
    scope: Tag | None = Field(None, description="only what is about this, like {type: module, value: auth}")
    ref: Tag | None = Field(
        None,
        description="only what refers to this, like {type: issue, value: 42} or {type: mention, value: nex}",
    )
    mentions: bool = Field(False, description="only what mentions you, by your name or your role")
    mention_role: Word | None = Field(None, description="only what mentions this role, like reviewer")
    unread: bool = Field(False, description="only what you have not read")
    unread_for_agent: str | None = Field(
        None, description="only what this one has not read (that of others only for the boss)"
    )
    snoozed: bool = Field(False, description="only what you have put off")
    run_id: Id | None = Field(None, description="only what was sent in this run, like r9")
    trace_id: Word | None = Field(None, description="only of this trace, like m57, or of your own name")
    meta: dict[str, Scalar] | None = Field(
        None, description="only with these values in the sender's own JSON object, by key"
    )
    created_after: str | None = Field(None, description="a time, like -2h or 2026-01-27")
    created_before: str | None = Field(None, description="a time, like -2h or 2026-01-27")
    sort_by: Literal["created_at", "updated_at"] = Field(
        "created_at",
        description="created_at: as they arrived; updated_at: by the last change (only of a thread or a "
        "conversation)",
    )
    sort_order: Literal["asc", "desc"] = Field("desc", description="asc: the oldest first")
    address: str | None = Field(None, description="whose messages (only for the boss)")


_UNREAD = ("unread", "unread_for_agent")


def check_flat(caller: Caller, params: MessageFilters) -> None:
    """Raise TooBroad for a filter that needs another one beside it, and has none."""
    flat = {name for names in FLAT.values() for name in names}
    given = [
        name for name, value in params.model_dump(by_alias=True).items() if value not in (None, False, {})
    ]
    if not (caller.is_boss or _is_own(caller, params.author_id)):
        flat -= {"author_id"}
    if params.box in ("archived", "trash"):  # no index has what is unread there
        flat -= {"unread", "unread_for_agent"}
    narrow = [name for name in given if name in flat]
    others = ("author_id", "type", "trace_id", "meta", "created_after", "created_before", *_UNREAD)
    broad = [name for name in given if name in others and name not in narrow]
    if broad and not narrow and params.box not in ("outbox", "snoozed"):
        where = "" if params.box is None else f" in the box {params.box}"
        raise errors.TooBroad(
            what=" with ".join(broad) + where + " alone",
            advice=f"add one of: {', '.join(sorted(flat - {'author_id'}))}, or your own author_id",
        )
    if params.sort_by == "updated_at" and params.thread_id is None and params.conversation_id is None:
        raise errors.TooBroad(
            what="sort_by updated_at without a thread_id or a conversation_id",
            advice="give one of them, or sort by created_at",
        )


def _is_own(caller: Caller, named: str | None) -> bool:
    if named is None or caller.address is None:
        return False
    return named.casefold() in (caller.address.fold, caller.address.name.casefold())


def message_query(context: Context, caller: Caller, params: MessageFilters) -> Query:
    """Return what the store is to list. Call it inside the read, so that all of it is one snapshot."""
    size = page_size(context, params.page_size)
    skipped(params, size)  # it raises if there is no such page
    owner = _owner(context, caller, params)
    viewer = None if caller.is_boss and owner == caller.id else owner
    now, zone = clock.now(), context.zone

    def moment(text: str | None) -> int | None:
        return None if text is None else clock.parse(text, now=now, zone=zone)

    return Query(
        owner=owner,
        viewer=viewer,
        box=_box(params),
        boxed=params.box is not None,
        outbox=params.box == "outbox",
        unread=params.unread or params.unread_for_agent is not None,
        senders=_senders(context, caller, params.author_id),
        thread=None if params.thread_id is None else thread(context, params.thread_id, viewer),
        conversation=_conversation(context, params.conversation_id, viewer),
        tags=tags(context, owner, params.scope, params.ref, params.mentions, params.mention_role),
        run=None if params.run_id is None else _run(context, params.run_id),
        trace=None if params.trace_id is None else _trace(context, caller, params.trace_id),
        kind=None if params.type is None else Kind[params.type.upper()],
        meta=tuple(_own_data(params.meta or {})),
        created_after=moment(params.created_after),
        created_before=moment(params.created_before),
        oldest_first=params.sort_order == "asc",
        limit=size,
        after=None if params.cursor is None else Position.parse(params.cursor, context.store.epoch),
    )


def _box(params: MessageFilters) -> Box:
    """Return the box that is asked for; the outbox is none of them: what is in it is elsewhere."""
    if params.snoozed and params.box not in (None, "snoozed"):
        raise errors.InvalidParams(detail="what is snoozed is in a box of its own: leave out box")
    if params.box == "outbox" and (params.unread or params.unread_for_agent is not None):
        raise errors.InvalidParams(detail="what you sent is not for you to read: leave out box, or unread")
    if params.box in (None, "inbox", "outbox"):
        return Box.SNOOZED if params.snoozed else Box.INBOX
    return Box[params.box.upper()]


def skipped(params: Paged, size: int) -> int:
    """Return how many rows are before a page that is given by its number."""
    number = 1 if params.page is None else params.page
    if params.page is not None and params.cursor is not None:
        raise errors.InvalidParams(detail="give page or cursor, not both")
    if number < 1:
        raise errors.InvalidParams(detail=f"page is {number}; pages are counted from 1")
    if number > 1 and number * size > DEEPEST:
        raise errors.InvalidParams(
            detail=f"page {number} is beyond the first {DEEPEST:,}; go on with `next` of a page, as cursor"
        )
    return (number - 1) * size


def _owner(context: Context, caller: Caller, params: MessageFilters) -> int:
    """Return whose messages are asked for; raise BossOnly if they are not the caller's."""
    owner = acting_for(context.store, caller, params.address)
    if params.unread_for_agent is None:
        return owner
    if not caller.is_boss and not _is_own(caller, params.unread_for_agent):
        raise errors.BossOnly(what="unread_for_agent of another one", caller=caller.name)
    unread = caller.id if not caller.is_boss else address_id(context.store, caller, params.unread_for_agent)
    if params.address is not None and unread != owner:
        raise errors.InvalidParams(
            detail="address and unread_for_agent name different boxes: give one of them"
        )
    return unread


def _senders(context: Context, caller: Caller, named: str | None) -> tuple[int, ...] | None:
    if named is None:
        return None
    own = not caller.is_boss and _is_own(caller, named)
    return (caller.id,) if own else every_id(context.store, caller, named)


def thread(context: Context, given: Id, viewer: int | None) -> int:
    """Return a thread of which the viewer may see something, given by any id in it; else raise NotFound."""
    parsed = ids.parse(given, "thread", "message", "envelope")
    return context.store.read(lambda c: message_rows.thread_of(c, parsed, viewer))


def _conversation(context: Context, given: Id | None, viewer: int | None) -> int | None:
    if given is None:
        return None
    number = ids.number(given, "conversation")
    if not context.store.read(lambda c: message_rows.is_party(c, number, viewer)):
        raise errors.NotFound(what="conversation", value=f"c{number}")
    return number


def _run(context: Context, given: Id) -> list_query.RunSpan:
    """Return what messages a run sent; of an unknown one none. So nobody learns which runs there are."""
    number = ids.number(given, "run")
    return context.store.read(lambda c: list_query.sent_in_run(c, number))


def _trace(context: Context, caller: Caller, given: str) -> str:
    context.settings.check_word("trace_id", given)
    return full_trace(caller, given)


def _own_data(meta: Mapping[str, Scalar]) -> list[tuple[str, Any]]:
    def storable(value: Scalar) -> Any:
        large = isinstance(value, int) and abs(value) > ids.LARGEST
        return float(value) if large else value  # type: ignore[arg-type]

    return [(key, storable(value)) for key, value in meta.items()]


# --- tags ------------------------------------------------------------------------------


def tags(
    context: Context,
    owner: int,
    scope: Tag | None,
    ref: Tag | None,
    mentions: bool,
    mention_role: str | None,
) -> tuple[AnyTag, ...]:
    """Return what messages must be tagged with."""
    found: list[AnyTag] = []
    if mentions:
        named = context.store.read(lambda c: list_query.own_mentions(c, owner))
        found.append(AnyTag("mentions", named))
    if mention_role is not None:
        context.settings.check_word("mention_role", mention_role)
        found.append(AnyTag("mentions", list_query.mention(mention_role, "role")))
    if scope is not None:
        found.append(AnyTag("scope", (list_query.Tag("scope", scope.type, scope.value),)))
    if ref is not None:
        plain = (list_query.Tag("ref", ref.type, ref.value),)
        found.append(AnyTag("ref", list_query.mention(ref.value) if ref.type == "mention" else plain))
    return tuple(found)
