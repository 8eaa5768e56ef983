"""Operations about who is here: the presence of agents and people, and who types."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..store import agents, typing_places, users
from ..store.connection import Connection, Row
from . import agent_states
from .addresses import address_id, resolve
from .agent_states import Live
from .auth import Caller
from .context import Context
from .operation import Id, Level, Nothing, Params, Timezone, operation


class Get(Params):
    address: str = Field(description="an agent or a person, like agent:nex, user:ann or nex")


class OnePresence(TypedDict):
    address: Annotated[str, Field(description="of an agent or a person")]
    presence: Annotated[
        str,
        Field(
            description="of an agent: typing, running, waiting (for an answer), stuck, idle, offline; "
            "of a person: online, away, offline"
        ),
    ]
    state: Annotated[
        str | None, Field(description="of an agent: as in agent.status; null: a person, or a deleted agent")
    ]
    last_seen_at: Annotated[str | None, Field(description="when it last called an operation; null: never")]


class PresenceOfOne(OnePresence):
    timezone: Timezone


class PresenceOfAll(TypedDict):
    presence: Annotated[list[OnePresence], Field(description="people, the boss first, then agents by name")]
    timezone: Timezone


class Typing(Params):
    conversation: Id = Field(description="where, like c4")
    on: bool = Field(True, description="false: not any more. It also ends after 6 seconds, unless repeated")


class TypingNoted(TypedDict):
    conversation: Annotated[str, Field(description="as given, like c4")]
    changed: Annotated[bool, Field(description="false: that was known already")]


@operation(
    "presence.get",
    level=Level.RESTRICTED,
    params=Get,
    result=PresenceOfOne,
    errors=(errors.BadAddress, errors.UnknownAddress),
)
def get(context: Context, caller: Caller, params: Get) -> PresenceOfOne:
    """Show whether an agent or a person is here now."""
    address, live = resolve(context.store, caller, params.address), agent_states.live_of(context)
    number = address_id(context.store, caller, params.address)
    if address.kind not in ("agent", "user"):
        raise errors.InvalidParams(detail=f"only agents and people have a presence, not {address.kind}s")

    def read(connection: Connection) -> OnePresence:
        for person in [one for one in users.list_all(connection) if one["id"] == number]:
            return _of_user(context, person)
        row = agents.by_id(connection, number)
        if row is None:  # deleted
            return {"address": str(address), "presence": "offline", "state": None, "last_seen_at": None}
        return _of_agent(context, connection, row, live)

    return {**context.store.read(read), "timezone": context.timezone}


@operation("presence.list", level=Level.RESTRICTED, effect="read", result=PresenceOfAll)
async def listed(context: Context, caller: Caller, params: Nothing) -> PresenceOfAll:
    """Show who is here now: every person and every agent."""
    live = agent_states.live_of(context)

    def read(connection: Connection) -> PresenceOfAll:
        people = [_of_user(context, row) for row in users.list_all(connection)]
        found = [_of_agent(context, connection, row, live) for row in agents.list_all(connection)]
        return {"presence": [*people, *found], "timezone": context.timezone}

    return await context.store.read_in_thread(read)


@operation(
    "presence.typing",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Typing,
    result=TypingNoted,
    errors=(errors.BadId, errors.NotFound),
)
def typing(context: Context, caller: Caller, params: Typing) -> TypingNoted:
    """Tell the others of a conversation that you type there, also in the chats of its channels."""
    number = ids.number(params.conversation, "conversation")
    if not context.store.read(lambda c: typing_places.takes_part(c, caller.id, number)):
        raise errors.NotFound(what="conversation", value=f"c{number}")
    changed = context.typing.types(caller.id, number, params.on)
    return {"conversation": f"c{number}", "changed": changed}


def _of_user(context: Context, row: Row) -> OnePresence:
    return {
        "address": f"user:{row['login']}",
        "presence": context.user_presence.state(row["id"]),
        "state": None,
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
    }


def _of_agent(context: Context, connection: Connection, row: Row, live: Live) -> OnePresence:
    state, presence = agent_states.state_and_presence(connection, row["id"], live)
    return {
        "address": f"agent:{row['name']}",
        "presence": presence,
        "state": state,
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
    }
