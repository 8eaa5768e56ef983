"""What happens to an open ask with time: reminders to who is asked, and its end.

`wake_at` of an ask is when the daemon must look at it: its next reminder, or its end if that is earlier.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from . import ask_messages, ask_replies, asks
from .ask_closing import Settlement
from .asks import REMINDERS_MS
from .connection import Connection, Row
from .group_commit import Tx
from .quiet_hours import quiet_until

CHUNK = 100
RETRY_MS = 60_000  # after a defect: one ask must not keep the others


def due(connection: Connection | Tx, now: int) -> list[int]:
    """Return the asks whose time has come, in order: some at once."""
    rows = connection.execute(
        """
        SELECT id FROM ask INDEXED BY ask_wake WHERE wake_at IS NOT NULL AND wake_at <= ?
        ORDER BY wake_at, id LIMIT ?
        """,
        (now, CHUNK),
    )
    return [int(row["id"]) for row in rows.fetchall()]


def wake(tx: Tx, number: int, now: int) -> None:
    """Remind of an ask whose time has come, or end it if its time is over."""
    ask = asks.need(tx, number)
    if ask["wake_at"] is None or ask["wake_at"] > now:  # it was settled meanwhile, or moved
        return
    if ask["expires_at"] is not None and ask["expires_at"] <= now:
        asks.settle(tx, number, Settlement("expired", ask["fallback"], None), now)
    else:
        _remind(tx, ask, now)


def postpone(tx: Tx, number: int, now: int) -> None:
    """Look at an ask again later: a defect kept it from being reminded of, or ended."""
    tx.execute("UPDATE ask SET wake_at = ? WHERE id = ? AND wake_at <= ?", (now + RETRY_MS, number, now))


def _remind(tx: Tx, ask: Row, now: int) -> None:
    """Remind who is asked, unless it is the night of the boss: then at its end."""
    to_boss = ask["asked"] == tx.cache.reach().boss
    later = quiet_until(tx, tx.settings, now) if to_boss else None
    if later is not None:
        _plan(tx, ask, ask["reminders"], later)
        return
    # Those that were missed while no daemon ran are one. From the planned time, not from when it was asked:
    # that one moves when somebody sets the clock.
    sent = ask["reminders"] + 1
    while sent < len(REMINDERS_MS) and _following(ask, sent) <= now:
        sent += 1
    if _may_be_reminded(tx, ask):
        message = ask_replies.tell_asked(tx, ask, ask_messages.reminder(tx, ask), now)
        if message is not None and ask["asked_address"].startswith("user:"):
            asks.add_buttons(tx, message, ask["id"], asks.options_of(ask))
    _plan(tx, ask, sent, _following(ask, sent) if sent < len(REMINDERS_MS) else None)


def _following(ask: Row, sent: int) -> int:
    """Return when the reminder after so many is due."""
    return int(ask["wake_at"]) + REMINDERS_MS[sent] - REMINDERS_MS[ask["reminders"]]


def _may_be_reminded(tx: Tx, ask: Row) -> bool:
    """Tell whether who is asked has had the question: an agent that has not will get it with a turn."""
    waits = tx.execute(
        "SELECT 1 FROM envelope WHERE message = ? AND recipient = ? AND status = 0",
        (ask["message"], ask["asked"]),
    ).fetchone()
    return waits is None


def _plan(tx: Tx, ask: Row, sent: int, at: int | None) -> None:
    end = ask["expires_at"]
    wake_at = min((one for one in (at, end) if one is not None), default=None)
    tx.execute("UPDATE ask SET reminders = ?, wake_at = ? WHERE id = ?", (sent, wake_at, ask["id"]))


def move_waits(tx: Tx, step: int) -> None:
    """Move reminders and ends by `step` ms, because the clock was set by so much: an hour stays an hour."""
    tx.execute(
        """
        UPDATE ask SET wake_at = wake_at + ?1, expires_at = expires_at + ?1
        WHERE state = 'open' AND (wake_at IS NOT NULL OR expires_at IS NOT NULL)
        """,
        (step,),
    )
