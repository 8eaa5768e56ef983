"""Operations about lanes: list them, retry one that waits, pause and resume."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock
from ..core.envelope import Lane
from ..core.errors import BadAddress, BossOnly, NotFound, UnknownAddress
from ..store import bindings, lanes, run_pauses
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from .addresses import address_id, resolve
from .auth import Caller, check_may_change
from .context import Context
from .operation import ChangedCount, Level, Nothing, Params, Timezone, operation


class ByAddress(Params):
    address: str = Field(description="the lane's address, like channel:folder:reports")


class LaneJson(TypedDict):
    address: Annotated[str, Field(description="where its envelopes go")]
    binding: Annotated[
        str | None, Field(description="the binding that posts them, like b1; null: the lane of an agent")
    ]
    state: Annotated[str, Field(description="open, waiting, paused")]
    due: Annotated[int, Field(description="envelopes that wait to be delivered")]
    scope: Annotated[
        str | None, Field(description="of its failures: lane, or account: then all lanes of the binding wait")
    ]
    failures: Annotated[int, Field(description="how many times in a row it failed")]
    next_try_at: Annotated[str | None, Field(description="when a waiting lane is tried again")]
    failing_since: Annotated[str | None, Field(description="when the failures in a row began")]
    last_error: Annotated[
        str | None,
        Field(description="null also for those who may not see it, like other agents"),
    ]
    last_error_at: Annotated[str | None, Field(description="when it failed last; null where last_error is")]


class LaneList(TypedDict):
    lanes: Annotated[list[LaneJson], Field(description="also the open ones in which nothing waits")]
    timezone: Timezone


_ERRORS = (BadAddress, UnknownAddress, NotFound, BossOnly)


@operation("lane.list", level=Level.PRIVILEGED, effect="read", result=LaneList)
async def listed(context: Context, caller: Caller, params: Nothing) -> LaneList:
    """List the lanes: their state, how much is due, and their last failure."""

    def read(connection: Connection) -> LaneList:
        found = [
            to_json(row, tells_error=row["binding"] is not None or may_see(caller, row))
            for row in lanes.list_all(connection)
        ]
        return {"lanes": found, "timezone": context.timezone}

    return await context.store.read_in_thread(read)


@operation(
    "lane.retry", level=Level.BOSS, effect="change", params=ByAddress, result=ChangedCount, errors=_ERRORS
)
async def retry(context: Context, caller: Caller, params: ByAddress) -> ChangedCount:
    """Retry a waiting lane now instead of at its next time. If its account waits, retry that."""
    found = _lanes(context, caller, params.address)
    accounts = {lane.account for lane in found if lane.binding is not None}
    now = clock.now()

    def write(tx: Tx) -> set[Lane]:
        return {lane for lane in (*found, *accounts) if lanes.reopen(tx, lane, now)}

    reopened = await context.write(caller, write)
    # An adapter that does not run is started at once; its lanes are woken when it runs.
    reopened |= {account for account in accounts if context.supervisor.retry(account.binding)}
    _wake(context, [*found, *accounts])
    retried = [lane for lane in found if lane in reopened or lane.account in reopened]
    return {"changed": len(retried)}


@operation(
    "lane.pause", level=Level.BOSS, effect="idempotent", params=ByAddress, result=ChangedCount, errors=_ERRORS
)
async def pause(context: Context, caller: Caller, params: ByAddress) -> ChangedCount:
    """Pause a lane; its envelopes wait, in order, until it is resumed."""
    found = _lanes(context, caller, params.address)
    now = clock.now()

    def write(tx: Tx) -> int:
        return sum(lanes.pause(tx, lane, now) for lane in found)

    return {"changed": await context.write(caller, write)}


@operation(
    "lane.resume",
    level=Level.BOSS,
    effect="idempotent",
    params=ByAddress,
    result=ChangedCount,
    errors=_ERRORS,
)
async def resume(context: Context, caller: Caller, params: ByAddress) -> ChangedCount:
    """Resume a paused lane, not before a time its platform named. A run that was paused with it goes on."""
    found = _lanes(context, caller, params.address)
    now = clock.now()

    def write(tx: Tx) -> tuple[list[Row], list[int]]:
        # First: it knows the run that a lane was paused with.
        runs = [run for lane in found if (run := run_pauses.resume_with_lane(tx, lane, now)) is not None]
        return [row for lane in found if (row := lanes.resume(tx, lane, now)) is not None], runs

    resumed, runs = await context.write(caller, write)
    for row in resumed:
        if row["wake_at"] is not None:
            context.scheduler.nudge(row["wake_at"])
    for run in runs:
        await context.controls.apply_pause(run)
    _wake(context, found)
    return {"changed": len(resumed)}


def _wake(context: Context, found: list[Lane]) -> None:
    context.delivery.wake([lane for lane in found if lane.binding is not None])
    context.changes.look(again=True)
    context.runner.wake([lane.address for lane in found if lane.binding is None])


def _lanes(context: Context, caller: Caller, text: str) -> list[Lane]:
    """Return the lanes of an address that the caller may change; raises NotFound when it has none."""
    address = resolve(context.store, caller, text)
    if address.kind != "channel":
        check_may_change(caller, address, caller.right)
    number = address_id(context.store, caller, text)
    found = context.store.read(lambda c: lanes.of_address(c, number))
    if not found:
        raise NotFound(what="lane", value=text, where="hiboss lane list")
    if address.kind == "channel" and not caller.is_boss:
        found = context.store.read(lambda c: [lane for lane in found if _uses(c, caller, lane)])
        if not found:
            raise BossOnly(what=f"{caller.right} for {address}", caller=caller.name)
    return found


def _uses(connection: Connection, caller: Caller, lane: Lane) -> bool:
    return lane.binding is not None and caller.address in bindings.agents_of(connection, lane.binding)


def may_see(caller: Caller, row: Row) -> bool:
    """Tell whether a caller may see why a lane waits: it may quote a message."""
    return caller.is_boss or caller.id == row["address_id"]


def to_json(row: Row, *, tells_error: bool) -> LaneJson:
    return {
        "address": row["address"],
        "binding": None if row["binding"] is None else f"b{row['binding']}",
        "state": row["state"],
        "due": row["due"],
        "scope": row["scope"],
        "failures": row["failures"],
        "next_try_at": clock.iso_or_none(row["wake_at"]),
        "failing_since": clock.iso_or_none(row["first_failed_at"]),
        "last_error": row["error_text"] if tells_error else None,
        "last_error_at": clock.iso_or_none(row["error_at"] if tells_error and row["error_text"] else None),
    }
