"""Times as people read them, in the boss's zone."""

from __future__ import annotations

import sys

from .. import output

NARROW = 100  # columns; a narrower table leaves the year out


def moment(utc: str | None, timezone: str) -> str | None:
    """2026-01-28T20:08:45+08:00 from the API's UTC."""
    if utc is None:
        return None
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return datetime.fromisoformat(utc).astimezone(ZoneInfo(timezone)).isoformat(timespec="seconds")


def short_moment(utc: str | None, timezone: str, narrow: int = NARROW) -> str:
    """2026-01-28 20:08 for a table, or 01-28 20:08 where it is narrower than `narrow`."""
    start = 5 if output.columns(sys.stdout) < narrow else 0
    return (moment(utc, timezone) or "")[start:16].replace("T", " ")


def lasted(start: str, end: str | None) -> str:
    """How long something took; `…` while it has not ended."""
    if end is None:
        return "…"
    from datetime import datetime

    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return f"{seconds:.1f}s" if seconds < 60 else f"{seconds / 60:.0f}m"
