"""Operations about controls: send one about what runs or waits, and list those that were sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.envelope import Priority
from ..core.errors import InvalidParams
from ..core.quoting import redact, redact_all
from ..store import agents, control_parties, controls
from ..store.connection import Connection, Row
from ..store.controls import PREFIX, Order
from . import control_rights
from .addresses import address_id
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, Timezone, operation
from .param_sizes import Size, Word
from .request_limits import page_size
from .send_shapes import not_too_deep

Event = Literal[
    "stream.pause",
    "stream.resume",
    "stream.cancel",
    "stream.preempt",
    "stream.priority",
    "stream.route",
    "stream.handoff",
]
NOBODY = 0  # as an address id
TARGETS = ("agent", "run", "conversation", "envelope")
# The targets of each event, of which one is named. An envelope may stand beside another one for some.
_TARGETS: dict[str, tuple[str, ...]] = {
    "pause": TARGETS,
    "resume": TARGETS,
    "cancel": TARGETS,
    "preempt": TARGETS,
    "priority": ("envelope",),
    "route": ("agent", "conversation", "envelope"),
    "handoff": ("conversation",),
}
_BESIDE = ("preempt",)  # an envelope says for what; another target, which run
_OF_AGENT = ("route", "handoff")  # an agent beside a conversation says whose mail there is meant
_NEEDS = {"preempt": "envelope", "priority": "level", "route": "to", "handoff": "to"}
_ONLY = {"to": ("route", "handoff"), "level": ("priority",), "requeue": ("cancel",)}


class Send(Params):
    event: Event = Field(description="what to do")
    agent: str | None = Field(None, description="all runs of this agent, and the agent itself, by its name")
    run: Id | None = Field(None, description="this run, like r9")
    conversation: Id | None = Field(None, description="what works for this conversation, like c4")
    envelope: Id | None = Field(None, description="what works on this envelope, or the envelope, like e81")
    to: str | None = Field(None, description="of route and handoff: who gets it, like agent:kai or user:ann")
    level: Literal["critical", "high", "normal", "low"] | None = Field(
        None, description="of priority: the new priority"
    )
    reason: Word | None = Field(None, description="shown with the control, and with a run that it ends")
    meta: Annotated[
        dict[str, Any], AfterValidator(not_too_deep), Size(text="metadata_bytes", values="metadata_bytes")
    ] = Field({}, description="your own data, stored with the record; `control` is taken")
    requeue: bool = Field(False, description="of cancel: what the run works on is due again")


class ControlSent(TypedDict):
    outcome: Annotated[
        str, Field(description="applied; too-late: nothing runs there; refused: it cannot be done")
    ]
    why: Annotated[str | None, Field(description="why it was not applied, or a remark")]
    message: Annotated[str, Field(description="the id of the message with the record, like m57")]


class List(Params):
    agent: str | None = Field(None, description="only those about this agent, by its name")
    conversation: Id | None = Field(None, description="only those in this conversation, like c4")
    actor: str | None = Field(None, description="only those that this address sent, like user:boss")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    after: int | None = Field(None, ge=1, le=ids.LARGEST, description="the `next` of the previous page")


class ControlJson(TypedDict):
    event: Annotated[str, Field(description="like stream.pause")]
    outcome: Annotated[str, Field(description="applied, too-late, refused")]
    why: Annotated[str | None, Field(description="why it was not applied, or a remark")]
    actor: Annotated[str, Field(description="who sent it")]
    agent: Annotated[str | None, Field(description="the agent it was about")]
    run: Annotated[str | None, Field(description="the run that was named")]
    conversation: Annotated[str | None, Field(description="where its record is")]
    envelope: Annotated[str | None, Field(description="the envelope that was named")]
    to: Annotated[str | None, Field(description="of route and handoff")]
    reason: Annotated[str | None, Field(description="that the actor gave; null: none, or it is not for you")]
    message: Annotated[str, Field(description="the id of the message with the record")]
    at: Annotated[str, Field(description="when it was sent")]


class ControlList(TypedDict):
    controls: Annotated[list[ControlJson], Field(description="newest first")]
    next: Annotated[
        int | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    timezone: Timezone


@operation(
    "control.send",
    level=Level.RESTRICTED,
    effect="change",
    params=Send,
    result=ControlSent,
    errors=(
        errors.NotFound,
        errors.UnknownAgent,
        errors.UnknownAddress,
        errors.BadAddress,
        errors.BadId,
        errors.BadText,
        errors.TooLarge,
        errors.BossOnly,
    ),
)
async def send(context: Context, caller: Caller, params: Send) -> ControlSent:
    """Control what runs or waits; what came of it is stored as a message of the type event.

    It needs the right control.interrupt, or control.route for route and handoff. Who wrote all that a run
    works on may always pause, resume and cancel it, and who got a conversation by a handoff give it back.
    """
    event = params.event.removeprefix(PREFIX)
    _check_params(event, params)
    to = None if params.to is None else _destination(context, caller, event, params.to)
    order = Order(
        event=event,
        actor=caller.id,
        by=caller.name,
        agent=None if params.agent is None else _agent(context, params.agent),
        run=None if params.run is None else ids.number(params.run, "run"),
        conversation=None if params.conversation is None else ids.number(params.conversation, "conversation"),
        envelope=None if params.envelope is None else ids.number(params.envelope, "envelope"),
        to=to,
        level=None if params.level is None else Priority[params.level.upper()],
        reason=redact(context.settings.check_word("reason", params.reason or "")).strip() or None,
        meta=_meta(context, params.meta),
        requeue=params.requeue,
        is_boss=caller.is_boss,
        check=control_rights.check(context, caller, event, to),
    )
    outcome = await context.controls.send(order)
    return {"outcome": outcome.outcome, "why": outcome.why, "message": f"m{outcome.message}"}


def _check_params(event: str, params: Send) -> None:
    """Raise unless the parameters fit the event: one target, and what the event needs."""
    named = [name for name in TARGETS if getattr(params, name) is not None]
    known = _TARGETS[event]
    if event in _OF_AGENT and params.conversation is not None and "agent" in named:
        named.remove("agent")
    for name in named:
        if name not in known:
            raise InvalidParams(detail=f"{event} takes no {name}; name one of: {', '.join(known)}")
    for name, takes in _ONLY.items():
        if getattr(params, name) not in (None, False) and event not in takes:
            raise InvalidParams(detail=f"{event} takes no {name}; {' and '.join(takes)} take it")
    needed = _NEEDS.get(event)
    if needed is not None and getattr(params, needed) is None:
        raise InvalidParams(detail=f"{event} needs {needed} (--{needed})")
    targets = [name for name in named if not (name == "envelope" and event in _BESIDE and len(named) > 1)]
    if len(targets) != 1:
        raise InvalidParams(detail=f"{event} is about exactly one of: {', '.join(known)}")


def _agent(context: Context, name: str) -> int:
    bare = name.removeprefix("agent:")
    return int(context.store.read(lambda c: agents.get(c, bare))["id"])


def _destination(context: Context, caller: Caller, event: str, to: str) -> int:
    """Return the address id of who gets it. Whom there is, is not for those who may not send it anybody."""
    try:
        return address_id(context.store, caller, to)
    except errors.UnknownAddress:
        try:
            control_rights.check_right(context, caller, event)
        except errors.Forbidden:
            return NOBODY  # the check of the order then says what it says of everybody
        raise


def _meta(context: Context, given: dict[str, Any]) -> dict[str, Any] | None:
    if "control" in given:
        raise InvalidParams(detail="meta: control is the record itself; use another name")
    if (size := len(orjson.dumps(given))) > context.settings.metadata_bytes:
        limit = str(context.settings.metadata_bytes)
        raise errors.TooLarge(what="meta", size=f"{size} bytes", limit=limit, advice="")
    return redact_all(given) or None


@operation(
    "control.list",
    level=Level.RESTRICTED,
    effect="read",
    params=List,
    result=ControlList,
    errors=(
        errors.NotFound,
        errors.UnknownAgent,
        errors.UnknownAddress,
        errors.BadAddress,
        errors.BadId,
    ),
)
async def listed(context: Context, caller: Caller, params: List) -> ControlList:
    """List controls, newest first. The boss sees all, others those about them or in their conversations."""
    limit = page_size(context, params.page_size)
    agent = None if params.agent is None else _agent(context, params.agent)
    actor = None if params.actor is None else address_id(context.store, caller, params.actor)
    number = None if params.conversation is None else ids.number(params.conversation, "conversation")

    def read(connection: Connection) -> ControlList:
        if number is not None and not (
            caller.is_boss or control_parties.is_party(connection, caller.id, number)
        ):
            raise errors.NotFound(what="conversation", value=f"c{number}")
        page = controls.page(
            connection,
            agent=agent,
            conversation=number,
            actor=actor,
            viewer=caller.sees,
            before=params.after,
            limit=limit,
        )
        return {
            "controls": [_json(row, caller) for row in page.rows],
            "next": int(page.rows[-1]["id"]) if page.more else None,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _json(row: Row, caller: Caller) -> ControlJson:
    """Return a control as JSON. Its reason is for those whom it concerns, and not for all parties there."""
    concerned = caller.is_boss or caller.id in (row["actor"], row["agent"], row["destination"])

    def named(letter: str, column: str) -> str | None:
        return None if row[column] is None else f"{letter}{row[column]}"

    return {
        "event": PREFIX + row["event"],
        "outcome": row["outcome"],
        "why": row["why"],
        "actor": row["actor_address"],
        "agent": row["agent_address"],
        "run": named("r", "run"),
        "conversation": named("c", "conversation"),
        "envelope": named("e", "envelope"),
        "to": row["destination_address"],
        "reason": row["reason"] if concerned else None,
        "message": f"m{row['message']}",
        "at": clock.iso(row["at"]),
    }
