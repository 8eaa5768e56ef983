"""Operations that bind agents to places on platforms."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.contracts.failures import Refused
from ..core.errors import BindingTaken, InvalidParams, UnknownAdapter, UnknownAgent, UnknownBinding
from ..core.plugins import no_exit
from ..store import agents, bindings
from ..store.bindings import Bound
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation

LONGEST_PATH = 4_096  # characters; no file system takes more


class Bind(Params):
    name: str = Field(description="the agent")
    adapter_type: str = Field(description="the kind of platform, like folder")
    path: str | None = Field(None, description="for a folder: its absolute path")


class Unbind(Params):
    name: str = Field(description="the agent")
    adapter_type: str
    account: str | None = Field(None, description="which of its accounts there, if it has more than one")


class BindingJson(TypedDict):
    binding: str
    adapter_type: str
    account: str  # the platform's name for it
    address: str
    agents: list[str]  # the names of those who use it
    state: str  # of its adapter: starting, running, failed, stopped
    failing_since: str | None  # since when the account posts nothing
    next_try_at: str | None  # when it is tried again
    last_error: str | None  # of the adapter or of the account


class BindResult(TypedDict):
    binding: str
    address: str
    created: bool  # false: the binding existed, and the agent now uses it too


class UnbindResult(TypedDict):
    binding: str
    ended: bool  # true: this was its last agent
    failed_envelopes: int  # that still waited to be posted


class BindingList(TypedDict):
    bindings: list[BindingJson]
    timezone: str


@operation(
    "agent.bind",
    level=Level.BOSS,
    params=Bind,
    result=BindResult,
    errors=(UnknownAgent, UnknownAdapter, BindingTaken, InvalidParams),
    changes="agent",
)
async def bind(context: Context, caller: Caller, params: Bind) -> BindResult:
    """Bind an agent to a place on a platform: it posts there, and receives what comes from there."""
    kind = context.supervisor.kind(params.adapter_type)
    context.store.read(lambda c: agents.get(c, params.name))  # before the adapter creates anything
    if params.path is not None and (not params.path.isprintable() or len(params.path) > LONGEST_PATH):
        raise InvalidParams(detail="path (--path) cannot be the path of a directory")
    given = {"path": params.path, "home": str(context.home)}
    try:
        with no_exit():
            account, settings, places = kind.bind({key: value for key, value in given.items() if value})
    except Refused as refusal:
        raise InvalidParams(detail=refusal.why) from None
    now = clock.now()

    def write(tx: Tx) -> tuple[Bound, list[Row]]:
        agent = agents.get(tx, params.name)["id"]
        bound = bindings.add(tx, params.adapter_type, account, settings, agent, places, now)
        return bound, bindings.list_all(tx)

    bound, rows = await context.write(caller, write)
    for row in rows:
        context.supervisor.add(row)  # changes nothing for bindings that run already
    address = f"channel:{params.adapter_type}:{account}"
    return {"binding": f"b{bound.binding}", "address": address, "created": bound.created}


@operation(
    "agent.unbind",
    level=Level.BOSS,
    params=Unbind,
    result=UnbindResult,
    errors=(UnknownAgent, UnknownAdapter, UnknownBinding, InvalidParams),
    changes="agent",
)
async def unbind(context: Context, caller: Caller, params: Unbind) -> UnbindResult:
    """Unbind an agent from a place. Without agents the binding ends, and what waits for it fails."""
    context.supervisor.kind(params.adapter_type)
    now = clock.now()

    def write(tx: Tx) -> tuple[int, bool]:
        row = agents.get(tx, params.name)
        account = _account(tx, row["name"], params)
        return bindings.remove(tx, params.adapter_type, account, row["id"], now)

    number, ended = await context.write(caller, write)
    failed = await context.delivery.endings.end(number) if ended else 0
    return {"binding": f"b{number}", "ended": ended, "failed_envelopes": failed}


@operation("agent.bindings", level=Level.STANDARD, result=BindingList)
def listed(context: Context, caller: Caller, params: Nothing) -> BindingList:
    """List the bindings: which agents use which place, and whether it works."""
    return {"bindings": bindings_json(context, caller), "timezone": context.timezone}


def bindings_json(context: Context, caller: Caller) -> list[BindingJson]:
    """Return every binding with the state of its adapter; the last error only to the boss and its agents."""
    found = [_to_json(context, row) for row in context.store.read(bindings.list_all)]
    own = caller.address.name if caller.address is not None and caller.address.kind == "agent" else None
    return [one if caller.is_boss or own in one["agents"] else {**one, "last_error": None} for one in found]


def _account(tx: Tx, agent: str, params: Unbind) -> str:
    """Return the account meant: the one given, or the only one that the agent uses."""
    if params.account is not None:
        return params.account
    own = [
        row["account"]
        for row in bindings.list_all(tx)
        if row["adapter"] == params.adapter_type and agent in (row["agents"] or "").split(",")
    ]
    if not own:
        raise UnknownBinding(account=params.adapter_type)
    if len(own) > 1:
        raise InvalidParams(
            detail=f"{agent} has several accounts: choose one with account (--account): {', '.join(own)}"
        )
    return str(own[0])


def _to_json(context: Context, row: Row) -> BindingJson:
    slot = context.supervisor.slots.get(row["id"])
    return {
        "binding": f"b{row['id']}",
        "adapter_type": row["adapter"],
        "account": row["account"],
        "address": f"channel:{row['adapter']}:{row['account']}",
        "agents": (row["agents"] or "").split(","),
        "state": slot.state if slot else "stopped",
        "failing_since": clock.iso_or_none(row["first_failed_at"]),
        "next_try_at": clock.iso_or_none(row["wake_at"]),
        "last_error": slot.error if slot and slot.error else row["error_text"],
    }
