"""Operations about a conversation between two: its messages, and what is new in it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, envelope_json, errors, ids
from ..core.contracts.provider import Progress
from ..core.envelope import Kind
from ..core.ids import LARGEST
from ..store import agents, controls, conversations, run_history
from . import agent_states, runs
from .addresses import acting_for, address_id
from .auth import Caller
from .context import Context
from .envelopes import envelopes_json
from .operation import Level, Params, Timezone, operation
from .request_limits import page_size


class Parties(Params):
    other: str = Field(alias="with", description="the other party, like agent:nex or nex")
    address: str | None = Field(None, description="whose conversation (only for the boss)")


class Messages(Parties):
    before: int | None = Field(None, ge=0, le=LARGEST, description="only messages before this number")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")


class MessagePage(TypedDict):
    conversation: Annotated[str | None, Field(description="null: they have not written to each other yet")]
    envelopes: Annotated[
        list[envelope_json.EnvelopeJson], Field(description="one for each message, oldest first")
    ]
    last: Annotated[int, Field(description="the sequence number of the last message; 0: there is none")]
    more: Annotated[bool, Field(description="whether there are earlier messages")]
    timezone: Timezone


class News(Parties):
    after: int = Field(
        0, ge=0, le=LARGEST, description="the `last` of the previous answer; 0: from the first message"
    )
    run: str | None = Field(None, description="the `id` of the run in the previous answer")
    parts: int = Field(0, ge=0, le=LARGEST, description="the `next` of that run")


class LiveRun(TypedDict):
    """A run of the other party for this conversation that is under way."""

    id: Annotated[str, Field(description="like r9")]
    started_at: Annotated[str, Field(description="when its turn began")]
    paused: Annotated[bool, Field(description="true: its program stands still")]
    parts: Annotated[list[runs.OutputPart], Field(description="its output since the previous answer")]
    next: Annotated[int, Field(description="to be given as `parts` in the next call")]


class ConversationNews(TypedDict):
    conversation: Annotated[str | None, Field(description="null: they have not written to each other yet")]
    envelopes: Annotated[list[envelope_json.EnvelopeJson], Field(description="the messages after `after`")]
    last: Annotated[int, Field(description="to be given as `after` in the next call")]
    more: Annotated[
        bool, Field(description="whether there may be later messages that this answer has no room for")
    ]
    run: Annotated[
        LiveRun | None,
        Field(description="the run of the other party for this conversation; null: none is under way"),
    ]
    state: Annotated[
        str | None, Field(description="of an agent: running, stuck, asks, idle, retrying, paused, waiting")
    ]
    why: Annotated[
        str | None,
        Field(description="the reason of the state; null for others than the boss and the agent itself"),
    ]
    timezone: Timezone


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
    found, guest = context.store.read(lambda c: conversations.shared(c, own, other))
    if found is None:
        return {"conversation": None, "envelopes": [], "last": 0, "more": False, "timezone": context.timezone}
    latest = context.store.read(
        lambda c: conversations.before(c, found["id"], params.before, limit + 1, guest, caller.sees)
    )
    # From the last one back: if a page cannot show all, it leaves out the first ones.
    shown = _shown(context, caller, [envelope for _, envelope in reversed(latest[-limit:])])
    return {
        "conversation": f"c{found['id']}",
        "envelopes": shown[::-1],
        "last": latest[-1][0] if latest else 0,
        "more": len(latest) > len(shown),
        "timezone": context.timezone,
    }


@operation(
    "conversation.news",
    level=Level.RESTRICTED,
    params=News,
    result=ConversationNews,
    errors=(*_ERRORS, errors.BadId),
)
def news(context: Context, caller: Caller, params: News) -> ConversationNews:
    """Show what is new between two: messages, output of a run of the other party, its state.

    event.subscribe tells when to ask again.
    """
    own, other = _parties(context, caller, params)
    seen = None if params.run is None else ids.number(params.run, "run")
    found, guest = context.store.read(lambda c: conversations.shared(c, own, other))
    arrived: list[tuple[int, int]] = []  # sequence number and envelope id
    live: LiveRun | None = None
    if found is not None:
        limit = context.settings.page_size_limit
        arrived = context.store.read(
            lambda c: conversations.after(c, found["id"], params.after, limit, guest, caller.sees)
        )
        live = _live_run(context, caller, other, found["id"], params.parts, seen)
    state, why = context.store.read(lambda c: agent_states.state_of(c, other, agent_states.live_of(context)))
    shown = _shown(context, caller, [envelope for _, envelope in arrived])
    return {
        "conversation": None if found is None else f"c{found['id']}",
        "envelopes": shown,
        "last": arrived[len(shown) - 1][0] if shown else params.after,
        "more": len(shown) < len(arrived) or len(arrived) == context.settings.page_size_limit,
        "run": live,
        "state": state,
        # It may quote what a run is about, so it is only for the agent itself and the boss.
        "why": why if caller.is_boss or caller.id == other else None,
        "timezone": context.timezone,
    }


def _shown(context: Context, caller: Caller, numbers: list[int]) -> list[envelope_json.EnvelopeJson]:
    """Return envelopes as JSON. The reason of a control is for those whom it concerns, not for all."""
    found = envelopes_json(context, numbers, caller.sees)
    for one in found:
        control = (one["metadata"] or {}).get("control") if one["type"] == Kind.EVENT.word else None
        concerned = (one["from"], one["to"], (control or {}).get("to"))
        if control is None or caller.is_boss or str(caller.address) in concerned:
            continue
        one["text"] = controls.without_reason(one["text"], control)
        one["metadata"] = {"control": {**control, "reason": None}}
    return found


def _live_run(
    context: Context, caller: Caller, other: int, conversation: int, after: int, seen: int | None
) -> LiveRun | None:
    """Return the run of the other party for this conversation, with its output after what was seen.

    The output of an agent that sends its answers itself is for nobody but the boss.
    """
    row = context.store.read(lambda c: run_history.in_conversation(c, other, conversation))
    if row is None:
        return None
    execution = context.runner.execution(row["id"])  # none yet: it has just been stored
    agent = context.store.read(lambda c: agents.with_provider(c, other, any_mode=True))
    reply = execution.turn.reply if execution is not None else agent and agent["reply"]
    if not (caller.is_boss or reply == "auto"):
        return None
    position = after if seen == row["id"] else 0
    parts: list[Progress] = []
    if execution is not None:
        parts, position = execution.live_output.after(position)
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
