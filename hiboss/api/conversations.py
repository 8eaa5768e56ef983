"""Operations about conversations and groups: create, show, list, change, archive and delete them.

Who is in a group: `participants`. What was said: `conversation_messages`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.address import Address
from ..core.envelope import measure
from ..core.errors import BossOnly, InvalidParams, NotTwo
from ..core.ids import LARGEST
from ..store import conversation_lists, group_members, groups
from ..store.connection import Connection, Row
from ..store.conversation_lists import Filter, Page
from ..store.group_commit import Tx
from ..store.group_delivery import ALL
from ..store.groups import Actor
from .addresses import acting_for, resolve
from .auth import Caller
from .context import Context
from .conversation_shapes import (
    Conversation,
    Participant,
    actor,
    group_of_all,
    is_all,
    participants,
    reference,
    shown,
    to_json,
)
from .operation import Level, Params, Timezone, operation
from .param_sizes import Line, Size
from .request_limits import page_size
from .send_shapes import not_too_deep

Which = Annotated[
    str | int, Field(description="like c12; or a group by its name, like core-team or group:core-team")
]
Respond = Literal["mentioned", "people", "all", "claim", "never"]
MOST_HISTORY = 1_000_000
Metadata = Annotated[
    dict[str, Any], AfterValidator(not_too_deep), Size(text="metadata_bytes", values="metadata_bytes")
]

OF_REFERENCE = (errors.BadAddress, errors.BadId, errors.NotFound, errors.UnknownGroup)
OF_MANAGED = (*OF_REFERENCE, errors.BuiltInGroup, errors.NotMember, errors.NotManager)


class Create(Params):
    type: Literal["private", "group"] = Field("group", description="private: you and one other")
    name: str | None = Field(
        None, description="of a group: letters, digits and single dashes; nobody else may have it"
    )
    participants: list[str] = Field(
        default_factory=list, description="who is in it besides you: agents, people, and channels of groups"
    )
    description: Line | None = Field(None, description="what it is for")
    open: bool = Field(False, description="of a group: any agent or user may join")
    history: int = Field(
        0, ge=0, le=MOST_HISTORY, description="of a group: how many earlier messages a newcomer may see"
    )
    respond: Respond | None = Field(
        None, description="of a group: which messages are for the agents in `participants` to answer"
    )
    metadata: Metadata = Field(default_factory=dict, description="your own JSON object; hiboss only keeps it")


class One(Params):
    conversation: Which


class Get(One):
    address: str | None = Field(None, description="as who sees it (only for the boss)")


class Listing(Params):
    scope: Literal["own", "open", "all"] = Field(
        "own",
        description="own: those you are in, newest first; open: groups that you can join, by name; "
        "all: every group, by name (only for the boss)",
    )
    type: Literal["private", "adhoc", "group"] | None = Field(None, description="only of this type")
    archived: bool | None = Field(None, description="true: only archived ones; false: none of them")
    name: str | None = Field(None, description="only the group with this name")
    past: bool = Field(False, description="also those that you left, and those that were deleted")
    page_size: int | None = Field(
        None, description="how many at most, 1 to 100; default 10; with filters a page can have fewer"
    )
    after: str | None = Field(None, description="the `next` of the previous page")
    count: bool = Field(False, description="also count all that match, as `total`")
    address: str | None = Field(None, description="whose conversations (only for the boss)")


class Change(One):
    name: Line | None = Field(None, description="of a conversation that is no group; a group keeps its name")
    description: Line | None = Field(None, description="what it is for; an empty text removes it")
    open: bool | None = Field(None, description="of a group: whether any agent or user may join")
    history: int | None = Field(
        None, ge=0, le=MOST_HISTORY, description="of a group: how many earlier messages a newcomer may see"
    )
    metadata: Metadata | None = Field(
        None, description="your own JSON object, in place of the one before; {} removes it"
    )


class Archive(One):
    archived: bool = Field(True, description="false: it takes messages again")


class Delete(One):
    reason: Line | None = Field(None, description="why, for the record")


class ConversationDetail(TypedDict):
    conversation: Annotated[Conversation, Field(description="as it is for you")]
    participants: Annotated[
        list[Participant],
        Field(
            description="who is in it now, those who manage it first; empty for those who left, and group:all"
        ),
    ]
    timezone: Timezone


class ConversationList(TypedDict):
    conversations: Annotated[list[Conversation], Field(description="in the order of the scope")]
    next: Annotated[
        str | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    total: NotRequired[Annotated[int, Field(description="how many match, if count was given")]]
    total_capped: NotRequired[
        Annotated[bool, Field(description="true: only the newest 1,000 conversations were counted")]
    ]
    timezone: Timezone


class ChangedConversation(ConversationDetail):
    changed: Annotated[bool, Field(description="false: it was so already")]


class DeletedConversation(TypedDict):
    conversation: Annotated[Conversation, Field(description="what it was")]
    failed_envelopes: Annotated[int, Field(description="how many were still waiting for the group")]


# --- creating ------------------------------------------------------------------------


@operation(
    "conversation.create",
    level=Level.STANDARD,
    effect="change",
    params=Create,
    result=ChangedConversation,
    errors=(
        errors.BadName,
        errors.BadAddress,
        errors.BadText,
        errors.TooLarge,
        errors.NameTaken,
        errors.UnknownAddress,
        errors.NotBound,
        errors.CannotBeMember,
        errors.BuiltInGroup,
        errors.NotTwo,
        errors.InvalidParams,
    ),
)
async def create(context: Context, caller: Caller, params: Create) -> ChangedConversation:
    """Create a group, which you own; or begin the private conversation with somebody, if there is none."""
    who, now = actor(caller), clock.now()
    others = [resolve(context.store, caller, one) for one in params.participants]
    fields = _fields(context, params)

    def write(tx: Tx) -> tuple[int, bool]:
        if params.type == "group":
            return _create_group(tx, params, who, others, fields, now), True
        return _begin_private(tx, params, who, others, fields, now)

    number, changed = await context.write(caller, write)
    return _changed(context, caller, number, changed)


def _create_group(
    tx: Tx, params: Create, who: Actor, others: list[Address], fields: dict[str, Any], now: int
) -> int:
    if params.name is None:
        raise InvalidParams(detail="a group needs a name")
    row = groups.create(tx, params.name, who, fields, now)
    for one in others:
        respond = params.respond if one.kind == "agent" else None
        if one.fold != who.entry.address.fold:
            group_members.add(tx, row["id"], who, one, now, respond=respond)
    groups.tell(tx, row["id"], "created", who, now)
    return int(row["id"])


def _begin_private(
    tx: Tx, params: Create, who: Actor, others: list[Address], fields: dict[str, Any], now: int
) -> tuple[int, bool]:
    if params.open or params.history or params.respond:
        raise InvalidParams(detail="open, history and respond are for groups")
    besides = {one.fold: one for one in others if one.fold != who.entry.address.fold}
    if len(besides) != 1:
        raise NotTwo(number=len(besides) + 1)
    [other] = besides.values()
    entry = group_members.partner(tx, other, who)
    if params.name is not None:
        fields["name"] = params.name or None
    row, new = groups.begin_private(tx, who, entry.id, fields, now)
    if new:
        groups.tell(tx, row["id"], "created", who, now)
    return int(row["id"]), new


def _fields(context: Context, params: Create | Change) -> dict[str, Any]:
    """Return what is given, checked; an empty text becomes None."""
    given: dict[str, Any] = {}
    for name in ("name", "description"):
        text = getattr(params, name)
        if text is not None and not (name == "name" and isinstance(params, Create)):
            given[name] = measure(name, text, context.settings.subject_bytes) or None
    fields = params.model_fields_set
    given |= {
        name: getattr(params, name)
        for name in ("open", "history", "metadata")
        if name in fields and getattr(params, name) is not None
    }
    return given


# --- showing -------------------------------------------------------------------------


@operation(
    "conversation.get",
    level=Level.RESTRICTED,
    params=Get,
    result=ConversationDetail,
    errors=(*OF_REFERENCE, errors.UnknownAddress, errors.BossOnly),
)
def get(context: Context, caller: Caller, params: Get) -> ConversationDetail:
    """Show a conversation, and who is in it; it changes nothing."""
    which, viewer = reference(params.conversation), acting_for(context.store, caller, params.address)
    return context.store.read(lambda connection: _detail(context, connection, which, caller, viewer))


def _detail(
    context: Context, connection: Connection, which: int | str, caller: Caller, viewer: int
) -> ConversationDetail:
    sees = None if caller.is_boss and viewer == caller.id else viewer
    row = None if is_all(which) else groups.visible(connection, which, sees)
    if row is None or groups.is_all(row):
        found, members = group_of_all(connection, caller, viewer), []
    else:
        found = shown(connection, row["id"], caller, viewer)
        members = participants(connection, row, caller)
    return {"conversation": found, "participants": members, "timezone": context.timezone}


@operation(
    "conversation.list",
    level=Level.RESTRICTED,
    params=Listing,
    result=ConversationList,
    errors=(errors.BadAddress, errors.BadId, errors.UnknownAddress, errors.BossOnly, errors.InvalidParams),
)
def listed(context: Context, caller: Caller, params: Listing) -> ConversationList:
    """List your conversations, newest first; or the groups that you can join."""
    if params.scope == "all" and not caller.is_boss:
        raise BossOnly(what="the scope all", caller=caller.name)
    viewer, limit = acting_for(context.store, caller, params.address), page_size(context, params.page_size)
    which = Filter(params.type, params.archived, params.name, params.past)

    def read(connection: Connection) -> ConversationList:
        page = _page(connection, params, which, viewer, limit)
        found = [to_json(connection, row, caller, viewer) for row in page.rows]
        if _with_all(params):
            found.insert(0, group_of_all(connection, caller, viewer))
        result: ConversationList = {
            "conversations": found,
            "next": page.next,
            "timezone": context.timezone,
        }
        if params.count:
            result["total"], result["total_capped"] = _count(connection, params, which, viewer)
        return result

    return context.store.read(read)


def _with_all(params: Listing) -> bool:
    """Tell whether this page shows the group of all agents: the first one of groups."""
    named = params.name is None or params.name.lower() == ALL.name
    groups_only = params.scope != "own" or params.type == "group"
    return groups_only and named and params.after is None and not params.archived


def _page(connection: Connection, params: Listing, which: Filter, viewer: int, limit: int) -> Page:
    if params.scope == "own":
        before = LARGEST if params.after is None else ids.number(params.after, "conversation")
        return conversation_lists.own(connection, viewer, which, limit, before)
    _check_groups_only(params)
    every = params.scope == "all"
    return conversation_lists.groups(
        connection, viewer, limit, params.after or "", archived=params.archived, every=every
    )


def _check_groups_only(params: Listing) -> None:
    if params.type not in (None, "group") or params.name is not None or params.past:
        raise InvalidParams(detail=f"type, name and past go with the scope own, not with {params.scope}")


def _count(connection: Connection, params: Listing, which: Filter, viewer: int) -> tuple[int, bool]:
    if params.scope == "own":
        number, capped = conversation_lists.count(connection, viewer, which)
    else:
        every = params.scope == "all"
        number, capped = conversation_lists.count_groups(connection, archived=params.archived, every=every)
    first = params.model_copy(update={"after": None})
    return number + int(_with_all(first)), capped


# --- changing ------------------------------------------------------------------------


@operation(
    "conversation.set",
    level=Level.STANDARD,
    effect="idempotent",
    params=Change,
    result=ConversationDetail,
    errors=(*OF_MANAGED, errors.BadText, errors.TooLarge, errors.InvalidParams),
)
async def change(context: Context, caller: Caller, params: Change) -> ConversationDetail:
    """Change a conversation: a group those who manage it, any other one its parties."""
    which, who, fields, now = (
        reference(params.conversation),
        actor(caller),
        _fields(context, params),
        clock.now(),
    )
    if not fields:
        raise InvalidParams(detail="nothing to change: give description, open, history, metadata or name")

    def write(tx: Tx) -> Row:
        row = groups.visible(tx, which, who.sees)
        if row["kind"] == "group" and "name" in fields:
            raise InvalidParams(detail="a group keeps its name; create another one, and delete this one")
        if row["kind"] != "group" and {"open", "history"} & fields.keys():
            raise InvalidParams(detail="open and history are for groups")
        return groups.change(tx, row["id"], who, fields, now)

    row = await context.write(caller, write)
    return context.store.read(lambda c: _detail(context, c, row["id"], caller, caller.id))


@operation(
    "conversation.archive",
    level=Level.STANDARD,
    effect="idempotent",
    params=Archive,
    result=ChangedConversation,
    errors=(*OF_MANAGED, errors.BossOnly),
)
async def archive(context: Context, caller: Caller, params: Archive) -> ChangedConversation:
    """Let a conversation take no messages, or take them again; it stays readable.

    A group those who manage it, any other conversation the boss.
    """
    which, who, now = reference(params.conversation), actor(caller), clock.now()
    row, changed = await context.write(
        caller, lambda tx: groups.archive(tx, which, who, params.archived, now)
    )
    return _changed(context, caller, row["id"], changed)


@operation(
    "conversation.delete",
    level=Level.STANDARD,
    effect="destructive",
    params=Delete,
    result=DeletedConversation,
    errors=(*OF_MANAGED, errors.BossOnly, errors.BadText, errors.TooLarge),
)
async def delete(context: Context, caller: Caller, params: Delete) -> DeletedConversation:
    """Delete a conversation: who could read it still can, and nothing more is said there.

    A group its owner, any other conversation the boss. The name of a group is free again.
    """
    which, who, now = reference(params.conversation), actor(caller), clock.now()
    reason = params.reason and measure("reason", params.reason, context.settings.subject_bytes)
    row, failed = await context.write(caller, lambda tx: groups.delete(tx, which, who, reason, now))
    found = context.store.read(lambda connection: shown(connection, row["id"], caller))
    return {"conversation": found, "failed_envelopes": failed}


def _changed(context: Context, caller: Caller, number: int, changed: bool) -> ChangedConversation:
    found = context.store.read(lambda connection: _detail(context, connection, number, caller, caller.id))
    return {**found, "changed": changed}
