"""When a session is not resumed though nobody ended it: each day at a time, after a pause, when it is full.

It is decided when a turn begins, in its transaction, so nothing has to wait for these times.
"""

from __future__ import annotations

from ..core.clock import zone
from ..core.schedule_times import cron_slots
from .boss import boss_timezone
from .connection import Connection, Row
from .group_commit import Tx

LOST, REFRESHED, CHANGED = "lost", "refreshed", "changed"
RESET, IDLE, FULL = "reset", "idle", "full"
BY_POLICY = (RESET, IDLE, FULL)


def why_not_resumed(
    connection: Connection | Tx, session: Row, agent: Row, settings: str | None, now: int
) -> str | None:
    """Return why the session of an agent is not resumed now; None: it is.

    `settings`: those that a session of its provider depends on, as they are now. Of an id that no turn has
    confirmed only they count: there is nothing yet that could be old or full.
    """
    if session["stale_at"] is not None:
        return str(session["stale_why"])
    if session["settings"] != settings:
        return CHANGED
    if session["begun_at"] is None:
        return None
    if agent["session_reset"] is not None and _was_reset(connection, agent["session_reset"], session, now):
        return RESET
    if agent["session_idle"] is not None and now - session["used_at"] > agent["session_idle"] * 1000:
        return IDLE
    if agent["session_context"] is not None and (session["context"] or 0) > agent["session_context"]:
        return FULL
    return None


def _was_reset(connection: Connection | Tx, at: str, session: Row, now: int) -> bool:
    """Tell whether a time of the boss's day has come since a session began.

    A time that the clock leaves out, or shows twice, counts as in schedules (core/schedule_times.py).
    """
    hour, minute = at.split(":")
    times = cron_slots(
        f"{int(minute)} {int(hour)} * * *", session["begun_at"], zone(boss_timezone(connection))
    )
    return next(times, now + 1) <= now
