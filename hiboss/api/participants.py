"""Operations about who is in a group: add, remove, join, leave, roles, and the owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.errors import InvalidParams
from ..store import group_members
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.group_delivery import ALL
from ..store.groups import Actor
from .addresses import resolve
from .auth import Caller
from .context import Context
from .conversation_shapes import Conversation, Participant, actor, is_all, participants, reference, shown
from .conversations import MOST_HISTORY, OF_MANAGED, OF_REFERENCE, Respond, Which
from .operation import Level, Params, operation

RESPOND = (
    "of an agent, which messages are for it to answer: those that mention it or reply to it (mentioned, "
    "the default), all that people write (people), all, what it takes first (claim), or none (never)"
)


class Member(Params):
    conversation: Which
    address: str = Field(description="who, like agent:nex, nex, user:mia or channel:telegram:-100")


class Add(Member):
    role: Literal["member", "admin"] = Field(
        "member", description="admin: it can add and remove members (only the owner and the boss make one)"
    )
    respond: Respond | None = Field(None, description=RESPOND)
    history: int | None = Field(
        None,
        ge=0,
        le=MOST_HISTORY,
        description="how many earlier messages it may see; without it, as many as the group gives newcomers",
    )


class SetRole(Member):
    role: Literal["member", "admin"] | None = Field(
        None, description="admin: it can add and remove members (only the owner and the boss make one)"
    )
    respond: Respond | None = Field(None, description=RESPOND)


class Join(Params):
    conversation: Which
    respond: Respond | None = Field(None, description=RESPOND)


class Leave(Params):
    conversation: Which


class Membership(TypedDict):
    conversation: Annotated[Conversation, Field(description="the group, as it is for you")]
    participants: Annotated[
        list[Participant], Field(description="who is in it now; empty if you are not in it any more")
    ]
    changed: Annotated[bool, Field(description="false: it was so already")]


_OF_GROUP = (*OF_REFERENCE, errors.BuiltInGroup, errors.NoGroup)
_OF_MEMBER = (*OF_MANAGED, errors.NoGroup, errors.UnknownAddress)
Step = Callable[[Tx, int | str, Actor, int], tuple[Row, bool]]


@operation(
    "participant.add",
    level=Level.STANDARD,
    effect="idempotent",
    params=Add,
    result=Membership,
    errors=(*_OF_MEMBER, errors.CannotBeMember, errors.NotBound, errors.InvalidParams),
)
async def add(context: Context, caller: Caller, params: Add) -> Membership:
    """Add an agent, a person or a channel to a group. Who is in it already keeps its role."""
    who, role, respond = resolve(context.store, caller, params.address), params.role, params.respond

    def step(tx: Tx, which: int | str, by: Actor, now: int) -> tuple[Row, bool]:
        return group_members.add(tx, which, by, who, now, role=role, respond=respond, history=params.history)

    return await _take(context, caller, params.conversation, step)


@operation(
    "participant.remove",
    level=Level.STANDARD,
    effect="destructive",
    params=Member,
    result=Membership,
    errors=(*_OF_MEMBER, errors.OwnerStays),
)
async def remove(context: Context, caller: Caller, params: Member) -> Membership:
    """Remove somebody from a group: from now on it neither gets nor sends anything there."""
    who = resolve(context.store, caller, params.address)
    return await _take(
        context,
        caller,
        params.conversation,
        lambda tx, which, by, now: (group_members.remove(tx, which, by, who, now), True),
    )


@operation(
    "participant.role",
    level=Level.STANDARD,
    effect="idempotent",
    params=SetRole,
    result=Membership,
    errors=(*_OF_MEMBER, errors.OwnerStays, errors.CannotBeMember, errors.InvalidParams),
)
async def role(context: Context, caller: Caller, params: SetRole) -> Membership:
    """Make a member an admin or an admin a member; or set which messages are for an agent to answer."""
    if params.role is None and params.respond is None:
        raise InvalidParams(detail="nothing to change: give role (--role) or respond (--respond)")
    who = resolve(context.store, caller, params.address)

    def step(tx: Tx, which: int | str, by: Actor, now: int) -> tuple[Row, bool]:
        changed = False
        if params.role is not None:
            row, changed = group_members.set_role(tx, which, by, who, params.role, now)
        if params.respond is not None:
            row, more = group_members.set_respond(tx, which, by, who, params.respond, now)
            changed = changed or more
        return row, changed

    return await _take(context, caller, params.conversation, step)


@operation(
    "participant.transfer",
    level=Level.STANDARD,
    effect="idempotent",
    params=Member,
    result=Membership,
    errors=(*_OF_MEMBER, errors.CannotBeMember),
)
async def transfer(context: Context, caller: Caller, params: Member) -> Membership:
    """Give a group to another owner, who is in it; the one before becomes an admin."""
    who = resolve(context.store, caller, params.address)
    return await _take(
        context,
        caller,
        params.conversation,
        lambda tx, which, by, now: group_members.transfer(tx, which, by, who, now),
    )


@operation(
    "participant.join",
    level=Level.STANDARD,
    effect="idempotent",
    params=Join,
    result=Membership,
    errors=(*_OF_GROUP, errors.GroupClosed, errors.CannotBeMember, errors.InvalidParams),
)
async def join(context: Context, caller: Caller, params: Join) -> Membership:
    """Come into an open group."""
    return await _take(
        context,
        caller,
        params.conversation,
        lambda tx, which, by, now: group_members.join(tx, which, by, params.respond, now),
    )


@operation(
    "participant.leave",
    level=Level.STANDARD,
    effect="destructive",
    params=Leave,
    result=Membership,
    errors=(*_OF_GROUP, errors.NotMember, errors.OwnerStays),
)
async def leave(context: Context, caller: Caller, params: Leave) -> Membership:
    """Leave a group. What was said while you were in it you can still read."""
    return await _take(
        context,
        caller,
        params.conversation,
        lambda tx, which, by, now: (group_members.leave(tx, which, by, now), True),
    )


async def _take(context: Context, caller: Caller, given: str | int, step: Step) -> Membership:
    """Take a step in a group, in one transaction, and show what it is then."""
    which, who, now = reference(given), actor(caller), clock.now()
    if is_all(which):
        raise errors.BuiltInGroup(name=str(ALL))
    row, changed = await context.write(caller, lambda tx: step(tx, which, who, now))

    def read(connection: Connection) -> Membership:
        return {
            "conversation": shown(connection, row["id"], caller),
            "participants": participants(connection, row, caller),
            "changed": changed,
        }

    return context.store.read(read)
