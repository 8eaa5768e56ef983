"""Register, change, delete and list agents."""

from __future__ import annotations

from typing import Any

from ..core.address import BACKGROUND, Address
from ..core.contracts.failures import Failure
from ..core.errors import UnknownAgent
from ..core.events import AgentChanged
from ..core.quoting import nearest
from . import (
    addresses,
    ask_rules,
    bindings,
    envelopes,
    group_members,
    handoffs,
    offers,
    provider_sessions,
    schedules,
    state_watches,
    tokens,
)
from .connection import Connection, Row
from .group_commit import Tx

# What a caller may set; each is a column of the same name.
FIELDS = ("kind", "mode", "description", "role", "module", "display", "workspace", "reply", "busy")
LIMITS = ("daily_tokens", "daily_cost")
SESSION_FIELDS = ("session_scope", "session_reset", "session_idle", "session_context")
PROVIDER_FIELDS = ("provider", "provider_config", "provider_secrets")

# In the place of a provider: the turn is taken by a session that is open in a terminal.
ATTACHED = "attached"

_SELECT = """
SELECT a.id, a.name, g.kind, g.mode, g.level, g.provider, g.provider_config, g.provider_secrets, g.reply,
       g.busy, g.description, g.role, g.module, g.display, g.workspace, g.daily_tokens, g.daily_cost,
       g.session_scope, g.session_reset, g.session_idle, g.session_context,
       g.budget_from, g.paused_at, g.paused_kind, g.paused_by, g.paused_why, g.paused_until, g.paused_trace,
       g.paused_hops,
       g.created_at, g.last_seen_at
FROM agent g JOIN address a ON a.id = g.address
WHERE g.deleted_at IS NULL
"""


def register(tx: Tx, name: str, fields: dict[str, Any], now: int) -> int:
    """Register an agent and return its address id."""
    address = Address("agent", name)
    addresses.check_free(tx, name)
    entry = tx.cache.add_address(address)
    columns = {"address": entry.id, "created_at": now, **_known(fields)}
    tx.execute(
        f"INSERT INTO agent ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        tuple(columns.values()),
    )
    tx.facts.append(AgentChanged(now, entry.id))
    return entry.id


def change(tx: Tx, name: str, fields: dict[str, Any]) -> None:
    row = get(tx, name)
    columns = _known(fields)
    if columns:
        tx.execute(
            f"UPDATE agent SET {', '.join(f'{column} = ?' for column in columns)} WHERE address = ?",
            (*columns.values(), row["id"]),
        )


def set_level(tx: Tx, name: str, level: str) -> None:
    tx.execute("UPDATE agent SET level = ? WHERE address = ?", (level, get(tx, name)["id"]))


def delete(tx: Tx, name: str, now: int) -> int:
    """Delete an agent: revoke its tokens, free its name, fail the mail that waits for it.

    Everything it sent or received stays stored; a later agent of the same name does not get it.
    Return how many envelopes were still waiting for it.
    """
    row = get(tx, name)
    tx.execute("UPDATE agent SET deleted_at = ? WHERE address = ?", (now, row["id"]))
    tokens.revoke(tx, row["id"], now)
    tx.facts.append(AgentChanged(now, row["id"]))
    provider_sessions.forget(tx, row["id"])
    ask_rules.end_of_agent(tx, row["id"], now)
    handoffs.end_of(tx, row["id"], now)  # before its mail fails: what was routed to it goes back
    offers.withdraw(tx, row["id"], now)
    group_members.end_of(tx, row["id"], now)
    waiting = envelopes.fail_for_deleted(
        tx, row["id"], Failure("recipient_deleted", "the agent was deleted"), now
    )
    _end_tasks(tx, row["id"], now)
    entry = tx.cache.live_address(Address("agent", row["name"]))
    assert entry is not None
    tx.cache.retire_address(entry, now)
    schedules.end_of_owner(tx, row["id"], now)
    state_watches.end_of(tx, row["id"], now)
    tx.execute("DELETE FROM lane WHERE address = ? AND binding IS NULL", (row["id"],))  # nothing waits there
    bindings.end_of_agent(tx, row["id"], now)  # last: no notice goes to a deleted agent
    return waiting


def _end_tasks(tx: Tx, agent: int, now: int) -> None:
    """Fail the tasks that the agent gave to agent:background and that have not begun."""
    background = tx.cache.live_address(BACKGROUND)
    if background is None:
        return
    envelopes.fail_for_deleted(
        tx, background.id, Failure("sender_deleted", "the agent was deleted"), now, sender=agent
    )


def get(connection: Connection | Tx, name: str) -> Row:
    """Return the agent with this name; raise UnknownAgent if there is none."""
    fold = f"agent:{name.removeprefix('agent:')}".lower()
    row: Row | None = connection.execute(
        f"{_SELECT} AND a.fold = ? AND a.retired_at IS NULL", (fold,)
    ).fetchone()
    if row is None:
        names = [r["name"] for r in list_all(connection)]
        raise UnknownAgent(name=name[:80], hint=nearest(name.removeprefix("agent:"), names))
    return row


def by_id(connection: Connection | Tx, address: int) -> Row | None:
    """Return an agent by its address id; None if there is none, or it was deleted."""
    row: Row | None = connection.execute(f"{_SELECT} AND g.address = ?", (address,)).fetchone()
    return row


def with_provider(connection: Connection | Tx, address: int, *, any_mode: bool = False) -> Row | None:
    """Return the agent with this address id if it has a provider and mode `run` (or any mode); else None."""
    row: Row | None = connection.execute(
        f"{_SELECT} AND g.address = ? AND g.provider IS NOT NULL AND (? OR g.mode = 'run')",
        (address, any_mode),
    ).fetchone()
    return row


def attached(connection: Connection | Tx, address: int) -> Row | None:
    """Return the agent with this address id as an open session of it works: without a provider."""
    columns = ("provider", "provider_config", "provider_secrets")
    select = _SELECT
    for column, value in zip(columns, (f"'{ATTACHED}'", "NULL", "NULL"), strict=True):
        select = select.replace(f"g.{column},", f"{value} AS {column},")
    row: Row | None = connection.execute(f"{select} AND g.address = ?", (address,)).fetchone()
    return row


def list_all(connection: Connection | Tx, role: str | None = None, module: str | None = None) -> list[Row]:
    """Return all agents, by name; with a role or a module only those."""
    # CROSS JOIN makes SQLite begin with the agents: there can be many more addresses.
    every = _SELECT.replace("agent g JOIN", "agent g CROSS JOIN")
    return connection.execute(
        f"{every} AND (?1 IS NULL OR g.role = ?1) AND (?2 IS NULL OR g.module = ?2) ORDER BY a.fold",
        (role, module),
    ).fetchall()


def others(connection: Connection | Tx, agent: int, limit: int) -> list[Row]:
    """Return the other agents, those that were registered first: id, name, role, module, description."""
    return connection.execute(
        """
        SELECT a.id, a.name, g.role, g.module, g.description
        FROM agent g CROSS JOIN address a ON a.id = g.address
        WHERE g.deleted_at IS NULL AND g.address <> ? ORDER BY g.address LIMIT ?
        """,
        (agent, limit),
    ).fetchall()


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    known = (*FIELDS, *LIMITS, *SESSION_FIELDS, *PROVIDER_FIELDS)
    return {name: fields[name] for name in known if name in fields}
