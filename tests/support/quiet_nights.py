"""Quiet hours around the present moment, for daemons with the real clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon


def now_quiet() -> str:
    """Return quiet hours that have begun hours ago, and end in hours (the boss of the tests is in UTC)."""
    now = datetime.now(UTC)
    return f"{now - timedelta(hours=6):%H:%M}-{now + timedelta(hours=6):%H:%M}"


def set_hours(daemon: RunningDaemon, hours: str) -> None:
    """Write other quiet hours into the file; a reload or a start reads it."""
    Path(daemon.home.config).write_text(f'[boss]\nquiet_hours = "{hours}"\n')


def begin_night(daemon: RunningDaemon) -> None:
    set_hours(daemon, now_quiet())
    daemon.call("config.reload", token=daemon.token("boss"))


def end_night(daemon: RunningDaemon) -> None:
    """End the quiet hours: what waits is told at once."""
    set_hours(daemon, "")
    daemon.call("config.reload", token=daemon.token("boss"))
