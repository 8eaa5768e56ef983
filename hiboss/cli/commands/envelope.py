"""`hiboss envelope …`"""

from __future__ import annotations

from ...core.errors import EXIT_TIMEOUT, InvalidParams
from .. import output
from ..call import call, timeout_for
from ..key_values import key_values
from ..message_params import recipients
from ..plain_commands import PlainCommands
from ..tag_values import filters, tags
from ..text_input import SEND_AS_FILE, attachments, read_file, refuse_input_twice, text_or_input, unrepeated
from ..views import envelopes as views
from ..views.times import moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Annotated, Any

    from ..options import (
        Address,
        After,
        As,
        CameAfter,
        EnvelopeId,
        EnvelopeIds,
        Json,
        Number,
        Text,
        Texts,
        Timeout,
        Token,
        argument,
        flag,
    )
    from .envelope_options import (
        ANSWERS,
        FROM_BOSS,
        IN_CONVERSATION,
        OWN_DATA,
        PARSE,
        PARSE_MODE,
        REF,
        SCOPE,
        STATUS,
        TRACE,
        TYPE,
        BoxOption,
        ClaimId,
        Session,
        UpTo,
    )
    from .filter_options import CreatedAfter, CreatedBefore, Mentions, Ref, Scope, Snoozed, Thread
    from .message_options import (
        PRIORITY,
        AckBy,
        Attachments,
        DeliverAt,
        From,
        Key,
        Subject,
        TextOption,
        To,
        ToSender,
    )

app = PlainCommands("Send, list, read and finish envelopes.")


@app.command()
def send(
    to: To = None,
    conversation: Annotated[Text, flag("--conversation", "ID", IN_CONVERSATION)] = None,
    text: TextOption = None,
    text_file: Annotated[Text, flag("--text-file", "FILE", "Read the text from a file.")] = None,
    attachment: Attachments = None,
    deliver_at: DeliverAt = None,
    reply_to: Annotated[Text, flag("--reply-to", "ID", ANSWERS)] = None,
    to_sender: ToSender = False,
    ack_by: AckBy = None,
    scope: Annotated[Texts, flag("--scope", "TYPE:VALUE", SCOPE)] = None,
    ref: Annotated[Texts, flag("--ref", "TYPE:VALUE", REF)] = None,
    subject: Subject = None,
    priority: Annotated[
        PRIORITY, flag("--priority", None, "How urgent; more urgent mail is delivered first.")
    ] = "normal",
    not_interruptible: Annotated[
        bool, flag("--not-interruptible", None, "Set the run that works on it aside for nothing.")
    ] = False,
    type_: Annotated[TYPE, flag("--type", None, "The format of the text.")] = "text",
    parse_mode: Annotated[PARSE_MODE | None, flag("--parse-mode", None, PARSE)] = None,
    trace_id: Annotated[Text, flag("--trace-id", "ID", TRACE)] = None,
    meta: Annotated[Texts, flag("--meta", "KEY=VALUE", OWN_DATA)] = None,
    key: Key = None,
    from_: From = None,
    from_boss: Annotated[bool, flag("--from-boss", None, FROM_BOSS)] = False,
    from_name: Annotated[Text, flag("--from-name", "NAME", "The sender's name to show (boss only).")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Send a message. Prints the id of each envelope once it is on disk.

    Example: hiboss envelope send --to kai --text "hello" --priority high
    """
    refuse_input_twice(token, text, text_file)
    params: dict[str, Any] = {
        "to": recipients(to or []),
        "conversation": conversation,
        "text": _text(text, text_file),
        "attachments": attachments(attachment),
        "deliver_at": deliver_at,
        "reply_to": reply_to,
        "to_sender": to_sender,
        "ack_by": ack_by,
        "scopes": tags(scope, "--scope"),
        "refs": tags(ref, "--ref"),
        "subject": subject,
        "priority": priority,
        "interruptible": not not_interruptible,
        "type": type_,
        "parse_mode": parse_mode,
        "trace_id": trace_id,
        "metadata": key_values(meta),
        "key": key,
        "from": from_,
        "from_boss": from_boss,
        "from_name": from_name,
    }
    views.sent(call("envelope.send", params, token=token, profile=as_))


def _text(text: str | None, text_file: str | None) -> str:
    if text is not None and text_file is not None:
        raise InvalidParams(detail="give --text or --text-file, not both")
    if text_file is not None:
        return read_file(text_file, SEND_AS_FILE)
    return text_or_input(text or "", SEND_AS_FILE)


@app.command("list")
def list_(
    box: BoxOption = None,
    status: Annotated[
        STATUS | None, flag("--status", None, "Only this status; pending includes deferred mail.")
    ] = None,
    unread: Annotated[bool, flag("--unread", None, "Only unread mail.")] = False,
    from_: Annotated[Text, flag("--from", "ADDRESS", "Only from this sender.")] = None,
    to: Annotated[Text, flag("--to", "ADDRESS", "Only to this recipient.")] = None,
    thread: Thread = None,
    mentions: Mentions = False,
    scope: Scope = None,
    ref: Ref = None,
    snoozed: Snoozed = False,
    created_after: CreatedAfter = None,
    created_before: CreatedBefore = None,
    number: Number = None,
    after: After = None,
    oldest_first: Annotated[
        bool, flag("--oldest-first", None, "Oldest first, in the order of arrival.")
    ] = False,
    count: Annotated[bool, flag("--count", None, "Also print the total.")] = False,
    as_turn: Annotated[
        bool,
        flag(
            "--as-turn",
            None,
            "Show the agent's next turn, exactly as it gets it; as the boss, also give --address.",
        ),
    ] = False,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List a box, newest first. Nothing is marked as read.

    Example: hiboss envelope list --address nex --status pending
    """
    params = {
        "box": box,
        "status": status,
        "unread": unread,
        "from": from_,
        "to": to,
        "thread": thread,
        **filters(scope, ref, mentions=mentions),
        "snoozed": snoozed,
        "created_after": created_after,
        "created_before": created_before,
        "page_size": number,
        "after": after,
        "oldest_first": oldest_first,
        "count": count,
        "address": address,
    }
    if as_turn:
        _show_turn(params, token, as_)
        return
    result = call("envelope.list", params, token=token, profile=as_)
    views.listed(result, sent=box == "outbox" or (status == "failed" and not box))


@app.command("thread")
def chain(
    id_: Annotated[str, argument("ID", "Envelope or message id, like e81 or m57.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show what an envelope answers, from the first message on.

    Nothing is marked as read. All answers, also those to others: hiboss thread show.
    """
    from ..views import messages as message_views

    message_views.chain(call("thread.chain", {"id": id_}, token=token, profile=as_))


def _show_turn(params: dict[str, Any], token: str | None, as_: str | None) -> None:
    address = params.pop("address")
    if any(value is not None and value is not False for value in params.values()):
        raise InvalidParams(detail="--as-turn shows a whole turn; it takes --address and no other filter")
    result = call("turn.preview", {"address": address}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    output.rendered(result["text"])
    if not result["envelopes"]:
        output.nothing("no-envelopes", "No mail is due for this agent.")


@app.command()
def get(id_: EnvelopeId, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one envelope in full, and how far it got. It is not marked as read."""
    from ..views import traces

    result = call("envelope.get", {"id": id_}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    if len(result["recipients"]) > 1:
        output.record({"recipients": result["recipients"]})
    views.envelope(result["envelope"], result["timezone"])
    traces.receipt(result)


@app.command()
def read(
    ids: Annotated[Texts, argument("[ID…]", "Envelope ids, like e81 e82.")] = None,
    all_: Annotated[bool, flag("--all", None, "Mark all unread mail of the inbox; show nothing.")] = False,
    up_to: UpTo = None,
    session: Session = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show envelopes of your box in full and mark them as read.

    With --all nothing is shown: everything that is unread now is marked. What arrives meanwhile stays unread.

    Example: hiboss envelope read --all --up-to e81
    """
    if not ids and not all_:
        raise InvalidParams(detail="give envelope ids, like e81, or --all")
    params = {"ids": unrepeated(ids or []), "all": all_, "up_to": up_to, "session": session or ""}
    result = call("envelope.read", {**params, "address": address}, token=token, profile=as_)
    if all_:
        output.answer({"changed": result["changed"]})
    else:
        views.envelopes(result)


@app.command()
def ack(
    ids: Annotated[Texts, argument("[ID…]", "Envelope ids, like e81 e82.")] = None,
    all_: Annotated[bool, flag("--all", None, "Everything that is due in the inbox.")] = False,
    up_to: UpTo = None,
    claim: ClaimId = None,
    session: Session = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Acknowledge envelopes: mark them as done."""
    if not ids and not all_:
        raise InvalidParams(detail="give envelope ids, like e81, or --all")
    params = {"ids": ids or [], "all": all_, "up_to": up_to, "claim": claim, "session": session or ""}
    output.answer(call("envelope.ack", {**params, "address": address}, token=token, profile=as_))


@app.command()
def snooze(
    ids: EnvelopeIds,
    until: Annotated[str, flag("--until", "TIME", "When they come back: +1h, or an ISO time.")],
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Hide envelopes until a time. Then they arrive again, as unread.

    Example: hiboss envelope snooze e81 --until +1h
    """
    params = {"ids": unrepeated(ids), "until": until, "address": address}
    result = call("envelope.snooze", params, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
    else:
        back = moment(result["until"], result["timezone"])
        output.record({"changed": result["changed"], "snoozed-until": back})


@app.command()
def unsnooze(
    ids: EnvelopeIds, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Bring snoozed envelopes back now."""
    _act("envelope.unsnooze", {"ids": unrepeated(ids), "address": address}, token, as_)


@app.command()
def cancel(ids: EnvelopeIds, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Cancel envelopes that you sent, before they are delivered."""
    _act("envelope.cancel", {"ids": ids}, token, as_)


@app.command()
def claim(
    number: Annotated[int | None, flag("-n", "N", "How many at most; by default 10.", "--number")] = None,
    lease: Annotated[str, flag("--lease", "TIME", "For how long nobody else gets them.")] = "10m",
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Claim the next due envelopes, so that nobody else gets them.

    Acknowledge or release them before the lease ends. After that they are due again. The claim that
    is printed, like k7, can be given to ack and release with --claim.
    """
    params = {"limit": number, "lease": lease, "address": address}
    result = call("envelope.claim", params, token=token, profile=as_)
    views.envelopes(result)
    if result["envelopes"] and not output.Mode.json:
        output.line()
        until = moment(result["until"], result["timezone"])
        output.record({"claim": result["claim"], "claimed-until": until})


@app.command()
def wait(
    timeout: Timeout = "55s",
    after: CameAfter = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> int | None:
    """Show unread mail that is due, in full; without any, wait for it. Nothing is marked as read.

    The next wait shows the same mail again, unless you give --after. hiboss poll remembers what it
    has shown; hiboss watch prints a digest instead.

    Exit status: 0 mail came, 4 no mail in time.
    """
    params = {"timeout": timeout, "after": after, "address": address}
    result = call("envelope.wait", params, token=token, profile=as_, timeout=timeout_for(timeout))
    views.envelopes(result)
    return EXIT_TIMEOUT if result["timed_out"] else None


@app.command()
def release(
    ids: EnvelopeIds,
    claim: ClaimId = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Release envelopes that you claimed; they are due again.

    An envelope that was claimed more than once is released only with --claim: another session of the
    same agent may have it now.
    """
    _act("envelope.release", {"ids": ids, "claim": claim, "address": address}, token, as_)


@app.command()
def retry(ids: EnvelopeIds, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Retry envelopes that you sent and that failed or were cancelled."""
    _act("envelope.retry", {"ids": ids}, token, as_)


@app.command()
def archive(
    ids: EnvelopeIds, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Move envelopes to the archive; pending ones become done."""
    _act("envelope.archive", {"ids": ids, "address": address}, token, as_)


@app.command()
def trash(
    ids: EnvelopeIds, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Move envelopes to the trash. Nothing is deleted."""
    _act("envelope.trash", {"ids": ids, "address": address}, token, as_)


@app.command()
def restore(
    ids: EnvelopeIds, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Move envelopes from the archive or the trash back to the inbox."""
    _act("envelope.restore", {"ids": ids, "address": address}, token, as_)


def _act(method: str, params: dict[str, Any], token: str | None, profile: str | None) -> None:
    output.answer(call(method, params, token=token, profile=profile))
