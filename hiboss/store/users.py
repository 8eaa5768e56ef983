"""Users: people with a box, the boss and those whom the boss registered."""

from __future__ import annotations

from ..core.address import Address
from ..core.contracts.failures import Failure
from ..core.errors import UnknownUser
from ..core.quoting import nearest
from . import (
    addresses,
    envelopes,
    group_members,
    handoffs,
    provider_sessions,
    schedules,
    state_watches,
    tokens,
)
from .connection import Connection, Row
from .group_commit import Tx

_SELECT = """
SELECT a.id, a.name AS login, u.name, u.boss, u.created_at, u.last_seen_at
FROM user u JOIN address a ON a.id = u.address WHERE a.retired_at IS NULL
"""


def register(tx: Tx, name: str, display: str, now: int) -> int:
    """Register a person and return the address id."""
    addresses.check_free(tx, name)
    entry = tx.cache.add_address(Address("user", name))
    tx.execute("INSERT INTO user (address, name, created_at) VALUES (?, ?, ?)", (entry.id, display, now))
    return entry.id


def get(connection: Connection | Tx, name: str, *, but_boss: bool = False) -> Row:
    """Return the person with this name; raise UnknownUser if there is none (`but_boss`: or for the boss)."""
    name = name.removeprefix("user:")
    row: Row | None = connection.execute(
        f"{_SELECT} AND a.fold = ? AND NOT (? AND u.boss)", (f"user:{name}".lower(), but_boss)
    ).fetchone()
    if row is None:
        names = [one["login"] for one in list_all(connection) if not (but_boss and one["boss"])]
        raise UnknownUser(name=name[:80], hint=nearest(name, names))
    return row


def list_all(connection: Connection | Tx) -> list[Row]:
    """Return all people, the boss first."""
    # CROSS JOIN makes SQLite begin with the people: there can be many more addresses.
    people = _SELECT.replace("user u JOIN", "user u CROSS JOIN")
    return connection.execute(f"{people} ORDER BY u.boss DESC, a.fold").fetchall()


def delete(tx: Tx, user: Row, now: int) -> None:
    """Delete a person: revoke the token, fail deferred mail; messages stay stored."""
    tokens.revoke(tx, user["id"], now)
    provider_sessions.forget_person(tx, user["id"], now)
    handoffs.end_of(tx, user["id"], now)
    group_members.end_of(tx, user["id"], now)
    envelopes.fail_for_deleted(tx, user["id"], Failure("recipient_deleted", "the person was deleted"), now)
    entry = tx.cache.live_address(Address("user", user["login"]))
    assert entry is not None
    tx.cache.retire_address(entry, now)
    schedules.end_of_owner(tx, user["id"], now)
    state_watches.end_of(tx, user["id"], now)
