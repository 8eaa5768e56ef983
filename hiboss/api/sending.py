"""The operation that everything else is for: sending."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from ..core import clock, errors, ids
from ..core.address import BOSS, Address, parse_address
from ..core.envelope import Draft, Kind, Lane, Priority
from ..core.errors import BossOnly, UnknownRecipient, UnknownSender
from ..store import envelopes
from ..store.group_commit import Tx
from .addresses import resolve
from .auth import Caller
from .context import Context
from .envelopes import Ids, Marked
from .operation import Level, Params, operation

_KINDS = {kind.word: kind for kind in Kind}  # a look into a dictionary, where every send passes
_PRIORITIES = {priority.word: priority for priority in Priority}
METADATA_DEPTH = 32


def _not_too_deep(metadata: dict[str, Any]) -> dict[str, Any]:
    """What is nested deeper than orjson writes (254) could be stored and never be shown again."""
    level: list[Any] = [metadata]
    for _ in range(METADATA_DEPTH):
        nested = [one for one in level if isinstance(one, (dict, list))]
        level = [child for one in nested for child in (one.values() if isinstance(one, dict) else one)]
    if any(isinstance(one, (dict, list)) for one in level):
        raise ValueError(f"it is nested deeper than {METADATA_DEPTH} levels")
    return metadata


class Send(Params):
    to: str | list[str] = Field(default_factory=list, description="one or more addresses")
    text: str = ""
    subject: str | None = None
    type: Literal["text", "markdown", "json", "html"] = "text"
    priority: Literal["critical", "high", "normal", "low"] = "normal"
    attachments: list[str] = Field(default_factory=list, description="absolute paths of files to send along")
    deliver_at: str | None = Field(None, description="+2h, an ISO 8601 time, or one in the boss's zone")
    reply_to: str | int | None = Field(None, description="e81 or m57; without `to` it goes to who wrote that")
    interruptible: bool = True
    trace_id: str | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(_not_too_deep)] = Field(default_factory=dict)
    key: str | None = Field(None, min_length=1, description="the same key never sends twice")
    sender: str | None = Field(
        None, alias="from", description="in whose name (for the boss only; user:boss when not given)"
    )
    from_boss: bool = Field(False, description="mark as said by the boss (for the boss only)")
    from_name: str | None = Field(None, description="the name shown (for the boss only)")


class Sent(TypedDict):
    ids: list[str]
    message: str
    conversation: str
    thread: str
    deliver_at: str | None
    timezone: NotRequired[str]  # with a deliver_at, to show it in
    duplicate: bool


@operation(
    "envelope.send",
    level=Level.STANDARD,
    params=Send,
    result=Sent,
    errors=(
        errors.BadAddress,
        errors.BadTime,
        errors.TooFar,
        errors.BadId,
        errors.BadText,
        errors.EmptyMessage,
        errors.NoRecipient,
        errors.UnknownRecipient,
        errors.UnknownSender,
        errors.NotBound,
        errors.NotFound,
        errors.BossOnly,
        errors.InvalidParams,
        errors.NoProvider,
        errors.TooLarge,
        errors.KeyReused,
        errors.AttachmentMissing,
        errors.AttachmentUnreadable,
        errors.AttachmentForbidden,
        errors.AttachmentPrivate,
        errors.Busy,
        errors.StoreFull,
    ),
)
async def send(context: Context, caller: Caller, params: Send) -> Sent:
    """Send a message to one or more addresses; when this answers, it is on disk."""
    draft = draft_of(context, caller, params)
    accepted = await context.router.accept(
        draft, params.attachments, lambda tx: context.auth.check(tx, caller)
    )
    result: Sent = {
        "ids": [f"e{number}" for number in accepted.envelopes],
        "message": f"m{accepted.message}",
        "conversation": f"c{accepted.conversation}",
        "thread": f"t{accepted.thread}",
        "deliver_at": clock.iso_or_none(accepted.deliver_at),
        "duplicate": accepted.duplicate,
    }
    if accepted.deliver_at is not None:
        result["timezone"] = context.timezone
    return result


def draft_of(context: Context, caller: Caller | None, params: Send, *, sender: str | None = None) -> Draft:
    """What a request asks for, as a draft. Without a caller `sender` was checked before."""
    to = [params.to] if isinstance(params.to, str) else params.to
    deliver_at = None
    if params.deliver_at is not None:
        deliver_at = clock.deliver_at(params.deliver_at, now=clock.now(), zone=context.zone)
    speaker = parse_address(sender) if caller is None and sender else _sender(context, caller, params)
    return Draft(
        sender=speaker,
        caller=None if caller is None else caller.id,
        sees_all=caller is None or caller.is_boss,
        to=tuple([resolve(context.store, address, UnknownRecipient) for address in to]),
        text=params.text,
        subject=params.subject,
        kind=_KINDS[params.type],
        priority=_PRIORITIES[params.priority],
        deliver_at=deliver_at,
        reply_to=None if params.reply_to is None else ids.parse(params.reply_to, "envelope", "message"),
        interruptible=params.interruptible,
        from_boss=params.from_boss or speaker == BOSS,
        from_name=params.from_name,
        run=None if caller is None else caller.run,
        trace=_trace(caller, params.trace_id),
        hops=caller.hops + 1 if caller is not None and caller.run is not None else 0,
        metadata=params.metadata,
        key=params.key,
        digest=_digest(params) if params.key is not None else None,
    )


def _sender(context: Context, caller: Caller | None, params: Send) -> Address:
    """The boss may send in anybody's name, and without one sends as user:boss."""
    assert caller is not None and caller.address
    given = None if params.sender is None else resolve(context.store, params.sender, UnknownSender)
    if caller.is_boss:
        return BOSS if given is None else given
    own = given is None or given.fold == caller.address.fold
    if not own or params.from_boss or params.from_name is not None:
        raise BossOnly(what="speaking for others (from, from_boss, from_name)", caller=caller.name)
    return caller.address


def _trace(caller: Caller | None, given: str | None) -> str | None:
    """What is sent in a run belongs to the errand of that run: nobody talks himself out of its guards."""
    if caller is None or caller.run is None:
        return given
    if given not in (None, caller.trace):
        detail = f"what is sent in a run carries its trace, {caller.trace}; leave trace_id (--trace-id) out"
        raise errors.InvalidParams(detail=detail)
    return caller.trace


def _digest(params: Send) -> bytes:
    """Of the request as meant when written: `+2h` asked again a minute later is still the same."""
    asked = params.model_dump()
    asked["to"] = [params.to] if isinstance(params.to, str) else params.to
    if params.reply_to is not None:
        asked["reply_to"] = ids.parse(params.reply_to, "envelope", "message")
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()


class Retry(Params):
    ids: Ids


@operation(
    "envelope.retry",
    level=Level.STANDARD,
    params=Retry,
    result=Marked,
    errors=(errors.NotFound, errors.BadId, errors.TooLate),
)
async def retry(context: Context, caller: Caller, params: Retry) -> Marked:
    """Take up again envelopes one has sent and that have failed."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> tuple[int, set[Lane]]:
        return envelopes.retry(tx, numbers, caller.sees, now)

    changed, found = await context.write(caller, write)
    context.delivery.wake(found, eager=True)
    context.scheduler.nudge(now)
    return {"changed": changed}


class Cancel(Params):
    ids: Ids


@operation(
    "envelope.cancel",
    level=Level.STANDARD,
    params=Cancel,
    result=Marked,
    errors=(errors.NotFound, errors.BadId, errors.TooLate),
)
async def cancel(context: Context, caller: Caller, params: Cancel) -> Marked:
    """Take back envelopes one has sent, while nobody has them in hand."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()
    return {
        "changed": await context.write(caller, lambda tx: envelopes.cancel(tx, numbers, caller.sees, now))
    }
