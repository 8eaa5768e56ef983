"""`hiboss cron …`"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from ...core.errors import EXIT_REFUSED
from .. import output
from ..call import call, call_for_all, call_without_token
from ..message_params import recipients
from ..options import As, Json, Text, Texts, Token, argument, flag, noun
from ..text_input import attachments, refuse_input_twice, text_or_input
from ..views import schedules as views
from .message_options import PRIORITY, From, Subject, TextOption, To

app = noun("Send messages by a schedule.")

Id = Annotated[str, argument("ID", "The schedule, like s3; hiboss cron list shows them.")]
Cron = Annotated[Text, flag("--cron", "EXPR", "Five fields as in cron(5), or @hourly, @daily, @weekly …")]
Every = Annotated[Text, flag("--every", "TIME", "Repeat after this time: 90s, 2h.")]
At = Annotated[Text, flag("--at", "TIME", "Once: +2h, an ISO time, or 2026-01-27 16:30.")]
Files = Annotated[Texts, flag("--attachment", "FILE", "A file to send with it, copied now; may be repeated.")]
Zone = Annotated[Text, flag("--timezone", "ZONE", "Zone of the cron expression; by default the boss's.")]
Label = Annotated[Text, flag("--name", "NAME", "A name for the schedule.")]
Priority = Annotated[PRIORITY | None, flag("--priority", None, "How urgent.")]
MISSED = "Times missed while no daemon ran: skip them, send one message{default}, or send all (at most 100)."
BUSY = "While the previous message is not done: skip{default} or queue."
DEFAULT = " (the default)"
_CatchUp = Literal["skip", "once", "all"] | None
_Overlap = Literal["skip", "queue"] | None
CatchUp = Annotated[_CatchUp, flag("--catch-up", None, MISSED.format(default=DEFAULT))]
NewCatchUp = Annotated[_CatchUp, flag("--catch-up", None, MISSED.format(default=""))]
Overlap = Annotated[_Overlap, flag("--overlap", None, BUSY.format(default=DEFAULT))]
NewOverlap = Annotated[_Overlap, flag("--overlap", None, BUSY.format(default=""))]
CONTENT = ["cron", "every", "at", "subject", "priority", "timezone", "catch_up", "overlap", "name"]


@app.command()
def create(
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    to: To = None,
    text: TextOption = None,
    attachment: Files = None,
    subject: Subject = None,
    priority: Priority = None,
    timezone: Zone = None,
    catch_up: CatchUp = None,
    overlap: Overlap = None,
    name: Label = None,
    from_: From = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Create a schedule that sends a message.

    Example: hiboss cron create --cron "0 9 * * MON-FRI" --to nex --text "Good morning"
    """
    params = _content(locals()) | {"from": from_}
    views.changed(call("cron.create", params, token=token, profile=as_))


@app.command("set")
def set_(
    id_: Id,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    to: To = None,
    text: TextOption = None,
    attachment: Files = None,
    subject: Subject = None,
    priority: Priority = None,
    timezone: Zone = None,
    catch_up: NewCatchUp = None,
    overlap: NewOverlap = None,
    name: Label = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change a schedule. What is not given stays as it is.

    Example: hiboss cron set s3 --cron "0 10 * * MON-FRI"
    """
    params = _content(locals()) | {"id": id_}
    views.changed(call("cron.set", params, token=token, profile=as_))


def _content(values: dict[str, Any]) -> dict[str, Any]:
    """Of a command's local variables, those that say what is sent and when."""
    refuse_input_twice(values["token"], values["text"])
    text, files, to = values["text"], values["attachment"], values["to"]
    return {name: values[name] for name in CONTENT} | {
        "to": None if to is None else recipients(to),
        "text": None if text is None else text_or_input(text),
        "attachments": None if files is None else attachments(files),
    }


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List your schedules; the boss sees all."""
    views.schedules(call_for_all("cron.list", {}, "schedules", token=token, profile=as_))


@app.command()
def show(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one schedule and the outcome of its last slots."""
    views.schedule(call("cron.show", {"id": id_}, token=token, profile=as_))


@app.command()
def enable(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Enable a schedule, from now on."""
    _switch("cron.enable", id_, token, as_)


@app.command()
def disable(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Disable a schedule until you enable it again."""
    _switch("cron.disable", id_, token, as_)


def _switch(method: str, id_: str, token: str | None, as_: str | None) -> None:
    result = call(method, {"id": id_}, token=token, profile=as_)
    views.changed(result, enabled=result["enabled"])


@app.command()
def delete(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Delete a schedule. Messages that it sent stay."""
    result = call("cron.delete", {"id": id_}, token=token, profile=as_)
    output.answer(result, {"schedule-id": result["id"], "deleted": True})


@app.command()
def run(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Send the message of a schedule now. Its next time does not change.

    If it cannot be sent, the schedule is disabled, and the exit status is 1.
    """
    result = call("cron.run", {"id": id_}, token=token, profile=as_)
    facts = {"schedule-id": result["id"], "sent": result["fired"], "id": result["ids"] or None}
    output.answer(result, facts | {"why": result["why"]})
    if not result["fired"]:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def explain(
    cron: Annotated[str, argument("EXPR", 'A cron expression in quotes, like "0 9 * * *", or @daily.')],
    timezone: Zone = None,
    count: Annotated[int, flag("--count", "N", "How many times to show, 1 to 100.")] = 5,
    json_: Json = False,
) -> None:
    """Show the next times of a cron expression.

    Example: hiboss cron explain "0 9 * * MON-FRI"
    """
    result = call_without_token("cron.explain", {"cron": cron, "timezone": timezone, "count": count})
    facts = {"cron": result["cron"], "timezone": result["timezone"]}
    output.answer(result, facts | {f"next-time-{n}": one for n, one in enumerate(result["local"], 1)})
