"""What messages look like: in full, in a table, and as a chain of answers."""

from __future__ import annotations

import sys

from ...core.escaping import quote, visible
from .. import output
from .envelopes import NARROW, total
from .times import moment, short_moment

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from typing import Any

GAP = "(messages that you may not see)"


def messages(result: dict[str, Any]) -> None:
    """Print a page of messages, as a table on a terminal."""
    if output.Mode.json:
        output.document(result)
        return
    listed(result)
    page_end(result, {"unread": _capped(result, "unread")})


def listed(result: dict[str, Any]) -> None:
    """Print the messages of a page."""
    found, timezone = result["messages"], result["timezone"]
    if found and output.on_terminal(sys.stdout):
        _table(found, timezone)
        return
    for index, one in enumerate(found):
        if index:
            output.line()
        message(one, timezone)
    if not found:
        output.nothing("no-messages", "No messages found.")


def page_end(result: dict[str, Any], more: dict[str, Any] | None = None) -> None:
    """Print how much there is in all, and where the next page begins."""
    output.line()
    output.record({"next-cursor": result["next"], "total": total(result), **(more or {})})


def _capped(result: dict[str, Any], name: str) -> str:
    return f"{result[name]}+" if result[f"{name}_capped"] else str(result[name])


def message(one: dict[str, Any], timezone: str) -> None:
    """Print one message in full. What its sender chose is in quotes, or behind `>`."""
    from ...core import rendering

    deletion = one["metadata"]
    output.record(
        {
            "message-id": one["message_id"],
            "thread": one["thread_id"],
            "conversation": one["conversation_id"],
            "from": visible(_address(one)),
            "from-boss": one["from_boss"] or None,
            "from-name": quote(one["from_name"]) if one["from_name"] else None,
            "session": quote(one["author"]["session_id"]) if one["author"]["session_id"] else None,
            "to": ", ".join(visible(address) for address in one["to"]) or None,
            "subject": quote(one["subject"]) if one["subject"] else None,
            "scopes": _tags(one["scopes"]),
            "refs": _tags(one["refs"]),
            "reply-to": one["reply_to"],
            "created-at": moment(one["created_at"], timezone),
            "updated-at": moment(one["updated_at"] or None, timezone),
            "arrived": None if one["seq"] is not None else False,
            "read": one["is_read"],
            "deleted": one["deleted"] or None,
            "deleted-why": quote(deletion["delete_reason"]) if deletion["delete_reason"] else None,
        }
    )
    output.rendered("\n".join(rendering.content({"text": one["body"]["content"], **_files(one)})))


def _files(one: dict[str, Any]) -> dict[str, Any]:
    return {"attachments": one["attachments"]}


def _tags(given: list[dict[str, str]]) -> str | None:
    return ", ".join(quote(f"{one['type']}:{one['value']}") for one in given) or None


def _address(one: dict[str, Any]) -> str:
    """Return who sent it, as an address."""
    known = str(one["agent_id"])
    return f"agent:{known}" if one["author"]["kind"] == "agent" else known


def _table(found: list[dict[str, Any]], timezone: str) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="thread", least=2, leaves=2),
        Column(title="from", least=8, most=24),
        Column(title="created", least=11, leaves=1),
        Column(title="subject or text", least=8),
    ]
    rows = [
        [
            one["message_id"],
            one["thread_id"],
            ("[boss] " if one["from_boss"] else "") + _address(one),
            short_moment(one["created_at"], timezone, NARROW),
            _said(one),
        ]
        for one in found
    ]
    output.table(headed, rows, bold=[number for number, one in enumerate(found) if not one["is_read"]])


def _said(one: dict[str, Any]) -> str:
    if one["deleted"]:
        return "(deleted)"
    files = ", ".join(file["name"] for file in one["attachments"])
    return str(one["subject"] or one["body"]["content"] or files)


def chain(result: dict[str, Any]) -> None:
    """Print what a message answers, from the first message to it."""
    if output.Mode.json:
        output.document(result)
        return
    if result["left_out"]:
        output.record({"left-out": result["left_out"]})
    for index, one in enumerate(result["chain"]):
        if index or result["left_out"]:
            output.line()
        if one["message"] is None:
            output.line(GAP)
        else:
            message(one["message"], result["timezone"])
