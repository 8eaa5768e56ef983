"""Operations to follow what happens: facts come as notifications (docs/events.md)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors, ids
from ..core.events import TOPICS
from ..core.ids import LARGEST
from ..routing.subscriptions import Holder, Interest, Reader, Subscription
from ..store import counters, fact_parties
from ..store.connection import Connection
from .addresses import address_id, resolve
from .auth import Caller
from .context import Context
from .operation import Level, Params, operation
from .param_sizes import Size

if TYPE_CHECKING:
    Topic = str
else:
    Topic = Literal[tuple(TOPICS.values())]
NAMED = 100  # addresses or conversations in one subscription


class Subscribe(Params):
    topics: list[Topic] = Field([], max_length=len(TOPICS), description="only facts of these topics; all")
    addresses: Annotated[list[str], Size(values=NAMED)] = Field(
        [], max_length=NAMED, description="only facts of which one of these is a party; others' need the boss"
    )
    conversations: list[str] = Field(
        [],
        max_length=NAMED,
        description="only facts in these conversations, like c4, and those of `addresses`",
    )
    boot: int | None = Field(None, ge=0, le=LARGEST, description="the `boot` of the fact seen last")
    after: int | None = Field(
        None, ge=0, le=LARGEST, description="the `number` of the fact seen last: what followed it comes first"
    )


class Subscribed(TypedDict):
    subscription: Annotated[int, Field(description="its number, in every notification of this connection")]
    boot: Annotated[
        int,
        Field(description="which start of the daemon `number` belongs to; drawn by lot at each start"),
    ]
    number: Annotated[int, Field(description="the number of the last fact so far")]
    gap: Annotated[
        bool, Field(description="true: not all facts after `after` are kept, so read again what you follow")
    ]
    arrived: Annotated[int, Field(description="mail with a higher arrival number comes as a fact")]
    epoch: Annotated[str, Field(description="which life of the store the arrival numbers belong to")]


class Unsubscribe(Params):
    subscription: int = Field(ge=1, le=LARGEST, description="the number of the subscription")


class Unsubscribed(TypedDict):
    changed: Annotated[bool, Field(description="false: this connection has no such subscription (any more)")]


@operation(
    "event.subscribe",
    level=Level.RESTRICTED,
    params=Subscribe,
    result=Subscribed,
    errors=(
        errors.BadAddress,
        errors.UnknownAddress,
        errors.NotFound,
        errors.BadId,
        errors.BossOnly,
        errors.Busy,
    ),
    effect="change",
    follows=True,
)
async def subscribe(context: Context, caller: Caller, params: Subscribe, reader: Reader) -> Subscribed:
    """Follow what happens: each fact that you may see comes as a notification on this connection."""
    used = {one.number for one in reader.subscriptions}
    limit = context.settings.subscriptions_per_connection
    if len(used) >= limit:
        raise errors.Busy(what=f"this connection has {limit} subscriptions, end one first")

    def begin(connection: Connection) -> Subscribed:
        interest = _interest(context, connection, caller, params)
        number = max(used, default=0) + 1
        check, holder = partial(context.auth.recheck, caller), Holder(caller.id, caller.is_person)
        one = Subscription(context.facts, number, interest, reader, check, holder)
        # The last arrival number is read before it begins: what arrives after that is published later.
        arrived = counters.last_arrived(connection)
        gap = context.facts.subscribe(one, params.boot, params.after)
        reader.subscriptions.append(one)
        return {
            "subscription": one.number,
            "boot": context.facts.boot,
            "number": context.facts.number,
            "gap": gap,
            "arrived": arrived,
            "epoch": context.store.epoch,
        }

    return context.store.read(begin)


@operation(
    "event.unsubscribe",
    level=Level.RESTRICTED,
    params=Unsubscribe,
    result=Unsubscribed,
    effect="idempotent",
    follows=True,
)
async def unsubscribe(context: Context, caller: Caller, params: Unsubscribe, reader: Reader) -> Unsubscribed:
    """End a subscription of this connection."""
    found = [one for one in reader.subscriptions if one.number == params.subscription]
    for one in found:
        context.facts.unsubscribe(one)
    return {"changed": bool(found)}


def _interest(context: Context, connection: Connection, caller: Caller, params: Subscribe) -> Interest:
    addresses = [_address(context, caller, given) for given in params.addresses]
    conversations = [ids.number(given, "conversation") for given in params.conversations]
    present: list[int] = []
    for number, given in zip(conversations, params.conversations, strict=True):
        members = fact_parties.members(connection, number)
        if not members or (caller.sees is not None and caller.sees not in members):
            raise errors.NotFound(what="conversation", value=given)
        present += members
    return Interest(caller.sees, params.topics, addresses, conversations, present)


def _address(context: Context, caller: Caller, given: str) -> int:
    """Return the id of an address that the caller may follow: its own; any for the boss."""
    if caller.is_boss:
        return address_id(context.store, caller, given)
    if caller.address is not None and resolve(context.store, caller, given).fold == caller.address.fold:
        return caller.id
    raise errors.BossOnly(what="following another's facts (addresses)", caller=caller.name)
