"""What may be retried, and by which account: one that was bound again posts what it could not before."""

from __future__ import annotations

from ..core.envelope import Status
from ..core.errors import TooLate
from .accounts import SAME_ACCOUNT
from .envelope_rows import EnvelopeRow
from .group_commit import Tx
from .stray_forwards import strays


def account(tx: Tx, row: EnvelopeRow) -> int | None:
    """Return the binding by which an envelope is posted when it is retried; None: it is not posted.

    Raise TooLate if it cannot be: it has not failed and is not cancelled, its message or its recipient was
    deleted, it is a stray, or its account is not bound, or may not post it there any more.
    """
    status = Status(row["status"])
    if status not in (Status.FAILED, Status.CANCELLED):
        raise _too_late(row, status.word)
    if status is Status.CANCELLED and row["arrived"] is None:
        raise _too_late(row, "cancelled before it arrived; send it again")
    if row["deleted_at"] is not None:
        raise _too_late(row, "deleted")
    retired, removed = tx.execute(
        """
        SELECT a.retired_at IS NOT NULL, ifnull(b.removed_at, 0) <> 0 FROM envelope e
        JOIN address a ON a.id = e.recipient LEFT JOIN binding b ON b.id = e.binding WHERE e.id = ?
        """,
        (row["id"],),
    ).fetchone()
    if retired:
        raise _too_late(row, f"for {row['to_address']}, which no longer exists")
    if removed:
        return _bound_again(tx, row)
    if strays(tx, row["id"]):
        raise _too_late(row, f"for {row['to_address']}, which is not the boss's any more")
    binding: int | None = row["binding"]
    return binding


def _bound_again(tx: Tx, row: EnvelopeRow) -> int:
    """Return the binding that an account has now; the rules are those of a new message, or a new forward."""
    now = tx.execute(
        f"""
        SELECT b.id, b.adapter || ':' || b.account AS account, c.state,
               EXISTS (SELECT 1 FROM user u WHERE u.address = ?2 AND u.boss = 1)
               OR EXISTS (SELECT 1 FROM binding_agent ba WHERE ba.binding = b.id AND ba.agent = ?2) AS may
        FROM binding b LEFT JOIN place p ON p.binding = b.id AND p.address = ?3
        LEFT JOIN contact c ON c.id = p.contact
        WHERE b.id IN {SAME_ACCOUNT.format("?1")} AND b.removed_at IS NULL
        """,
        (row["binding"], row["sender"], row["recipient"]),
    ).fetchone()
    where = row["to_address"]
    if now is None:
        raise _too_late(row, f"for {where}, and the account that was to post it is not bound any more")
    if row["forwards"] is not None and not row["addressed"]:
        if now["state"] != "boss":
            raise _too_late(row, f"for {where}, which is not the boss's any more")
    elif now["state"] not in ("allowed", "boss") or not now["may"]:
        who = row["sender_address"]
        raise _too_late(row, f"for {where}, where {who} may not post by {now['account']} as it is bound now")
    return int(now["id"])


def _too_late(row: EnvelopeRow, state: str) -> TooLate:
    return TooLate(id=f"e{row['id']}", action="retried", state=state)
