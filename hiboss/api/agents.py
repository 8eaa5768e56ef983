"""Operations about agents: register, list, change, delete, and who the caller is."""

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
    InvalidParams,
    NameTaken,
    NoProvider,
    TooLarge,
    UnknownAgent,
)
from ..store import agent_pauses, agents, lanes, tokens
from ..store.connection import Row
from ..store.group_commit import Tx
from . import provider_settings
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, operation
from .param_sizes import Line


class AgentFields(ByName):
    kind: Literal["agent", "service", "bot"] | None = None
    mode: Literal["run", "pull"] | None = None
    description: Line | None = Field(None, description="what the agent is for")
    role: Line | None = Field(None, description="its role, like reviewer; agent.list can select by it")
    module: Line | None = Field(None, description="what it works on; agent.list can select by it")
    display: Line | None = Field(None, description="the name people see")
    workspace: Line | None = Field(None, description="the directory it works in, an absolute path")
    provider: str | None = Field(
        None,
        description="how its answers are made: command, webhook or demo (its mode becomes run), or none",
    )
    command: str | None = Field(
        None, description="for provider command: the program, split into words as a shell does"
    )
    url: str | None = Field(None, description="for provider webhook: https, or http on this machine")
    reply: Literal["auto", "explicit"] | None = Field(
        None, description="auto: its final text is sent; explicit: it sends its answers itself"
    )
    busy: Literal["collect", "followup"] | None = Field(
        None, description="mail that came during a turn: all in one turn (collect), or one by one (followup)"
    )
    daily_tokens: int | None = Field(None, ge=0, le=10**12, description="tokens per day; 0: no limit")
    daily_cost: float | None = Field(None, ge=0, le=10**9, description="dollars per day; 0: no limit")


class Register(AgentFields):
    profile: bool = Field(False, description="keep the token in the home for --as NAME")


class List(Params):
    role: str | None = None
    module: str | None = None


class Agent(TypedDict):
    name: str
    address: str
    kind: str
    mode: str  # run: the daemon gives it turns; pull: it fetches its mail
    level: str
    provider: str | None
    command: str | None  # null also for callers who may not see it
    url: str | None  # null also for callers who may not see it
    reply: str
    busy: str
    daily_tokens: int | None
    daily_cost: float | None
    paused: str | None  # why; null: it is not paused
    description: str | None
    role: str | None
    module: str | None
    display: str | None
    workspace: str | None
    created_at: str
    last_seen_at: str | None


class RegisteredAgent(TypedDict):
    agent: Agent
    token: str  # shown only here
    profile: str | None  # the file that holds the token for --as NAME
    webhook_secret: NotRequired[str]  # signs the requests of the daemon; shown only here


class ChangedAgent(Agent):
    webhook_secret: NotRequired[str]  # of a new webhook; shown only here


class AgentList(TypedDict):
    agents: list[Agent]
    timezone: str


class DeletedAgent(TypedDict):
    name: str
    deleted: bool
    failed_envelopes: int  # that were still waiting for it


class Identity(TypedDict):
    kind: str  # of the token: boss, agent, user or run
    address: str
    level: str
    agent: Agent | None  # null for people
    timezone: str


@operation(
    "agent.register",
    level=Level.BOSS,
    params=Register,
    result=RegisteredAgent,
    errors=(BadName, BadText, NameTaken, TooLarge, InvalidParams, BadProvider, NoProvider),
)
async def register(context: Context, caller: Caller, params: Register) -> RegisteredAgent:
    """Register a new agent; its token is shown only in this answer."""
    name = check_agent_name(params.name)
    fields = _fields(context, params)
    choice = _choose(context, params, fields, None)
    token, now = tokens.new("agent"), clock.now()

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "agent", agents.register(tx, name, fields, now), now)
        return agents.get(tx, name)

    with context.home.keeping(name, token) if params.profile else nullcontext() as profile:
        row = await _write_choice(context, caller, choice, write)
    result: RegisteredAgent = {"agent": to_json(context, row), "token": token, "profile": profile}
    if choice.secret is not None:
        result["webhook_secret"] = choice.secret
    return result


@operation("agent.list", level=Level.RESTRICTED, params=List, result=AgentList)
def listed(context: Context, caller: Caller, params: List) -> AgentList:
    """List all agents, or those of a role or a module."""
    rows = context.store.read(lambda c: agents.list_all(c, params.role, params.module))
    return {"agents": [_visible_json(context, caller, row) for row in rows], "timezone": context.timezone}


def _visible_json(context: Context, caller: Caller, row: Row) -> Agent:
    """Return an agent without its command and URL, which may hold a secret, for other agents."""
    found = to_json(context, row)
    if caller.is_boss or caller.id == row["id"]:
        return found
    return found | {"command": None, "url": None}


@operation(
    "agent.set",
    level=Level.BOSS,
    params=AgentFields,
    result=ChangedAgent,
    errors=(UnknownAgent, BadText, TooLarge, InvalidParams, BadProvider, NoProvider),
    changes="agent",
)
async def change(context: Context, caller: Caller, params: AgentFields) -> ChangedAgent:
    """Change an agent; an empty text removes what was set."""
    before = context.store.read(lambda c: agents.get(c, params.name))
    fields = _fields(context, params)
    choice = _choose(context, params, fields, before)
    if not fields:
        known = (
            *agents.FIELDS,
            "provider",
            "command",
            "url",
            *(limit.replace("_", "-") for limit in agents.LIMITS),
        )
        detail = f"nothing to change: give one of {', '.join(f'--{f}' for f in known)}"
        raise InvalidParams(detail=detail)

    bounds = context.runner.bounds()

    def write(tx: Tx) -> Row:
        agents.change(tx, params.name, fields)
        row = agents.get(tx, params.name)
        if {"provider", "workspace"} & fields.keys():  # this may repair what its lane waits for
            lanes.reopen(tx, Lane(row["id"], None))
        agent_pauses.resume_within_budget(tx, row, bounds)
        return agents.get(tx, params.name)

    row = await _write_choice(context, caller, choice, write)
    context.auth.forget()
    old = provider_settings.secret_of(before)
    if old is not None and old != provider_settings.secret_of(row):
        context.home.forget_secret(old)
    result: ChangedAgent = {**to_json(context, row)}  # type: ignore[typeddict-item]
    if choice.secret is not None:
        result["webhook_secret"] = choice.secret
    return result


async def _write_choice(
    context: Context, caller: Caller, choice: provider_settings.ProviderChoice, write: Callable[[Tx], Row]
) -> Row:
    """Write a change of an agent, and tell the runner."""
    try:
        row = await context.write(caller, write)
    except BaseException:
        choice.undo()
        raise
    context.runner.refresh()
    context.runner.wake([row["id"]], eager=True)
    return row


@operation(
    "agent.delete",
    level=Level.BOSS,
    params=ByName,
    result=DeletedAgent,
    errors=(UnknownAgent,),
    changes="agent",
)
async def delete(context: Context, caller: Caller, params: ByName) -> DeletedAgent:
    """Delete an agent: its tokens end, and mail still waiting for it fails. All mail is kept."""
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
    context.home.forget_profile(name)
    await context.delivery.endings.follow()
    return {"name": name, "deleted": True, "failed_envelopes": failed}


@operation("agent.self", level=Level.RESTRICTED, result=Identity)
def self(context: Context, caller: Caller, params: Nothing) -> Identity:
    """Show who the caller is, by its token."""
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


def _fields(context: Context, params: AgentFields) -> dict[str, Any]:
    """Return the given fields, checked; an empty one becomes None."""
    given = {name: getattr(params, name) for name in agents.FIELDS if getattr(params, name) is not None}
    for name, value in given.items():
        measure(name, value, context.settings.subject_bytes)
    workspace = given.get("workspace")
    if workspace and not os.path.isabs(workspace):
        raise InvalidParams(detail=f"workspace {workspace} is not an absolute path")
    limits = {name: getattr(params, name) for name in agents.LIMITS if getattr(params, name) is not None}
    return {name: value or None for name, value in (given | limits).items()}


def _choose(
    context: Context, params: AgentFields, fields: dict[str, Any], before: Row | None
) -> provider_settings.ProviderChoice:
    """Check the provider that was asked for and add it to the fields to write; mode run needs one."""
    given = {name: getattr(params, name) for name in ("provider", "command", "url")}
    choice = provider_settings.choose(context, given, before)
    for name, value in choice.columns.items():
        if name != "mode" or "mode" not in fields:
            fields[name] = value
    provider = fields["provider"] if "provider" in fields else before and before["provider"]
    if fields.get("mode") == "run" and provider is None:
        choice.undo()
        raise NoProvider(name=params.name, verb="register" if before is None else "set")
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
