"""Operations about a conversation with somebody: what was said, and following it live."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.ids import LARGEST
from ..store import conversations, run_history
from . import agent_status, runs
from .addresses import acting_for, address_id
from .auth import Caller
from .context import Context
from .envelopes import envelopes_json, page_size
from .operation import Level, Params, operation

LONGEST_WAIT = 3_600_000


class With(Params):
    other: str = Field(alias="with", description="the other one, like agent:nex")
    address: str | None = Field(None, description="whose conversation (for the boss)")


class Messages(With):
    before: int | None = Field(None, ge=0, le=LARGEST, description="only what was said before this number")
    page_size: int | None = None


class Said(TypedDict):
    conversation: str | None
    envelopes: list[envelope_json.EnvelopeJson]
    last: int  # the number of the last message; 0: nothing was said yet
    more: bool
    timezone: str


class Follow(With):
    after: int = Field(
        0, ge=0, le=LARGEST, description="the `last` of the answer before; 0: from the beginning"
    )
    run: str | None = Field(None, description="the `id` of the run seen last")
    parts: int = Field(0, ge=0, le=LARGEST, description="the `next` of that run")
    state: Literal["running", "idle", "retrying", "paused", "waiting"] | None = Field(
        None, description="the `state` seen last; another one is news"
    )
    timeout: str = Field("55s", description="how long to wait for more, like 55s")


class Live(TypedDict):
    """What the other one is doing for this conversation just now."""

    id: str
    started_at: str
    paused: bool
    parts: list[runs.Part]
    next: int


class Followed(TypedDict):
    conversation: str | None
    envelopes: list[envelope_json.EnvelopeJson]
    last: int
    run: Live | None
    state: str | None  # of an agent: running, idle, retrying, paused, waiting
    why: str | None
    timezone: str


_ERRORS = (errors.BadAddress, errors.UnknownAddress, errors.BossOnly)


@operation(
    "conversation.messages",
    level=Level.RESTRICTED,
    params=Messages,
    result=Said,
    errors=(*_ERRORS, errors.InvalidParams),
)
async def messages(context: Context, caller: Caller, params: Messages) -> Said:
    """The latest of what was said between two, oldest first; looking marks nothing as read."""
    own, other = _parties(context, caller, params)
    limit = page_size(context, params.page_size)
    found = context.store.read(lambda c: conversations.between(c, (own, other)))
    if found is None:
        return {"conversation": None, "envelopes": [], "last": 0, "more": False, "timezone": context.timezone}
    said = context.store.read(lambda c: conversations.before(c, found["id"], params.before, limit + 1))
    return {
        "conversation": f"c{found['id']}",
        "envelopes": envelopes_json(context, [number for _, number in said[-limit:]], caller.sees),
        "last": said[-1][0] if said else 0,
        "more": len(said) > limit,
        "timezone": context.timezone,
    }


@operation(
    "conversation.follow",
    level=Level.RESTRICTED,
    waits=True,
    params=Follow,
    result=Followed,
    errors=(*_ERRORS, errors.BadDuration, errors.BadId, errors.Stopping),
)
async def follow(context: Context, caller: Caller, params: Follow) -> Followed:
    """Answer when something was said, when the other one begins, goes on or ends, or at the time limit."""
    own, other = _parties(context, caller, params)
    seconds = clock.duration(params.timeout, most=LONGEST_WAIT) / 1000
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    seen = None if params.run is None else ids.number(params.run, "run")
    with context.waiters.waiting(own, other, -other) as bell:
        while True:
            found = _look(context, caller, (own, other), params, seen)
            live = found["run"]
            changed = (None if live is None else live["id"]) != (None if seen is None else f"r{seen}")
            changed = changed or (params.state is not None and params.state != found["state"])
            if found["envelopes"] or changed or (live is not None and live["parts"]):
                return found
            if loop.time() >= end or not await context.waiters.wait(bell, end - loop.time()):
                return found
            context.auth.recheck(caller)


def _look(
    context: Context, caller: Caller, parties: tuple[int, int], params: Follow, seen: int | None
) -> Followed:
    _, other = parties
    found = context.store.read(lambda c: conversations.between(c, parties))
    said: list[tuple[int, int]] = []
    live: Live | None = None
    if found is not None:
        limit = context.settings.page_size_limit
        said = context.store.read(lambda c: conversations.after(c, found["id"], params.after, limit))
        live = _live(context, other, found["id"], params, seen)
    state, why = context.store.read(lambda c: agent_status.state_of(c, other))
    return {
        "conversation": None if found is None else f"c{found['id']}",
        "envelopes": envelopes_json(context, [number for _, number in said], caller.sees),
        "last": said[-1][0] if said else params.after,
        "run": live,
        "state": state,
        "why": why,
        "timezone": context.timezone,
    }


def _live(context: Context, other: int, conversation: int, params: Follow, seen: int | None) -> Live | None:
    row = context.store.read(lambda c: run_history.in_conversation(c, other, conversation))
    work = None if row is None else context.runner.execution(row["id"])
    if row is None or work is None:
        return None
    parts, place = work.live_output.after(params.parts if seen == row["id"] else 0)
    return {
        "id": f"r{row['id']}",
        "started_at": clock.iso(row["started_at"]),
        "paused": row["paused_at"] is not None,
        "parts": [{"kind": part.kind, "text": part.text} for part in parts],
        "next": place,
    }


def _parties(context: Context, caller: Caller, params: With) -> tuple[int, int]:
    own = acting_for(context.store, caller, params.address)
    return own, address_id(context.store, params.other)
