"""What a conversation looks like in answers, and how requests name one."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, ids
from ..core.address import is_name, parse_address
from ..core.errors import BadAddress, UnknownGroup
from ..store import conversation_lists, conversations, group_members, groups
from ..store.connection import Connection, Row
from ..store.group_delivery import ALL
from ..store.groups import Actor
from ..store.writer_cache import LiveAddress
from .auth import Caller

_ID = re.compile(r"c?[0-9]+", re.ASCII)


class Conversation(TypedDict):
    id: Annotated[str | None, Field(description="like c12; null: nothing was said in group:all yet")]
    type: Annotated[str, Field(description="private: of two, adhoc: of more, or group")]
    name: Annotated[str | None, Field(description="of a group; of any other one, if somebody named it")]
    address: Annotated[str | None, Field(description="of a group, where mail is sent to: group:core-team")]
    description: Annotated[str | None, Field(description="what it is for; null: nobody said, or you left it")]
    open: Annotated[bool, Field(description="of a group: any agent or user may join")]
    history: Annotated[int, Field(description="of a group: how many earlier messages a newcomer may see")]
    created_by: Annotated[str | None, Field(description="null: it began with its first message")]
    created_at: Annotated[str | None, Field(description="null: group:all was always there")]
    metadata: Annotated[dict[str, Any] | None, Field(description="of whoever set it; null: none")]
    archived_at: Annotated[str | None, Field(description="since when it takes no messages; null: it does")]
    deleted_at: Annotated[str | None, Field(description="null: it is not deleted")]
    deleted_by: Annotated[str | None, Field(description="who deleted it")]
    delete_reason: Annotated[str | None, Field(description="the reason that was given for that")]
    role: Annotated[
        str | None, Field(description="yours: owner, admin, member, guest; null: you are not in it now")
    ]
    respond: Annotated[
        str | None,
        Field(
            description="of an agent in a group: which messages are for it to answer, as in participant.add"
        ),
    ]
    joined_at: Annotated[str | None, Field(description="when you came; null: you were never in it")]
    left_at: Annotated[str | None, Field(description="when you left; null: you are in it, or never were")]
    participants: Annotated[int, Field(description="how many are in it now; 0 for those who left it")]
    others: Annotated[
        list[str], Field(description="of a conversation that is no group: the other parties, at most 20")
    ]
    first_seq: Annotated[int, Field(description="the lowest sequence number that you may see")]
    last_seq: Annotated[int, Field(description="the highest one; lower than first_seq: there is nothing")]
    last_read_seq: Annotated[int, Field(description="up to which number you marked it as read")]
    unread: Annotated[int, Field(description="how many envelopes of yours there are unread")]
    last_at: Annotated[str | None, Field(description="when its last message came that you may see")]


class Participant(TypedDict):
    address: Annotated[str, Field(description="like agent:nex, user:mia, channel:telegram:-100")]
    role: Annotated[
        str,
        Field(description="owner, admin or member; guest: it gets the mail of another participant"),
    ]
    respond: Annotated[
        str | None, Field(description="of an agent in a group: which messages are for it to answer")
    ]
    account: Annotated[str | None, Field(description="of a channel: the binding that posts there, like b1")]
    joined_at: Annotated[str, Field(description="when its stay began")]
    joined_seq: Annotated[int, Field(description="the first sequence number that it may see")]


def reference(value: str | int) -> int | str:
    """Return what a request names: the number of a conversation (c12), or the name of a group."""
    text = str(value).strip()
    if _ID.fullmatch(text):
        return ids.number(text, "conversation")
    if text.startswith("group:"):
        return parse_address(text).name
    if not is_name(text):
        if ":" in text:
            raise BadAddress(value=text[:100], why="only a group or a conversation can stand here")
        raise UnknownGroup(name=text[:80])
    return text


def is_all(which: int | str) -> bool:
    """Tell whether a request names the group of all agents."""
    return isinstance(which, str) and which.lower() == ALL.name


def actor(caller: Caller) -> Actor:
    """Return a caller as one who does something in a conversation."""
    assert caller.address
    return Actor(LiveAddress(caller.id, caller.address), caller.is_boss)


def shown(connection: Connection, number: int, caller: Caller, viewer: int | None = None) -> Conversation:
    """Return one conversation, as it is for the caller, or for the viewer whom the boss named."""
    who = caller.id if viewer is None else viewer
    return to_json(connection, conversation_lists.one(connection, who, number), caller, who)


def to_json(connection: Connection, row: Row, caller: Caller, viewer: int) -> Conversation:
    """Return a row of the lists as JSON. Who left a closed group sees of it what was said till then."""
    present = row["role"] is not None and row["left_seq"] is None
    group = row["kind"] == "group"
    outside = group and not (present or row["open"] or caller.is_boss or groups.is_all(row))
    gone = outside and _left_before_its_end(row)
    all_of_it = caller.is_boss and viewer == caller.id
    parts = conversations.stretches(connection, row, None if all_of_it else viewer)
    answers = group and present and row["viewer_kind"] == "agent"
    return {
        "id": f"c{row['id']}",
        "type": row["kind"],
        "name": row["name"],
        "address": f"group:{row['name']}" if group else None,
        "description": None if outside else row["description"],
        "open": bool(row["open"]),
        "history": 0 if gone else row["history"],
        "created_by": row["created_by"],
        "created_at": clock.iso(row["created_at"]),
        "metadata": None if outside or row["metadata"] is None else json.loads(row["metadata"]),
        "archived_at": None if outside else clock.iso_or_none(row["archived_at"]),
        "deleted_at": clock.iso_or_none(row["deleted_at"]),
        "deleted_by": None if gone else row["deleted_by"],
        "delete_reason": None if gone else row["delete_reason"],
        "role": row["role"] if present else None,
        "respond": row["respond"] if answers else None,
        "joined_at": _joined(row) if row["role"] is not None else None,
        "left_at": clock.iso_or_none(row["left_at"]),
        "participants": 0 if outside else _participants(connection, row),
        "others": [] if group else conversation_lists.others(connection, row["id"], viewer),
        "first_seq": parts[0].first if parts else row["first_seq"],
        "last_seq": parts[-1].last if parts else row["first_seq"] - 1,
        "last_read_seq": row["last_read_seq"],
        "unread": row["unread"],
        "last_at": clock.iso_or_none(row["last_at"]),
    }


def _left_before_its_end(row: Row) -> bool:
    """Tell whether somebody was not there any more when a group was deleted, which ends all stays."""
    return row["deleted_at"] is None or row["left_at"] is None or row["left_at"] < row["deleted_at"]


def _joined(row: Row) -> str:
    return clock.iso(row["created_at"] if row["joined_at"] is None else row["joined_at"])


def _participants(connection: Connection, row: Row) -> int:
    return conversation_lists.agents(connection) if groups.is_all(row) else int(row["participants"])


def group_of_all(connection: Connection, caller: Caller, viewer: int) -> Conversation:
    """Return the group of all agents, which is there also before anything was said in it."""
    row = groups.by_name(connection, ALL.name)
    if row is not None:
        found = shown(connection, row["id"], caller, viewer)
        found["description"] = ALL_AGENTS
        return found
    return {
        "id": None,
        "type": "group",
        "name": ALL.name,
        "address": str(ALL),
        "description": ALL_AGENTS,
        "open": False,
        "history": 0,
        "created_by": None,
        "created_at": None,
        "metadata": None,
        "archived_at": None,
        "deleted_at": None,
        "deleted_by": None,
        "delete_reason": None,
        "role": None,
        "respond": None,
        "joined_at": None,
        "left_at": None,
        "participants": conversation_lists.agents(connection),
        "others": [],
        "first_seq": 1,
        "last_seq": 0,
        "last_read_seq": 0,
        "unread": 0,
        "last_at": None,
    }


ALL_AGENTS = "Every agent that is registered."


def participants(connection: Connection, row: Row, caller: Caller) -> list[Participant]:
    """Return who is in a conversation, for those who are in it, and of an open group for everybody."""
    inside = groups.role_of(connection, row["id"], caller.id) is not None
    if not (inside or caller.is_boss or row["open"]) or groups.is_all(row):
        return []
    return [
        {
            "address": f"{one['kind']}:{one['name']}",
            "role": one["role"],
            "respond": one["respond"] if row["kind"] == "group" and one["kind"] == "agent" else None,
            "account": None if one["binding"] is None else f"b{one['binding']}",
            "joined_at": clock.iso(row["created_at"] if one["joined_at"] is None else one["joined_at"]),
            "joined_seq": one["joined_seq"],
        }
        for one in group_members.listed(connection, row["id"])
    ]
