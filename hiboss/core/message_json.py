"""The JSON form of a message, the same at every API: once, however many recipients it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from .clock import iso
from .envelope import Kind
from .envelope_json import AttachmentJson, TagJson, Tags
from .paths import Home
from .shown_envelope import attachments

MessageRow = Mapping[str, Any]  # a row of the store, by column
_KIND = [word.word for word in Kind]


class AuthorJson(TypedDict):
    agent_id: Annotated[str, Field(description="the name of an agent, or the address of anybody else")]
    session_id: Annotated[str, Field(description="in which session it was sent, like r9; empty: none named")]
    kind: Annotated[str, Field(description="agent, user or channel")]


class BodyJson(TypedDict):
    format: Annotated[
        str, Field(description="how content is to be read: text, markdown, json, html or event")
    ]
    content: Annotated[str, Field(description="as it was written; its latest wording if it was edited")]
    structured: Annotated[
        Any, Field(description="of the format json: the parsed content; else an empty text")
    ]


class DeletionJson(TypedDict):
    deleted_at: Annotated[str, Field(description="when it was deleted; empty: it was not")]
    delete_reason: Annotated[str, Field(description="the reason that was given; empty: none was")]


class MessageJson(TypedDict):
    message_id: Annotated[str, Field(description="like m57")]
    thread_id: Annotated[str, Field(description="like t57: the number of the first message of the thread")]
    conversation_id: Annotated[str, Field(description="the conversation it is in, like c4")]
    seq: Annotated[int | None, Field(description="its number in the conversation; null: it has not arrived")]
    agent_id: Annotated[str, Field(description="who sent it: the name of an agent, else an address")]
    author: Annotated[AuthorJson, Field(description="who sent it, and in which session")]
    from_boss: Annotated[bool, Field(description="true: the boss wrote it; false for what he only forwarded")]
    from_name: Annotated[str | None, Field(description="the name of its author, as people see it")]
    to: Annotated[list[str], Field(description="the addresses it was sent to; of a group only the group's")]
    subject: Annotated[str | None, Field(description="a line above the content")]
    body: Annotated[BodyJson, Field(description="what it says")]
    scopes: Annotated[list[TagJson], Field(description="what it is about, as its sender said")]
    refs: Annotated[list[TagJson], Field(description="what it refers to, and who is mentioned in its text")]
    attachments: Annotated[list[AttachmentJson], Field(description="the files sent with it")]
    reply_to: Annotated[str | None, Field(description="the message that it answers; null: none")]
    run_id: Annotated[str | None, Field(description="the run that it was sent in, like r9; null: none")]
    trace_id: Annotated[str, Field(description="the chain of messages and runs it belongs to, like m57")]
    created_at: Annotated[str, Field(description="when it was sent")]
    updated_at: Annotated[str, Field(description="when it was last edited or deleted; empty: never")]
    deleted: Annotated[bool, Field(description="true: its content is not shown any more")]
    is_read: Annotated[bool, Field(description="false: you have it in a box, and have not read it")]
    metadata: Annotated[DeletionJson, Field(description="when and why it was deleted")]
    meta: Annotated[dict[str, Any], Field(description="the sender's own JSON object; hiboss only keeps it")]


class About(NamedTuple):
    """What messages show that is in no column of theirs, by their ids."""

    recipients: Mapping[int, list[str]]
    tags: Mapping[int, Tags]


_NO_TAGS = Tags([], [])


def message(row: MessageRow, home: Home, about: About) -> MessageJson:
    """Return a row of the store as JSON. The content of a deleted message is left out."""
    deleted, kind = row["deleted_at"] is not None, _KIND[row["type"]]
    tags = _NO_TAGS if deleted else about.tags.get(row["id"], _NO_TAGS)
    text = "" if deleted else row["text"]
    files = None if deleted else row["attachments"]
    return {
        "message_id": f"m{row['id']}",
        "thread_id": f"t{row['thread'] or row['id']}",
        "conversation_id": f"c{row['conversation']}",
        "seq": row["seq"],
        "agent_id": agent_id(row["sender_kind"], row["sender_name"]),
        "author": {
            "agent_id": agent_id(row["sender_kind"], row["sender_name"]),
            "session_id": row["session"] or "",
            "kind": row["sender_kind"],
        },
        "from_boss": bool(row["from_boss"]),
        "from_name": row["from_name"],
        "to": about.recipients.get(row["id"], []),
        "subject": None if deleted else row["subject"],
        "body": {"format": kind, "content": text, "structured": _parsed(kind, text)},
        "scopes": tags.scopes,
        "refs": tags.refs,
        "attachments": attachments(files, home) if files else [],
        "reply_to": None if row["reply_to"] is None else f"m{row['reply_to']}",
        "run_id": None if row["run"] is None else f"r{row['run']}",
        "trace_id": row["trace"] or f"m{row['id']}",
        "created_at": iso(row["created_at"]),
        "updated_at": _iso_or_empty(max(row["edited_at"] or 0, row["deleted_at"] or 0)),
        "deleted": deleted,
        "is_read": not row["unread_here"],
        "metadata": {
            "deleted_at": _iso_or_empty(row["deleted_at"]),
            "delete_reason": row["deleted_why"] or "",
        },
        "meta": json.loads(row["metadata"]) if row["metadata"] and not deleted else {},
    }


def agent_id(kind: str, name: str) -> str:
    """Return the name of an agent, or the whole address of anybody else."""
    return name if kind == "agent" else f"{kind}:{name}"


def _iso_or_empty(at: int | None) -> str:
    return iso(at) if at else ""


def _parsed(kind: str, text: str) -> Any:
    """Return the value of a JSON text. What is no JSON after all, or nested too deep, is only a text."""
    if kind != Kind.JSON.word:
        return ""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ""
