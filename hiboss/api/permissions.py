"""Operations about who may do what: the policy, the levels of agents, and their tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.errors import BossOnly, FixedLevel, InvalidParams, UnknownAgent, UnknownOperation
from ..store import agents, run_limits, tokens
from ..store import policy as policy_store
from ..store.connection import Row
from ..store.group_commit import Tx
from . import policy
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation

# Two rotations of one token at once could leave the profile with the older one.
ROTATING = asyncio.Lock()
REVOKED = "its tokens were revoked; hiboss agent token rotate --as boss gives it a new one"


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


class Rotate(Named):
    profile: bool | None = Field(
        None, description="keep the token in the home for --as NAME; when not given, if one was kept before"
    )


class Rotated(TypedDict):
    name: str
    token: str
    profile: str | None
    revoked: int


class Revoked(TypedDict):
    name: str
    revoked: int


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


@operation(
    "agent.token.rotate", level=Level.BOSS, params=Rotate, result=Rotated, errors=(UnknownAgent, BossOnly)
)
async def rotate(context: Context, caller: Caller, params: Rotate) -> Rotated:
    """Give an agent a new token, shown this once; those it had end in the same moment."""
    own_or_boss(caller, params.name, "a new token for another agent")
    name = context.store.read(lambda c: agents.get(c, params.name))["name"]

    def holder(tx: Tx) -> int:
        return int(agents.get(tx, name)["id"])

    return await give_new_token(context, caller, "agent", name, holder, params.profile)


async def give_new_token(
    context: Context,
    caller: Caller,
    kind: str,
    name: str,
    holder: Callable[[Tx], int],
    profile: bool | None,
) -> Rotated:
    """A new token for somebody; those of this kind that they had end in the same moment."""
    async with ROTATING:
        keeps = context.home.has_profile(name) if profile is None else profile
        token, now = tokens.new(kind), clock.now()

        def write(tx: Tx) -> int:
            number = holder(tx)
            context.auth.recheck_holder(number)
            revoked = tokens.revoke(tx, number, now, kinds=(kind,))
            tokens.insert(tx, token, kind, number, now)
            _go_on(context, tx, number, now)
            return revoked

        with context.home.keeping(name, token) if keeps else nullcontext() as path:
            revoked = await context.write(caller, write)
        context.auth.forget()
        if not keeps:
            context.home.forget_profile(name)
    return {"name": name, "token": token, "profile": path, "revoked": revoked}


@operation(
    "agent.token.revoke", level=Level.BOSS, params=Named, result=Revoked, errors=(UnknownAgent, BossOnly)
)
async def revoke(context: Context, caller: Caller, params: Named) -> Revoked:
    """End all tokens of an agent; it stays, with its mail, until it is given a new one."""
    own_or_boss(caller, params.name, "ending another agent's tokens")
    now = clock.now()

    def write(tx: Tx) -> tuple[Row, int]:
        row = agents.get(tx, params.name)
        context.auth.recheck_holder(row["id"])
        run_limits.pause(tx, row["id"], "tokens", REVOKED, now)
        return row, tokens.revoke(tx, row["id"], now)

    async with ROTATING:
        row, revoked = await context.write(caller, write)
        name = str(row["name"])
        context.runner.end_runs(row["id"], REVOKED)
        context.auth.forget()
        context.home.forget_profile(name)
    return {"name": name, "revoked": revoked}


def _go_on(context: Context, tx: Tx, holder: int, now: int) -> None:
    """An agent that was paused for want of a token has one again."""
    row = agents.with_provider(tx, holder, any_mode=True)
    if row is not None and row["paused_kind"] == "tokens":
        run_limits.resume(tx, row, context.runner.bounds(), now)


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
