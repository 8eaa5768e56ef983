"""Operations about agents."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .. import clock
from ..address import check_agent_name
from ..envelope import measure
from ..errors import BadName, BadText, BossOnly, InvalidParams, NameTaken, TooLarge, UnknownAgent
from ..store import agents, bindings, tokens
from ..store.database import Row
from ..store.writer import Tx
from .access import own_or_boss
from .caller import Caller
from .house import House
from .operation import Level, Nothing, Params, operation


class Fields(Params):
    name: str
    kind: Literal["agent", "service", "bot"] | None = None
    mode: Literal["run", "pull"] | None = None
    description: str | None = Field(None, description="what it is for")
    role: str | None = None
    module: str | None = None
    display: str | None = Field(None, description="the name people see")
    workspace: str | None = Field(None, description="the directory it works in, absolute")


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
    errors=(BadName, BadText, NameTaken, TooLarge, InvalidParams),
)
async def register(house: House, caller: Caller, params: Register) -> Registered:
    """Give a new agent an address and a token, which is shown this once."""
    name = check_agent_name(params.name)
    fields = _fields(house, params)
    token, now = tokens.new("agent"), clock.now()

    def write(tx: Tx) -> Row:
        tokens.insert(tx, token, "agent", agents.register(tx, name, fields, now), now)
        return agents.get(tx, name)

    with house.home.keeping(name, token) if params.profile else nullcontext() as profile:
        row = await house.write(caller, write)
    return {"agent": _agent(house, row), "token": token, "profile": profile}


@operation("agent.list", level=Level.RESTRICTED, params=List, result=Listed)
async def listed(house: House, caller: Caller, params: List) -> Listed:
    """All agents, or those with a role or of a module."""
    rows = house.store.read(lambda c: agents.listed(c, params.role, params.module))
    return {"agents": [_agent(house, row) for row in rows], "timezone": house.timezone}


@operation(
    "agent.set",
    level=Level.BOSS,
    params=Set,
    result=Agent,
    errors=(UnknownAgent, BossOnly, BadText, TooLarge, InvalidParams),
)
async def change(house: House, caller: Caller, params: Set) -> Agent:
    """Change what is said of an agent; an empty text takes a word away."""
    own_or_boss(caller, params.name, "changing what is said of another agent")
    fields = _fields(house, params)
    if not fields:
        raise InvalidParams(
            detail=f"there is nothing to change: give one of {', '.join(f'--{f}' for f in agents.FIELDS)}"
        )

    def write(tx: Tx) -> Row:
        agents.change(tx, params.name, fields)
        return agents.get(tx, params.name)

    row = await house.write(caller, write)
    house.gate.forget()
    return _agent(house, row)


@operation("agent.delete", level=Level.BOSS, params=Delete, result=Deleted, errors=(UnknownAgent, BossOnly))
async def delete(house: House, caller: Caller, params: Delete) -> Deleted:
    """Take an agent away; its tokens end, mail still waiting for it fails, all mail is kept."""
    own_or_boss(caller, params.name, "taking another agent away")
    now = clock.now()

    def write(tx: Tx) -> tuple[str, int]:
        row = agents.get(tx, params.name)
        house.gate.suspect(row["id"])
        return row["name"], agents.delete(tx, row["name"], now)

    name, failed = await house.write(caller, write)
    house.gate.forget()
    house.home.forget_profile(params.name)
    await house.crew.keep_only(house.store.read(bindings.live))
    return {"name": name, "deleted": True, "failed_envelopes": failed}


@operation("agent.self", level=Level.RESTRICTED, result=Self)
async def self(house: House, caller: Caller, params: Nothing) -> Self:
    """Who I am, by my token."""
    assert caller.address
    agent = None
    if caller.address.kind == "agent":
        name = caller.address.name
        agent = _agent(house, house.store.read(lambda c: agents.get(c, name)))
    return {
        "kind": caller.kind,
        "address": str(caller.address),
        "level": caller.level.name.lower(),
        "agent": agent,
        "timezone": house.timezone,
    }


def _fields(house: House, params: Fields) -> dict[str, Any]:
    """What was given of an agent's words, checked; an empty one means none."""
    given = {name: getattr(params, name) for name in agents.FIELDS if getattr(params, name) is not None}
    for name, value in given.items():
        measure(name, value, house.settings.subject_bytes)
    if given.get("mode") == "run":
        raise InvalidParams(detail="mode run needs a provider, and there is none yet; right would be pull")
    workspace = given.get("workspace")
    if workspace and not os.path.isabs(workspace):
        raise InvalidParams(detail=f"workspace {workspace} is no absolute path")
    return {name: value or None for name, value in given.items()}


def _agent(house: House, row: Row) -> Agent:
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "kind": row["kind"],
        "mode": row["mode"],
        "level": row["level"],
        "provider": row["provider"],
        "description": row["description"],
        "role": row["role"],
        "module": row["module"],
        "display": row["display"],
        "workspace": row["workspace"],
        "created_at": clock.iso(row["created_at"]),
        "last_seen_at": clock.iso_or_none(house.presence.last_seen(row["id"], row["last_seen_at"])),
    }
