"""An envelope as it is shown: what of it is read from the store, and how that becomes JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from .clock import iso, iso_or_none
from .envelope import Box, Kind, Priority, Status, Waits
from .envelope_json import AttachmentJson, Beside, EnvelopeJson
from .paths import Home
from .shortening import shorten

# Plain lists instead of enum lookups: this runs for every row of every page.
_STATUS = [word.word for word in Status]
_PRIORITY = ["normal" if word is Priority.NOTICE else word.word for word in Priority]
_BOX = [word.word for word in Box]
_KIND = [word.word for word in Kind]
_WAITS = [word.word for word in Waits]
_PENDING, _LEASE = int(Status.PENDING), int(Waits.LEASE)


class ShownEnvelope(NamedTuple):
    """What of an envelope and its message is shown, in the order of `envelope_rows.SHOWN`.

    Not a mapping: to find each of fifty columns by its name cost more than to read them.
    """

    id: int
    message: int
    conversation: int
    seq: int | None
    thread: int | None
    reply_to: int | None
    place_address: str | None  # the chat in which a person wrote it
    sender_address: str
    from_boss: int
    from_name: str | None
    channel: str | None
    group_name: str | None
    to_address: str
    forwards: int | None
    routed_from_address: str | None
    subject: str | None
    type: int
    text: str
    attachments: str | None
    status: int
    waits: int | None
    priority: int
    box: int
    snoozed_until: int | None
    interruptible: int
    auto: int
    context: int
    deliver_at: int | None
    arrived_at: int | None
    created_at: int
    edited_at: int | None
    deleted_at: int | None
    deleted_why: str | None
    read_at: int | None
    acked_at: int | None
    ack_by: int | None
    done_at: int | None
    attempts: int
    handovers: int
    held_by: int | None
    preempted_by: int | None
    error_kind: str | None
    error_text: str | None
    error_at: int | None
    run: int | None
    trace: str | None
    hops: int
    metadata: str | None


# An envelope of which nothing is known, with all fields in their order. To copy it and fill in what a row
# has costs half of what a dictionary of fifty fields costs. Its lists are shared: nobody appends to them.
_EMPTY: EnvelopeJson = {
    "id": "",
    "message": "",
    "conversation": "",
    "seq": None,
    "thread": "",
    "reply_to": None,
    "quote": None,
    "from": "",
    "sender": "",
    "from_boss": False,
    "from_name": None,
    "channel": None,
    "group": None,
    "to": "",
    "forwards": None,
    "routed_from": None,
    "subject": None,
    "type": "",
    "text": "",
    "attachments": [],
    "status": "",
    "waits": None,
    "priority": "",
    "box": "",
    "snoozed_until": None,
    "interruptible": False,
    "auto": False,
    "context": False,
    "deliver_at": None,
    "late_seconds": None,
    "created_at": "",
    "edited_at": None,
    "deleted": False,
    "deleted_why": None,
    "reactions": [],
    "scopes": [],
    "refs": [],
    "read_at": None,
    "read_by": [],
    "acked_at": None,
    "ack_by": None,
    "done_at": None,
    "attempts": 0,
    "redelivered": False,
    "preempted_by": None,
    "last_error": None,
    "run": None,
    "trace": "",
    "hops": 0,
    "metadata": {},
}


def envelope(row: ShownEnvelope, home: Home, beside: Beside) -> EnvelopeJson:
    """Return a row of the store as JSON."""
    if row.deleted_at is not None:
        row = _without_content(row)
    # One step for all columns: to take each by its name costs more than to show it.
    (
        number, message, conversation, seq, thread, _, place, sender, from_boss, from_name, _, group, to, _,
        routed_from, subject, kind, text, _, status, _, priority, box, _, interruptible, auto, context,
        _, _, created_at, _, _, deleted_why, _, _, _, _, attempts, *_, trace, hops, _,
    ) = row  # fmt: skip
    shown = _EMPTY.copy()
    shown["id"] = f"e{number}"
    shown["message"] = name = f"m{message}"
    shown["conversation"] = f"c{conversation}"
    shown["seq"] = seq
    shown["thread"] = f"t{thread or message}"
    shown["from"] = place or sender
    shown["sender"] = sender
    shown["from_boss"] = from_boss != 0
    shown["from_name"] = from_name
    shown["group"] = group
    shown["to"] = to
    shown["routed_from"] = routed_from
    shown["subject"] = subject
    shown["type"] = _KIND[kind]
    shown["text"] = text
    shown["status"] = _STATUS[status]
    shown["priority"] = _PRIORITY[priority]
    shown["box"] = _BOX[box]
    shown["interruptible"] = interruptible != 0
    shown["auto"] = auto != 0
    shown["context"] = context != 0
    shown["created_at"] = iso(created_at)
    shown["deleted_why"] = deleted_why
    shown["attempts"] = attempts
    shown["trace"] = trace or name
    shown["hops"] = hops
    _add_what_few_have(shown, row, home)
    _add_delivery(shown, row)
    _add_times(shown, row)
    _add_beside(shown, row, beside)
    return shown


def _add_what_few_have(shown: EnvelopeJson, row: ShownEnvelope, home: Home) -> None:
    if row.reply_to is not None:
        shown["reply_to"] = f"m{row.reply_to}"
    if row.channel:
        shown["channel"] = json.loads(row.channel)
    if row.forwards is not None:
        shown["forwards"] = f"e{row.forwards}"
    if row.attachments:
        shown["attachments"] = attachments(row.attachments, home)
    if row.deleted_at is not None:
        shown["deleted"] = True
    if row.run is not None:
        shown["run"] = f"r{row.run}"
    if row.metadata:
        shown["metadata"] = json.loads(row.metadata)


def _add_delivery(shown: EnvelopeJson, row: ShownEnvelope) -> None:
    if row.waits is not None:
        shown["waits"] = _WAITS[row.waits]
    if row.handovers:
        # If the last handover is the current one, it does not count. If not, the next is a redelivery.
        is_current = row.status != _PENDING or row.held_by is not None or row.waits == _LEASE
        shown["redelivered"] = row.handovers > is_current
    if row.preempted_by is not None:
        shown["preempted_by"] = f"m{row.preempted_by}"
    if row.error_kind is not None:
        at = iso_or_none(row.error_at)
        shown["last_error"] = {"kind": row.error_kind, "text": row.error_text, "at": at}


def _add_times(shown: EnvelopeJson, row: ShownEnvelope) -> None:
    if row.snoozed_until is not None:
        shown["snoozed_until"] = iso(row.snoozed_until)
    if row.deliver_at is not None:
        shown["deliver_at"] = iso(row.deliver_at)
        shown["late_seconds"] = _late(row.deliver_at, row.arrived_at)
    if row.edited_at is not None:
        shown["edited_at"] = iso(row.edited_at)
    if row.read_at is not None:
        shown["read_at"] = iso(row.read_at)
    if row.acked_at is not None:
        shown["acked_at"] = iso(row.acked_at)
    if row.ack_by is not None:
        shown["ack_by"] = iso(row.ack_by)
    if row.done_at is not None:
        shown["done_at"] = iso(row.done_at)


def _add_beside(shown: EnvelopeJson, row: ShownEnvelope, beside: Beside) -> None:
    quotes, reactions, tags, read_by = beside
    if quotes and row.reply_to is not None:
        shown["quote"] = _quote(row.reply_to, quotes)
    if row.message in reactions:
        shown["reactions"] = reactions[row.message]
    if row.message in tags and row.deleted_at is None:
        shown["scopes"], shown["refs"] = tags[row.message]
    if row.id in read_by:
        shown["read_by"] = read_by[row.id]


def _quote(reply_to: int, quotes: Mapping[int, str]) -> str | None:
    return shorten(quotes[reply_to]) if reply_to in quotes else None


def _without_content(row: ShownEnvelope) -> ShownEnvelope:
    """Return the row of a deleted message without what its author said, and where it was said."""
    channel = json.loads(row.channel) if row.channel else {}
    where = {key: channel[key] for key in ("chat", "author", "message") if key in channel}
    kept = json.dumps(where) if where else None
    return row._replace(subject=None, text="", attachments=None, metadata=None, channel=kept)


def said(row: Mapping[str, Any], home: Home, quotes: Mapping[int, str]) -> dict[str, Any]:
    """Return something that was said around a turn, with names as in the JSON of an envelope."""
    reply_to = row["reply_to"]
    return {
        "id": f"m{row['id']}",
        "from": row["address"],
        "from_boss": bool(row["from_boss"]),
        "from_name": row["from_name"],
        "channel": json.loads(row["channel"]) if row["channel"] else None,
        "group": None,
        "reply_to": None if reply_to is None else f"m{reply_to}",
        "quote": _quote(reply_to, quotes),
        "text": row["text"],
        "cut": bool(row["cut"]),
        "attachments": attachments(row["attachments"], home) if row["attachments"] else [],
        "created_at": iso(row["created_at"]),
        "edited_at": iso_or_none(row["edited_at"]),
    }


def _late(deliver_at: int, arrived_at: int | None) -> int | None:
    """Return how many seconds a deferred message arrived late; None for less than one."""
    late = 0 if arrived_at is None else (arrived_at - deliver_at) // 1000
    return late if late >= 1 else None


def attachments(stored: str, home: Home) -> list[AttachmentJson]:
    """Return the stored attachments of a message with their full paths."""
    return [_attachment(one, home) for one in json.loads(stored)]


def _attachment(one: Mapping[str, Any], home: Home) -> AttachmentJson:
    found: AttachmentJson = {
        "name": one["name"],
        "path": os.path.join(home.media, one["file"]),
        "size": one["size"],
        "mime": one["mime"],
        "sha256": one["sha256"],
    }
    if "source" in one:  # it came in from a platform
        given = ("source", "filename", f"{one['source']}_file_id")
        found.update({key: one[key] for key in given if key in one})  # type: ignore[typeddict-item]
    return found
