"""The operation that sends a message: its request becomes a draft, which the router accepts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine
from typing import Any

from ..core import clock, errors, ids
from ..core.address import BOSS, Address, parse_address
from ..core.envelope import Accepted, Draft, Kind, Priority, check_text
from ..core.errors import BossOnly, UnknownRecipient, UnknownSender
from ..store import attached_turns
from ..store.group_commit import Tx
from ..store.planned_writes import PlannedWrite
from .addresses import resolve
from .auth import OWNER, Caller
from .context import Context
from .operation import Level, operation
from .send_shapes import Send, Sent
from .uploads import files_of, handed_by

_KINDS = {kind.word: kind for kind in Kind}  # dictionaries, since every send looks here
_PRIORITIES = {priority.word: priority for priority in Priority}
_PARSE_MODES = {None: None, "plain": Kind.TEXT, "markdown": Kind.MARKDOWN, "html": Kind.HTML}
IN_CONVERSATION = "a conversation has its own recipients: give either conversation, or to or to_sender"
_PLAIN = frozenset({"to", "text", "sender"})  # what `draft_of` itself looks at
LONGEST_ACK_MS = 400 * 24 * 3_600_000


@operation(
    "envelope.send",
    level=Level.STANDARD,
    effect="change",
    together=True,
    plans=True,
    params=Send,
    result=Sent,
    errors=(
        errors.BadAddress,
        errors.BadTime,
        errors.BadDuration,
        errors.TooFar,
        errors.BadId,
        errors.BadText,
        errors.EmptyMessage,
        errors.EmptyGroup,
        errors.NotMember,
        errors.Archived,
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
        errors.AttachmentOutside,
        errors.AttachmentPrivate,
        errors.Busy,
        errors.StoreFull,
    ),
)
def send(context: Context, caller: Caller, params: Send) -> PlannedWrite[Sent] | Coroutine[Any, Any, Sent]:
    """Send a message to one or more addresses; it is on disk when this answers."""
    if params.attachments or params.uploads:
        return send_and_wait(context, caller, params)
    draft = draft_of(context, caller, params)
    planned = context.router.plan(draft, _check(context, caller, draft))
    return PlannedWrite(planned.change, lambda result: _sent(context, params, planned.then(result)))


async def send_and_wait(context: Context, caller: Caller, params: Send) -> Sent:
    """Do the same with files, or for an operation that goes on afterwards."""
    draft = draft_of(context, caller, params)
    handed = handed_by(caller, params.uploads)
    files = files_of(context, caller, params.attachments)
    check = _check(context, caller, draft)
    return _sent(context, params, await context.router.accept(draft, files, check, handed))


def _check(context: Context, caller: Caller, draft: Draft) -> Callable[[Tx], None]:
    """Return what is checked in the transaction: that the caller still may."""

    def check(tx: Tx) -> None:
        context.auth.check(tx, caller)
        if caller.attached is not None and caller.run is None and draft.reply_to is not None:
            attached_turns.answer_by_hand(tx, caller.id, draft.reply_to, clock.now())

    return check


def _sent(context: Context, params: Send, accepted: Accepted) -> Sent:
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
    if accepted.elsewhere and not params.to and params.conversation is None:
        result["elsewhere"] = True
    if accepted.skipped:
        result["skipped"] = list(accepted.skipped)
    return result


def draft_of(context: Context, caller: Caller | None, params: Send, *, sender: str | None = None) -> Draft:
    """Return the draft that a request asks for. Without a caller, `sender` was checked before."""
    to = [params.to] if isinstance(params.to, str) else params.to
    from_ = parse_address(sender) if caller is None and sender else _sender(context, caller, params)
    draft = Draft(
        from_,
        None if caller is None else caller.id,
        tuple([resolve(context.store, caller or OWNER, address, UnknownRecipient) for address in to]),
        params.text,
        caller is None or caller.is_boss,
    )
    if from_ == BOSS:
        draft = draft._replace(from_boss=True)
    if params.model_fields_set <= _PLAIN and (caller is None or not caller.session):
        return draft  # nearly always; all that follows has its default
    return _with_options(context, caller, params, draft)


def _with_options(context: Context, caller: Caller | None, params: Send, draft: Draft) -> Draft:
    """Return a draft with what was said besides its text and its recipients, or is known by the token."""
    if params.conversation is not None and (draft.to or params.to_sender):
        raise errors.InvalidParams(detail=IN_CONVERSATION)
    deliver_at = None
    if params.deliver_at is not None:
        deliver_at = clock.deliver_at(params.deliver_at, now=clock.now(), zone=context.zone)
    session = context.settings.check_word("session", params.session)
    return draft._replace(
        subject=params.subject,
        kind=_KINDS[params.type],
        parse_mode=_PARSE_MODES[params.parse_mode],
        priority=_PRIORITIES[params.priority],
        deliver_at=deliver_at,
        conversation=None if params.conversation is None else ids.number(params.conversation, "conversation"),
        reply_to=None if params.reply_to is None else ids.parse(params.reply_to, "envelope", "message"),
        interruptible=params.interruptible,
        from_boss=params.from_boss or draft.from_boss,
        from_name=params.from_name,
        run=None if caller is None else caller.run,
        trace=_trace(caller, params.trace_id),
        named=params.trace_id is not None and (caller is None or caller.run is None),
        hops=caller.hops + 1 if caller is not None and caller.run is not None else 0,
        metadata=params.metadata,
        key=params.key,
        digest=_digest(params) if params.key is not None else None,
        tags=_tags(params),
        session=session or (None if caller is None else caller.session) or None,
        ack_within=None if params.ack_by is None else _ack_within(params.ack_by),
        to_sender=params.to_sender,
    )


def _ack_within(text: str) -> int:
    return clock.duration(text.strip().removeprefix("+"), most=LONGEST_ACK_MS)


def _tags(params: Send) -> tuple[tuple[str, str, str], ...]:
    """Return the scopes and refs of a message, for the store. Whom it mentions is found in its text."""
    if not (params.scopes or params.refs):
        return ()
    if any(one.type.lower() == "mention" for one in params.refs):
        detail = "a ref of the type mention comes from the text: write @name there"
        raise errors.InvalidParams(detail=detail)
    found = [("scope", one) for one in params.scopes] + [("ref", one) for one in params.refs]
    for _, one in found:
        check_text(one.type, "type")
        check_text(one.value, "value")
    return tuple([(kind, one.type, one.value) for kind, one in found])


def _sender(context: Context, caller: Caller | None, params: Send) -> Address:
    """Return who sends: the caller, or for the boss anybody, by default user:boss."""
    assert caller is not None and caller.address
    given = None if params.sender is None else resolve(context.store, caller, params.sender, UnknownSender)
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
    asked["uploads"] = [ids.number(one, "upload") for one in params.uploads]
    if params.conversation is not None:
        asked["conversation"] = ids.number(params.conversation, "conversation")
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()
