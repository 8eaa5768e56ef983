"""Operations about turns: what an agent is shown."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import turn_input
from ..core import clock
from ..core.errors import BadAddress, BossOnly, InvalidParams, UnknownAddress, UnknownAgent
from ..store import agents, due_envelopes, turn_selection
from ..store.connection import Connection, Row
from .addresses import acting_for, resolve
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation

PULL_ENVELOPES = 1_000  # for one that fetches: all of it, within reason


class Preview(Params):
    address: str | None = Field(None, description="whose turn (for the boss, who must give it)")


class Previewed(TypedDict):
    agent: str
    due: int | str
    envelopes: list[str]
    text: str
    timezone: str


@operation(
    "turn.preview",
    level=Level.RESTRICTED,
    params=Preview,
    result=Previewed,
    errors=(BadAddress, BossOnly, InvalidParams, UnknownAddress, UnknownAgent),
)
async def preview(context: Context, caller: Caller, params: Preview) -> Previewed:
    """Exactly what the agent's next turn contains; looking changes nothing."""
    agent = _agent(context, caller, params)
    now, exact_to, zone = clock.now(), context.settings.count_exact_to, context.zone

    def read(connection: Connection) -> turn_input.Content:
        who, numbers = (agent["id"], agent["name"]), _next(connection, agent, now)
        return turn_input.content(connection, context.home, who, numbers, now, zone, exact_to)

    content = await context.store.read_in_thread(read)
    text = content.text
    if agent["mode"] == "pull" and len(content.envelopes) == PULL_ENVELOPES:
        text += f"\n\nmore-due: true\n(the first {PULL_ENVELOPES} are shown; acknowledge some for more)"
    return {
        "agent": agent["name"],
        "due": content.due,
        "envelopes": [one["id"] for one in content.envelopes],
        "text": text,
        "timezone": context.timezone,
    }


def _agent(context: Context, caller: Caller, params: Preview) -> Row:
    if params.address is None and caller.is_boss:
        raise InvalidParams(detail="say whose turn: address (--address), like agent:nex")
    acting_for(context.store, caller, params.address)
    address = resolve(context.store, params.address) if params.address else caller.address
    assert address
    if address.kind != "agent":
        raise InvalidParams(detail=f"{address} is no agent, and only agents have turns, like agent:nex")
    return context.store.read(lambda c: agents.get(c, address.name))


def _next(connection: Connection, agent: Row, now: int) -> list[int]:
    """The envelopes of the next turn: one conversation's, or all for an agent that fetches."""
    if agent["mode"] == "pull":
        return [one.id for one in due_envelopes.due(connection, agent["id"], now, PULL_ENVELOPES)]
    return turn_selection.preview(connection, agent, now)
