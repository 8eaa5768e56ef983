"""Operations of agents that fetch their mail: claim, release; and of senders: retry."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.errors import InvalidParams
from ..store import leases
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .envelopes import Mark, Marked, envelopes_json
from .operation import Level, Params, operation

LEASE = "10m"
LONGEST_LEASE = 24 * 3_600_000


class Claim(Params):
    limit: int | None = Field(None, description="how many at most")
    lease: str = Field(LEASE, description="for how long nobody else gets them, like 10m")
    address: str | None = Field(None, description="for whom (for the boss)")


class Claimed(TypedDict):
    envelopes: list[envelope_json.EnvelopeJson]
    until: str
    timezone: str


_ERRORS = (errors.BadAddress, errors.UnknownAddress, errors.BossOnly)


@operation(
    "envelope.claim",
    level=Level.RESTRICTED,
    params=Claim,
    result=Claimed,
    errors=(*_ERRORS, errors.BadDuration, InvalidParams),
)
async def claim(context: Context, caller: Caller, params: Claim) -> Claimed:
    """Take the next due envelopes in hand; acknowledge or release them before the lease ends."""
    owner = acting_for(context.store, caller, params.address)
    most = context.settings.page_size_limit
    limit = params.limit or context.settings.page_size
    if params.limit is not None and not 1 <= params.limit <= most:
        raise InvalidParams(detail=f"limit (-n) is {params.limit} and may be 1 to {most}")
    now = clock.now()
    until = now + clock.duration(params.lease, most=LONGEST_LEASE)
    numbers = await context.write(caller, lambda tx: leases.claim(tx, owner, limit, until, now))
    if numbers:
        context.scheduler.nudge(until)
    return {
        "envelopes": envelopes_json(context, numbers, caller.sees),
        "until": clock.iso(until),
        "timezone": context.timezone,
    }


@operation(
    "envelope.release",
    level=Level.RESTRICTED,
    params=Mark,
    result=Marked,
    errors=(*_ERRORS, errors.NotFound, errors.BadId, errors.TooLate),
)
async def release(context: Context, caller: Caller, params: Mark) -> Marked:
    """Give back envelopes one has claimed; they are due again."""
    owner = acting_for(context.store, caller, params.address)
    numbers = [ids.number(given, "envelope") for given in params.ids]
    return {"changed": await context.write(caller, lambda tx: leases.release(tx, numbers, owner))}
