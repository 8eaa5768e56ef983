"""Operations of senders: send a message, retry and cancel envelopes."""

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
from ..store import ask_mail, attached_turns, envelopes, post_changes, posts
from ..store.group_commit import Tx
from .addresses import resolve
from .auth import Caller
from .context import Context
from .operation import SOCKET_ONLY, ChangedCount, Ids, Level, Params, operation
from .param_sizes import Line, Size, Text, Word

_KINDS = {kind.word: kind for kind in Kind}  # dictionaries, since every send looks here
_PRIORITIES = {priority.word: priority for priority in Priority}
_PARSE_MODES = {None: None, "plain": Kind.TEXT, "markdown": Kind.MARKDOWN, "html": Kind.HTML}
METADATA_DEPTH = 32


def not_too_deep(metadata: dict[str, Any]) -> dict[str, Any]:
    """Refuse deep nesting: orjson writes 254 levels, so deeper metadata could be stored and never shown."""
    level: list[Any] = [metadata]
    for _ in range(METADATA_DEPTH):
        nested = [one for one in level if isinstance(one, (dict, list))]
        level = [child for one in nested for child in (one.values() if isinstance(one, dict) else one)]
    if any(isinstance(one, (dict, list)) for one in level):
        raise ValueError(f"it is nested deeper than {METADATA_DEPTH} levels")
    return metadata


class Send(Params):
    to: Annotated[str | list[str], Size(values="recipients")] = Field(
        default_factory=list, description="one or more addresses or names"
    )
    text: Text = Field("", description="what to say; it may be empty if files are attached")
    subject: Line | None = Field(None, description="a line above the text")
    type: Literal["text", "markdown", "json", "html"] = Field(
        "text", description="how the text is to be read"
    )
    parse_mode: Literal["plain", "markdown", "html"] | None = Field(
        None, description="how channels are to read the text of this message, in place of its type"
    )
    priority: Literal["critical", "high", "normal", "low"] = Field(
        "normal", description="higher mail is delivered first"
    )
    attachments: Annotated[list[str], Size(values="attachments")] = Field(
        default_factory=list,
        description="absolute paths of files to send with it",
        json_schema_extra=SOCKET_ONLY,
    )
    deliver_at: str | None = Field(
        None, description="when to deliver: +2h, an ISO 8601 time, or a time in the boss's zone"
    )
    reply_to: str | int | None = Field(None, description="e81 or m57; without `to` it goes to its sender")
    interruptible: bool = Field(True, description="false: do not interrupt the run that works on it")
    trace_id: Word | None = Field(None, description="your own name for its trace, to find its runs by")
    metadata: Annotated[
        dict[str, Any], AfterValidator(not_too_deep), Size(text="metadata_bytes", values="metadata_bytes")
    ] = Field(default_factory=dict, description="your own JSON object; hiboss only keeps it")
    key: Word | None = Field(
        None, min_length=1, description="a repeated request with the same key sends nothing"
    )
    sender: str | None = Field(
        None, alias="from", description="the sender (only for the boss; default user:boss)"
    )
    from_boss: bool = Field(False, description="mark as written by the boss (only for the boss)")
    from_name: Word | None = Field(None, description="the sender's name as shown (only for the boss)")


class Sent(TypedDict):
    ids: Annotated[list[str], Field(description="of the envelopes, one per recipient")]
    message: Annotated[str, Field(description="its id, like m57: one for all recipients")]
    conversation: Annotated[str, Field(description="the conversation it is in, like c4")]
    thread: Annotated[
        str, Field(description="the thread it is in, like t57: its own, or that of the message it replies to")
    ]
    deliver_at: Annotated[str | None, Field(description="when it is delivered; null: now")]
    timezone: NotRequired[Annotated[str, Field(description="the boss's zone, with a deliver_at")]]
    duplicate: Annotated[
        bool, Field(description="true: this key was used before, and this is the first answer again")
    ]


@operation(
    "envelope.send",
    level=Level.STANDARD,
    effect="change",
    together=True,
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
    """Send a message to one or more addresses; it is on disk when this answers."""
    draft = draft_of(context, caller, params)

    def check(tx: Tx) -> None:
        context.auth.check(tx, caller)
        if caller.attached is not None and caller.run is None and draft.reply_to is not None:
            attached_turns.answer_by_hand(tx, caller.id, draft.reply_to, clock.now())

    accepted = await context.router.accept(draft, params.attachments, check)
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
    """Return the draft that a request asks for. Without a caller, `sender` was checked before."""
    to = [params.to] if isinstance(params.to, str) else params.to
    deliver_at = None
    if params.deliver_at is not None:
        deliver_at = clock.deliver_at(params.deliver_at, now=clock.now(), zone=context.zone)
    from_ = parse_address(sender) if caller is None and sender else _sender(context, caller, params)
    return Draft(
        sender=from_,
        caller=None if caller is None else caller.id,
        sees_all=caller is None or caller.is_boss,
        to=tuple([resolve(context.store, address, UnknownRecipient) for address in to]),
        text=params.text,
        subject=params.subject,
        kind=_KINDS[params.type],
        parse_mode=_PARSE_MODES[params.parse_mode],
        priority=_PRIORITIES[params.priority],
        deliver_at=deliver_at,
        reply_to=None if params.reply_to is None else ids.parse(params.reply_to, "envelope", "message"),
        interruptible=params.interruptible,
        from_boss=params.from_boss or from_ == BOSS,
        from_name=params.from_name,
        run=None if caller is None else caller.run,
        trace=_trace(caller, params.trace_id),
        named=params.trace_id is not None and (caller is None or caller.run is None),
        hops=caller.hops + 1 if caller is not None and caller.run is not None else 0,
        metadata=params.metadata,
        key=params.key,
        digest=_digest(params) if params.key is not None else None,
    )


def _sender(context: Context, caller: Caller | None, params: Send) -> Address:
    """Return who sends: the caller, or for the boss anybody, by default user:boss."""
    assert caller is not None and caller.address
    given = None if params.sender is None else resolve(context.store, params.sender, UnknownSender)
    if caller.is_boss:
        return BOSS if given is None else given
    own = given is None or given.fold == caller.address.fold
    if not own or params.from_boss or params.from_name is not None:
        raise BossOnly(what="sending for others (from, from_boss, from_name)", caller=caller.name)
    return caller.address


def _trace(caller: Caller | None, given: str | None) -> str | None:
    """Return the trace of a message: in a run the run's, so that no agent can escape its limits.

    Outside a run it is a name that the caller chose (`Draft.named`).
    """
    if caller is None or caller.run is None:
        return given
    if given not in (None, caller.trace):
        detail = (
            f"a message sent in a run has the run's trace, {caller.trace}; leave trace_id (--trace-id) out"
        )
        raise errors.InvalidParams(detail=detail)
    return caller.trace


def _digest(params: Send) -> bytes:
    """Return a digest of the request as it was written: `+2h` is the same a minute later."""
    asked = params.model_dump()
    asked["to"] = [params.to] if isinstance(params.to, str) else params.to
    if params.reply_to is not None:
        asked["reply_to"] = ids.parse(params.reply_to, "envelope", "message")
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()


class ByIds(Params):
    ids: Ids = Field(description="envelopes, like e81; all of them, or with one wrong id none")


@operation(
    "envelope.retry",
    level=Level.STANDARD,
    effect="idempotent",
    params=ByIds,
    result=ChangedCount,
    errors=(errors.NotFound, errors.BadId, errors.TooLate),
)
async def retry(context: Context, caller: Caller, params: ByIds) -> ChangedCount:
    """Retry failed or cancelled envelopes of the caller; an account that was bound again posts them."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> tuple[int, set[Lane]]:
        retried = envelopes.retry(tx, numbers, caller.sees, now)
        post_changes.follow_retried(tx, numbers)
        return retried

    changed, found = await context.write(caller, write)
    context.changes.added()
    context.delivery.wake(found, eager=True)
    context.scheduler.nudge(now)
    return {"changed": changed}


class CancelledCount(ChangedCount):
    partly_posted: Annotated[
        int,
        Field(
            description="how many of them are posted in part: that stays in the chat; to take it back, "
            "delete the message"
        ),
    ]


@operation(
    "envelope.cancel",
    level=Level.STANDARD,
    effect="destructive",
    params=ByIds,
    result=CancelledCount,
    errors=(errors.NotFound, errors.BadId, errors.TooLate, errors.AskFixed),
)
async def cancel(context: Context, caller: Caller, params: ByIds) -> CancelledCount:
    """Cancel envelopes that the caller sent, while nobody holds them."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> CancelledCount:
        changed = envelopes.cancel(tx, numbers, caller.sees, now)
        ask_mail.check_cancel(tx, numbers, caller.id, now, boss=caller.is_boss)
        return {"changed": changed, "partly_posted": posts.begun(tx, numbers)}

    result = await context.write(caller, write)
    context.changes.added()
    return result
