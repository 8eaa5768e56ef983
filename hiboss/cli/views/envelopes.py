"""What envelopes look like: whole, in a table, and just sent."""

from __future__ import annotations

import sys

from .. import output
from .times import moment, short_moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any

NARROW = 70  # columns; below, a time leaves its year out


def envelopes(result: dict[str, Any]) -> None:
    """Print a page of envelopes in full, then the cursor of the next page."""
    if output.Mode.json:
        output.document(result)
        return
    for index, one in enumerate(result["envelopes"]):
        if index:
            output.line()
        envelope(one, result["timezone"])
    _page_end(result)


def listed(result: dict[str, Any], *, sent: bool = False) -> list[str]:
    """Print a page of envelopes, as a table on a terminal; returns the ids of those shown in full."""
    found = result["envelopes"]
    if output.Mode.json or not found or not output.on_terminal(sys.stdout):
        envelopes(result)
        return [one["id"] for one in found]
    whole = _table(found, result["timezone"], sent)
    _page_end(result)
    return [one["id"] for one, shown in zip(found, whole, strict=True) if shown]


def _page_end(result: dict[str, Any]) -> None:
    if not result["envelopes"]:
        output.nothing("no-envelopes", "No mail found.")
    if result.get("next") or "total" in result:
        output.line()
        output.record({"next-cursor": result.get("next"), "total": total(result)})


def total(result: dict[str, Any]) -> str | None:
    """Return how many match: 1000+ for more than were counted; None if nobody asked for it."""
    if "total" not in result:
        return None
    return f"{result['total']}+" if result["total_capped"] else str(result["total"])


def _table(found: list[dict[str, Any]], timezone: str, sent: bool) -> list[bool]:
    """Print a row for each; an outbox shows no sender, a box no owner. Returns which are shown in full."""
    from ..table_layout import Column

    several = len({one["to"] for one in found}) > 1
    rows = [
        [
            one["id"],
            "" if sent else ("[boss] " if one["from_boss"] else "") + one["from"],
            one["to"] if sent or several else "",
            short_moment(one["created_at"], timezone, NARROW),
            _state(one),
            _said(one),
        ]
        for one in found
    ]
    headed = [
        Column(title="id", least=2),
        Column(title="from", least=8, most=24, leaves=1),
        Column(title="to", least=8, most=24, leaves=1 if sent else 3),
        Column(title="created", least=11),
        Column(title="status", least=4, leaves=2),
        Column(title="subject or text", least=8),
    ]
    unread = [] if sent else [number for number, one in enumerate(found) if one["read_at"] is None]
    whole = output.table(headed, rows, bold=unread)
    return [shown and _fits_a_row(one) for one, shown in zip(found, whole, strict=True)]


def _said(one: dict[str, Any]) -> str:
    """The subject, or the text, or the names of the files."""
    if one.get("deleted"):
        return "(deleted)"
    return one["subject"] or one["text"] or ", ".join(file["name"] for file in one["attachments"])


def _fits_a_row(one: dict[str, Any]) -> bool:
    """Whether its text is all there is: no subject in place of it, and no files."""
    return not one["attachments"] and not (one["subject"] and one["text"])


def _state(one: dict[str, Any]) -> str:
    """The status for the table; empty for pending mail that is due, which is the usual case."""
    if one["box"] == "snoozed":
        return "snoozed"
    return str(one["waits"] or "") if one["status"] == "pending" else str(one["status"])


def envelope(one: dict[str, Any], timezone: str) -> None:
    """Print one envelope in full."""
    from zoneinfo import ZoneInfo

    from ...core import rendering

    zone = ZoneInfo(timezone)
    output.record(dict(rendering.facts(one, zone)))
    output.rendered("\n".join(rendering.content(one)))


def sent(result: dict[str, Any]) -> None:
    """Print the id of each envelope that was sent."""
    if output.Mode.json:
        output.document(result)
        return
    for number in result["ids"]:
        output.record({"id": number})
    deliver = moment(result["deliver_at"], result.get("timezone", "UTC"))
    output.record({"deliver-at": deliver, "duplicate": result["duplicate"] or None})
    if result.get("elsewhere"):
        output.record({"other-conversation": result["conversation"]})
    if result.get("skipped"):
        output.record({"skipped": result["skipped"]})


def digest(result: dict[str, Any]) -> str:
    """The envelopes as one text, as agents see them."""
    from zoneinfo import ZoneInfo

    from ...core import rendering

    return rendering.digest(result["envelopes"], ZoneInfo(result["timezone"]))
