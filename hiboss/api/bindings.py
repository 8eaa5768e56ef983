"""Operations that bind agents to places on platforms."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import bounded_calls, clock
from ..core.address import parse_address
from ..core.contracts.adapter import AdapterSettings, Checked
from ..core.contracts.failures import LaneError, Refused
from ..core.errors import (
    AccountRefused,
    BindingTaken,
    InvalidParams,
    UnknownAdapter,
    UnknownAgent,
    UnknownBinding,
)
from ..core.option_models import describe, load, split, validate
from ..core.plugins import no_exit
from ..store import agents, bindings, identities
from ..store.bindings import Bound, NewBinding, Removed
from ..store.connection import Row
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, Timezone, operation
from .option_fields import OptionField, option_fields
from .param_sizes import Size

CHECK_SECONDS = 60.0


class Bind(Params):
    name: str = Field(description="the agent")
    adapter_type: str = Field(description="the kind of platform, like folder")
    settings: Annotated[dict[str, Any], Size(text=10_000)] = Field(
        {}, description="what the adapter needs, secrets too; adapter.list describes it"
    )
    groups: Literal["mentioned", "replied", "always"] | None = Field(
        None,
        description="what of a group is for the agents; the rest is shown to them with it. mentioned: what "
        "names the account or an agent, or replies to one; replied: only replies; always: everything",
    )
    leads: bool = Field(False, description="this agent gets what is not for another agent of the account")
    topic: bool | None = Field(
        None, description="give the agent a topic of its own in the private chat of the boss"
    )
    connect: bool = Field(True, description="false: do not ask the platform whether the settings work")


class Unbind(Params):
    name: str = Field(description="the agent")
    adapter_type: str = Field(description="the kind of platform, like folder")
    account: str | None = Field(None, description="which of its accounts there, if it has more than one")


class AdapterJson(TypedDict):
    name: Annotated[str, Field(description="its type, like folder in channel:folder:reports")]
    summary: Annotated[str, Field(description="what it connects to")]
    options: Annotated[list[OptionField], Field(description="what a binding needs")]
    capabilities: Annotated[
        list[str], Field(description="what it can do beyond posting, like edit, delete or threads")
    ]


class AdapterList(TypedDict):
    adapters: Annotated[
        list[AdapterJson], Field(description="the built-in ones and those of adapters.modules")
    ]


class ChatJson(TypedDict):
    address: Annotated[str, Field(description="where to send")]
    kind: Annotated[str, Field(description="private, group or channel")]
    name: Annotated[str | None, Field(description="of the person, or the title of the group")]


class BindingJson(TypedDict):
    binding: Annotated[str, Field(description="its id, like b1")]
    adapter_type: Annotated[str, Field(description="the kind of platform")]
    account: Annotated[str, Field(description="the platform's name for the account")]
    name: Annotated[str | None, Field(description="the account as people know it, like @nexbot")]
    groups: Annotated[str, Field(description="what of a group is for the agents: mentioned, replied, always")]
    leads: Annotated[str | None, Field(description="the agent that gets what is not for another one")]
    closed: Annotated[bool, Field(description="true: it answers only people and groups you approved")]
    chats: Annotated[
        list[ChatJson],
        Field(description="the first 20 it may post to; empty also for those who may not see them"),
    ]
    agents: Annotated[list[str], Field(description="the names of those who use it")]
    state: Annotated[str, Field(description="of its adapter: starting, running, failed, stopped")]
    failing_since: Annotated[str | None, Field(description="since when the account posts nothing")]
    next_try_at: Annotated[str | None, Field(description="when it is tried again")]
    last_error: Annotated[
        str | None, Field(description="of the adapter or the account; null also for those who may not see it")
    ]


class BindResult(TypedDict):
    binding: Annotated[str, Field(description="its id, like b1")]
    address: Annotated[str | None, Field(description="the first chat it may post to; null if there is none")]
    created: Annotated[bool, Field(description="false: the binding existed, and the agent now uses it too")]
    name: Annotated[str | None, Field(description="the account as people know it, like @nexbot")]
    paired: Annotated[
        bool,
        Field(description="false: the account answers only people you approve, and does not know you yet"),
    ]
    notes: Annotated[list[str], Field(description="what to know or to do next, one sentence each")]


class UnbindResult(TypedDict):
    binding: Annotated[str, Field(description="its id, like b1")]
    ended: Annotated[bool, Field(description="true: this was its last agent")]
    failed_envelopes: Annotated[int, Field(description="how many still waited to be posted")]
    dropped_updates: Annotated[
        int, Field(description="how many had come in and were not read yet; the boss gets a notice")
    ]


class BindingList(TypedDict):
    bindings: Annotated[list[BindingJson], Field(description="the active ones, oldest first")]
    timezone: Timezone


@operation("adapter.list", level=Level.STANDARD, effect="read", result=AdapterList)
def adapters(context: Context, caller: Caller, params: Nothing) -> AdapterList:
    """List the kinds of platforms an agent can be bound to, and what a binding of each needs."""
    return {"adapters": [_adapter_json(kind) for kind in context.supervisor.kinds()]}


@operation(
    "agent.bind",
    level=Level.BOSS,
    effect="idempotent",
    params=Bind,
    result=BindResult,
    errors=(UnknownAgent, UnknownAdapter, BindingTaken, AccountRefused, InvalidParams),
    changes="agent",
)
async def bind(context: Context, caller: Caller, params: Bind) -> BindResult:
    """Bind an agent to a place on a platform: it posts there, and receives what comes from there.

    For an account that is bound already, the secrets that are given replace its own; the others stay. It is
    found by its other settings; where it has none, a secret that it needs must be given again.
    """
    kind = context.supervisor.kind(params.adapter_type)
    context.store.read(lambda c: agents.get(c, params.name))  # before the adapter creates anything
    given = _with_stored(context, kind, params)
    checked = (
        await _check(kind, params, given, str(context.home))
        if params.connect
        else _unchecked(kind, params, given)
    )
    found = split(checked.settings)
    now = clock.now()
    new = NewBinding(
        adapter=params.adapter_type,
        account=checked.account,
        settings=found.settings,
        secrets=None,
        threads="threads" in getattr(kind, "capabilities", ()),
        chats=tuple(checked.chats),
        name=checked.name,
        closed=not getattr(kind, "open_to_all", False),
        groups=params.groups,
        leads=params.leads,
        own_topic=params.topic,
    )
    async with context.changing:  # until it is written, the account keeps the secrets that it has
        name = _keep_secrets(context, params.adapter_type, checked.account, found.secrets)

        def write(tx: Tx) -> Bound:
            with_secrets = new._replace(secrets=name)
            return bindings.add(tx, with_secrets, agents.get(tx, params.name)["id"], now)

        try:
            bound = await context.write(caller, write)
        except Exception:
            context.home.forget_secrets(name)
            raise
        context.home.forget_secrets(bound.unused)
    if bound.changed:
        await context.supervisor.remove(bound.binding)  # it starts again with its new secrets
    for row in context.store.read(bindings.list_all):  # as they are now: somebody else may bind it too
        context.supervisor.add(row)  # changes nothing for bindings that run already
    context.chat_setup.look(bound.binding)
    address = f"channel:{params.adapter_type}:{checked.chats[0].id}" if checked.chats else None
    known = context.store.read(identities.boss_ids)
    return {
        "binding": f"b{bound.binding}",
        "address": address,
        "created": bound.created,
        "name": checked.name,
        "paired": not new.closed or params.adapter_type in known,
        "notes": list(checked.notes),
    }


def _with_stored(context: Context, kind: Any, params: Bind) -> dict[str, Any]:
    """Return the settings that were given, with stored secrets for those that are missing.

    Only if the other settings are those of exactly one account that is bound.
    """
    given = {name.replace("-", "_"): value for name, value in params.settings.items() if value is not None}
    options = {one.name: one for one in describe(getattr(kind, "Settings", AdapterSettings))}
    missing = [one.name for one in options.values() if one.secret and one.required and one.name not in given]
    plain = {name: value for name, value in given.items() if name in options and not options[name].secret}
    if not missing or not plain:
        return params.settings
    rows = [one for one in context.store.read(bindings.list_all) if one["adapter"] == params.adapter_type]
    same = [row for row in rows if _has(json.loads(row["settings"]), plain)]
    stored = context.home.secrets_of(same[0]["secrets"]) if len(same) == 1 else {}
    return {**params.settings, **{name: stored[name] for name in missing if name in stored}}


def _has(settings: dict[str, Any], given: dict[str, Any]) -> bool:
    return all(settings.get(name) == value for name, value in given.items())


async def _check(kind: Any, params: Bind, given_settings: dict[str, Any], home: str) -> Checked:
    """Let the adapter check what was given."""
    model = getattr(kind, "Settings", AdapterSettings)
    try:
        given = validate(model, given_settings, params.adapter_type)
        settings = load(model, given.settings, given.secrets)
        with no_exit():
            checked: Checked = await bounded_calls.call(
                kind.check(settings, home), f"The check of {params.adapter_type}", CHECK_SECONDS
            )
    except Refused as refusal:
        raise InvalidParams(detail=refusal.why) from None
    except LaneError as error:
        raise AccountRefused(adapter=params.adapter_type, why=error.text) from None
    except bounded_calls.TookTooLong:
        why = f"no answer within {CHECK_SECONDS:g} seconds"
        raise AccountRefused(adapter=params.adapter_type, why=why) from None
    _check_names(params.adapter_type, checked)
    return checked


def _unchecked(kind: Any, params: Bind, given_settings: dict[str, Any]) -> Checked:
    """Return what a binding stores, without asking the platform."""
    if not hasattr(kind, "unchecked"):
        raise InvalidParams(
            detail=f"{params.adapter_type} cannot be bound without a check (connect, --no-check)"
        )
    model = getattr(kind, "Settings", AdapterSettings)
    try:
        given = validate(model, given_settings, params.adapter_type)
        checked: Checked = kind.unchecked(load(model, given.settings, given.secrets))
    except Refused as refusal:
        raise InvalidParams(detail=refusal.why) from None
    _check_names(params.adapter_type, checked)
    return checked


def _keep_secrets(context: Context, adapter: str, account: str, given: dict[str, str]) -> str | None:
    """Store the secrets that were given, and those of the account that were not; None: it has them all."""
    row = context.store.read(lambda c: bindings.find(c, adapter, account))
    stored = {} if row is None else context.home.secrets_of(row["secrets"])
    secrets = {**stored, **given}
    return None if secrets == stored else context.home.keep_secrets(secrets, context.store.epoch)


def _check_names(adapter: str, checked: Checked) -> None:
    """Raise an error about the adapter if its account or its chats cannot be addresses."""
    for name in (checked.account, *[chat.id for chat in checked.chats]):
        parse_address(f"channel:{adapter}:{name}")


def _adapter_json(kind: Any) -> AdapterJson:
    return {
        "name": kind.type,
        "summary": (kind.__doc__ or "").strip().partition("\n")[0],
        "options": option_fields(getattr(kind, "Settings", AdapterSettings)),
        "capabilities": sorted(getattr(kind, "capabilities", ())),
    }


@operation(
    "agent.unbind",
    level=Level.BOSS,
    effect="destructive",
    params=Unbind,
    result=UnbindResult,
    errors=(UnknownAgent, UnknownAdapter, UnknownBinding, InvalidParams),
    changes="agent",
)
async def unbind(context: Context, caller: Caller, params: Unbind) -> UnbindResult:
    """Unbind an agent from a place. Without agents the binding ends, and what waits for it fails.

    What had come in by it and was not read yet is dropped.
    """
    context.supervisor.kind(params.adapter_type)
    now = clock.now()

    def write(tx: Tx) -> Removed:
        row = agents.get(tx, params.name)
        account = _account(tx, row["name"], params)
        return bindings.remove(tx, params.adapter_type, account, row["id"], now)

    async with context.changing:
        removed = await context.write(caller, write)
    failed = await context.delivery.endings.end(removed.binding) if removed.ended else 0
    return {
        "binding": f"b{removed.binding}",
        "ended": removed.ended,
        "failed_envelopes": failed,
        "dropped_updates": removed.dropped,
    }


@operation("agent.bindings", level=Level.STANDARD, result=BindingList)
def listed(context: Context, caller: Caller, params: Nothing) -> BindingList:
    """List the bindings: which agents use which place, and whether it works."""
    return {"bindings": bindings_json(context, caller), "timezone": context.timezone}


def every_binding(context: Context) -> list[BindingJson]:
    """Return every binding with the state of its adapter."""
    return [_to_json(context, row) for row in context.store.read(bindings.list_all)]


def bindings_json(context: Context, caller: Caller) -> list[BindingJson]:
    """Return every binding; chats and errors only to the boss and to the agents of each."""
    found = every_binding(context)
    own = caller.address.name if caller.address is not None and caller.address.kind == "agent" else None
    hidden: Any = {"last_error": None, "chats": []}
    return [one if caller.is_boss or own in one["agents"] else {**one, **hidden} for one in found]


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
        "name": row["name"],
        "groups": row["groups"],
        "leads": row["leads"],
        "closed": bool(row["closed"]),
        "chats": json.loads(row["chats"]),
        "agents": row["agents"].split(",") if row["agents"] else [],
        "state": slot.state if slot else "stopped",
        "failing_since": clock.iso_or_none(row["first_failed_at"]),
        "next_try_at": clock.iso_or_none(row["wake_at"]),
        "last_error": slot.trouble if slot and slot.trouble else row["error_text"],
    }
