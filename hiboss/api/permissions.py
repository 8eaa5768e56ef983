"""Operations about who may do what: the policy, the levels of agents, and their tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core.errors import BossOnly, FixedLevel, InvalidParams, UnknownAgent, UnknownOperation
from ..store import agents
from ..store import policy as policy_store
from ..store.group_commit import Tx
from . import policy
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation


class Policy(TypedDict):
    policy: dict[str, str]
    changed: list[str]


class SetPolicy(Params):
    policy: dict[str, str] = Field(description="operation -> level; what is not named gets its default back")


class Named(Params):
    name: str


class SetLevel(Named):
    level: Literal["restricted", "standard", "privileged"]


class Permission(TypedDict):
    name: str
    level: str
    may: list[str]


@operation("permission.policy.get", level=Level.RESTRICTED, result=Policy)
async def get_policy(context: Context, caller: Caller, params: Nothing) -> Policy:
    """The level each operation needs, and which of them differ from what is declared."""
    return _policy(context)


@operation(
    "permission.policy.set",
    level=Level.BOSS,
    fixed=True,
    params=SetPolicy,
    result=Policy,
    errors=(UnknownOperation, FixedLevel, InvalidParams),
)
async def set_policy(context: Context, caller: Caller, params: SetPolicy) -> Policy:
    """Decide which level each operation needs; all of it, or nothing."""
    levels = policy.check(params.policy)

    def write(tx: Tx) -> None:
        decided = policy.unknown(policy_store.get(tx)) | levels
        policy_store.put(tx, decided)
        context.policy.adopt(decided)  # here, in the writer's order: what stands behind this is held to it

    try:
        await context.write(caller, write)
    except BaseException:
        context.policy.refresh()  # it was not written after all
        raise
    return _policy(context)


@operation(
    "agent.permission.get", level=Level.RESTRICTED, params=Named, result=Permission, errors=(UnknownAgent,)
)
async def get_permission(context: Context, caller: Caller, params: Named) -> Permission:
    """An agent's level, and what it may do with it."""
    row = context.store.read(lambda c: agents.get(c, params.name))
    return _permission(context, row["name"], row["level"])


@operation(
    "agent.permission.set",
    level=Level.BOSS,
    fixed=True,
    params=SetLevel,
    result=Permission,
    errors=(UnknownAgent,),
)
async def set_permission(context: Context, caller: Caller, params: SetLevel) -> Permission:
    """Give an agent another level, in force at once."""

    def write(tx: Tx) -> str:
        agents.set_level(tx, params.name, params.level)
        row = agents.get(tx, params.name)
        context.auth.recheck_holder(row["id"])
        return str(row["name"])

    name = await context.write(caller, write)
    context.auth.forget()
    return _permission(context, name, params.level)


def own_or_boss(caller: Caller, name: str, what: str) -> None:
    """Whatever level a policy asks for: an agent changes nobody but itself."""
    own = caller.address is not None and caller.address.fold == f"agent:{name}".lower()
    if not (caller.is_boss or own):
        raise BossOnly(what=what, caller=caller.name)


def _policy(context: Context) -> Policy:
    declared, levels = policy.changeable(), context.policy.levels
    return {
        "policy": {name: levels[name].word for name in sorted(declared)},
        "changed": [name for name in sorted(declared) if levels[name] is not declared[name]],
    }


def _permission(context: Context, name: str, word: str) -> Permission:
    level = Level[word.upper()]
    return {
        "name": name,
        "level": word,
        "may": sorted(name for name, needed in context.policy.levels.items() if needed <= level),
    }
