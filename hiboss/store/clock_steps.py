"""Correct the store after somebody set the clock.

A lease of ten minutes lasts ten minutes, and a retry in 30 seconds comes in 30 seconds, whatever the
wall clock shows meanwhile. So when the clock was set by some amount, the stored ends of such waits move
by the same amount. What waits for a moment (deferred or snoozed mail, a cron expression) stays.
"""

from __future__ import annotations

from . import ack_deadlines, ask_times, envelopes, lanes, provider_sessions
from .connection import Connection
from .group_commit import Tx


def known_offset(connection: Connection, machine_boot: str) -> int | None:
    """Return by how much the wall clock was ahead of the elapsed time when last looked; None if unknown."""
    row = connection.execute("SELECT value FROM config WHERE key = 'clock_offset'").fetchone()
    boot, _, offset = row["value"].partition(" ") if row else ("", "", "")
    return int(offset) if boot and boot == machine_boot else None


def note_offset(tx: Tx, machine_boot: str, offset: int) -> None:
    """Store by how much the wall clock is ahead of the elapsed time."""
    tx.execute(
        """
        INSERT INTO config (key, value) VALUES ('clock_offset', ?1)
        ON CONFLICT (key) DO UPDATE SET value = ?1
        """,
        (f"{machine_boot} {offset}",),
    )


def move_waits(tx: Tx, machine_boot: str, offset: int, step: int, before: int) -> None:
    """Move all waits for a length of time by `step` ms. `before`: the time before the clock was set.

    In one transaction, also with many waits: a crash must not make some of them move twice, and
    nobody may see some moved and others not.
    """
    note_offset(tx, machine_boot, offset)
    lanes.move_waits(tx, step)
    envelopes.move_waits(tx, step, before)
    ask_times.move_waits(tx, step)
    ack_deadlines.move_waits(tx, step)
    provider_sessions.move_times(tx, step)
