"""`hiboss cron …`"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from .. import output
from ..session import As, Json, Token, call, call_openly, flag, noun, read_file

app = noun("Send by a schedule.")

Word = str | None
Words = list[str] | None
Id = Annotated[str, flag("--id", "ID", "Schedule id, like s3.")]
Cron = Annotated[Word, flag("--cron", "EXPR", "Five fields as in cron(5), or @hourly, @daily, @weekly …")]
Every = Annotated[Word, flag("--every", "TIME", "Every so often, in elapsed time: 90s, 2h.")]
At = Annotated[Word, flag("--at", "TIME", "Once: +2h, an ISO time, or 2026-01-27 16:30.")]
To = Annotated[Words, flag("--to", "ADDRESS", "agent:kai, user:boss, …; may be repeated.")]
Text = Annotated[Word, flag("--text", "TEXT", "The text; - reads standard input.")]
File = Annotated[Words, flag("--attachment", "FILE", "A file to send along, copied now; may be repeated.")]
Subject = Annotated[Word, flag("--subject", "TEXT", "A line above the text.")]
Zone = Annotated[Word, flag("--timezone", "ZONE", "Of the cron expression; by default the boss's.")]
Name = Annotated[Word, flag("--name", "NAME", "A name to know it by.")]
PRIORITY = Literal["critical", "high", "normal", "low"]
Priority = Annotated[PRIORITY | None, flag("--priority", None, "How urgent.")]
CatchUp = Annotated[
    Literal["skip", "once", "all"] | None,
    flag("--catch-up", None, "What a downtime made late: nothing, once (the default), or all (at most 100)."),
]
Overlap = Annotated[
    Literal["skip", "queue"] | None,
    flag("--overlap", None, "While the one before is not done: skip (the default) or queue."),
]


@app.command()
def create(
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    to: To = None,
    text: Text = None,
    attachment: File = None,
    subject: Subject = None,
    priority: Priority = None,
    timezone: Zone = None,
    catch_up: CatchUp = None,
    overlap: Overlap = None,
    name: Name = None,
    from_: Annotated[Word, flag("--from", "ADDRESS", "In whose name; a boss token must give it.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Send a message by a schedule.

    Example: hiboss cron create --as nex --cron "0 9 * * MON-FRI" --to agent:nex --text "stand-up"
    """
    params = _content(
        cron, every, at, to, text, attachment, subject, priority, timezone, catch_up, overlap, name
    )
    params["from"] = from_
    result = call("cron.create", params, token=token, profile=as_)
    output.answer(result, {"cron-id": result["id"], "next-run": _local(result)})


@app.command("set")
def set_(
    id_: Id,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    to: To = None,
    text: Text = None,
    attachment: File = None,
    subject: Subject = None,
    priority: Priority = None,
    timezone: Zone = None,
    catch_up: CatchUp = None,
    overlap: Overlap = None,
    name: Name = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change a schedule; what is not given stays as it is."""
    params = _content(
        cron, every, at, to, text, attachment, subject, priority, timezone, catch_up, overlap, name
    )
    result = call("cron.set", params | {"id": id_}, token=token, profile=as_)
    output.answer(result, {"cron-id": result["id"], "next-run": _local(result)})


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List your schedules; for the boss all."""
    result = call("cron.list", {}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
    else:
        output.records((_facts(one) for one in result["schedules"]), empty="no-schedules")


@app.command()
def show(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one schedule and what became of its last slots."""
    result = call("cron.show", {"id": id_}, token=token, profile=as_)
    if output.Mode.json:
        output.document(result)
        return
    output.record(_facts(result))
    for slot in result["slots"]:
        output.line()
        output.record(_slot(slot, result["timezone"]))


@app.command()
def enable(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let a schedule go on, from now."""
    _switch("cron.enable", id_, token, as_)


@app.command()
def disable(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Hold a schedule until it is enabled again."""
    _switch("cron.disable", id_, token, as_)


@app.command()
def delete(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Take a schedule away. What it has sent stays."""
    result = call("cron.delete", {"id": id_}, token=token, profile=as_)
    output.answer(result, {"cron-id": result["id"], "deleted": True})


@app.command()
def run(id_: Id, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Send what a schedule sends now. Its own times stay."""
    result = call("cron.run", {"id": id_}, token=token, profile=as_)
    output.answer(result, {"cron-id": result["id"], "fired": result["fired"], "id": result["ids"] or None})


@app.command()
def explain(
    cron: Annotated[str, flag("--cron", "EXPR", "Five fields as in cron(5), or @daily and the like.")],
    timezone: Zone = None,
    count: Annotated[int, flag("--count", "N", "How many, 1 to 100.")] = 5,
    json_: Json = False,
) -> None:
    """Say when a cron expression would be due next."""
    result = call_openly("cron.explain", {"cron": cron, "timezone": timezone, "count": count})
    facts = {"cron": result["cron"], "timezone": result["timezone"]}
    output.answer(result, facts | {f"next-run-{n}": one for n, one in enumerate(result["local"], 1)})


def _content(
    cron: Word,
    every: Word,
    at: Word,
    to: Words,
    text: Word,
    attachment: Words,
    subject: Word,
    priority: Word,
    timezone: Word,
    catch_up: Word,
    overlap: Word,
    name: Word,
) -> dict[str, Any]:
    files = None if attachment is None else [os.path.abspath(os.path.expanduser(path)) for path in attachment]
    return {
        "cron": cron,
        "every": every,
        "at": at,
        "to": to,
        "text": read_file("-") if text == "-" else text,
        "attachments": files,
        "subject": subject,
        "priority": priority,
        "timezone": timezone,
        "catch_up": catch_up,
        "overlap": overlap,
        "name": name,
    }


def _switch(method: str, id_: str, token: str | None, as_: str | None) -> None:
    result = call(method, {"id": id_}, token=token, profile=as_)
    output.answer(result, {"cron-id": result["id"], "enabled": result["enabled"], "next-run": _local(result)})


def _local(one: dict[str, Any]) -> str | None:
    return output.moment(one["next_at"], one["timezone"])


def _facts(one: dict[str, Any]) -> dict[str, Any]:
    every = one["every_seconds"]
    return {
        "cron-id": one["id"],
        "name": one["name"],
        "owner": one["owner"],
        "from": None if one["from"] == one["owner"] else one["from"],
        "to": one["to"],
        "cron": one["cron"],
        "every": None if every is None else f"{every:g}s",
        "at": output.moment(one["at"], one["timezone"]),
        "timezone": one["timezone"],
        "enabled": one["enabled"],
        "next-run": _local(one),
        "catch-up": one["catch_up"],
        "overlap": one["overlap"],
        "subject": one["subject"],
        "priority": None if one["priority"] == "normal" else one["priority"],
        "attachments": one["attachments"] or None,
        "text": one["text"],
    }


def _slot(slot: dict[str, Any], timezone: str) -> dict[str, Any]:
    several = slot["number"] > 1
    return {
        "slot": output.moment(slot["slot"], timezone),
        "until": output.moment(slot["last_slot"], timezone) if several else None,
        "slots": slot["number"] if several else None,
        "outcome": slot["outcome"],
        "reason": slot["reason"],
        "message": slot["message"],
    }
