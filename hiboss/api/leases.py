"""Operations of agents that fetch their mail: claim, release; and of senders: retry."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.errors import InvalidParams
from ..store import leases
from ..store.group_commit import Tx
from ..store.lanes import Lane
from .auth import Caller, acting_for
from .context import House
from .envelopes import Ids, Mark, Marked, shapes
from .operation import Level, Params, operation

LEASE = "10m"
LONGEST_LEASE = 24 * 3_600_000


class Claim(Params):
    limit: int | None = Field(None, description="how many at most")
    lease: str = Field(LEASE, description="for how long nobody else gets them, like 10m")
    address: str | None = Field(None, description="for whom (for the boss)")


class Claimed(TypedDict):
    envelopes: list[envelope_json.EnvelopeShape]
    until: str
    timezone: str


class Retry(Params):
    ids: Ids


_ERRORS = (errors.BadAddress, errors.UnknownAddress, errors.BossOnly)


@operation(
    "envelope.claim",
    level=Level.RESTRICTED,
    params=Claim,
    result=Claimed,
    errors=(*_ERRORS, errors.BadDuration, InvalidParams),
)
async def claim(house: House, caller: Caller, params: Claim) -> Claimed:
    """Take the next due envelopes in hand; acknowledge or release them before the lease ends."""
    owner = acting_for(house.store, caller, params.address)
    most = house.settings.page_size_limit
    limit = params.limit or house.settings.page_size
    if params.limit is not None and not 1 <= params.limit <= most:
        raise InvalidParams(detail=f"limit (-n) is {params.limit} and may be 1 to {most}")
    now = clock.now()
    until = now + clock.duration(params.lease, most=LONGEST_LEASE)
    numbers = await house.write(caller, lambda tx: leases.claim(tx, owner, limit, until, now))
    if numbers:
        house.scheduler.nudge(until)
    return {
        "envelopes": shapes(house, numbers, caller.sees),
        "until": clock.iso(until),
        "timezone": house.timezone,
    }


@operation(
    "envelope.release",
    level=Level.RESTRICTED,
    params=Mark,
    result=Marked,
    errors=(*_ERRORS, errors.NotFound, errors.BadId, errors.TooLate),
)
async def release(house: House, caller: Caller, params: Mark) -> Marked:
    """Give back envelopes one has claimed; they are due again."""
    owner = acting_for(house.store, caller, params.address)
    numbers = [ids.number(given, "envelope") for given in params.ids]
    return {"changed": await house.write(caller, lambda tx: leases.release(tx, numbers, owner))}


@operation(
    "envelope.retry",
    level=Level.STANDARD,
    params=Retry,
    result=Marked,
    errors=(errors.NotFound, errors.BadId, errors.TooLate),
)
async def retry(house: House, caller: Caller, params: Retry) -> Marked:
    """Take up again envelopes one has sent and that have failed."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> tuple[int, set[Lane]]:
        return leases.retry(tx, numbers, caller.sees, now)

    changed, found = await house.write(caller, write)
    house.delivery.wake(found, eager=True)
    house.scheduler.nudge(now)
    return {"changed": changed}
