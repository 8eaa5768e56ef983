"""`hiboss envelope …`"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from ...core.errors import EXIT_TIMEOUT, InvalidParams
from .. import output
from ..session import Address, As, Json, Token, call, flag, noun, patience, read_file

app = noun("Send, list and deal with envelopes.")

Ids = Annotated[list[str], typer.Option("--id", metavar="ID", help="Envelope id, like e81; may be repeated.")]


Words = list[str] | None
Word = str | None
PRIORITY = Literal["critical", "high", "normal", "low"]
TYPE = Literal["text", "markdown", "json", "html"]
BOX = Literal["inbox", "outbox", "archived", "trash"]
STATUS = Literal["pending", "done", "failed", "cancelled"]
WHEN = "Not before: +2h, +1Y2M3D, 2026-01-27T16:30:00+08:00, or 2026-01-27 16:30 in the boss's zone."
ANSWERS = "The envelope or message this answers; without --to it goes to who wrote it."
SEND_AS_FILE = "; send it with --attachment"
OWN_DATA = "Your own data; a value that is JSON is stored as such. May be repeated."


@app.command()
def send(
    to: Annotated[Words, flag("--to", "ADDRESS", "agent:kai, user:boss, …; may be repeated.")] = None,
    text: Annotated[Word, flag("--text", "TEXT", "The text; - reads standard input.")] = None,
    text_file: Annotated[Word, flag("--text-file", "FILE", "Take the text from a file.")] = None,
    attachment: Annotated[
        Words, flag("--attachment", "FILE", "A file to send along; may be repeated.")
    ] = None,
    deliver_at: Annotated[Word, flag("--deliver-at", "TIME", WHEN)] = None,
    reply_to: Annotated[Word, flag("--reply-to", "ID", ANSWERS)] = None,
    subject: Annotated[Word, flag("--subject", "TEXT", "A line above the text.")] = None,
    priority: Annotated[
        PRIORITY, flag("--priority", None, "How urgent; urgent mail is taken first.")
    ] = "normal",
    type_: Annotated[TYPE, flag("--type", None, "What the text is.")] = "text",
    not_interruptible: Annotated[
        bool, flag("--not-interruptible", None, "Do not interrupt whoever works on it.")
    ] = False,
    trace_id: Annotated[Word, flag("--trace-id", "ID", "Ties messages of one errand together.")] = None,
    meta: Annotated[Words, flag("--meta", "KEY=VALUE", OWN_DATA)] = None,
    key: Annotated[
        Word,
        flag("--key", "KEY", "A name for this request; repeated with the same key, it sends nothing twice."),
    ] = None,
    from_: Annotated[Word, flag("--from", "ADDRESS", "In whose name; a boss token must give it.")] = None,
    from_boss: Annotated[
        bool, flag("--from-boss", None, "Mark as said by the boss (boss token only).")
    ] = False,
    from_name: Annotated[
        Word, flag("--from-name", "NAME", "The sender's name to show (boss token only).")
    ] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Send a message. Prints the id of each envelope once it is on disk.

    Example: hiboss envelope send --as nex --to agent:kai --text "hello"
    """
    if token == "-" and (text == "-" or text_file == "-"):
        raise InvalidParams(detail="standard input can be the token or the text, not both; use --token @FILE")
    params: dict[str, Any] = {
        "to": to or [],
        "text": _text(text, text_file),
        "attachments": [absolute(path) for path in attachment or []],
        "deliver_at": deliver_at,
        "reply_to": reply_to,
        "subject": subject,
        "priority": priority,
        "type": type_,
        "interruptible": not not_interruptible,
        "trace_id": trace_id,
        "metadata": dict(_pair(one) for one in meta or []),
        "key": key,
        "from": from_,
        "from_boss": from_boss,
        "from_name": from_name,
    }
    show_sent(call("envelope.send", params, token=token, profile=as_))


def show_sent(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
        return
    for number in result["ids"]:
        output.record({"id": number})
    deliver = output.moment(result["deliver_at"], result.get("timezone", "UTC"))
    output.record({"deliver-at": deliver, "duplicate": result["duplicate"] or None})


def absolute(path: str) -> str:
    if not path:
        raise InvalidParams(detail="--attachment is empty; give the path of a file")
    return os.path.abspath(os.path.expanduser(path))


def _text(text: str | None, text_file: str | None) -> str:
    if text is not None and text_file is not None:
        raise InvalidParams(detail="give --text or --text-file, not both")
    if text_file is not None:
        return read_file(text_file, SEND_AS_FILE)
    return read_file("-", SEND_AS_FILE) if text == "-" else text or ""


def _pair(text: str) -> tuple[str, Any]:
    import json

    key, sign, value = text.partition("=")
    if not sign or not key:
        raise InvalidParams(detail=f"--meta {text} is no KEY=VALUE")
    try:
        found = json.loads(value)
        json.dumps(found, allow_nan=False)  # NaN and Infinity are JSON only to Python
        too_large = isinstance(found, int) and abs(found) >= 2**63  # it would come back rounded
        return key, value if too_large else found
    except ValueError:
        return key, value
    except RecursionError:
        raise InvalidParams(detail=f"--meta {key[:60]} is nested too deep to be stored") from None


@app.command("list")
def list_(
    box: Annotated[
        BOX | None, flag("--box", None, "Which box (inbox; with --thread, all you sent or received).")
    ] = None,
    status: Annotated[STATUS | None, flag("--status", None, "Only these; pending includes deferred.")] = None,
    unread: Annotated[bool, flag("--unread", None, "Only what was not read yet.")] = False,
    from_: Annotated[Word, flag("--from", "ADDRESS", "Only from this sender.")] = None,
    to: Annotated[Word, flag("--to", "ADDRESS", "Only to this recipient.")] = None,
    thread: Annotated[Word, flag("--thread", "ID", "Only this thread: t57, or any envelope of it.")] = None,
    created_after: Annotated[
        Word, flag("--created-after", "TIME", "Only what was written after: -1D, or an ISO time.")
    ] = None,
    created_before: Annotated[Word, flag("--created-before", "TIME", "Only what was written before.")] = None,
    number: Annotated[int | None, flag("-n", "N", "How many, 1 to 100; by default 10.", "--number")] = None,
    after: Annotated[
        Word, flag("--after", "CURSOR", "Go on after the page that ended with this next-cursor.")
    ] = None,
    oldest_first: Annotated[bool, flag("--oldest-first", None, "In the order of arrival.")] = False,
    count: Annotated[bool, flag("--count", None, "Also say how many there are in all.")] = False,
    as_turn: Annotated[
        bool, flag("--as-turn", None, "Exactly what the agent's next turn contains; takes only --address.")
    ] = False,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """List a box, newest first. Looking marks nothing as read.

    Example: hiboss envelope list --as nex --status pending
    """
    params = {
        "box": box,
        "status": status,
        "unread": unread,
        "from": from_,
        "to": to,
        "thread": thread,
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
    output.envelopes(result, as_table=True, sent=box == "outbox" or (status == "failed" and not box))


def _show_turn(params: dict[str, Any], token: str | None, as_: str | None) -> None:
    address = params.pop("address")
    if any(value is not None and value is not False for value in params.values()):
        raise InvalidParams(detail="--as-turn shows a whole turn; it goes with --address and no other filter")
    result = call("turn.preview", {"address": address}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    output.line(output.shown(result["text"]))
    if not result["envelopes"]:
        output.record({"no-envelopes": True})


@app.command()
def get(
    id_: Annotated[str, typer.Option("--id", metavar="ID", help="Envelope id, like e81.")],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Show one envelope in full. Looking marks nothing as read."""
    result = call("envelope.get", {"id": id_}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    if len(result["recipients"]) > 1:
        output.record({"recipients": result["recipients"]})
    output.envelope(result["envelope"], result["timezone"])


@app.command()
def read(ids: Ids, address: Address = None, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show envelopes of your box and mark them as read."""
    output.envelopes(call("envelope.read", {"ids": ids, "address": address}, token=token, profile=as_))


@app.command()
def ack(
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Envelope id; may be repeated.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything due in the inbox.")] = False,
    up_to: Annotated[
        str | None,
        typer.Option("--up-to", metavar="ID", help="With --all: nothing that came after this envelope."),
    ] = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Say that envelopes are dealt with; they become done."""
    params = {"ids": ids or [], "all": all_, "up_to": up_to, "address": address}
    output.answer(call("envelope.ack", params, token=token, profile=as_))


@app.command()
def cancel(ids: Ids, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take back envelopes you sent, while nobody has them in hand."""
    output.answer(call("envelope.cancel", {"ids": ids}, token=token, profile=as_))


@app.command()
def claim(
    number: Annotated[int | None, flag("-n", "N", "How many at most; by default 10.", "--number")] = None,
    lease: Annotated[str, flag("--lease", "TIME", "For how long nobody else gets them.")] = "10m",
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Take the next due envelopes in hand.

    Acknowledge or release them before the lease ends; then they are due again.
    """
    params = {"limit": number, "lease": lease, "address": address}
    result = call("envelope.claim", params, token=token, profile=as_)
    output.envelopes(result)
    if result["envelopes"] and not output.Mode.json:
        output.line()
        output.record({"claimed-until": output.moment(result["until"], result["timezone"])})


@app.command()
def wait(
    timeout: Annotated[str, flag("--timeout", "TIME", "How long at most, like 55s.")] = "55s",
    after: Annotated[Word, flag("--after", "CURSOR", "Only what came after this next-cursor.")] = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Wait for mail that is due and unread, and show it.

    Ends with 4 when none came in time. Showing marks nothing as read.
    """
    params = {"timeout": timeout, "after": after, "address": address}
    result = call("envelope.wait", params, token=token, profile=as_, timeout=patience(timeout))
    output.envelopes(result)
    if result["timed_out"]:
        raise typer.Exit(EXIT_TIMEOUT)


@app.command()
def release(
    ids: Ids, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Give back envelopes you have claimed; they are due again."""
    output.answer(call("envelope.release", {"ids": ids, "address": address}, token=token, profile=as_))


@app.command()
def retry(ids: Ids, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take up again envelopes you sent and that have failed."""
    output.answer(call("envelope.retry", {"ids": ids}, token=token, profile=as_))


@app.command()
def archive(
    ids: Ids, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Put envelopes into the archive; pending ones become done."""
    output.answer(call("envelope.archive", {"ids": ids, "address": address}, token=token, profile=as_))


@app.command()
def trash(
    ids: Ids, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Put envelopes into the trash; nothing is deleted."""
    output.answer(call("envelope.trash", {"ids": ids, "address": address}, token=token, profile=as_))


@app.command()
def restore(
    ids: Ids, address: Address = None, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Put envelopes from archive or trash back into the inbox."""
    output.answer(call("envelope.restore", {"ids": ids, "address": address}, token=token, profile=as_))
