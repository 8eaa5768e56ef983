"""Operations of agents that fetch their mail: claim envelopes for a time, and release them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..store import leases
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .envelope_marks import Mark
from .envelopes import envelopes_json
from .operation import ChangedCount, Id, Level, Params, Timezone, operation
from .request_limits import page_size

LEASE = "10m"
LONGEST_LEASE_MS = 24 * 3_600_000


class Claim(Params):
    limit: int | None = Field(None, description="how many at most; default the page size")
    lease: str = Field(LEASE, description="how long they are yours, like 10m")
    address: str | None = Field(None, description="whose envelopes (only for the boss)")


class Claimed(TypedDict):
    envelopes: Annotated[
        list[envelope_json.EnvelopeJson],
        Field(description="those claimed now, oldest first within their priority"),
    ]
    claim: Annotated[
        str | None,
        Field(description="to be given when they are acknowledged or released; null: nothing was due"),
    ]
    until: Annotated[str, Field(description="when the lease ends; then they are due again")]
    timezone: Timezone


class Release(Mark):
    claim: Id | None = Field(None, description="the `claim` that envelope.claim returned, like k7")


_ERRORS = (errors.BadAddress, errors.UnknownAddress, errors.BossOnly)


@operation(
    "envelope.claim",
    level=Level.RESTRICTED,
    effect="change",
    params=Claim,
    result=Claimed,
    errors=(*_ERRORS, errors.BadDuration, errors.InvalidParams),
)
async def claim(context: Context, caller: Caller, params: Claim) -> Claimed:
    """Claim the next due envelopes; acknowledge or release them before the lease ends."""
    owner = acting_for(context.store, caller, params.address)
    limit = page_size(context, params.limit, "limit")
    now = clock.now()
    until = now + clock.duration(params.lease, most=LONGEST_LEASE_MS)
    most = context.settings.page_bytes  # once: what is claimed is what the answer shows
    numbers, number = await context.write(caller, lambda tx: leases.claim(tx, owner, limit, until, now, most))
    if numbers:
        context.scheduler.nudge(until)
    shown, timezone = context.store.read(
        lambda _: (envelopes_json(context, numbers, caller, most), context.timezone)
    )
    claim_id = None if number is None else f"k{number}"
    return {"envelopes": shown, "claim": claim_id, "until": clock.iso(until), "timezone": timezone}


@operation(
    "envelope.release",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=Release,
    result=ChangedCount,
    errors=(*_ERRORS, errors.NotFound, errors.BadId, errors.TooLate),
)
async def release(context: Context, caller: Caller, params: Release) -> ChangedCount:
    """Release claimed envelopes; they are due again. One that was claimed twice needs the claim."""
    what = leases.Releasing(
        ids=[ids.number(given, "envelope") for given in params.ids],
        recipient=acting_for(context.store, caller, params.address),
        now=clock.now(),
        claim=None if params.claim is None else ids.number(params.claim, "claim"),
        any_claim=caller.is_boss,
    )
    return {"changed": await context.write(caller, lambda tx: leases.release(tx, what))}
