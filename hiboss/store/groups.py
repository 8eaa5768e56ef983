"""Groups, and what can be done with any conversation: create, find, change, archive and delete it.

A group is a conversation with an address of its own, which mail is sent to. Who is in it is in
group_members.py. `group:all` is every agent that is registered: it needs no row until something is said
there, and nobody manages it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.address import Address, check_agent_name
from ..core.contracts.failures import Failure
from ..core.errors import (
    BossOnly,
    BuiltInGroup,
    InvalidParams,
    NoGroup,
    NotFound,
    NotManager,
    NotMember,
    UnknownGroup,
)
from ..core.events import ConversationChanged
from . import addresses, conversation_routes, conversations, envelopes
from .connection import Connection, Row
from .group_commit import Tx
from .group_delivery import ALL
from .writer_cache import LiveAddress

MANAGERS = ("owner", "admin")
WHERE = "hiboss conversation list"

COLUMNS = """
SELECT c.id, c.kind, c.address, c.name, c.description, c.open, c.history, c.first_seq, c.last_seq,
       c.created_at, c.created_by, c.archived_at, c.deleted_at, c.deleted_by, c.delete_reason, c.metadata
FROM conversation c
"""


class Actor(NamedTuple):
    """Who does something in a conversation."""

    entry: LiveAddress
    is_boss: bool = False  # he manages every group, also those that he is not in

    @property
    def id(self) -> int:
        return self.entry.id

    @property
    def sees(self) -> int | None:
        """The address id whose conversations this one sees; None: all."""
        return None if self.is_boss else self.entry.id

    def __str__(self) -> str:
        return "the boss" if self.is_boss else str(self.entry.address)


# --- finding -------------------------------------------------------------------------


def called(row: Row) -> str:
    """Return how people call a conversation: group:core-team, or c12."""
    return f"group:{row['name']}" if row["kind"] == "group" else f"c{row['id']}"


def is_all(row: Row) -> bool:
    """Tell whether a conversation is that of all agents: no other group can have its name."""
    return bool(row["kind"] == "group" and row["name"] == ALL.name)


def by_id(connection: Connection | Tx, number: int) -> Row | None:
    """Return a conversation; None if there is none."""
    row: Row | None = connection.execute(f"{COLUMNS} WHERE c.id = ?", (number,)).fetchone()
    return row


def _known(tx: Tx, number: int) -> Row:
    row = by_id(tx, number)
    assert row is not None
    return row


def by_name(connection: Connection | Tx, name: str) -> Row | None:
    """Return the group that has this name now; None if there is none."""
    row: Row | None = connection.execute(
        f"""
        {COLUMNS} JOIN address a ON a.id = c.address
        WHERE a.fold = ? AND a.retired_at IS NULL
        """,
        (Address("group", name).fold,),
    ).fetchone()
    return row


def visible(connection: Connection | Tx, which: int | str, viewer: int | None) -> Row:
    """Return a conversation, by its id or the name of a group, that somebody may see (None sees all).

    Seen by those who are or were in it; an open group by everybody. Raise NotFound or UnknownGroup for any
    other one, as if there were none.
    """
    row = by_id(connection, which) if isinstance(which, int) else by_name(connection, which)
    if row is not None and (viewer is None or is_all(row) or _sees(connection, row, viewer)):
        return row
    if isinstance(which, int):
        raise NotFound(what="conversation", value=f"c{which}", where=WHERE)
    if which.lower() == ALL.name:
        raise BuiltInGroup(name=str(ALL))
    raise UnknownGroup(name=which[:80])


def _sees(connection: Connection | Tx, row: Row, viewer: int) -> bool:
    if row["open"] and row["deleted_at"] is None:
        return True
    stay = connection.execute(
        "SELECT 1 FROM participant WHERE conversation = ? AND address = ? LIMIT 1", (row["id"], viewer)
    ).fetchone()
    return stay is not None


def role_of(connection: Connection | Tx, conversation: int, address: int) -> str | None:
    """Return the role that somebody has in a conversation now; None: it is not in it."""
    row = connection.execute(
        "SELECT role FROM participant WHERE conversation = ? AND address = ? AND left_seq IS NULL",
        (conversation, address),
    ).fetchone()
    return None if row is None else str(row["role"])


def present(connection: Connection | Tx, conversation: int) -> list[int]:
    """Return the address ids of those who are in a conversation now, guests included."""
    rows = connection.execute(
        "SELECT address FROM participant WHERE conversation = ? AND left_seq IS NULL", (conversation,)
    )
    return [row["address"] for row in rows]


# --- rights --------------------------------------------------------------------------


def managed(tx: Tx, which: int | str, actor: Actor, action: str, *, by_owner: bool = False) -> Row:
    """Return a group that somebody manages; raise if that one may not do this there.

    `action`: what it wants to do, for the error. `by_owner`: admins cannot do it.
    """
    row = living_group(tx, which, actor)
    if actor.is_boss:
        return row
    role = role_of(tx, row["id"], actor.id)
    if role in (None, "guest"):
        raise not_member(row, str(actor))
    if role not in MANAGERS or (by_owner and role != "owner"):
        who = "the owner" if by_owner else "the owner and the admins"
        raise NotManager(who=who, name=called(row), action=action, caller=str(actor))
    return row


def living_group(tx: Tx, which: int | str, actor: Actor) -> Row:
    """Return a group that can be changed; raise for what is no group, was deleted, or is all agents."""
    row = visible(tx, which, actor.sees)
    if row["kind"] != "group":
        raise NoGroup(conversation=f"c{row['id']}")
    if is_all(row):
        raise BuiltInGroup(name=str(ALL))
    _check_living(row)
    return row


def not_member(row: Row, address: str) -> NotMember:
    """Return the error for somebody who is not in a group."""
    advice = f"hiboss group show {row['name']} shows who is"
    if row["open"]:
        advice = f"it is open: hiboss group join {row['name']}"
    return NotMember(address=address, name=called(row), advice=advice)


def _check_living(row: Row) -> None:
    if row["deleted_at"] is not None:
        raise NotFound(what="conversation", value=f"{called(row)} (c{row['id']} was deleted)", where=WHERE)


# --- creating and changing -----------------------------------------------------------


def create(tx: Tx, name: str, actor: Actor, fields: dict[str, Any], now: int) -> Row:
    """Create a group; who creates it owns it. `fields`: description, open, history, metadata."""
    if name.lower() == ALL.name:
        raise BuiltInGroup(name=str(ALL))
    addresses.check_free(tx, check_agent_name(name))
    entry = tx.cache.add_address(Address("group", name))
    columns = {"kind": "group", "key": f"g{entry.id}", "address": entry.id, "name": name}
    columns |= {"created_at": now, "created_by": actor.id, **_columns(fields)}
    number = tx.execute(
        f"INSERT INTO conversation ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        tuple(columns.values()),
    ).lastrowid
    tx.execute(
        "INSERT INTO participant (conversation, address, role, joined_at) VALUES (?, ?, 'owner', ?)",
        (number, actor.id, now),
    )
    return _known(tx, int(number or 0))


def begin_private(tx: Tx, actor: Actor, other: int, fields: dict[str, Any], now: int) -> tuple[Row, bool]:
    """Return the private conversation of two, and whether it is new; what is given changes an old one too."""
    parties = (actor.id, other)
    known = tx.execute("SELECT 1 FROM conversation WHERE key = ?", (conversations.key(parties),)).fetchone()
    new = known is None
    number = tx.cache.conversation(parties, now)
    if new:
        tx.execute("UPDATE conversation SET created_by = ? WHERE id = ?", (actor.id, number))
    _update(tx, number, fields)
    return _known(tx, number), new


def change(tx: Tx, which: int | str, actor: Actor, fields: dict[str, Any], now: int) -> Row:
    """Change a conversation: description, metadata; of a group open and history, of any other one its name.

    A group is changed by those who manage it, any other conversation by its parties.
    """
    row = visible(tx, which, actor.sees)
    if row["kind"] == "group":
        row = managed(tx, which, actor, "change it")
        _check_history(tx, row, actor, fields)
    else:
        _check_living(row)
        role = role_of(tx, row["id"], actor.id)
        if not actor.is_boss and role in (None, "guest"):
            advice = "you only get the mail of another one there"
            raise NotMember(address=str(actor), name=called(row), advice=advice)
    before = tuple(row)
    _update(tx, row["id"], fields)
    row = _known(tx, row["id"])
    if tuple(row) != before:
        tell(tx, row["id"], "changed", actor, now)
    return row


def _check_history(tx: Tx, row: Row, actor: Actor, fields: dict[str, Any]) -> None:
    """Refuse that newcomers may see more than who allows it sees: who came late could come again."""
    if actor.is_boss or fields.get("history", 0) <= row["history"]:
        return
    tx.cache.flush()  # the last number is read below
    sees = tx.execute(
        """
        SELECT c.last_seq + 1 - max(p.joined_seq) AS number FROM conversation c
        JOIN participant p ON p.conversation = c.id AND p.address = ? AND p.left_seq IS NULL
        WHERE c.id = ? AND p.joined_seq > c.first_seq
        """,
        (actor.id, row["id"]),
    ).fetchone()["number"]
    if sees is not None and fields["history"] > sees:
        raise InvalidParams(detail=f"history can be at most {sees}: you came later, and see no more yourself")


def _columns(fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: fields[key] for key in ("name", "description", "history") if key in fields}
    if "open" in fields:
        found["open"] = int(fields["open"])
    if "metadata" in fields:
        given = fields["metadata"]
        found["metadata"] = json.dumps(given, ensure_ascii=False) if given else None
    return found


def _update(tx: Tx, conversation: int, fields: dict[str, Any]) -> None:
    columns = _columns(fields)
    if columns:
        tx.execute(
            f"UPDATE conversation SET {', '.join(f'{one} = ?' for one in columns)} WHERE id = ?",
            (*columns.values(), conversation),
        )


def archive(tx: Tx, which: int | str, actor: Actor, archived: bool, now: int) -> tuple[Row, bool]:
    """Let a conversation take no messages, or let it take them again; return whether that changed it."""
    row = _to_close(tx, which, actor, "archive it", by_owner=False)
    if (row["archived_at"] is not None) == archived:
        return row, False
    tx.execute("UPDATE conversation SET archived_at = ? WHERE id = ?", (now if archived else None, row["id"]))
    tx.cache.forget_closed()
    tell(tx, row["id"], "archived" if archived else "reopened", actor, now)
    return _known(tx, row["id"]), True


def _to_close(tx: Tx, which: int | str, actor: Actor, action: str, *, by_owner: bool) -> Row:
    """Return a conversation that somebody may archive or delete: a group its managers, any other the boss."""
    row = visible(tx, which, actor.sees)
    if row["kind"] == "group":
        return managed(tx, which, actor, action, by_owner=by_owner)
    if not actor.is_boss:
        verb = action.partition(" ")[0]
        raise BossOnly(what=f"{verb} for a conversation that is no group", caller=str(actor))
    _check_living(row)
    return row


# --- deleting ------------------------------------------------------------------------


def delete(tx: Tx, which: int | str, actor: Actor, reason: str | None, now: int) -> tuple[Row, int]:
    """Delete a conversation: what was said stays readable for those who could read it, and nothing follows.

    A group's name is free again; mail that waits for it fails. Return how many such envelopes there were.
    Of any other conversation, the next mail between the same parties begins a new one.
    """
    row = _to_close(tx, which, actor, "delete it", by_owner=True)
    number = row["id"]
    tx.cache.flush()  # the last number is read below
    parties = present(tx, number)
    for route in list(tx.cache.routes().of.get(number, ())):
        conversation_routes.end(tx, number, route.agent.id)
    tx.execute(
        "UPDATE conversation SET deleted_at = ?, deleted_by = ?, delete_reason = ? WHERE id = ?",
        (now, actor.id, reason, number),
    )
    failed = _end_group(tx, row, now) if row["kind"] == "group" else _free_key(tx, number)
    tx.cache.forget_closed()
    tx.facts.append(ConversationChanged(now, number, "deleted", actor.id, parties))
    return _known(tx, number), failed


def _end_group(tx: Tx, row: Row, now: int) -> int:
    tx.execute(
        """
        UPDATE participant SET left_at = ?2, left_seq = (SELECT last_seq FROM conversation WHERE id = ?1)
        WHERE conversation = ?1 AND left_seq IS NULL
        """,
        (row["id"], now),
    )
    failure = Failure("recipient_deleted", "the group was deleted")
    failed = envelopes.fail_for_deleted(tx, row["address"], failure, now)
    tx.cache.retire_address(LiveAddress(row["address"], Address("group", row["name"])), now)
    return failed


def _free_key(tx: Tx, number: int) -> int:
    """Let the next mail between the same parties begin a new conversation."""
    tx.execute("UPDATE conversation SET key = 'd' || id || ':' || key WHERE id = ?", (number,))
    tx.cache.forget_conversations()
    return 0


def tell(tx: Tx, conversation: int, change: str, by: Actor | None, now: int) -> None:
    """Tell those who follow that a conversation changed."""
    who = None if by is None else by.id
    tx.facts.append(ConversationChanged(now, conversation, change, who, present(tx, conversation)))
