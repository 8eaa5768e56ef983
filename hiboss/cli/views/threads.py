"""What threads look like."""

from __future__ import annotations

import sys
from typing import Any

from ...core.escaping import quote, visible
from .. import output
from . import messages
from .envelopes import NARROW
from .times import moment, short_moment


def threads(result: dict[str, Any]) -> None:
    """Print a page of threads, as a table on a terminal."""
    if output.Mode.json:
        output.document(result)
        return
    found, timezone = result["threads"], result["timezone"]
    if found and output.on_terminal(sys.stdout):
        _table(found, timezone)
    else:
        blocks = (_facts(one, timezone) for one in found)
        output.records(blocks, empty="no-threads", sentence="No threads found.")
    messages.page_end(result)


def thread(result: dict[str, Any]) -> None:
    """Print one thread, then a page of its messages."""
    if output.Mode.json:
        output.document(result)
        return
    output.record(_facts(result["thread"], result["timezone"]))
    output.line()
    messages.listed(result)
    messages.page_end(result)


def _facts(one: dict[str, Any], timezone: str) -> dict[str, Any]:
    return {
        "thread": one["thread_id"],
        "title": quote(one["title"]),
        "created-by": visible(one["created_by"]),
        "created-at": moment(one["created_at"], timezone),
        "messages": one["message_count"],
        "unread": one["unread_count"],
        "last-activity": moment(one["last_activity"], timezone),
        "last-sender": visible(one["last_sender"]),
        "preview": quote(one["preview"]) if one["preview"] else None,
    }


def _table(found: list[dict[str, Any]], timezone: str) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="messages", least=2, leaves=3),
        Column(title="unread", least=1, leaves=2),
        Column(title="last", least=11, leaves=1),
        Column(title="from", least=6, most=20, leaves=1),
        Column(title="title", least=8),
    ]
    rows = [
        [
            one["thread_id"],
            str(one["message_count"]),
            str(one["unread_count"] or ""),
            short_moment(one["last_activity"], timezone, NARROW),
            one["last_sender"],
            one["title"] or one["preview"],
        ]
        for one in found
    ]
    output.table(headed, rows, bold=[number for number, one in enumerate(found) if one["unread_count"]])
