"""Operations about webhooks: programs that post to hiboss, and web servers that hiboss posts facts to.

A webhook is a binding of the adapter `webhook` (hiboss/channels/webhook). Requests that come in are handed
over by hiboss/api/webhook_receiving.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..channels.webhook.adapter import TYPE
from ..core import clock
from ..core.address import Address
from ..core.contracts.adapter import Chat
from ..core.errors import (
    BadAddress,
    Busy,
    InvalidParams,
    UnknownAddress,
    UnknownAgent,
    UnknownWebhook,
    WebhookTaken,
)
from ..core.webhook_signatures import new_secret
from ..routing.fact_webhooks import SENT
from ..store import agents, bindings, webhook_subscriptions
from ..store.bindings import NewBinding, Removed
from ..store.connection import Row
from ..store.group_commit import Tx
from .addresses import address_id, resolve
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .param_sizes import Size
from .webhook_shapes import (
    ByHook,
    NewWebhook,
    WebhookList,
    WebhookResult,
    all_shown,
    checked,
    find,
    shown,
)

if TYPE_CHECKING:
    Topic = str
else:
    Topic = Literal[SENT]
NAMED = 100  # addresses in one webhook
MOST_OUT = 100  # webhooks that send facts: each follows all that happens
Template = Annotated[str, Size(text=10_000)]


class Create(ByHook):
    name: str = Field(description="of the new webhook: small letters, digits and single dashes, like ci")
    to: str = Field(description="the agent that gets what comes in, like agent:nex")
    template: Template | None = Field(
        None, description="the text of a message, with fields of the JSON like {repository.name}"
    )
    subject: Template | None = Field(None, description="its subject, with fields too")


class Change(ByHook):
    to: str | None = Field(None, description="in: the agent that gets what comes in")
    template: Template | None = Field(
        None, description="in: the text of a message; empty: the body itself again"
    )
    subject: Template | None = Field(None, description="in: its subject; empty: none")
    url: str | None = Field(None, description="out: where to post to")
    topics: list[Topic] | None = Field(
        None, max_length=len(SENT), description="out: of which facts; empty: all"
    )
    addresses: Annotated[list[str], Size(values=NAMED)] | None = Field(
        None, max_length=NAMED, description="out: one of whom must be a party; empty: whoever is"
    )


class Subscribe(Params):
    name: str = Field(description="of the new webhook: small letters, digits and single dashes, like audit")
    url: str = Field(description="where to post to: https, or http on this machine")
    topics: list[Topic] = Field([], max_length=len(SENT), description="only facts of these topics; all")
    addresses: Annotated[list[str], Size(values=NAMED)] = Field(
        [], max_length=NAMED, description="only facts of which one of these is a party, like agent:nex"
    )


class DeletedWebhook(TypedDict):
    name: Annotated[str, Field(description="free for another webhook now")]
    deleted: Annotated[Literal[True], Field(description="always true")]
    failed_envelopes: Annotated[int, Field(description="how many still waited to be posted")]
    dropped_updates: Annotated[
        int, Field(description="how many requests were stored and not read yet; the boss gets a notice")
    ]


@operation(
    "webhook.create",
    level=Level.BOSS,
    effect="change",
    params=Create,
    result=NewWebhook,
    errors=(BadAddress, InvalidParams, UnknownAddress, UnknownAgent, WebhookTaken),
)
async def create(context: Context, caller: Caller, params: Create) -> NewWebhook:
    """Create a webhook: programs that have its secret post to its path, and an agent gets it as a message."""
    agent = _agent(context, caller, params.to)
    given = {"hook": params.name, "template": params.template or None, "subject": params.subject or None}
    return await _new(context, caller, given, lambda tx: agents.get(tx, agent)["id"])


@operation(
    "webhook.subscribe",
    level=Level.BOSS,
    effect="change",
    params=Subscribe,
    result=NewWebhook,
    errors=(BadAddress, InvalidParams, UnknownAddress, WebhookTaken),
)
async def subscribe(context: Context, caller: Caller, params: Subscribe) -> NewWebhook:
    """Create a webhook that posts facts to a web server, signed; each as soon as the server takes it."""
    parties = _parties(context, caller, params.addresses)

    def follow(tx: Tx, binding: int) -> None:
        if len(webhook_subscriptions.list_all(tx)) >= MOST_OUT:
            raise Busy(what=f"there are {MOST_OUT} webhooks that post facts, delete one first")
        entry = tx.cache.live_address(Address("channel", f"{TYPE}:{params.name}"))
        assert entry is not None  # `bindings.add` has made it
        webhook_subscriptions.add(tx, binding, entry.id, params.topics, parties)

    return await _new(context, caller, {"hook": params.name, "url": params.url}, lambda tx: None, follow)


@operation("webhook.list", level=Level.BOSS, result=WebhookList)
def listed(context: Context, caller: Caller, params: Nothing) -> WebhookList:
    """List the webhooks of both directions, and whether they work."""
    return {"webhooks": context.store.read(lambda c: all_shown(context, c)), "timezone": context.timezone}


@operation("webhook.get", level=Level.BOSS, params=ByHook, result=WebhookResult, errors=(UnknownWebhook,))
def get(context: Context, caller: Caller, params: ByHook) -> WebhookResult:
    """Show one webhook, without its secret."""
    return _result(context, params.name)


@operation(
    "webhook.set",
    level=Level.BOSS,
    effect="idempotent",
    params=Change,
    result=WebhookResult,
    errors=(BadAddress, InvalidParams, UnknownAddress, UnknownAgent, UnknownWebhook),
)
async def change(context: Context, caller: Caller, params: Change) -> WebhookResult:
    """Change a webhook; what is not given stays as it is, also its secret."""
    given = {name for name in params.model_fields_set - {"name"} if getattr(params, name) is not None}
    if not given:
        raise InvalidParams(detail="nothing to change: give at least one option, like template (--template)")
    row = context.store.read(lambda c: find(c, params.name))
    settings = _changed(row, params, given)
    agent = None if params.to is None else _agent(context, caller, params.to)
    parties = None if params.addresses is None else _parties(context, caller, params.addresses)
    now = clock.now()

    def write(tx: Tx) -> None:
        found = find(tx, params.name)
        if found["id"] != row["id"] or found["settings"] != row["settings"]:
            raise InvalidParams(detail=f"somebody else has changed {params.name} meanwhile; try again")
        bindings.change(tx, found["id"], settings)
        if agent is not None:
            bindings.give(tx, found, agents.get(tx, agent)["id"], now)
        if given & {"topics", "addresses"}:
            webhook_subscriptions.change(tx, found["id"], params.topics, parties)

    await context.write(caller, write)
    if settings != json.loads(row["settings"]):
        await context.supervisor.remove(row["id"])  # it starts again with its new settings
    await _follow(context)
    return context.store.read(lambda _: _result(context, params.name))


@operation(
    "webhook.rotate",
    level=Level.BOSS,
    effect="destructive",
    params=ByHook,
    result=NewWebhook,
    errors=(UnknownWebhook,),
)
async def rotate(context: Context, caller: Caller, params: ByHook) -> NewWebhook:
    """Give a webhook a new secret, shown only in this answer; the old one ends at the same moment."""
    secret = new_secret()
    with _keeping(context, secret) as kept:

        def write(tx: Tx) -> Row:
            row = find(tx, params.name)
            bindings.change(tx, row["id"], json.loads(row["settings"]), kept)
            return row

        row = await context.write(caller, write)
    context.home.forget_secrets(row["secrets"])
    await context.supervisor.remove(row["id"])  # it starts again with its new secret
    await _follow(context)
    return {**context.store.read(lambda _: _result(context, params.name)), "secret": secret}


@operation(
    "webhook.delete",
    level=Level.BOSS,
    effect="destructive",
    params=ByHook,
    result=DeletedWebhook,
    errors=(InvalidParams, UnknownWebhook),
)
async def delete(context: Context, caller: Caller, params: ByHook) -> DeletedWebhook:
    """Delete a webhook that receives: its secret ends. What came in by it is kept."""
    return await _end(context, caller, params.name, "in")


@operation(
    "webhook.unsubscribe",
    level=Level.BOSS,
    effect="destructive",
    params=ByHook,
    result=DeletedWebhook,
    errors=(InvalidParams, UnknownWebhook),
)
async def unsubscribe(context: Context, caller: Caller, params: ByHook) -> DeletedWebhook:
    """Delete a webhook that posts facts: what still waits to be posted fails."""
    return await _end(context, caller, params.name, "out")


# --- what they share -----------------------------------------------------------------


async def _new(
    context: Context,
    caller: Caller,
    given: dict[str, Any],
    agent: Callable[[Tx], int | None],
    follow: Callable[[Tx, int], None] = lambda tx, binding: None,
) -> NewWebhook:
    """Create a webhook with a new secret, and start its adapter."""
    secret, now, name = new_secret(), clock.now(), given["hook"]
    settings = checked({**given, "secret": secret}).settings
    with _keeping(context, secret) as kept:
        new = NewBinding(TYPE, name, settings, kept, chats=[Chat(name)])

        def write(tx: Tx) -> None:
            serves = agent(tx)
            if bindings.find(tx, TYPE, name) is not None:
                raise WebhookTaken(name=name)
            follow(tx, bindings.add(tx, new, serves, now).binding)

        await context.write(caller, write)
    await _follow(context)
    return {**context.store.read(lambda _: _result(context, name)), "secret": secret}


@contextmanager
def _keeping(context: Context, secret: str) -> Iterator[str]:
    """Store a secret in a file; if what needs it is not stored, delete the file again. Return its name."""
    name = context.home.keep_secrets({"secret": secret}, context.store.epoch)
    try:
        yield name
    except Exception:
        context.home.forget_secrets(name)
        raise


async def _follow(context: Context) -> None:
    """Run the adapters of all bindings as they are stored now, and follow the facts for webhooks."""
    for row in context.store.read(bindings.list_all):
        context.supervisor.add(row)  # changes nothing for bindings that run already
    await context.fact_webhooks.look()


async def _end(context: Context, caller: Caller, name: str, direction: str) -> DeletedWebhook:
    now = clock.now()

    def write(tx: Tx) -> Removed:
        row = find(tx, name)
        own = "out" if "url" in json.loads(row["settings"]) else "in"
        if own != direction:
            how = {"in": "webhook.delete (hiboss webhook delete)"}
            how["out"] = "webhook.unsubscribe (hiboss webhook unsubscribe)"
            raise InvalidParams(detail=f"{name} is a webhook of the direction {own}; use {how[own]}")
        bindings.take_away(tx, row, now)
        return bindings.end(tx, row, now)

    removed = await context.write(caller, write)
    failed = await context.delivery.endings.end(removed.binding)
    await context.fact_webhooks.look()
    counts = {"failed_envelopes": failed, "dropped_updates": removed.dropped}
    return {"name": name, "deleted": True, **counts}  # type: ignore[typeddict-item]


def _changed(row: Row, params: Change, given: set[str]) -> dict[str, Any]:
    """Return the settings of a webhook with what was given; raise if that is not for its direction."""
    settings = json.loads(row["settings"])
    own, other = ({"to", "template", "subject"}, {"url", "topics", "addresses"})
    if "url" in settings:
        own, other = other, own
    if wrong := sorted(given & other):
        way = "posts facts" if "url" in settings else "receives"
        takes = ", ".join(sorted(own))
        raise InvalidParams(detail=f"{params.name} {way}: it has no {wrong[0]}; it takes {takes}")
    new = {name: getattr(params, name) for name in given & {"template", "subject", "url"}}
    kept = {name: value for name, value in {**settings, **new}.items() if value != ""}
    if "url" in settings and "url" not in kept:
        raise InvalidParams(detail="a webhook that posts facts needs its url (--url)")
    return checked({**kept, "secret": new_secret()}).settings  # the secret is not stored


def _agent(context: Context, caller: Caller, given: str) -> str:
    """Return the name of an agent that a request names."""
    address = resolve(context.store, caller, given)
    if address.kind != "agent":
        raise InvalidParams(detail=f"what comes in is for an agent (to), and {address} is none")
    return address.name


def _parties(context: Context, caller: Caller, given: Iterable[str]) -> list[int]:
    return sorted({address_id(context.store, caller, one) for one in given})


def _result(context: Context, name: str) -> WebhookResult:
    found = context.store.read(lambda c: shown(context, c, name))
    return {"webhook": found, "timezone": context.timezone}
