"""The operation about providers: which there are, and what they need."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from .auth import Caller
from .context import Context
from .operation import Level, Nothing, operation
from .option_fields import OptionField, option_fields


class ProviderKind(TypedDict):
    name: Annotated[str, Field(description="to be given as `provider` of agent.set")]
    summary: Annotated[str, Field(description="who answers")]
    options: Annotated[list[OptionField], Field(description="what `settings` of agent.set can have")]
    capabilities: Annotated[
        list[str],
        Field(description="what it can do beyond answering: session, steer, interrupt, ask, cost"),
    ]


class ProviderList(TypedDict):
    providers: Annotated[
        list[ProviderKind], Field(description="the built-in ones, and those of your modules")
    ]


@operation("provider.list", level=Level.RESTRICTED, result=ProviderList)
def listed(context: Context, caller: Caller, params: Nothing) -> ProviderList:
    """List the providers: how an agent's answers can be made, and which settings each has."""
    kinds = context.runner.providers.known.values()
    return {
        "providers": [
            {
                "name": kind.name,
                "summary": kind.summary,
                "options": option_fields(kind.Settings),
                "capabilities": sorted(kind.capabilities),
            }
            for kind in kinds
        ]
    }
