"""What conversations and groups look like: in a list, and one with those who are in it."""

from __future__ import annotations

import json
import sys
from typing import Any

from .. import output
from .envelopes import envelope, total
from .times import moment, short_moment

NARROW = 90  # columns; there is room for the year from here on
_TIMES = ("created_at", "archived_at", "deleted_at", "joined_at", "left_at", "last_at")


def listed(result: dict[str, Any], *, groups: bool = False) -> None:
    """Print a page of conversations, as a table on a terminal."""
    if output.Mode.json:
        output.document(result)
        return
    zone, found = result["timezone"], result["conversations"]
    if not found or not output.on_terminal(sys.stdout):
        empty, sentence = ("no-groups", "No groups.") if groups else ("no-conversations", "No conversations.")
        output.records((record(one, zone) for one in found), empty=empty, sentence=sentence)
    else:
        _table(found, zone)
    if result["next"] or "total" in result:
        output.line()
        output.record({"next-cursor": result["next"], "total": total(result)})


def _table(found: list[dict[str, Any]], zone: str) -> None:
    from ..table_layout import Column

    headed = [
        Column(title="id", least=2),
        Column(title="with", least=10, most=40),
        Column(title="role", least=6, leaves=2),
        Column(title="unread", least=6),
        Column(title="members", least=7, leaves=3),
        Column(title="last", least=11, leaves=1),
        Column(title="about", least=8, most=60, leaves=4),
    ]
    rows = [
        [
            one["id"] or "",
            called(one),
            _role(one),
            str(one["unread"] or ""),
            str(one["participants"] or ""),
            short_moment(one["last_at"], zone, NARROW),
            one["description"] or "",
        ]
        for one in found
    ]
    output.table(headed, rows, bold=[number for number, one in enumerate(found) if one["unread"]])


def called(one: dict[str, Any]) -> str:
    """Return how a person knows a conversation: by its address, its name, or those who are in it."""
    return one["address"] or one["name"] or ", ".join(one["others"]) or "yourself"


def _role(one: dict[str, Any]) -> str:
    state = "deleted" if one["deleted_at"] else "archived" if one["archived_at"] else ""
    state = state or ("left" if one["left_at"] else "open" if one["open"] and not one["role"] else "")
    return " ".join(filter(None, (one["role"], state)))


def record(one: dict[str, Any], zone: str) -> dict[str, Any]:
    """Return the facts of a conversation, by key; None where there is nothing to say."""
    group = one["type"] == "group"
    found = {key: moment(value, zone) if key in _TIMES else value for key, value in one.items()}
    found["others"] = one["others"] or None
    found["open"] = one["open"] if group else None
    found["history"] = (one["history"] or None) if group else None
    if one["last_seq"] < one["first_seq"]:  # nothing was said that one may see
        found |= {"first_seq": None, "last_seq": None, "last_read_seq": None}
    found["metadata"] = json.dumps(one["metadata"], ensure_ascii=False) if one["metadata"] else None
    return found


def detail(result: dict[str, Any]) -> None:
    """Print a conversation, then a line for each one who is in it."""
    if output.Mode.json:
        output.document(result)
        return
    zone = result["timezone"]
    changed = {"changed": result["changed"]} if "changed" in result else {}
    output.record(record(result["conversation"], zone) | changed)
    members(result["participants"])


def members(found: list[dict[str, Any]]) -> None:
    """Print who is in a conversation, one a line."""
    for one in found:
        words = [one["address"], one["role"]]
        words += [f"responds {one['respond']}"] if one["respond"] else []
        words += [f"by {one['account']}"] if one["account"] else []
        output.record({"participant": ", ".join(words)})


def membership(result: dict[str, Any]) -> None:
    """Print what became of a step in a group."""
    if output.Mode.json:
        output.document(result)
        return
    one = result["conversation"]
    output.record({"group": one["address"], "role": one["role"], "changed": result["changed"]})
    members(result["participants"])


def messages(result: dict[str, Any]) -> None:
    """Print the messages of a page in full, oldest first, then how to go on."""
    if output.Mode.json:
        output.document(result)
        return
    for index, one in enumerate(result["envelopes"]):
        if index:
            output.line()
        envelope(one, result["timezone"])
    if not result["envelopes"]:
        output.nothing("no-messages", "No messages.")
        return
    output.line()
    seqs = {"first-seq": result["first_seq"], "last-seq": result["last_seq"]}
    output.record({"conversation": result["conversation"], **seqs, "more": result["more"]})
