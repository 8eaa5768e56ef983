"""Reaction changes: the emoji that an account is to have on a message, because agents of it have reacted.

A bot has one reaction on a message: the last that one of its agents set. The change is written in the
transaction of the reaction, and stays until the platform shows it (hiboss/routing/post_changes.py). What
takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.envelope import Lane
from ..core.escaping import emoji as shown_emoji
from ..core.escaping import quote, visible
from . import notices, reactions
from .accounts import SAME_ACCOUNT
from .connection import Connection
from .group_commit import Tx
from .lane_failures import GIVE_UP_FAILURES, GIVE_UP_MS
from .stray_forwards import STRAYS


class Shown(NamedTuple):
    """A message on a platform, and the account that can react to it there."""

    lane: Lane
    place: str  # the platform's id of the chat
    platform_id: str  # of the message
    address: str  # of the chat


def shown_to(connection: Connection | Tx, message: int, agent: int) -> list[Shown]:
    """Return where a message is that accounts of an agent can react to.

    It came in by the account, or another account posted it in a group that both are in. Not what the
    account posted itself: nobody could tell who reacted.
    """
    rows = connection.execute(_SHOWN, (message, agent)).fetchall()
    found = {row["binding"]: row for row in reversed(rows)}  # the first of each account
    return [
        Shown(Lane(row["address"], row["binding"]), row["chat"], row["platform_id"], row["full"])
        for row in found.values()
    ]


_MAY_POST = "c.state IN ('allowed', 'boss')"
_SHOWN = f"""
    SELECT live.id AS binding, c.address, c.platform_id AS chat, u.platform_id,
           a.kind || ':' || a.name AS full
    FROM platform_update u
    JOIN binding live ON live.removed_at IS NULL AND live.id IN {SAME_ACCOUNT.format("u.binding")}
    JOIN binding_agent ba ON ba.binding = live.id AND ba.agent = ?2
    JOIN contact c ON c.binding = live.id AND {_MAY_POST}
         AND u.chat IN (c.platform_id, iif(c.kind = 'private', c.was, NULL))
    JOIN address a ON a.id = c.address
    WHERE u.message = ?1 AND u.platform_id IS NOT NULL
    UNION ALL
    SELECT live.id, l.address, c.platform_id, p.platform_id, a.kind || ':' || a.name
    FROM envelope e INDEXED BY envelope_message
    JOIN post p ON p.envelope = e.id AND p.platform_id IS NOT NULL AND p.deleted_at IS NULL AND p.chat IS NULL
    JOIN place l ON l.address = e.recipient
    JOIN binding live ON live.id = l.binding AND live.removed_at IS NULL
         AND live.id NOT IN {SAME_ACCOUNT.format("e.binding")}
    JOIN binding_agent ba ON ba.binding = live.id AND ba.agent = ?2
    JOIN contact c ON c.id = l.contact AND c.kind <> 'private' AND {_MAY_POST}
    JOIN address a ON a.id = l.address
    WHERE e.message = ?1 AND e.binding IS NOT NULL AND NOT ({STRAYS})
"""


def add(tx: Tx, message: int, agent: int) -> list[Shown]:
    """Note that the accounts of an agent are to show its reaction, or none; return where."""
    found = shown_to(tx, message, agent)
    for one in found:
        tx.execute(
            """
            INSERT INTO reaction_change (message, binding, asker, emoji) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (message, binding) DO UPDATE SET
                asker = ?3, emoji = ?4, changes = changes + 1, failures = 0, first_failed_at = NULL
            """,
            (message, one.lane.binding, agent, reactions.of_account(tx, message, one.lane.binding or 0)),
        )
    return found


def left(connection: Connection | Tx) -> list[tuple[int, int]]:
    """Return the message and the binding of each change that is still to be made."""
    rows = connection.execute("SELECT message, binding FROM reaction_change ORDER BY message, binding")
    return [(row["message"], row["binding"]) for row in rows]


class Change(NamedTuple):
    """A change as it is now."""

    shown: Shown | None  # None: the account cannot react to it any more
    emoji: str | None
    changes: int
    failing_since: int | None


def get(connection: Connection | Tx, message: int, binding: int) -> Change | None:
    """Return a change; None if it is made."""
    row = connection.execute(
        """
        SELECT r.*, m.deleted_at FROM reaction_change r JOIN message m ON m.id = r.message
        WHERE r.message = ? AND r.binding = ?
        """,
        (message, binding),
    ).fetchone()
    if row is None:
        return None
    shown = [one for one in shown_to(connection, message, row["asker"]) if one.lane.binding == binding]
    there = shown[0] if shown and row["deleted_at"] is None else None
    return Change(there, row["emoji"], row["changes"], row["first_failed_at"])


def made(tx: Tx, message: int, binding: int, changes: int) -> None:
    """Forget a change that was made, or cannot be; not if it is another one meanwhile."""
    tx.execute(
        "DELETE FROM reaction_change WHERE message = ? AND binding = ? AND changes = ?",
        (message, binding, changes),
    )


def refused(tx: Tx, message: int, binding: int, change: Change, why: str, now: int) -> None:
    """Forget a change that the platform refuses, and tell the agent. Its reaction stays stored here."""
    row = tx.execute(
        """
        SELECT a.kind, a.name, a.retired_at FROM reaction_change r JOIN address a ON a.id = r.asker
        WHERE r.message = ? AND r.binding = ? AND r.changes = ?
        """,
        (message, binding, change.changes),
    ).fetchone()
    if row is None:
        return
    made(tx, message, binding, change.changes)
    if row["retired_at"] is None and change.shown is not None:
        what = "The removal of your reaction" if change.emoji is None else f"Your {shown_emoji(change.emoji)}"
        text = f"{what} on m{message} is not shown in {visible(change.shown.address)}. Reason: {quote(why)}"
        notices.notify(tx, Address(row["kind"], row["name"]), text, now, about=message)


def failed(tx: Tx, message: int, binding: int, change: Change, why: str, now: int) -> bool:
    """Record that a reaction could not be shown now; return whether it was given up: it failed for a day."""
    row = tx.execute(
        """
        UPDATE reaction_change SET failures = failures + 1, first_failed_at = ifnull(first_failed_at, ?1)
        WHERE message = ?2 AND binding = ?3 RETURNING failures, first_failed_at
        """,
        (now, message, binding),
    ).fetchone()
    if row is None or row["failures"] < GIVE_UP_FAILURES or row["first_failed_at"] > now - GIVE_UP_MS:
        return False
    refused(tx, message, binding, change, why, now)
    return True
