"""Tokens: 256 random bits, shown once; only their SHA-256 is stored."""

from __future__ import annotations

import hashlib
import secrets

from .connection import Connection, Row
from .group_commit import Tx

PREFIX = {"agent": "hba_", "boss": "hbb_", "user": "hbu_", "run": "hbr_"}

_SELECT = """
SELECT t.id, t.kind, t.holder, a.kind AS address_kind, a.name, g.level, r.id AS run, r.trace, r.hops,
       t.attached
FROM token t JOIN address a ON a.id = t.holder LEFT JOIN agent g ON g.address = t.holder
-- Of an open session: the turn that it works on now, so that what it sends belongs to that.
LEFT JOIN run r ON r.id = ifnull(t.run, (
    SELECT x.id FROM run x INDEXED BY run_attached
    WHERE x.attached = t.attached AND x.status = 'running' AND x.seen_at IS NOT NULL))
WHERE t.revoked_at IS NULL AND a.retired_at IS NULL
"""


def new(kind: str) -> str:
    """Return a new random token."""
    return PREFIX[kind] + secrets.token_urlsafe(32)


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def insert(
    tx: Tx,
    token: str,
    kind: str,
    holder: int,
    now: int,
    run: int | None = None,
    attached: int | None = None,
) -> None:
    """Store the hash of a token. `run`, `attached`: the run, or the open session, that it is for."""
    tx.execute(
        "INSERT INTO token (hash, kind, holder, run, attached, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (digest(token), kind, holder, run, attached, now),
    )


def revoke(tx: Tx, holder: int, now: int, kinds: tuple[str, ...] = tuple(PREFIX)) -> int:
    """Revoke the tokens of a holder; return how many were valid."""
    marks = ",".join("?" * len(kinds))
    tx.arrived_for.append(holder)  # wakes the requests that wait with such a token: they must end
    return tx.execute(
        f"UPDATE token SET revoked_at = ? WHERE holder = ? AND revoked_at IS NULL AND kind IN ({marks})",
        (now, holder, *kinds),
    ).rowcount


def in_force(tx: Connection | Tx, number: int) -> Row | None:
    """Return the token with this id and its holder; None if it is no longer valid."""
    row: Row | None = tx.execute(f"{_SELECT} AND t.id = ?", (number,)).fetchone()
    return row


def of_holder(tx: Connection | Tx, holder: int) -> Row | None:
    """Return a valid token of this holder, not of a run; None if there is none."""
    row: Row | None = tx.execute(
        f"{_SELECT} AND t.holder = ? AND t.kind <> 'run' ORDER BY t.kind <> 'boss', t.id LIMIT 1", (holder,)
    ).fetchone()
    return row


def is_known(connection: Connection, token: str) -> bool:
    return find(connection, digest(token)) is not None


def find(connection: Connection | Tx, hash_: bytes) -> Row | None:
    """Return the token with this hash and its holder; None if it is not valid."""
    row: Row | None = connection.execute(f"{_SELECT} AND t.hash = ?", (hash_,)).fetchone()
    return row
