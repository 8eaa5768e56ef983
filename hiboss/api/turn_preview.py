"""The operation that shows what an agent's next turn contains."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import turn_input
from ..core import clock
from ..core.errors import BadAddress, BossOnly, InvalidParams, UnknownAddress, UnknownAgent
from ..store import agents, due_envelopes, paging, turn_selection
from ..store.connection import Connection, Row
from .addresses import acting_for, resolve
from .auth import Caller
from .context import Context
from .operation import Level, Params, Timezone, operation

PULL_ENVELOPES = 1_000  # the most shown of an agent that fetches its mail


class Preview(Params):
    address: str | None = Field(None, description="whose turn (only for the boss, who must give it)")


class TurnPreview(TypedDict):
    agent: Annotated[str, Field(description="its name")]
    due: Annotated[
        int | str,
        Field(description="everything that waits for it; over the limit of exact counts like 1000+"),
    ]
    envelopes: Annotated[list[str], Field(description="the ids of those in the turn")]
    text: Annotated[str, Field(description="what the agent is shown")]
    timezone: Timezone


@operation(
    "turn.preview",
    level=Level.RESTRICTED,
    effect="read",
    params=Preview,
    result=TurnPreview,
    errors=(BadAddress, BossOnly, InvalidParams, UnknownAddress, UnknownAgent),
)
async def preview(context: Context, caller: Caller, params: Preview) -> TurnPreview:
    """Show exactly what the agent's next turn contains; it changes nothing."""
    now, exact_to = clock.now(), context.settings.count_exact_to

    def read(connection: Connection) -> TurnPreview:
        agent = _agent(context, caller, params)
        numbers, left_out = _next(connection, agent, now, context.settings.page_bytes)
        who = (agent["id"], agent["name"])
        # An agent that fetches its mail has no turns: what was said around it is in its box.
        beside = turn_selection.NOTHING
        if agent["mode"] == "run":
            beside = turn_selection.preview_beside(connection, agent["id"], numbers)
        content = turn_input.content(
            connection, context.home, who, numbers, now, context.zone, exact_to, beside
        )
        text = content.text + left_out
        return {
            "agent": agent["name"],
            "due": content.due,
            "envelopes": [one["id"] for one in content.envelopes],
            "text": text,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _agent(context: Context, caller: Caller, params: Preview) -> Row:
    if params.address is None and caller.is_boss:
        raise InvalidParams(detail="give the agent whose turn it is: address (--address), like nex")
    acting_for(context.store, caller, params.address)
    address = resolve(context.store, caller, params.address) if params.address else caller.address
    assert address
    if address.kind != "agent":
        raise InvalidParams(detail=f"{address} is not an agent; only agents have turns, like agent:nex")
    return context.store.read(lambda c: agents.get(c, address.name))


def _next(connection: Connection, agent: Row, now: int, most_bytes: int) -> tuple[list[int], str]:
    """Return the envelopes of the next turn, as many as fit, and the lines that say what is left out.

    They are of one conversation; or all that are due, for an agent that fetches its mail.
    """
    if agent["mode"] == "run":
        turn = turn_selection.preview(connection, agent, now)
        shown = paging.fitting(connection, turn, most_bytes)
        left = f"\n\n(the turn has {len(turn)} envelopes; the first {len(shown)} are shown here)"
        return shown, left if len(shown) < len(turn) else ""
    due = [one.id for one in due_envelopes.due(connection, agent["id"], now, PULL_ENVELOPES)]
    shown = paging.fitting(connection, due, most_bytes)
    left = f"\n\nmore-due: true\n(the first {len(shown)} are shown; acknowledge some for more)"
    return shown, left if len(shown) < len(due) or len(due) == PULL_ENVELOPES else ""
