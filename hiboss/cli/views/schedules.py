"""What schedules look like."""

from __future__ import annotations

from typing import Any

from ...core.escaping import mark_lines
from .. import output
from .times import moment


def schedules(result: dict[str, Any]) -> None:
    """Print schedules, a block each."""
    if output.Mode.json:
        output.document(result)
    else:
        blocks = (_facts(one) for one in result["schedules"])
        output.records(blocks, empty="no-schedules", sentence="No schedules found.")


def schedule(result: dict[str, Any]) -> None:
    """Print one schedule, then its last slots."""
    if output.Mode.json:
        output.document(result)
        return
    output.record(_facts(result) | {"text": None})
    if result["text"]:
        output.line("text:")
        output.rendered(mark_lines(result["text"]))
    for slot in result["slots"]:
        output.line()
        output.record(_slot(slot, result["timezone"]))


def changed(result: dict[str, Any], **facts: Any) -> None:
    """Print the id of a schedule that was changed, some facts, and its next time."""
    output.answer(result, {"schedule-id": result["id"]} | facts | {"next-time": _next(result)})


def _next(one: dict[str, Any]) -> str | None:
    return moment(one["next_at"], one["timezone"])


def _facts(one: dict[str, Any]) -> dict[str, Any]:
    every = one["every_seconds"]
    return {
        "schedule-id": one["id"],
        "name": one["name"],
        "owner": one["owner"],
        "from": None if one["from"] == one["owner"] else one["from"],
        "to": one["to"],
        "cron": one["cron"],
        "every": None if every is None else f"{every:g}s",
        "at": moment(one["at"], one["timezone"]),
        "timezone": one["timezone"],
        "enabled": one["enabled"],
        "next-time": _next(one),
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
        "slot": moment(slot["slot"], timezone),
        "until": moment(slot["last_slot"], timezone) if several else None,
        "slots": slot["number"] if several else None,
        "outcome": "sent" if slot["outcome"] == "fired" else slot["outcome"],
        "reason": slot["reason"],
        "message": slot["message"],
    }
