"""Numbers of the store: its epoch, its home, the boot number, the last arrival, and totals for the status."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from .connection import Connection
from .group_commit import Tx


def epoch(connection: Connection) -> str:
    """Return the epoch: a restore renews it, so that cursors of the earlier store are recognized."""
    row = connection.execute("SELECT value FROM config WHERE key = 'epoch'").fetchone()
    return str(row["value"])


def renew_epoch(connection: Connection) -> None:
    """Make this the store of another home: a copy would else have the marks and cursors of the first."""
    connection.execute("UPDATE config SET value = ? WHERE key = 'epoch'", [secrets.token_hex(4)])


def note_home(tx: Tx, identity: str) -> None:
    """Store in which home this is (core/paths.py). In a copy no process of a recorded run is its own."""
    if is_home(tx, identity):
        return
    tx.execute("UPDATE run SET pid = NULL, pid_started = NULL WHERE status = 'running'")
    # The sessions that are open report to the first home.
    tx.execute("UPDATE attached_session SET ended_at = since, ended_why = 'gone' WHERE ended_at IS NULL")
    tx.execute("UPDATE token SET revoked_at = created_at WHERE attached IS NOT NULL AND revoked_at IS NULL")
    tx.execute(
        "INSERT INTO config (key, value) VALUES ('home', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1",
        (identity,),
    )


def is_home(connection: Connection | Tx, identity: str) -> bool:
    """Tell whether a daemon has noted that the store is in this home. Not if it was copied since."""
    row = connection.execute("SELECT value FROM config WHERE key = 'home'").fetchone()
    return row is not None and row["value"] == identity


def run_marks(connection: Connection, identity: str) -> str:
    """Return what the marks of all runs begin with: no other store has it, also no copy of this one."""
    return f"{epoch(connection)}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def next_boot(tx: Tx) -> int:
    """Return a new boot number, for this start of the daemon."""
    row = tx.execute("UPDATE counter SET value = value + 1 WHERE name = 'boot' RETURNING value").fetchone()
    return int(row["value"])


def next_claim(tx: Tx) -> int:
    """Return a new number for a claim."""
    row = tx.execute("UPDATE counter SET value = value + 1 WHERE name = 'claim' RETURNING value").fetchone()
    return int(row["value"])


def last_arrived(connection: Connection | Tx) -> int:
    """Return the arrival number that was given last."""
    return int(connection.execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()["value"])


def counts(connection: Connection, exact_to: int) -> dict[str, Any]:
    """Count agents and due, deferred and failed envelopes: exact up to a limit, then '1000+'."""

    def number(sql: str) -> int | str:
        found: int = connection.execute(f"SELECT count(*) FROM ({sql} LIMIT {exact_to + 1})").fetchone()[0]
        return f"{exact_to}+" if found > exact_to else found

    return {
        "agents": number("SELECT 1 FROM agent WHERE deleted_at IS NULL"),
        "due": number(
            "SELECT 1 FROM envelope INDEXED BY envelope_due "
            "WHERE status = 0 AND arrived IS NOT NULL AND waits IS NULL"
        ),
        "deferred": number(
            "SELECT 1 FROM envelope INDEXED BY envelope_wake WHERE wake_at IS NOT NULL AND waits = 0"
        ),
        # Box by box and address by address, because there is no index of failures alone.
        "failed": number(
            "SELECT 1 FROM address a CROSS JOIN (SELECT 0 AS box UNION ALL SELECT 1 UNION ALL SELECT 2) b "
            "CROSS JOIN envelope e INDEXED BY envelope_box "
            "ON e.recipient = a.id AND e.box = b.box AND e.status = 2"
        ),
    }
