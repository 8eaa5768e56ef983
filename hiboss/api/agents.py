"""Operations about agents: register, list, change, delete, and who the caller is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.address import check_agent_name
from ..core.envelope import Lane, measure
from ..core.errors import (
    BadDuration,
    BadName,
    BadProvider,
    BadText,
    BadTimeOfDay,
    InvalidParams,
    LacksCapability,
    NameTaken,
    NoProvider,
    TooLarge,
    UnknownAgent,
)
from ..core.events import AgentChanged
from ..store import agent_pauses, agents, ask_answers, attached_sessions, lanes, provider_sessions, tokens
from ..store.connection import Row
from ..store.group_commit import Tx
from . import agent_sessions, provider_checks, provider_settings
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, Timezone, operation
from .param_sizes import Line, Size, Word
from .provider_checks import FoundField

_OF_PROVIDER = (InvalidParams, BadProvider, NoProvider, LacksCapability)


class AgentFields(ByName):
    kind: Literal["agent", "service", "bot"] | None = Field(
        None, description="what it is; only shown in lists, and changes nothing else"
    )
    mode: Literal["run", "pull"] | None = Field(
        None, description="run: the daemon gives it turns, which needs a provider; pull: it fetches its mail"
    )
    description: Line | None = Field(None, description="what the agent is for")
    role: Line | None = Field(None, description="its role, like reviewer; agent.list can select by it")
    module: Line | None = Field(None, description="what it works on; agent.list can select by it")
    display: Line | None = Field(None, description="the name people see")
    workspace: Line | None = Field(None, description="the directory it works in, an absolute path")
    provider: str | None = Field(
        None, description="how its answers are made, as in provider.list (its mode becomes run); or none"
    )
    settings: Annotated[dict[str, Any] | None, Size(text=10_000)] = Field(
        None,
        description="of the provider, as provider.list shows its options, like {command: python3 agent.py}; "
        "without `provider`, those of its own provider change, or the one that has them is chosen",
    )
    reply: Literal["auto", "explicit"] | None = Field(
        None, description="auto: its final text is sent; explicit: it sends its answers itself"
    )
    busy: Literal["collect", "followup", "interrupt", "steer", "end-of-turn"] | None = Field(
        None,
        description="mail that came during a turn: all in one turn (collect), or one by one (followup). As "
        "collect, and: what a person writes in the conversation of the run is given to it, or ends it "
        "(interrupt); is given to it, or waits (steer); no mail ends it, not even critical (end-of-turn)",
    )
    session_scope: Literal["person", "conversation", "agent"] | None = Field(
        None,
        description="who shares a session of its provider: all that one person says to it (person, the "
        "default), each conversation by itself, or everything (agent); a change begins new sessions",
    )
    session_reset: Word | None = Field(
        None, description="begin new sessions each day at this time of the boss, like 04:00; empty: never"
    )
    session_idle: Word | None = Field(
        None, description="begin a new session after so long without a turn, like 6h; empty: never"
    )
    session_context: int | None = Field(
        None,
        ge=0,
        le=10**12,
        description="begin a new session when its last model call read more tokens; 0: never",
    )
    daily_tokens: int | None = Field(None, ge=0, le=10**12, description="tokens per day; 0: no limit")
    daily_cost: float | None = Field(None, ge=0, le=10**9, description="dollars per day; 0: no limit")


class Register(AgentFields):
    profile: bool = Field(False, description="keep the token in the home for --as NAME")


class List(Params):
    role: str | None = Field(None, description="only agents with this role")
    module: str | None = Field(None, description="only agents with this module")


class Agent(TypedDict):
    name: Annotated[str, Field(description="unique whatever the case, and never changed")]
    address: Annotated[str, Field(description="where mail reaches it, like agent:nex")]
    kind: Annotated[str, Field(description="agent, service or bot")]
    mode: Annotated[str, Field(description="run: the daemon gives it turns; pull: it fetches its mail")]
    level: Annotated[str, Field(description="what it may do: restricted, standard or privileged")]
    provider: Annotated[str | None, Field(description="how its answers are made; null: it has none")]
    settings: Annotated[
        dict[str, Any] | None,
        Field(description="of its provider, without secrets; null for callers who may not see them"),
    ]
    reply: Annotated[str, Field(description="auto: its final text is sent; explicit: it sends its answers")]
    busy: Annotated[str, Field(description="mail that came during a turn, as in agent.set; collect, …")]
    session_scope: Annotated[str, Field(description="who shares a session: person, conversation, agent")]
    session_reset: Annotated[str | None, Field(description="when each day new ones begin; null: never")]
    session_idle: Annotated[str | None, Field(description="after how long without a turn; null: never")]
    session_context: Annotated[int | None, Field(description="after how many tokens; null: never")]
    daily_tokens: Annotated[int | None, Field(description="its limit per day; null: none")]
    daily_cost: Annotated[float | None, Field(description="its limit per day, in dollars; null: none")]
    paused: Annotated[str | None, Field(description="why it gets no turns; null: it is not paused")]
    description: Annotated[str | None, Field(description="what it is for")]
    role: Annotated[str | None, Field(description="like reviewer")]
    module: Annotated[str | None, Field(description="what it works on")]
    display: Annotated[str | None, Field(description="the name people see; null: its name")]
    workspace: Annotated[str | None, Field(description="the directory it works in; null: one in the home")]
    created_at: Annotated[str, Field(description="when it was registered")]
    last_seen_at: Annotated[str | None, Field(description="when it last called an operation; null: never")]


Secrets = Annotated[
    dict[str, str],
    Field(description="secrets of its provider that hiboss made, like the one of a webhook; shown only here"),
]


class RegisteredAgent(TypedDict):
    agent: Annotated[Agent, Field(description="as stored now")]
    token: Annotated[str, Field(description="proves who it is; shown only here")]
    profile: Annotated[str | None, Field(description="the file that holds it for --as NAME")]
    secrets: NotRequired[Secrets]
    found: NotRequired[FoundField]


class ChangedAgent(Agent):
    secrets: NotRequired[Secrets]
    found: NotRequired[FoundField]


class ListedAgent(Agent):
    agent_id: Annotated[str, Field(description="the same as name")]
    registered_at: Annotated[str, Field(description="the same as created_at")]


class AgentList(TypedDict):
    agents: Annotated[list[ListedAgent], Field(description="by name")]
    timezone: Timezone


class DeletedAgent(TypedDict):
    name: Annotated[str, Field(description="free for another agent, which does not get its mail")]
    deleted: Annotated[bool, Field(description="always true")]
    failed_envelopes: Annotated[int, Field(description="how many were still waiting for it")]


class Identity(TypedDict):
    kind: Annotated[str, Field(description="of the token: boss, agent, user or run")]
    address: Annotated[str, Field(description="of who the caller is")]
    level: Annotated[str, Field(description="what the caller may do")]
    agent: Annotated[Agent | None, Field(description="null for people")]
    timezone: Timezone


@operation(
    "agent.register",
    level=Level.BOSS,
    effect="change",
    params=Register,
    result=RegisteredAgent,
    errors=(BadName, BadText, NameTaken, TooLarge, BadTimeOfDay, BadDuration, *_OF_PROVIDER),
)
async def register(context: Context, caller: Caller, params: Register) -> RegisteredAgent:
    """Register a new agent; its token is shown only in this answer."""
    name = check_agent_name(params.name)
    fields = _fields(context, params)
    token, now = tokens.new("agent"), clock.now()

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "agent", agents.register(tx, name, fields, now), now)
        row = agents.get(tx, name)
        provider_checks.demand(context, row, able)
        return row

    async with context.changing:
        with _choosing(context, params, fields, None) as choice:
            able = provider_checks.able(context, {**dict.fromkeys(agents.PROVIDER_FIELDS), **fields})
            with context.home.keeping(name, token) if params.profile else nullcontext() as profile:
                row = await context.write(caller, write)
    _written(context, row)
    result: RegisteredAgent = {"agent": to_json(context, row), "token": token, "profile": profile}
    if choice.made:
        result["secrets"] = choice.made
    if choice.columns.get("provider") is not None:
        result["found"] = await provider_checks.found(context, row)
    return result


@operation("agent.list", level=Level.RESTRICTED, params=List, result=AgentList)
def listed(context: Context, caller: Caller, params: List) -> AgentList:
    """List all agents, or those of a role or a module."""
    rows = context.store.read(lambda c: agents.list_all(c, params.role, params.module))
    return {"agents": [_visible_json(context, caller, row) for row in rows], "timezone": context.timezone}


def _visible_json(context: Context, caller: Caller, row: Row) -> ListedAgent:
    """Return an agent without the settings of its provider, which may hold a secret, for other agents."""
    known = to_json(context, row)
    found: ListedAgent = {**known, "agent_id": known["name"], "registered_at": known["created_at"]}
    if caller.is_boss or caller.id == row["id"]:
        return found
    return found | {"settings": None}


@operation(
    "agent.set",
    level=Level.BOSS,
    effect="change",
    params=AgentFields,
    result=ChangedAgent,
    errors=(UnknownAgent, BadText, TooLarge, BadTimeOfDay, BadDuration, *_OF_PROVIDER),
    changes="agent",
)
async def change(context: Context, caller: Caller, params: AgentFields) -> ChangedAgent:
    """Change an agent; an empty text removes what was set."""
    async with context.changing:
        context.auth.recheck(caller)  # it may have been deleted while this waited
        before = context.store.read(lambda c: agents.get(c, params.name))
        fields = _fields(context, params)
        with _choosing(context, params, fields, before) as choice:
            row = await _change(context, caller, params, fields, before)
        if before["provider_secrets"] != row["provider_secrets"]:
            context.home.forget_secrets(before["provider_secrets"])
    _written(context, row)
    context.auth.forget()
    result: ChangedAgent = {**to_json(context, row)}  # type: ignore[typeddict-item]
    if choice.made:
        result["secrets"] = choice.made
    if choice.columns.get("provider") is not None:
        result["found"] = await provider_checks.found(context, row)
    return result


async def _change(
    context: Context, caller: Caller, params: AgentFields, fields: dict[str, Any], before: Row
) -> Row:
    """Write the changed fields of an agent, and what follows from them."""
    if not fields:
        limits = (*agents.LIMITS, *agents.SESSION_FIELDS)
        known = (*agents.FIELDS, "provider", *(limit.replace("_", "-") for limit in limits))
        flags = ", ".join(f"--{one}" for one in known)
        detail = f"nothing to change: give one of {flags}, or an option of its provider"
        raise InvalidParams(detail=detail)

    bounds, now = context.runner.bounds(), clock.now()
    able = provider_checks.able(context, {**before, **fields})

    def write(tx: Tx) -> Row:
        old = agents.get(tx, params.name)
        agents.change(tx, params.name, fields)
        row = agents.get(tx, params.name)
        if {"provider", "busy", "daily_cost"} & fields.keys():
            provider_checks.demand(context, row, able)
        if old["session_scope"] != row["session_scope"]:
            provider_sessions.scope_changed(tx, row["id"], now)
        if {"provider", "workspace"} & fields.keys():  # this may repair what its lane waits for
            lanes.reopen(tx, Lane(row["id"], None), now)
        agent_pauses.resume_within_budget(tx, row, bounds, now)
        tx.facts.append(AgentChanged(now, row["id"]))
        return agents.get(tx, params.name)

    return await context.write(caller, write)


def _written(context: Context, row: Row) -> None:
    """Tell the runner of a change of an agent."""
    context.runner.refresh()
    context.runner.wake([row["id"]], eager=True)


@operation(
    "agent.delete",
    level=Level.BOSS,
    effect="destructive",
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
        attached_sessions.end_of_agent(tx, row["id"], now)
        waiting = agents.delete(tx, row["name"], now)
        ask_answers.end_of_party(tx, row["id"], f"agent:{row['name']} was deleted", now)
        return row, waiting

    async with context.changing:
        row, failed = await context.write(caller, write)
        context.home.forget_secrets(row["provider_secrets"])
        context.home.forget_profile(row["name"])
    context.auth.forget()
    name = row["name"]
    context.runner.refresh()
    context.runner.end_runs(row["id"], "the agent was deleted")
    await context.runner.attached.end_of_agent(row["id"], "deleted")
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
    of_sessions = [getattr(params, name) for name in agents.SESSION_FIELDS]
    return {name: value or None for name, value in (given | limits).items()} | agent_sessions.columns(
        *of_sessions
    )


@contextmanager
def _choosing(
    context: Context, params: AgentFields, fields: dict[str, Any], before: Row | None
) -> Iterator[provider_settings.ProviderChoice]:
    """Check the provider that was asked for and add it to the fields to write; mode run needs one."""
    with provider_settings.chosen(context, params.provider, params.settings or {}, before) as choice:
        for name, value in choice.columns.items():
            if name != "mode" or "mode" not in fields:
                fields[name] = value
        provider = fields["provider"] if "provider" in fields else before and before["provider"]
        if fields.get("mode") == "run" and provider is None:
            raise NoProvider(name=params.name, verb="register" if before is None else "set")
        yield choice


def to_json(context: Context, row: Row) -> Agent:
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "kind": row["kind"],
        "mode": row["mode"],
        "level": row["level"],
        "provider": row["provider"],
        "settings": provider_settings.shown(context, row),
        "reply": row["reply"],
        "busy": row["busy"],
        "session_scope": row["session_scope"],
        "session_reset": row["session_reset"],
        "session_idle": agent_sessions.shown_idle(row),
        "session_context": row["session_context"],
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
