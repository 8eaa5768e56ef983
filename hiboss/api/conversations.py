"""Operations about a conversation between two: its messages, and following it live."""

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
from .envelopes import envelopes_json
from .operation import Level, Params, operation
from .request_limits import deadline, page_size


class Parties(Params):
    other: str = Field(alias="with", description="the other party, like agent:nex or nex")
    address: str | None = Field(None, description="whose conversation (only for the boss)")


class Messages(Parties):
    before: int | None = Field(None, ge=0, le=LARGEST, description="only messages before this number")
    page_size: int | None = None


class MessagePage(TypedDict):
    conversation: str | None  # null: they have not written to each other yet
    envelopes: list[envelope_json.EnvelopeJson]
    last: int  # the sequence number of the last message; 0: there is none
    more: bool  # whether there are earlier messages
    timezone: str


class Follow(Parties):
    after: int = Field(
        0, ge=0, le=LARGEST, description="the `last` of the previous answer; 0: from the first message"
    )
    run: str | None = Field(None, description="the `id` of the run in the previous answer")
    parts: int = Field(0, ge=0, le=LARGEST, description="the `next` of that run")
    state: Literal["running", "idle", "retrying", "paused", "waiting"] | None = Field(
        None, description="the `state` in the previous answer; a different one is answered at once"
    )
    timeout: str = Field("55s", description="how long to wait for news, like 55s")


class LiveRun(TypedDict):
    """A run of the other party for this conversation that is under way."""

    id: str
    started_at: str
    paused: bool
    parts: list[runs.OutputPart]  # its output since the previous answer
    next: int  # to be given as `parts` in the next call


class ConversationUpdate(TypedDict):
    conversation: str | None
    envelopes: list[envelope_json.EnvelopeJson]  # the messages after `after`
    last: int  # to be given as `after` in the next call
    run: LiveRun | None
    state: str | None  # of an agent: running, idle, retrying, paused, waiting
    why: str | None  # the reason of the state
    timezone: str


_ERRORS = (errors.BadAddress, errors.UnknownAddress, errors.BossOnly)


@operation(
    "conversation.messages",
    level=Level.RESTRICTED,
    params=Messages,
    result=MessagePage,
    errors=(*_ERRORS, errors.InvalidParams),
)
def messages(context: Context, caller: Caller, params: Messages) -> MessagePage:
    """List the latest messages between two, oldest first; it marks nothing as read."""
    own, other = _parties(context, caller, params)
    limit = page_size(context, params.page_size)
    found = context.store.read(lambda c: conversations.between(c, (own, other)))
    if found is None:
        return {"conversation": None, "envelopes": [], "last": 0, "more": False, "timezone": context.timezone}
    latest = context.store.read(lambda c: conversations.before(c, found["id"], params.before, limit + 1))
    # From the last one back: if a page cannot show all, it leaves out the first ones.
    shown = envelopes_json(context, [envelope for _, envelope in reversed(latest[-limit:])], caller.sees)
    return {
        "conversation": f"c{found['id']}",
        "envelopes": shown[::-1],
        "last": latest[-1][0] if latest else 0,
        "more": len(latest) > len(shown),
        "timezone": context.timezone,
    }


@operation(
    "conversation.follow",
    level=Level.RESTRICTED,
    waits=True,
    params=Follow,
    result=ConversationUpdate,
    errors=(*_ERRORS, errors.BadDuration, errors.BadId, errors.Stopping),
)
async def follow(context: Context, caller: Caller, params: Follow) -> ConversationUpdate:
    """Wait for a message, or for output or a new state of the other party, until the time limit."""
    own, other = _parties(context, caller, params)
    loop, end = asyncio.get_running_loop(), deadline(params.timeout)
    seen = None if params.run is None else ids.number(params.run, "run")
    with context.waiters.waiting(own, other, -other) as bell:
        while True:
            found = context.store.read(lambda _: _read_update(context, caller, (own, other), params, seen))
            live = found["run"]
            changed = (None if live is None else live["id"]) != (None if seen is None else f"r{seen}")
            changed = changed or (params.state is not None and params.state != found["state"])
            if found["envelopes"] or changed or (live is not None and live["parts"]):
                return found
            if loop.time() >= end or not await context.waiters.wait(bell, end - loop.time()):
                return found
            context.auth.recheck(caller)


def _read_update(
    context: Context, caller: Caller, parties: tuple[int, int], params: Follow, seen: int | None
) -> ConversationUpdate:
    _, other = parties
    found = context.store.read(lambda c: conversations.between(c, parties))
    arrived: list[tuple[int, int]] = []  # sequence number and envelope id
    live: LiveRun | None = None
    if found is not None:
        limit = context.settings.page_size_limit
        arrived = context.store.read(lambda c: conversations.after(c, found["id"], params.after, limit))
        live = _live_run(context, caller, other, found["id"], params, seen)
    state, why = context.store.read(lambda c: agent_status.state_of(c, other))
    shown = envelopes_json(context, [envelope for _, envelope in arrived], caller.sees)
    return {
        "conversation": None if found is None else f"c{found['id']}",
        "envelopes": shown,
        "last": arrived[len(shown) - 1][0] if shown else params.after,
        "run": live,
        "state": state,
        # It may quote what a run is about, so it is only for the agent itself and the boss.
        "why": why if caller.is_boss or caller.id == other else None,
        "timezone": context.timezone,
    }


def _live_run(
    context: Context, caller: Caller, other: int, conversation: int, params: Follow, seen: int | None
) -> LiveRun | None:
    """Return the run of the other party for this conversation, with its output since the run last seen.

    The output of an agent that sends its answers itself is for nobody but the boss.
    """
    row = context.store.read(lambda c: run_history.in_conversation(c, other, conversation))
    execution = None if row is None else context.runner.execution(row["id"])
    if row is None or execution is None or not (caller.is_boss or execution.turn.reply == "auto"):
        return None
    parts, position = execution.live_output.after(params.parts if seen == row["id"] else 0)
    return {
        "id": f"r{row['id']}",
        "started_at": clock.iso(row["started_at"]),
        "paused": row["paused_at"] is not None,
        "parts": [{"kind": part.kind, "text": part.text} for part in parts],
        "next": position,
    }


def _parties(context: Context, caller: Caller, params: Parties) -> tuple[int, int]:
    """Return the address ids of both parties, the caller's side first."""
    own = acting_for(context.store, caller, params.address)
    return own, address_id(context.store, params.other)
