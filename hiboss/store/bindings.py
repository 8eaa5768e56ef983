"""Bindings: platform accounts, the agents they serve, and the places they may post to."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.address import Address
from ..core.errors import BindingTaken, UnknownBinding
from .connection import Connection, Row
from .group_commit import Tx
from .lane_failures import SLICE, unbound
from .lanes import fail


class Bound(NamedTuple):
    binding: int
    created: bool


def add(
    tx: Tx, adapter: str, account: str, settings: dict[str, Any], agent: int, places: list[str], now: int
) -> Bound:
    """Bind an account to an agent; if the account is bound already, add the agent to it."""
    row = find(tx, adapter, account)
    if row is not None and json.loads(row["settings"]) != settings:
        raise BindingTaken(account=f"{adapter}:{account}", binding=f"b{row['id']}")
    if row is not None:
        number, created = int(row["id"]), False
    else:
        cursor = tx.execute(
            "INSERT INTO binding (adapter, account, settings, created_at) VALUES (?, ?, ?, ?)",
            (adapter, account, json.dumps(settings, sort_keys=True), now),
        )
        number, created = int(cursor.lastrowid or 0), True
    tx.execute("INSERT OR IGNORE INTO binding_agent (binding, agent) VALUES (?, ?)", (number, agent))
    for place in places:
        allow(tx, number, adapter, place, now)
    return Bound(number, created)


def allow(tx: Tx, binding: int, adapter: str, place: str, now: int) -> int:
    """Allow a binding to post to a place; return the address id of the place."""
    address = Address("channel", f"{adapter}:{place}")
    entry = tx.cache.live_address(address) or tx.cache.add_address(address)
    tx.execute(
        """
        INSERT INTO contact (binding, platform_id, address, state, created_at, decided_at)
        VALUES (?1, ?2, ?3, 'allowed', ?4, ?4)
        ON CONFLICT (binding, platform_id) DO UPDATE SET state = 'allowed', address = ?3, decided_at = ?4
        """,
        (binding, place, entry.id, now),
    )
    return entry.id


def remove(tx: Tx, adapter: str, account: str, agent: int, now: int) -> tuple[int, bool]:
    """Remove an agent from a binding. Return the binding, and whether it ends: this was its last agent.

    What waits for a binding that ends is failed by `fail_waiting`.
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
    if tx.execute("SELECT 1 FROM binding_agent WHERE binding = ?", (row["id"],)).fetchone():
        return int(row["id"]), False
    tx.execute("UPDATE binding SET removed_at = ? WHERE id = ?", (now, row["id"]))
    # Its account is paused until nothing waits for it: nothing more is claimed, and a restart goes on.
    tx.execute("DELETE FROM lane WHERE binding = ?", (row["id"],))
    tx.execute("INSERT INTO lane (binding, state) VALUES (?, 'paused')", (row["id"],))
    return int(row["id"]), True


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
    SELECT e.id FROM contact c CROSS JOIN envelope e INDEXED BY envelope_box
        ON e.recipient = c.address AND e.box = 0 AND e.status = 0
    WHERE c.binding = ?1 AND e.binding = ?1
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
    return [number for number, is_over in ended if is_over]


def find(connection: Connection | Tx, adapter: str, account: str) -> Row | None:
    """Return the active binding of an account; None if it is not bound."""
    row: Row | None = connection.execute(
        "SELECT * FROM binding WHERE adapter = ? AND account = ? AND removed_at IS NULL", (adapter, account)
    ).fetchone()
    return row


def list_all(connection: Connection | Tx) -> list[Row]:
    """Return all active bindings, with the agents they serve, and the failure of an account that waits."""
    return connection.execute(
        """
        SELECT b.id, b.adapter, b.account, b.settings, b.created_at,
               (SELECT group_concat(a.name, ',') FROM binding_agent ba JOIN address a ON a.id = ba.agent
                WHERE ba.binding = b.id) AS agents,
               l.wake_at, l.first_failed_at, l.error_text
        FROM binding b
        LEFT JOIN lane l ON ifnull(l.address, 0) = 0 AND ifnull(l.binding, 0) = b.id AND l.failures > 0
        WHERE b.removed_at IS NULL ORDER BY b.id
        """
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
