"""Operations to be told once when an agent is idle, waits for an answer, finished or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..store import agents, state_watches
from ..store.connection import Row
from ..store.group_commit import Tx
from ..store.state_watches import STATES, Origin
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Timezone, operation

if TYPE_CHECKING:
    State = str
else:
    State = Literal[STATES]


class Notify(ByName):
    when: State = Field(
        description="idle: it has nothing to do; waiting: it asks for an answer; finished: its next run ends "
        "with success; failed: its next run fails, or is cancelled"
    )


class Forget(ByName):
    when: State | None = Field(None, description="only this one; without it all of this agent")


class Notified(TypedDict):
    name: Annotated[str, Field(description="of the agent")]
    when: Annotated[str, Field(description="as given")]
    told: Annotated[bool, Field(description="true: it is so now, and you were told; nothing more comes")]


class Forgotten(TypedDict):
    name: Annotated[str, Field(description="of the agent")]
    removed: Annotated[int, Field(description="how many will not be told any more")]


class Watch(TypedDict):
    name: Annotated[str, Field(description="of the agent")]
    when: Annotated[str, Field(description="idle, waiting, finished, failed")]
    watcher: Annotated[str, Field(description="who will be told")]
    created_at: Annotated[str, Field(description="since when")]


class Watches(TypedDict):
    watches: Annotated[list[Watch], Field(description="yours; for the boss everybody's")]
    timezone: Timezone


@operation(
    "agent.notify",
    level=Level.STANDARD,
    effect="change",
    params=Notify,
    result=Notified,
    errors=(errors.UnknownAgent,),
)
async def notify(context: Context, caller: Caller, params: Notify) -> Notified:
    """Be told once when an agent is in a state. A person gets a notice, an agent mail that starts a turn."""
    now, origin = clock.now(), Origin(caller.trace, caller.hops + 1) if caller.run is not None else Origin()

    def write(tx: Tx) -> tuple[Row, bool]:
        row = agents.get(tx, params.name)
        if row["id"] == caller.id:
            raise errors.InvalidParams(detail="an agent cannot be told about itself: name another one")
        return row, state_watches.add(tx, caller.id, row["id"], params.when, origin, now)

    row, told = await context.write(caller, write)
    return {"name": row["name"], "when": params.when, "told": told}


@operation("agent.notify.list", level=Level.STANDARD, result=Watches)
def listed(context: Context, caller: Caller, params: Nothing) -> Watches:
    """List what you will be told of; for the boss also what others will be."""
    rows = context.store.read(lambda c: state_watches.listed(c, caller.sees))
    return {"watches": [_watch(row) for row in rows], "timezone": context.timezone}


@operation(
    "agent.notify.remove",
    level=Level.STANDARD,
    effect="idempotent",
    params=Forget,
    result=Forgotten,
    errors=(errors.UnknownAgent,),
)
async def remove(context: Context, caller: Caller, params: Forget) -> Forgotten:
    """Do not be told of an agent any more."""

    def write(tx: Tx) -> tuple[Row, int]:
        row = agents.get(tx, params.name)
        return row, state_watches.remove(tx, caller.id, row["id"], params.when)

    row, removed = await context.write(caller, write)
    return {"name": row["name"], "removed": removed}


def _watch(row: Row) -> Watch:
    return {
        "name": row["agent_address"].removeprefix("agent:"),
        "when": row["state"],
        "watcher": row["watcher_address"],
        "created_at": clock.iso(row["created_at"]),
    }
