"""The JSON form of an envelope, the same at every API."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from .clock import iso, iso_or_none
from .envelope import Box, Kind, Priority, Status, Waits, shorten
from .paths import Home

EnvelopeRow = Mapping[str, Any]  # a row of the store, by column

# Plain lists instead of enum lookups: this runs for every row of every page.
_STATUS = [word.word for word in Status]
_PRIORITY = ["normal" if word is Priority.NOTICE else word.word for word in Priority]
_BOX = [word.word for word in Box]
_KIND = [word.word for word in Kind]
_WAITS = [word.word for word in Waits]


class AttachmentJson(TypedDict):
    name: str
    path: str
    size: int
    mime: str
    sha256: str


class ErrorJson(TypedDict):
    kind: str
    text: str | None
    at: str | None


EnvelopeJson = TypedDict(
    "EnvelopeJson",
    {
        "id": str,
        "message": str,
        "conversation": str,
        "seq": int | None,
        "thread": str,
        "reply_to": str | None,
        "quote": str | None,
        "from": str,
        "from_boss": bool,
        "from_name": str | None,
        "channel": dict[str, Any] | None,
        "group": str | None,
        "to": str,
        "subject": str | None,
        "type": str,
        "text": str,
        "attachments": list[AttachmentJson],
        "status": str,
        "waits": str | None,
        "priority": str,
        "box": str,
        "interruptible": bool,
        "auto": bool,
        "deliver_at": str | None,
        "late_seconds": int | None,
        "created_at": str,
        "read_at": str | None,
        "acked_at": str | None,
        "done_at": str | None,
        "attempts": int,
        "redelivered": bool,
        "last_error": ErrorJson | None,
        "run": str | None,
        "trace": str,
        "hops": int,
        "metadata": dict[str, Any],
    },
)


def envelope(row: EnvelopeRow, home: Home, quotes: Mapping[int, str]) -> EnvelopeJson:
    """Return a row of the store as JSON. `quotes`: what may be shown of messages replied to, by id."""
    waits, reply_to, run = row["waits"], row["reply_to"], row["run"]
    return {
        "id": f"e{row['id']}",
        "message": f"m{row['message']}",
        "conversation": f"c{row['conversation']}",
        "seq": row["seq"],
        "thread": f"t{row['thread'] or row['message']}",
        "reply_to": None if reply_to is None else f"m{reply_to}",
        "quote": shorten(quotes[reply_to]) if reply_to in quotes else None,
        "from": row["from_address"],
        "from_boss": bool(row["from_boss"]),
        "from_name": row["from_name"],
        "channel": json.loads(row["channel"]) if row["channel"] else None,
        "group": row["group_name"],
        "to": row["to_address"],
        "subject": row["subject"],
        "type": _KIND[row["type"]],
        "text": row["text"],
        "attachments": attachments(row["attachments"], home) if row["attachments"] else [],
        "status": _STATUS[row["status"]],
        "waits": None if waits is None else _WAITS[waits],
        "priority": _PRIORITY[row["priority"]],
        "box": _BOX[row["box"]],
        "interruptible": bool(row["interruptible"]),
        "auto": bool(row["auto"]),
        "deliver_at": iso_or_none(row["deliver_at"]),
        "late_seconds": _late(row),
        "created_at": iso(row["created_at"]),
        "read_at": iso_or_none(row["read_at"]),
        "acked_at": iso_or_none(row["acked_at"]),
        "done_at": iso_or_none(row["done_at"]),
        "attempts": row["attempts"],
        "redelivered": row["handovers"] > (1 if _last_handover_counts(row) else 0),
        "last_error": _error(row),
        "run": None if run is None else f"r{run}",
        "trace": row["trace"] or f"m{row['message']}",
        "hops": row["hops"],
        "metadata": json.loads(row["metadata"]) if row["metadata"] else {},
    }


def _last_handover_counts(row: EnvelopeRow) -> bool:
    """Tell whether the last handover is the current one. If not, the next one is a redelivery."""
    return row["status"] != Status.PENDING or row["held_by"] is not None or row["waits"] == Waits.LEASE


def _late(row: EnvelopeRow) -> int | None:
    """Return how many seconds a deferred message arrived late; None for less than one."""
    if row["deliver_at"] is None or row["arrived_at"] is None:
        return None
    late = (row["arrived_at"] - row["deliver_at"]) // 1000
    return late if late >= 1 else None


def attachments(stored: str, home: Home) -> list[AttachmentJson]:
    """Return the stored attachments of a message with their full paths."""
    return [
        {
            "name": one["name"],
            "path": os.path.join(home.media, one["file"]),
            "size": one["size"],
            "mime": one["mime"],
            "sha256": one["sha256"],
        }
        for one in json.loads(stored)
    ]


def _error(row: EnvelopeRow) -> ErrorJson | None:
    if row["error_kind"] is None:
        return None
    return {"kind": row["error_kind"], "text": row["error_text"], "at": iso_or_none(row["error_at"])}
