"""Quiet hours of the boss: notices that come in them lie in his box, and are posted at their end as a digest.

The setting `boss.quiet_hours` is read each time, with his time zone: a changed one counts at once for
everything that waits. So no row says when its wait ends. The digest is in quiet_digest.py.
"""

from __future__ import annotations

from ..core import quiet_hours
from ..core.clock import zone
from ..core.settings import Settings
from . import forwarding
from .boss import boss_timezone
from .connection import Connection
from .group_commit import Tx


def quiet_until(connection: Connection | Tx, settings: Settings, now: int) -> int | None:
    """Return when the quiet hours of the boss end that it is now; None if it is not quiet now.

    Inside the writer, `settings` is `tx.settings`.
    """
    if not settings.quiet_hours:  # most have none: spare them the read
        return None
    return quiet_hours.quiet_until(settings.quiet_hours, zone(boss_timezone(connection)), now)


def hold(tx: Tx, box: int) -> None:
    """Let a notice in the boss's box wait for the digest, if it would be posted to a chat of his now."""
    if forwarding.place_of(tx, box) is not None:
        tx.execute("INSERT INTO quiet_notice (envelope) VALUES (?)", (box,))


def digest_at(connection: Connection, settings: Settings, now: int) -> int | None:
    """Return when a digest is to be sent: `now`, or at the end of the quiet hours; None: nothing waits."""
    if connection.execute("SELECT 1 FROM quiet_notice LIMIT 1").fetchone() is None:
        return None
    return quiet_until(connection, settings, now) or now
