"""Operations about lanes: what does not get through, and letting it."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.envelope import Lane
from ..core.errors import BadAddress, NotFound, UnknownAddress
from ..store import lanes
from ..store.connection import Row
from ..store.group_commit import Tx
from .addresses import address_id
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation


class Which(Params):
    address: str = Field(description="the place, like channel:folder:reports")


class LaneJson(TypedDict):
    address: str
    binding: str | None
    state: str
    due: int
    failures: int
    next_try_at: str | None
    failing_since: str | None
    last_error: str | None
    last_error_at: str | None


class Listed(TypedDict):
    lanes: list[LaneJson]
    timezone: str


class Changed(TypedDict):
    changed: int


_ERRORS = (BadAddress, UnknownAddress, NotFound)


@operation("lane.list", level=Level.PRIVILEGED, result=Listed)
async def listed(context: Context, caller: Caller, params: Nothing) -> Listed:
    """Every lane to a channel: how it stands, how much is due there, what it has met."""
    rows = await context.store.read_in_thread(lanes.listed)
    return {"lanes": [to_json(row) for row in rows], "timezone": context.timezone}


@operation("lane.retry", level=Level.BOSS, params=Which, result=Changed, errors=_ERRORS)
async def retry(context: Context, caller: Caller, params: Which) -> Changed:
    """Try a waiting lane now, instead of at its time."""
    found = _lanes(context, params.address)

    def write(tx: Tx) -> int:
        return sum(lanes.reopen(tx, lane, ("waiting",)) for lane in found)

    changed = await context.write(caller, write)
    _wake(context, found)
    return {"changed": changed}


@operation("lane.pause", level=Level.BOSS, params=Which, result=Changed, errors=_ERRORS)
async def pause(context: Context, caller: Caller, params: Which) -> Changed:
    """Hold a lane; what is for there waits, in order, until it is resumed."""
    found = _lanes(context, params.address)
    now = clock.now()

    def write(tx: Tx) -> int:
        return sum(lanes.pause(tx, lane, now) for lane in found)

    return {"changed": await context.write(caller, write)}


@operation("lane.resume", level=Level.BOSS, params=Which, result=Changed, errors=_ERRORS)
async def resume(context: Context, caller: Caller, params: Which) -> Changed:
    """Let a paused lane go on, at once."""
    found = _lanes(context, params.address)

    def write(tx: Tx) -> int:
        return sum(lanes.reopen(tx, lane, ("paused",)) for lane in found)

    changed = await context.write(caller, write)
    _wake(context, found)
    return {"changed": changed}


def _wake(context: Context, found: list[Lane]) -> None:
    context.delivery.wake([lane for lane in found if lane.binding is not None])
    context.runner.wake([lane.address for lane in found if lane.binding is None])


def _lanes(context: Context, text: str) -> list[Lane]:
    number = address_id(context.store, text)
    found = context.store.read(lambda c: lanes.of_address(c, number))
    if not found:
        raise NotFound(what="lane", value=text, where="hiboss lane list")
    return found


def to_json(row: Row) -> LaneJson:
    return {
        "address": row["address"],
        "binding": None if row["binding"] is None else f"b{row['binding']}",
        "state": row["state"],
        "due": row["due"],
        "failures": row["failures"],
        "next_try_at": clock.iso_or_none(row["wake_at"]),
        "failing_since": clock.iso_or_none(row["first_failed_at"]),
        "last_error": row["error_text"],
        "last_error_at": clock.iso_or_none(row["error_at"]),
    }
