"""Operations that wait for mail. They change nothing but the position of a poll."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Annotated, NamedTuple, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids, rendering
from ..core.envelope import Box, Status
from ..store import breaker_holds, paging, poll_positions, readings
from ..store.connection import Connection
from ..store.envelope_walks import UNREAD
from ..store.group_commit import Tx
from ..store.paging import Position
from .addresses import acting_for
from .auth import Caller
from .context import Context
from .envelopes import envelopes_json
from .operation import Level, Nothing, Params, Timezone, operation
from .param_sizes import Word
from .request_limits import deadline

MESSAGES_PER_ANSWER = 10  # at most in one answer; its cursor skips none that it does not show


class Wait(Params):
    timeout: str = Field("55s", description="how long to wait at most, like 55s")
    after: str | None = Field(None, description="the `next` of the previous answer: only what arrived later")
    address: str | None = Field(None, description="whose inbox (only for the boss)")


class WaitResult(TypedDict):
    envelopes: Annotated[
        list[envelope_json.EnvelopeJson],
        Field(description="unread ones that are due, oldest first; at most ten"),
    ]
    next: Annotated[str | None, Field(description="to be given as `after` in the next call")]
    timed_out: Annotated[bool, Field(description="true: nothing came in time")]
    timezone: Timezone
    digest: NotRequired[Annotated[str, Field(description="of envelope.watch: the envelopes as one text")]]


class Poll(Params):
    wait: str | None = Field(None, description="how long to wait for mail, like 55s; default: do not wait")
    session: Word = Field("", description="a name for one of several sessions of an agent; each is told once")


class Heartbeat(TypedDict):
    address: Annotated[str, Field(description="the caller's")]
    at: Annotated[str, Field(description="the time noted")]
    timezone: Timezone


_ERRORS = (
    errors.BadDuration,
    errors.BadCursor,
    errors.Gap,
    errors.BadAddress,
    errors.UnknownAddress,
    errors.BossOnly,
    errors.Stopping,
)


@operation("agent.heartbeat", level=Level.RESTRICTED, effect="idempotent", result=Heartbeat)
def heartbeat(context: Context, caller: Caller, params: Nothing) -> Heartbeat:
    """Report that the caller is alive. Every other call does so too."""
    return {"address": str(caller.address), "at": clock.iso(clock.now()), "timezone": context.timezone}


@operation(
    "envelope.wait",
    level=Level.RESTRICTED,
    effect="read",
    waits=True,
    params=Wait,
    result=WaitResult,
    errors=_ERRORS,
)
async def wait(context: Context, caller: Caller, params: Wait) -> WaitResult:
    """Wait until an unread envelope is due in the inbox, or until the time limit; it changes nothing."""
    owner = acting_for(context.store, caller, params.address)
    after = None if params.after is None else Position.parse(params.after, context.store.epoch)
    if after is not None and after.of == Box.INBOX.word:  # a list of the inbox ended there
        after = after._replace(of=UNREAD)
    if after is not None:
        after.check(UNREAD, "a")
    found = await _wait(context, caller, owner, after, deadline(params.timeout))
    return _result(context, found, params.after)


@operation(
    "envelope.watch",
    level=Level.RESTRICTED,
    effect="read",
    waits=True,
    params=Wait,
    result=WaitResult,
    errors=(*_ERRORS, errors.AlreadyWatched),
)
async def watch(context: Context, caller: Caller, params: Wait) -> WaitResult:
    """Wait as envelope.wait does, with a digest of what came. Only one watcher per inbox is allowed."""
    owner = acting_for(context.store, caller, params.address)
    with context.waiters.only_watcher(owner, params.address or str(caller.address)):
        result: WaitResult = await wait(context, caller, params)
    result["digest"] = rendering.digest(result["envelopes"], clock.zone(result["timezone"]))
    return result


@operation(
    "envelope.poll",
    level=Level.RESTRICTED,
    effect="change",
    waits=True,
    params=Poll,
    result=WaitResult,
    errors=(errors.BadDuration, errors.TooLarge, errors.BadText, errors.Stopping),
)
async def poll(context: Context, caller: Caller, params: Poll) -> WaitResult:
    """Return the envelopes that this session was not told of before. The daemon remembers the position."""
    context.settings.check_word("session", params.session)
    end = asyncio.get_running_loop().time() if params.wait is None else deadline(params.wait)
    while True:
        before = context.store.read(lambda c: poll_positions.get(c, caller.id, params.session))
        found = await _wait(context, caller, caller.id, Position(walk="a", number=before, of=UNREAD), end)
        # The position is written before the answer: telling twice would wake a session for nothing.
        shown = [ids.number(one["id"], "envelope") for one in found.envelopes]
        if not shown or await _advance(context, caller, params.session, (before, found.last), shown):
            return _result(context, found, None)


async def _advance(
    context: Context, caller: Caller, session: str, step: tuple[int, int], shown: list[int]
) -> bool:
    """Move the session's position past what was found. False: another poll of this session did so first.

    Who was shown it is kept (read_by). It stays unread: only who has the answer can say that it was read.
    """
    now = clock.now()

    def write(tx: Tx) -> bool:
        first = poll_positions.advance(tx, caller.id, session, step, now)
        if first:
            readings.note_shown(tx, shown, caller.id, session or caller.session, now)
        return first

    return await context.write(caller, write)


class _Found(NamedTuple):
    envelopes: list[envelope_json.EnvelopeJson]
    last: int  # the arrival number of the last one
    timezone: str


async def _wait(context: Context, caller: Caller, owner: int, after: Position | None, end: float) -> _Found:
    """Return unread due envelopes as soon as there are some, at most a page; none at the end.

    While the breaker is pulled an agent gets none.
    """
    loop = asyncio.get_running_loop()
    query = paging.Query(
        owner=owner,
        unread=True,
        due=True,
        statuses=(Status.PENDING, Status.DONE),
        oldest_first=True,
        limit=min(context.settings.page_size, MESSAGES_PER_ANSWER),
        after=after,
    )

    def look(connection: Connection) -> _Found:
        if breaker_holds.holds_mail(connection, caller.id):
            return _Found([], 0, context.timezone)
        page = paging.page(connection, query)
        shown = envelopes_json(context, page.ids, caller)
        last = page.found[len(shown) - 1][1].number if shown else 0
        return _Found(shown, last, context.timezone)

    here = context.presence.waiting(caller.id) if caller.kind == "agent" else nullcontext()
    with context.waiters.waiting(owner) as bell, here:
        while True:
            found = context.store.read(look)
            if found.envelopes or loop.time() >= end:
                return found
            if not await context.waiters.wait(bell, end - loop.time()):
                return found
            context.auth.recheck(caller)


def _result(context: Context, found: _Found, after: str | None) -> WaitResult:
    position = after
    if found.envelopes:
        position = Position(walk="a", number=found.last, of=UNREAD).text(context.store.epoch)
    return {
        "envelopes": found.envelopes,
        "next": position,
        "timed_out": not found.envelopes,
        "timezone": found.timezone,
    }
