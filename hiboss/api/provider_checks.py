"""What an agent's provider can do, and whether what it needs is there; the operation `agent.check`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..agents import provider_finding
from ..core.address import Address
from ..core.contracts.provider import COST, STEER, Provider
from ..core.errors import BadProvider, BossOnly, LacksCapability, NoProvider, UnknownAgent
from ..store import agents
from ..store.connection import Row
from . import provider_settings
from .auth import Caller, check_may_change
from .context import Context
from .operation import ByName, Level, operation


class Found(TypedDict):
    found: Annotated[str | None, Field(description="what it needs and has, like a program and its version")]
    problem: Annotated[str | None, Field(description="why no turn could succeed now; null: nothing seen")]
    help: Annotated[str | None, Field(description="the command that helps; null: none is known")]


# Of agent.register and agent.set.
FoundField = Annotated[
    Found | None,
    Field(description="what a provider that was just chosen or changed finds; null: it needs nothing else"),
]


class Check(ByName):
    provider: str | None = Field(
        None, description="try this one, with its default settings, instead of the agent's own"
    )


class CheckedAgent(TypedDict):
    name: Annotated[str, Field(description="of the agent")]
    provider: Annotated[str, Field(description="that was tried")]
    capabilities: Annotated[
        list[str], Field(description="what it can do beyond answering, with these settings")
    ]
    found: Annotated[Found | None, Field(description="what it found; null: it needs nothing else")]


# --- what a provider can do ----------------------------------------------------------


class Able(NamedTuple):
    """A provider with its settings as they are stored, and what it can do."""

    provider: str | None
    settings: str | None
    capabilities: frozenset[str]


def able(context: Context, columns: Mapping[str, Any]) -> Able:
    """Return what the provider of these columns of an agent can do."""
    name, stored = columns["provider"], columns["provider_config"]
    if name is None:
        return Able(name, stored, frozenset())
    try:
        can = provider_settings.current(context, columns).capabilities
    except BadProvider:  # its module is gone, or was changed: then `demand` looks at the class
        return Able(None, None, frozenset())
    return Able(name, stored, can)


def demand(context: Context, row: Row, known: Able) -> None:
    """Raise if an agent, as it would be stored, wants something that its provider cannot do.

    `known`: what was found out before. Meanwhile somebody may have chosen another provider.
    """
    kind = context.runner.providers.known.get(row["provider"])
    if kind is None:
        return  # the next one that is chosen is asked
    same = (row["provider"], row["provider_config"]) == known[:2]
    can, name = known.capabilities if same else kind.capabilities, row["name"]
    if row["busy"] == "steer" and STEER not in can:
        raise LacksCapability(
            provider=row["provider"],
            lacks="takes no words during a turn, and --busy steer needs that",
            instead=f"use --busy collect, followup, interrupt or end-of-turn for {name}",
        )
    if row["daily_cost"] is not None and COST not in can:
        raise LacksCapability(
            provider=row["provider"],
            lacks="reports no cost, and --daily-cost needs that",
            instead=f"use --daily-tokens for {name}, and --daily-cost 0",
        )


# --- whether what it needs is there --------------------------------------------------


async def found(context: Context, row: Row) -> Found | None:
    """Let the provider of an agent look for what it needs. Never raises for what is missing."""
    try:
        provider = provider_settings.current(context, row)
    except BadProvider as error:
        return {"found": None, "problem": error.message, "help": None}
    return await _found(context, provider, row)


async def _found(context: Context, provider: Provider, row: Row) -> Found | None:
    deny = context.settings.environment_deny
    what = await provider_finding.find(provider, context.home, row["name"], row["workspace"], deny)
    if what is None:
        return None
    return {"found": what.found or None, "problem": what.problem or None, "help": what.help or None}


@operation(
    "agent.check",
    level=Level.RESTRICTED,
    effect="read",
    params=Check,
    result=CheckedAgent,
    errors=(UnknownAgent, NoProvider, BadProvider, BossOnly),
    waits=True,
)
async def check(context: Context, caller: Caller, params: Check) -> CheckedAgent:
    """Look whether the provider of an agent has what it needs: its program, a login. The boss, or itself."""
    row = context.store.read(lambda c: agents.get(c, params.name))
    check_may_change(caller, Address("agent", row["name"]), caller.right)
    if params.provider is not None:
        provider = provider_settings.default(context, params.provider)
    elif row["provider"] is None:
        raise NoProvider(name=row["name"])
    else:
        provider = provider_settings.current(context, row)
    return {
        "name": row["name"],
        "provider": provider.name,
        "capabilities": sorted(provider.capabilities),
        "found": await _found(context, provider, row),
    }
