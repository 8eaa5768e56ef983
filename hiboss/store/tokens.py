"""Tokens: 256 random bits, shown once; only their SHA-256 is stored.

The token of a person's browser (kind `web`) has two halves, each with 256 random bits: one is in a cookie,
the other in the tab. Neither is worth anything alone.
"""

from __future__ import annotations

import hashlib
import secrets

from .connection import Connection, Row
from .group_commit import Tx

PREFIX = {"agent": "hba_", "boss": "hbb_", "user": "hbu_", "run": "hbr_", "web": "hbw_"}

_SELECT = """
SELECT t.id, CASE WHEN t.kind <> 'web' THEN t.kind WHEN a.name = 'boss' THEN 'boss' ELSE 'user' END AS kind,
       t.kind = 'web' AS browser, t.holder, a.kind AS address_kind, a.name, g.level, r.id AS run, r.trace,
       r.hops, t.attached
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
    expires_at: int | None = None,
) -> None:
    """Store the hash of a token. `run`, `attached`: the run, or the open session, that it is for."""
    tx.execute(
        """
        INSERT INTO token (hash, kind, holder, run, attached, created_at, expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (digest(token), kind, holder, run, attached, now, expires_at),
    )


def halves() -> tuple[str, str]:
    """Return the two halves of a new token for a browser: of the cookie, and of the tab."""
    return secrets.token_urlsafe(32), secrets.token_urlsafe(32)


def joined(cookie: str, tab: str) -> str:
    """Return the token that two halves make."""
    return f"{PREFIX['web']}{cookie}.{tab}"


def has_expired(connection: Connection, now: int) -> bool:
    """Tell whether a token is in force whose time is over."""
    return (
        connection.execute(
            "SELECT 1 FROM token WHERE expires_at <= ? AND revoked_at IS NULL LIMIT 1", (now,)
        ).fetchone()
        is not None
    )


def end_expired(tx: Tx, now: int) -> list[int]:
    """Revoke the tokens whose time is over; return their holders."""
    rows = tx.execute(
        """
        UPDATE token SET revoked_at = ?1 WHERE expires_at <= ?1 AND revoked_at IS NULL RETURNING holder
        """,
        (now,),
    ).fetchall()
    return [int(row["holder"]) for row in rows]


def end_browsers(tx: Tx, holder: int, now: int, only: int | None = None) -> int:
    """Log the browsers of a person out, or only the one with this token; return how many."""
    tx.arrived_for.append(holder)  # as in `revoke`
    return tx.execute(
        """
        UPDATE token SET revoked_at = ?1
        WHERE holder = ?2 AND kind = 'web' AND revoked_at IS NULL AND (?3 IS NULL OR id = ?3)
        """,
        (now, holder, only),
    ).rowcount


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


def find(connection: Connection | Tx, hash_: bytes, now: int = 0) -> Row | None:
    """Return the token with this hash and its holder; None if it is not valid, or its time is over."""
    row: Row | None = connection.execute(
        f"{_SELECT} AND t.hash = ? AND ifnull(t.expires_at > ?, 1)", (hash_, now)
    ).fetchone()
    return row
