"""The operation that shows what an agent is told about itself: its instructions and its memory."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import instructions, memory_files
from ..core import clock
from ..core.errors import BossOnly, UnknownAgent
from ..store import agents
from ..store.connection import Connection
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Timezone, operation


class AgentInstructions(TypedDict):
    name: Annotated[str, Field(description="of the agent")]
    provider: Annotated[str | None, Field(description="how its answers are made; null: it has none")]
    given: Annotated[
        bool,
        Field(description="false: its provider takes no instructions; this is what one that does would get"),
    ]
    text: Annotated[str, Field(description="the instructions, exactly as its turns have them")]
    memory: Annotated[
        str,
        Field(description="what the first turn of a new session would begin with; empty: nothing"),
    ]
    timezone: Timezone


@operation(
    "agent.instructions",
    level=Level.RESTRICTED,
    effect="read",
    params=ByName,
    result=AgentInstructions,
    errors=(UnknownAgent, BossOnly),
)
async def show(context: Context, caller: Caller, params: ByName) -> AgentInstructions:
    """Show the instructions and the memory that an agent is given; the agent itself and the boss may."""
    now = clock.now()

    def read(connection: Connection) -> tuple[instructions.Facts, str]:
        row = agents.get(connection, params.name)
        if not caller.is_boss and row["id"] != caller.id:
            raise BossOnly(what="reading the instructions of another agent (name)", caller=caller.name)
        facts = instructions.facts(connection, row["id"])
        assert facts is not None
        return facts, context.timezone

    facts, timezone = await context.store.read_in_thread(read)
    agent, home = facts.agent, context.home
    workspace = agent["workspace"] or home.workspace(agent["name"])
    today = clock.from_ms(now, clock.zone(timezone)).date()
    memory = await asyncio.to_thread(memory_files.read, home, workspace, today)
    text = instructions.text(facts, home, workspace, agent["reply"])
    return {
        "name": agent["name"],
        "provider": agent["provider"],
        "given": context.runner.providers.takes_instructions(agent["provider"] or ""),
        "text": text,
        "memory": memory_files.block(memory, text, None),
        "timezone": timezone,
    }
