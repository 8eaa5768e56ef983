"""The operation that shows what an agent's next turn contains."""

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

PULL_ENVELOPES = 1_000  # the most shown of an agent that fetches its mail


class Preview(Params):
    address: str | None = Field(None, description="whose turn (only for the boss, who must give it)")


class TurnPreview(TypedDict):
    agent: str  # its name
    due: int | str  # everything that waits for it; over the limit of exact counts like 1000+
    envelopes: list[str]  # the ids of those in the turn
    text: str  # what the agent is shown
    timezone: str


@operation(
    "turn.preview",
    level=Level.RESTRICTED,
    params=Preview,
    result=TurnPreview,
    errors=(BadAddress, BossOnly, InvalidParams, UnknownAddress, UnknownAgent),
)
async def preview(context: Context, caller: Caller, params: Preview) -> TurnPreview:
    """Show exactly what the agent's next turn contains; it changes nothing."""
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
        raise InvalidParams(detail="give the agent whose turn it is: address (--address), like nex")
    acting_for(context.store, caller, params.address)
    address = resolve(context.store, params.address) if params.address else caller.address
    assert address
    if address.kind != "agent":
        raise InvalidParams(detail=f"{address} is not an agent; only agents have turns, like agent:nex")
    return context.store.read(lambda c: agents.get(c, address.name))


def _next(connection: Connection, agent: Row, now: int) -> list[int]:
    """Return the envelopes of the next turn: of one conversation, or all for an agent that fetches."""
    if agent["mode"] == "pull":
        return [one.id for one in due_envelopes.due(connection, agent["id"], now, PULL_ENVELOPES)]
    return turn_selection.preview(connection, agent, now)
