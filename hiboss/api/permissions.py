"""Operations about permissions: the policy, and the levels of agents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core.errors import FixedLevel, InvalidParams, UnknownAgent, UnknownOperation
from ..store import agents
from ..store import policy as policy_store
from ..store.group_commit import Tx
from . import policy
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, operation
from .param_sizes import Size


class PolicyJson(TypedDict):
    policy: Annotated[dict[str, str], Field(description="for each operation and right, the level it needs")]
    changed: Annotated[list[str], Field(description="the operations whose level is not the declared one")]


class SetPolicy(Params):
    policy: Annotated[dict[str, str], Size(values=2_000)] = Field(
        description="operation -> level; operations that are not named get their default level back"
    )


class SetLevel(ByName):
    level: Literal["restricted", "standard", "privileged"] = Field(description="what it may do from now on")


class AgentPermission(TypedDict):
    name: Annotated[str, Field(description="the agent's")]
    level: Annotated[str, Field(description="restricted, standard or privileged")]
    may: Annotated[list[str], Field(description="the operations and rights that this level is enough for")]


@operation("permission.policy.get", level=Level.RESTRICTED, result=PolicyJson)
def get_policy(context: Context, caller: Caller, params: Nothing) -> PolicyJson:
    """Show the level each operation needs, and which levels differ from the declared ones."""
    return _policy(context)


@operation(
    "permission.policy.set",
    level=Level.BOSS,
    effect="idempotent",
    fixed=True,
    params=SetPolicy,
    result=PolicyJson,
    errors=(UnknownOperation, FixedLevel, InvalidParams),
)
async def set_policy(context: Context, caller: Caller, params: SetPolicy) -> PolicyJson:
    """Set the level each operation needs. With one wrong entry nothing changes."""
    levels = policy.check(params.policy)

    def write(tx: Tx) -> None:
        decided = policy.unknown(policy_store.get(tx)) | levels
        policy_store.put(tx, decided)
        context.policy.adopt(decided)  # in the writer's thread: later writes in the queue obey it

    try:
        await context.write(caller, write)
    except BaseException:
        context.policy.refresh()  # it was not written
        raise
    context.auth.forget()
    return _policy(context)


@operation(
    "agent.permission.get",
    level=Level.RESTRICTED,
    params=ByName,
    result=AgentPermission,
    errors=(UnknownAgent,),
)
def get_permission(context: Context, caller: Caller, params: ByName) -> AgentPermission:
    """Show an agent's level, and what it may do."""
    row = context.store.read(lambda c: agents.get(c, params.name))
    return _permission(context, row["name"], row["level"])


@operation(
    "agent.permission.set",
    level=Level.BOSS,
    effect="idempotent",
    fixed=True,
    params=SetLevel,
    result=AgentPermission,
    errors=(UnknownAgent,),
)
async def set_permission(context: Context, caller: Caller, params: SetLevel) -> AgentPermission:
    """Set an agent's level; it is in force at once."""

    def write(tx: Tx) -> str:
        agents.set_level(tx, params.name, params.level)
        row = agents.get(tx, params.name)
        context.auth.recheck_holder(row["id"])
        return str(row["name"])

    name = await context.write(caller, write)
    context.auth.forget()
    return _permission(context, name, params.level)


def _policy(context: Context) -> PolicyJson:
    declared, levels = policy.changeable(), context.policy.levels
    return {
        "policy": {name: levels[name].word for name in sorted(declared)},
        "changed": [name for name in sorted(declared) if levels[name] is not declared[name]],
    }


def _permission(context: Context, name: str, word: str) -> AgentPermission:
    level = Level[word.upper()]
    return {
        "name": name,
        "level": word,
        # Without those that need no token: they say nothing about this agent.
        "may": sorted(name for name, needed in context.policy.levels.items() if Level.OPEN < needed <= level),
    }
