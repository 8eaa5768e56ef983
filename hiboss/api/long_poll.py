"""Operations that wait for mail. They change nothing but, for poll, how far one was told."""

from __future__ import annotations

import asyncio
from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, rendering
from ..core.envelope import Status
from ..store import paging, poll_positions
from ..store.paging import Position
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .envelopes import envelopes_json
from .operation import Level, Nothing, Params, operation

LONGEST_WAIT = 3_600_000
DIGEST_MESSAGES = 10  # at most in one answer, whose cursor passes over none it does not show


class Wait(Params):
    timeout: str = Field("55s", description="how long to wait at most, like 55s")
    after: str | None = Field(None, description="only what came after this `next`")
    address: str | None = Field(None, description="whose inbox (for the boss)")


class Waited(TypedDict):
    envelopes: list[envelope_json.EnvelopeJson]
    next: str | None
    timed_out: bool
    timezone: str
    digest: NotRequired[str]


class Poll(Params):
    wait: str | None = Field(
        None, description="how long to wait for mail, like 55s; not at all when not given"
    )
    session: str = Field("", description="of several sessions of one agent each is told for itself")


class Seen(TypedDict):
    address: str
    at: str
    timezone: str


_ERRORS = (
    errors.BadDuration,
    errors.BadCursor,
    errors.Gap,
    errors.BadAddress,
    errors.UnknownAddress,
    errors.BossOnly,
    errors.Stopping,
)


@operation("agent.heartbeat", level=Level.RESTRICTED, result=Seen)
async def heartbeat(context: Context, caller: Caller, params: Nothing) -> Seen:
    """Say that one is there; every other call says it too."""
    return {"address": str(caller.address), "at": clock.iso(clock.now()), "timezone": context.timezone}


@operation("envelope.wait", level=Level.RESTRICTED, waits=True, params=Wait, result=Waited, errors=_ERRORS)
async def wait(context: Context, caller: Caller, params: Wait) -> Waited:
    """Answer when something due and unread lies in one's inbox, or at the time limit; changes nothing."""
    owner = acting_for(context.store, caller, params.address)
    after = None if params.after is None else Position.parse(params.after, context.store.epoch)
    if after is not None and after.walk != "a":
        raise errors.BadCursor(value=params.after)
    end = _end(clock.duration(params.timeout, most=LONGEST_WAIT))
    return _waited(context, caller, await _wait(context, caller, owner, after, end), params.after)


@operation(
    "envelope.watch",
    level=Level.RESTRICTED,
    waits=True,
    params=Wait,
    result=Waited,
    errors=(*_ERRORS, errors.AlreadyWatched),
)
async def watch(context: Context, caller: Caller, params: Wait) -> Waited:
    """The same for one watcher at a time, with a digest of what came."""
    owner = acting_for(context.store, caller, params.address)
    with context.waiters.only_watcher(owner, params.address or str(caller.address)):
        waited: Waited = await wait(context, caller, params)
    waited["digest"] = rendering.digest(waited["envelopes"], context.zone)
    return waited


@operation(
    "envelope.poll",
    level=Level.RESTRICTED,
    waits=True,
    params=Poll,
    result=Waited,
    errors=(errors.BadDuration, errors.TooLarge, errors.BadText, errors.Stopping),
)
async def poll(context: Context, caller: Caller, params: Poll) -> Waited:
    """What was not announced to this agent and session before; the daemon remembers how far it was told."""
    context.settings.check_word("session", params.session)
    patience = 0 if params.wait is None else clock.duration(params.wait, most=LONGEST_WAIT)
    end = _end(patience)
    while True:
        before = context.store.read(lambda c: poll_positions.get(c, caller.id, params.session))
        found = await _wait(context, caller, caller.id, Position(walk="a", number=before), end)
        # Before it is answered: what is announced twice wakes somebody for nothing.
        if not found.ids or await _announced(context, caller, params.session, before, found):
            return _waited(context, caller, found, None)


async def _announced(context: Context, caller: Caller, session: str, before: int, found: paging.Page) -> bool:
    """Whether this is the poll that tells of it; of several at once only one is."""
    now = clock.now()
    last = context.store.read(lambda c: paging.arrived_of(c, found.ids[-1]))
    return await context.write(
        caller, lambda tx: poll_positions.advance(tx, caller.id, session, (before, last), now)
    )


def _end(patience_ms: int) -> float:
    """When a wait is over, by the loop's clock."""
    return asyncio.get_running_loop().time() + patience_ms / 1000


async def _wait(
    context: Context, caller: Caller, owner: int, after: Position | None, end: float
) -> paging.Page:
    """Look, and look again whenever something came for the owner, until the time is up."""
    loop = asyncio.get_running_loop()
    query = paging.Query(
        owner=owner,
        unread=True,
        due=True,
        statuses=(Status.PENDING, Status.DONE),
        oldest_first=True,
        limit=min(context.settings.page_size, DIGEST_MESSAGES),
        after=after,
    )
    with context.waiters.waiting(owner) as bell:
        while True:
            page = context.store.read(lambda c: paging.page(c, query))
            if page.ids or loop.time() >= end:
                return page
            if not await context.waiters.wait(bell, end - loop.time()):
                return paging.Page(ids=[], next=None)
            context.auth.recheck(caller)


def _waited(context: Context, caller: Caller, found: paging.Page, after: str | None) -> Waited:
    place = after
    if found.ids:
        last = context.store.read(lambda c: paging.arrived_of(c, found.ids[-1]))
        place = Position(walk="a", number=last).text(context.store.epoch)
    return {
        "envelopes": envelopes_json(context, found.ids, caller.sees),
        "next": place,
        "timed_out": not found.ids,
        "timezone": context.timezone,
    }
