"""Operations that bind agents to places on platforms."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.contract import Refused
from ..core.errors import BindingTaken, InvalidParams, UnknownAdapter, UnknownAgent, UnknownBinding
from ..store import agents, bindings
from ..store.bindings import Bound
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import House
from .operation import Level, Nothing, Params, operation

LONGEST_PATH = 4_096  # characters; more than any file system takes


class Bind(Params):
    name: str = Field(description="the agent")
    adapter_type: str = Field(description="which kind of platform, like folder")
    path: str | None = Field(None, description="for a folder: the directory, absolute")


class Unbind(Params):
    name: str = Field(description="the agent")
    adapter_type: str
    account: str | None = Field(None, description="which of its accounts there, if it has several")


class BindingShape(TypedDict):
    binding: str
    adapter_type: str
    account: str
    address: str
    agents: list[str]
    state: str
    last_error: str | None


class BoundShape(TypedDict):
    binding: str
    address: str
    created: bool


class Unbound(TypedDict):
    binding: str
    ended: bool
    failed_envelopes: int


class Listed(TypedDict):
    bindings: list[BindingShape]


@operation(
    "agent.bind",
    level=Level.BOSS,
    params=Bind,
    result=BoundShape,
    errors=(UnknownAgent, UnknownAdapter, BindingTaken, InvalidParams),
)
async def bind(house: House, caller: Caller, params: Bind) -> BoundShape:
    """Let an agent use a place on a platform: it posts there, and gets what comes from there."""
    kind = house.crew.kind(params.adapter_type)
    house.store.read(lambda c: agents.get(c, params.name))  # before the adapter makes anything
    if params.path is not None and (not params.path.isprintable() or len(params.path) > LONGEST_PATH):
        raise InvalidParams(detail="path (--path) is no path of a directory")
    given = {"path": params.path, "home": str(house.home)}
    try:
        account, settings, places = kind.bind({key: value for key, value in given.items() if value})
    except Refused as refusal:
        raise InvalidParams(detail=refusal.why) from None
    now = clock.now()

    def write(tx: Tx) -> tuple[Bound, list[Row]]:
        agent = agents.get(tx, params.name)["id"]
        bound = bindings.add(tx, params.adapter_type, account, settings, agent, places, now)
        return bound, bindings.listed(tx)

    bound, rows = await house.write(caller, write)
    for row in rows:
        house.crew.add(row)  # those that run already are left alone
    address = f"channel:{params.adapter_type}:{account}"
    return {"binding": f"b{bound.binding}", "address": address, "created": bound.created}


@operation(
    "agent.unbind",
    level=Level.BOSS,
    params=Unbind,
    result=Unbound,
    errors=(UnknownAgent, UnknownAdapter, UnknownBinding, InvalidParams),
)
async def unbind(house: House, caller: Caller, params: Unbind) -> Unbound:
    """Take a place away from an agent; with its last agent it ends, and what waits for it fails."""
    house.crew.kind(params.adapter_type)
    now = clock.now()

    def write(tx: Tx) -> tuple[int, bool, int]:
        row = agents.get(tx, params.name)
        account = _account(tx, row["name"], params)
        return bindings.remove(tx, params.adapter_type, account, row["id"], now)

    number, ended, failed = await house.write(caller, write)
    if ended:
        await house.crew.remove(number)
    return {"binding": f"b{number}", "ended": ended, "failed_envelopes": failed}


@operation("agent.bindings", level=Level.STANDARD, result=Listed)
async def listed(house: House, caller: Caller, params: Nothing) -> Listed:
    """The bindings: which agent has which place, and whether it works."""
    return {"bindings": shapes(house)}


def shapes(house: House) -> list[BindingShape]:
    return [_shape(house, row) for row in house.store.read(bindings.listed)]


def _account(tx: Tx, agent: str, params: Unbind) -> str:
    if params.account is not None:
        return params.account
    own = [
        row["account"]
        for row in bindings.listed(tx)
        if row["adapter"] == params.adapter_type and agent in (row["agents"] or "").split(",")
    ]
    if not own:
        raise UnknownBinding(account=params.adapter_type)
    if len(own) > 1:
        raise InvalidParams(
            detail=f"{agent} has several: say which with account (--account), {', '.join(own)}"
        )
    return str(own[0])


def _shape(house: House, row: Row) -> BindingShape:
    berth = house.crew.berths.get(row["id"])
    return {
        "binding": f"b{row['id']}",
        "adapter_type": row["adapter"],
        "account": row["account"],
        "address": f"channel:{row['adapter']}:{row['account']}",
        "agents": (row["agents"] or "").split(","),
        "state": berth.state if berth else "stopped",
        "last_error": berth.error if berth else None,
    }
