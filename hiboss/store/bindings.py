"""Bindings: platform accounts, the agents they serve, and the places they may post to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.address import Address
from ..core.contracts.adapter import Chat
from ..core.errors import BindingTaken, UnknownBinding
from ..core.events import BindingRemoved
from . import identities, notices
from .accounts import SAME_ACCOUNT
from .connection import Connection, Row
from .group_commit import Tx
from .lane_failures import SLICE, unbound
from .lanes import fail

CHATS_SHOWN = 20  # of one binding; `lane list` has all that were used


class Bound(NamedTuple):
    binding: int
    created: bool
    unused: str | None = None  # the name of a file with secrets that nobody needs any more
    changed: bool = False  # its secrets are others now


class Removed(NamedTuple):
    binding: int
    ended: bool  # this was its last agent
    dropped: int  # how many updates had come in and were not digested


class NewBinding(NamedTuple):
    """A binding as an adapter checked it."""

    adapter: str
    account: str
    settings: dict[str, Any]  # without secrets
    secrets: str | None = None  # the name of the file that has them
    threads: bool = False  # its chats can have topics
    chats: Sequence[Chat] = ()  # those it may post to from the start
    name: str | None = None  # the account as people know it
    closed: bool = False  # what comes in from a chat that nobody approved is held
    groups: str | None = None  # what of a group is for its agents; None: as it is, or the usual
    leads: bool = False  # the agent gets what is not for another one
    own_topic: bool | None = None  # the agent has a topic of its own in the boss's chat; None: as it is


def add(tx: Tx, new: NewBinding, agent: int | None, now: int) -> Bound:
    """Bind an account to an agent; if the account is bound already, add the agent to it.

    New secrets replace the old ones; other settings are refused. Without an agent only hiboss itself and
    the boss post by it, and what comes in is for nobody.
    """
    adapter, account, settings = new.adapter, new.account, new.settings
    row = find(tx, adapter, account)
    if row is not None and json.loads(row["settings"]) != settings:
        raise BindingTaken(account=f"{adapter}:{account}", binding=f"b{row['id']}")
    if row is None:
        cursor = tx.execute(
            # An account that was bound before, with these settings, goes on behind the updates stored then.
            """
            INSERT INTO binding (adapter, account, settings, threads, created_at, closed, groups, position)
            SELECT ?1, ?2, ?3, ?4, ?5, ?6, iif(?6, 'mentioned', 'always'), (
                SELECT position FROM binding WHERE adapter = ?1 AND account = ?2 AND settings = ?3
                ORDER BY id DESC LIMIT 1)
            """,
            (adapter, account, json.dumps(settings, sort_keys=True), new.threads, now, new.closed),
        )
        number, created, old = int(cursor.lastrowid or 0), True, None
    else:
        number, created, old = int(row["id"]), False, row["secrets"]
    if new.secrets is not None:
        tx.execute("UPDATE binding SET secrets = ? WHERE id = ?", (new.secrets, number))
    tx.execute(
        "UPDATE binding SET name = ifnull(?, name), groups = ifnull(?, groups) WHERE id = ?",
        (new.name, new.groups, number),
    )
    if agent is not None:
        _add_agent(tx, number, agent, new)
    if created:
        _keep_contacts(tx, number, now)
    for chat in new.chats:
        allow(tx, number, adapter, chat, now)
    changed = not created and new.secrets is not None
    return Bound(number, created, old if changed else None, changed)


def _add_agent(tx: Tx, binding: int, agent: int, new: NewBinding) -> None:
    """Let a binding serve an agent too. The first one leads it, until another one is to."""
    tx.execute("INSERT OR IGNORE INTO binding_agent (binding, agent) VALUES (?, ?)", (binding, agent))
    if new.own_topic is not None:
        tx.execute(
            "UPDATE binding_agent SET own_topic = ? WHERE binding = ? AND agent = ?",
            (new.own_topic, binding, agent),
        )
    _let_lead(tx, binding, agent if new.leads else None)


def give(tx: Tx, row: Row, agent: int, now: int) -> None:
    """Let a binding serve this agent, and no other one any more."""
    others = tx.execute(
        "DELETE FROM binding_agent WHERE binding = ? AND agent <> ? RETURNING agent", (row["id"], agent)
    ).fetchall()
    tx.execute("INSERT OR IGNORE INTO binding_agent (binding, agent) VALUES (?, ?)", (row["id"], agent))
    _let_lead(tx, row["id"], agent)
    for other in others:
        _served(tx, row, other["agent"], now, ended=False)


def change(tx: Tx, binding: int, settings: Mapping[str, Any], secrets: str | None = None) -> None:
    """Store other settings of a binding and, if they are given, other secrets."""
    tx.execute(
        "UPDATE binding SET settings = ?, secrets = ifnull(?, secrets) WHERE id = ?",
        (json.dumps(settings, sort_keys=True), secrets, binding),
    )


def _let_lead(tx: Tx, binding: int, agent: int | None = None) -> None:
    """Let this agent lead a binding; None: the one that does, or else the oldest."""
    tx.execute(
        """
        UPDATE binding_agent SET leads = (agent = ifnull(?2, (
            SELECT agent FROM binding_agent WHERE binding = ?1 ORDER BY leads DESC, agent LIMIT 1)))
        WHERE binding = ?1
        """,
        (binding, agent),
    )


def _keep_contacts(tx: Tx, binding: int, now: int) -> None:
    """An account that was bound before keeps what the boss decided about its chats."""
    tx.execute(
        f"""
        INSERT INTO contact (binding, platform_id, was, address, kind, name, state, person, created_at,
                             decided_at)
        SELECT ?1, c.platform_id, c.was, c.address, c.kind, c.name, c.state, c.person, c.created_at,
               c.decided_at
        FROM contact c WHERE c.binding = (
            SELECT max(id) FROM binding WHERE id <> ?1 AND id IN {SAME_ACCOUNT.format("?1")})
          AND c.state IN ('allowed', 'blocked', 'boss')
          AND EXISTS (SELECT 1 FROM binding WHERE id = ?1 AND closed)
        """,
        (binding,),
    )
    tx.execute(
        """
        INSERT OR IGNORE INTO place (address, binding, contact)
        SELECT address, binding, id FROM contact WHERE binding = ? AND address IS NOT NULL
        """,
        (binding,),
    )
    row = tx.execute("SELECT adapter FROM binding WHERE id = ?", (binding,)).fetchone()
    for chat in tx.execute(
        "SELECT * FROM contact WHERE binding = ? AND state = 'boss'", (binding,)
    ).fetchall():
        if identities.is_boss(tx, row["adapter"], chat["platform_id"]):
            identities.become_boss(tx, chat, now)
        else:  # it was the boss's only because he was reached there
            tx.execute("UPDATE contact SET state = 'asking' WHERE id = ?", (chat["id"],))


def note_kinds(tx: Tx, threads: Mapping[str, bool], closed: Mapping[str, bool]) -> None:
    """Store which adapters have topics in their chats, and which hold what strangers write.

    A new version of one may decide otherwise.
    """
    for adapter, has in threads.items():
        tx.execute("UPDATE binding SET threads = ?1 WHERE adapter = ?2 AND threads <> ?1", (has, adapter))
    for adapter, is_closed in closed.items():
        tx.execute("UPDATE binding SET closed = ?1 WHERE adapter = ?2 AND closed <> ?1", (is_closed, adapter))


def allow(tx: Tx, binding: int, adapter: str, chat: Chat, now: int) -> int:
    """Allow a binding to post to a chat; return the address id of the chat."""
    address = Address("channel", f"{adapter}:{chat.id}")
    entry = tx.cache.live_address(address) or tx.cache.add_address(address)
    row = tx.execute(
        """
        INSERT INTO contact (binding, platform_id, address, kind, name, state, created_at, decided_at)
        VALUES (?1, ?2, ?3, ?5, ?6, 'allowed', ?4, ?4)
        ON CONFLICT (binding, platform_id) DO UPDATE SET
            state = iif(state = 'boss', 'boss', 'allowed'), address = ?3, decided_at = ?4
        RETURNING id
        """,
        (binding, chat.id, entry.id, now, chat.kind, chat.name),
    ).fetchone()
    tx.execute(
        "INSERT OR IGNORE INTO place (address, binding, contact) VALUES (?, ?, ?)",
        (entry.id, binding, row["id"]),
    )
    return entry.id


def remove(tx: Tx, adapter: str, account: str, agent: int, now: int) -> Removed:
    """Remove an agent from a binding. It ends with its last agent.

    What waits for a binding that ends is failed by `fail_waiting`. The boss is told of what came in and
    was not digested: the platform does not deliver it again.
    """
    row = find(tx, adapter, account)
    gone = (
        row
        and tx.execute(
            "DELETE FROM binding_agent WHERE binding = ? AND agent = ?", (row["id"], agent)
        ).rowcount
    )
    if row is None or not gone:
        raise UnknownBinding(account=f"{adapter}:{account[:60]}")
    others = tx.execute("SELECT 1 FROM binding_agent WHERE binding = ?", (row["id"],)).fetchone()
    _served(tx, row, agent, now, ended=others is None)
    if others is not None:
        _let_lead(tx, row["id"])
        return Removed(row["id"], False, 0)
    return end(tx, row, now)


def _served(tx: Tx, row: Row, agent: int, now: int, *, ended: bool) -> None:
    """Tell that a binding does not serve an agent any more. `ended`: it was the last one."""
    tx.facts.append(BindingRemoved(now, row["id"], f"{row['adapter']}:{row['account']}", agent, ended=ended))
    tx.execute("UPDATE place SET agent = NULL WHERE binding = ? AND agent = ?", (row["id"], agent))


def take_away(tx: Tx, row: Row, now: int) -> None:
    """Let a binding that is to end serve no agent any more."""
    query = "DELETE FROM binding_agent WHERE binding = ? RETURNING agent"
    for one in tx.execute(query, (row["id"],)).fetchall():
        _served(tx, row, one["agent"], now, ended=True)


def end(tx: Tx, row: Row, now: int) -> Removed:
    """End a binding that has no agents."""
    tx.execute("UPDATE binding SET removed_at = ? WHERE id = ?", (now, row["id"]))
    chats = tx.execute(
        """
        UPDATE platform_update SET outcome = 'unbound', raw = NULL
        WHERE binding = ? AND outcome IS NULL RETURNING chat
        """,
        (row["id"],),
    ).fetchall()
    chats += tx.execute(
        """
        UPDATE platform_update SET outcome = 'unbound', raw = NULL
        WHERE binding = ? AND outcome = 'held' RETURNING chat
        """,
        (row["id"],),
    ).fetchall()
    # Its account is paused until nothing waits for it: nothing more is claimed, and a restart goes on.
    tx.execute("DELETE FROM lane WHERE binding = ?", (row["id"],))
    tx.execute("INSERT INTO lane (binding, state) VALUES (?, 'paused')", (row["id"],))
    notices.end_reach(tx, row["id"], now)
    if chats:
        account = f"{row['adapter']}:{row['account']}"
        notices.tell_boss_of_dropped(tx, account, [one["chat"] for one in chats], now)
    return Removed(row["id"], True, len(chats))


def fail_waiting(tx: Tx, binding: int, now: int) -> int:
    """Fail at most SLICE envelopes that wait for a removed binding; return how many.

    Not those that are being delivered: they are done if they get through, and fail if not.
    """
    row = tx.execute("SELECT * FROM binding WHERE id = ? AND removed_at IS NOT NULL", (binding,)).fetchone()
    if row is None:
        return 0
    # In the order of the index: sorted, each slice would read all that wait.
    unheld = f"{_WAITING} AND e.held_by IS NULL LIMIT ?2"
    waiting = [one["id"] for one in tx.execute(unheld, (binding, SLICE))]
    fail(tx, waiting, unbound(row), now)
    forget_if_empty(tx, binding)
    return len(waiting)


def forget_if_empty(tx: Tx, binding: int) -> None:
    """Forget the pause of a removed binding, if nothing is pending for it any more."""
    if tx.execute(f"{_WAITING} LIMIT 1", (binding,)).fetchone() is None:
        tx.execute(
            """
            DELETE FROM lane WHERE binding = ?1
              AND EXISTS (SELECT 1 FROM binding WHERE id = ?1 AND removed_at IS NOT NULL)
            """,
            (binding,),
        )


_WAITING = """
    SELECT e.id FROM place p CROSS JOIN envelope e INDEXED BY envelope_box
        ON e.recipient = p.address AND e.box = 0 AND e.status = 0
    WHERE p.binding = ?1 AND e.binding = ?1
"""


def ending(connection: Connection) -> list[int]:
    """Return the removed bindings for which `fail_waiting` has not failed everything yet."""
    rows = connection.execute(
        """
        SELECT b.id FROM lane l JOIN binding b ON b.id = l.binding
        WHERE l.address IS NULL AND l.state = 'paused' AND b.removed_at IS NOT NULL ORDER BY b.id
        """
    )
    return [row["id"] for row in rows]


def end_of_agent(tx: Tx, agent: int, now: int) -> list[int]:
    """Remove a deleted agent from its bindings; return the bindings that ended with it."""
    rows = tx.execute(
        """
        SELECT b.id, b.adapter, b.account FROM binding b JOIN binding_agent ba ON ba.binding = b.id
        WHERE ba.agent = ? AND b.removed_at IS NULL
        """,
        (agent,),
    ).fetchall()
    ended = [remove(tx, row["adapter"], row["account"], agent, now) for row in rows]
    return [one.binding for one in ended if one.ended]


def secrets_of_ended(connection: Connection, binding: int) -> str | None:
    """Return the name of the file with the secrets of a removed binding."""
    row = connection.execute(
        "SELECT secrets FROM binding WHERE id = ? AND removed_at IS NOT NULL", (binding,)
    ).fetchone()
    return None if row is None else row["secrets"]


def find(connection: Connection | Tx, adapter: str, account: str) -> Row | None:
    """Return the active binding of an account; None if it is not bound."""
    row: Row | None = connection.execute(
        "SELECT * FROM binding WHERE adapter = ? AND account = ? AND removed_at IS NULL", (adapter, account)
    ).fetchone()
    return row


def list_all(connection: Connection | Tx) -> list[Row]:
    """Return all active bindings, with their agents and chats, and the failure of an account that waits."""
    return connection.execute(
        """
        SELECT b.id, b.adapter, b.account, b.settings, b.secrets, b.created_at, b.name, b.groups, b.closed,
               (SELECT a.name FROM binding_agent ba JOIN address a ON a.id = ba.agent
                WHERE ba.binding = b.id AND ba.leads) AS leads,
               (SELECT group_concat(a.name, ',') FROM binding_agent ba JOIN address a ON a.id = ba.agent
                WHERE ba.binding = b.id) AS agents,
               (SELECT json_group_array(json_object(
                    'address', c.address, 'kind', c.kind, 'name', c.name)) FROM (
                        SELECT a.kind || ':' || a.name AS address, c.kind, c.name
                        FROM contact c JOIN address a ON a.id = c.address
                        WHERE c.binding = b.id AND c.state IN ('allowed', 'boss')
                        ORDER BY c.id LIMIT ?1) AS c) AS chats,
               l.wake_at, l.first_failed_at, l.error_text
        FROM binding b
        LEFT JOIN lane l ON ifnull(l.address, 0) = 0 AND ifnull(l.binding, 0) = b.id AND l.failures > 0
        WHERE b.removed_at IS NULL ORDER BY b.id
        """,
        (CHATS_SHOWN,),
    ).fetchall()


def of_agent(connection: Connection | Tx, agent: int, limit: int) -> list[Row]:
    """Return the active bindings that serve an agent: adapter, account, and the name that people know."""
    return connection.execute(
        """
        SELECT b.adapter, b.account, b.name FROM binding_agent ba JOIN binding b ON b.id = ba.binding
        WHERE ba.agent = ? AND b.removed_at IS NULL ORDER BY b.id LIMIT ?
        """,
        (agent, limit),
    ).fetchall()


def agents_of(connection: Connection | Tx, binding: int) -> list[Address]:
    """Return the agents that a binding serves."""
    rows = connection.execute(
        """
        SELECT a.kind, a.name FROM binding_agent ba JOIN address a ON a.id = ba.agent
        JOIN binding b ON b.id = ba.binding
        WHERE ba.binding = ? AND b.removed_at IS NULL AND a.retired_at IS NULL ORDER BY ba.agent
        """,
        (binding,),
    ).fetchall()
    return [Address(row["kind"], row["name"]) for row in rows]
