"""Operations about agents."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import check_agent_name
from ..core.envelope import Lane, measure
from ..core.errors import (
    BadName,
    BadProvider,
    BadText,
    BossOnly,
    InvalidParams,
    NameTaken,
    NoProvider,
    TooLarge,
    UnknownAgent,
)
from ..store import agent_pauses, agents, bindings, lanes, tokens
from ..store.connection import Row
from ..store.group_commit import Tx
from . import provider_settings
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .permissions import own_or_boss


class Fields(Params):
    name: str
    kind: Literal["agent", "service", "bot"] | None = None
    mode: Literal["run", "pull"] | None = None
    description: str | None = Field(None, description="what it is for")
    role: str | None = None
    module: str | None = None
    display: str | None = Field(None, description="the name people see")
    workspace: str | None = Field(None, description="the directory it works in, absolute")
    provider: str | None = Field(
        None,
        description="how it thinks: command, webhook or demo (then its mode is run), or none",
    )
    command: str | None = Field(None, description="for command: the program, split as a shell would")
    url: str | None = Field(None, description="for webhook: https, or http on this machine")
    reply: Literal["auto", "explicit"] | None = Field(
        None, description="auto: its final text is sent; explicit: it sends its answers itself"
    )
    busy: Literal["collect", "followup"] | None = Field(
        None, description="what came meanwhile: in one turn (collect), or one at a time (followup)"
    )
    daily_tokens: int | None = Field(None, ge=0, le=10**12, description="tokens a day; 0: without limit")
    daily_cost: float | None = Field(None, ge=0, le=10**9, description="dollars a day; 0: without limit")


class Register(Fields):
    profile: bool = Field(False, description="keep the token in the home for --as NAME")


class Set(Fields):
    pass


class Delete(Params):
    name: str


class List(Params):
    role: str | None = None
    module: str | None = None


class Agent(TypedDict):
    name: str
    address: str
    kind: str
    mode: str
    level: str
    provider: str | None
    command: str | None
    url: str | None
    reply: str
    busy: str
    daily_tokens: int | None
    daily_cost: float | None
    paused: str | None
    description: str | None
    role: str | None
    module: str | None
    display: str | None
    workspace: str | None
    created_at: str
    last_seen_at: str | None


class Registered(TypedDict):
    agent: Agent
    token: str
    profile: str | None
    webhook_secret: NotRequired[str]


class Changed(Agent):
    webhook_secret: NotRequired[str]


class Listed(TypedDict):
    agents: list[Agent]
    timezone: str


class Deleted(TypedDict):
    name: str
    deleted: bool
    failed_envelopes: int


class Self(TypedDict):
    kind: str
    address: str
    level: str
    agent: Agent | None
    timezone: str


@operation(
    "agent.register",
    level=Level.BOSS,
    params=Register,
    result=Registered,
    errors=(BadName, BadText, NameTaken, TooLarge, InvalidParams, BadProvider, NoProvider),
)
async def register(context: Context, caller: Caller, params: Register) -> Registered:
    """Give a new agent an address and a token, which is shown this once."""
    name = check_agent_name(params.name)
    fields = _fields(context, params)
    choice = _choose(context, params, fields, None)
    token, now = tokens.new("agent"), clock.now()

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "agent", agents.register(tx, name, fields, now), now)
        return agents.get(tx, name)

    with context.home.keeping(name, token) if params.profile else nullcontext() as profile:
        row = await _write_choice(context, caller, choice, write)
    result: Registered = {"agent": to_json(context, row), "token": token, "profile": profile}
    if choice.secret is not None:
        result["webhook_secret"] = choice.secret
    return result


@operation("agent.list", level=Level.RESTRICTED, params=List, result=Listed)
async def listed(context: Context, caller: Caller, params: List) -> Listed:
    """All agents, or those with a role or of a module."""
    rows = context.store.read(lambda c: agents.listed(c, params.role, params.module))
    return {"agents": [_shown(context, caller, row) for row in rows], "timezone": context.timezone}


def _shown(context: Context, caller: Caller, row: Row) -> Agent:
    """How an agent thinks is not for other agents: a command or an address may hold a secret."""
    found = to_json(context, row)
    if caller.is_boss or caller.id == row["id"]:
        return found
    return found | {"command": None, "url": None}


@operation(
    "agent.set",
    level=Level.BOSS,
    params=Set,
    result=Changed,
    errors=(UnknownAgent, BossOnly, BadText, TooLarge, InvalidParams, BadProvider, NoProvider),
)
async def change(context: Context, caller: Caller, params: Set) -> Changed:
    """Change what is said of an agent; an empty text takes a word away."""
    own_or_boss(caller, params.name, "changing what is said of another agent")
    before = context.store.read(lambda c: agents.get(c, params.name))
    fields = _fields(context, params)
    choice = _choose(context, params, fields, before)
    if not fields:
        known = (*agents.FIELDS, "provider", *(limit.replace("_", "-") for limit in agents.LIMITS))
        detail = f"there is nothing to change: give one of {', '.join(f'--{f}' for f in known)}"
        raise InvalidParams(detail=detail)

    bounds = context.runner.bounds()

    def write(tx: Tx) -> Row:
        agents.change(tx, params.name, fields)
        row = agents.get(tx, params.name)
        if {"provider", "workspace"} & fields.keys():  # what it waits for may be mended by this
            lanes.reopen(tx, Lane(row["id"], None), ("waiting",))
        agent_pauses.relax(tx, row, bounds)
        return agents.get(tx, params.name)

    row = await _write_choice(context, caller, choice, write)
    context.auth.forget()
    old = provider_settings.secret_of(before)
    if old is not None and old != provider_settings.secret_of(row):
        context.home.forget_secret(old)
    result: Changed = {**to_json(context, row)}  # type: ignore[typeddict-item]
    if choice.secret is not None:
        result["webhook_secret"] = choice.secret
    return result


async def _write_choice(
    context: Context, caller: Caller, choice: provider_settings.ProviderChoice, write: Callable[[Tx], Row]
) -> Row:
    """A change of an agent; whoever gives it turns is told."""
    try:
        row = await context.write(caller, write)
    except BaseException:
        choice.undo()
        raise
    context.runner.refresh()
    context.runner.wake([row["id"]], eager=True)
    return row


@operation("agent.delete", level=Level.BOSS, params=Delete, result=Deleted, errors=(UnknownAgent, BossOnly))
async def delete(context: Context, caller: Caller, params: Delete) -> Deleted:
    """Take an agent away; its tokens end, mail still waiting for it fails, all mail is kept."""
    own_or_boss(caller, params.name, "taking another agent away")
    now = clock.now()

    def write(tx: Tx) -> tuple[Row, int]:
        row = agents.get(tx, params.name)
        context.auth.recheck_holder(row["id"])
        return row, agents.delete(tx, row["name"], now)

    row, failed = await context.write(caller, write)
    name = row["name"]
    context.runner.refresh()
    context.runner.end_runs(row["id"], "the agent was deleted")
    if (secret := provider_settings.secret_of(row)) is not None:
        context.home.forget_secret(secret)
    context.auth.forget()
    context.home.forget_profile(params.name)
    await context.supervisor.keep_only(context.store.read(bindings.live))
    return {"name": name, "deleted": True, "failed_envelopes": failed}


@operation("agent.self", level=Level.RESTRICTED, result=Self)
async def self(context: Context, caller: Caller, params: Nothing) -> Self:
    """Who I am, by my token."""
    assert caller.address
    agent = None
    if caller.address.kind == "agent":
        name = caller.address.name
        agent = to_json(context, context.store.read(lambda c: agents.get(c, name)))
    return {
        "kind": caller.kind,
        "address": str(caller.address),
        "level": caller.level.name.lower(),
        "agent": agent,
        "timezone": context.timezone,
    }


def _fields(context: Context, params: Fields) -> dict[str, Any]:
    """What was given of an agent's words, checked; an empty one means none."""
    given = {name: getattr(params, name) for name in agents.FIELDS if getattr(params, name) is not None}
    for name, value in given.items():
        measure(name, value, context.settings.subject_bytes)
    workspace = given.get("workspace")
    if workspace and not os.path.isabs(workspace):
        raise InvalidParams(detail=f"workspace {workspace} is no absolute path")
    limits = {name: getattr(params, name) for name in agents.LIMITS if getattr(params, name) is not None}
    return {name: value or None for name, value in (given | limits).items()}


def _choose(
    context: Context, params: Fields, fields: dict[str, Any], before: Row | None
) -> provider_settings.ProviderChoice:
    """The provider asked for, among the fields to write; mode run needs one."""
    given = {name: getattr(params, name) for name in ("provider", "command", "url")}
    choice = provider_settings.choose(context, given, before)
    for name, value in choice.columns.items():
        if name != "mode" or "mode" not in fields:
            fields[name] = value
    provider = fields["provider"] if "provider" in fields else before and before["provider"]
    if fields.get("mode") == "run" and provider is None:
        choice.undo()
        raise NoProvider(name=params.name)
    return choice


def to_json(context: Context, row: Row) -> Agent:
    settings = provider_settings.shown(row)
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "kind": row["kind"],
        "mode": row["mode"],
        "level": row["level"],
        "provider": row["provider"],
        "command": settings.get("command"),
        "url": settings.get("url"),
        "reply": row["reply"],
        "busy": row["busy"],
        "daily_tokens": row["daily_tokens"],
        "daily_cost": row["daily_cost"],
        "paused": row["paused_why"],
        "description": row["description"],
        "role": row["role"],
        "module": row["module"],
        "display": row["display"],
        "workspace": row["workspace"],
        "created_at": clock.iso(row["created_at"]),
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
    }
