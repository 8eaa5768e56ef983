"""Quiet hours: the times of the boss's day in which notices wait. Like 22:00-07:00, also over midnight.

They begin and end by the clock on the wall. As with schedules (schedule_times.py), a time that does not
exist because the clock is changed is the first minute that does, and one that exists twice is its first.
"""

from __future__ import annotations

import re
from datetime import tzinfo

from .schedule_times import cron_slots

_TIME = r"([01]?[0-9]|2[0-3]):([0-5][0-9])"
_HOURS = re.compile(rf"\s*{_TIME}\s*-\s*{_TIME}\s*", re.ASCII)


def check(hours: str) -> str | None:
    """Return quiet hours as 22:00-07:00, '' for none; None if they are not two different times of a day."""
    found = _HOURS.fullmatch(hours)
    if found is None:
        return None if hours.strip() else ""
    begin, end = f"{found[1]:0>2}:{found[2]}", f"{found[3]:0>2}:{found[4]}"
    return None if begin == end else f"{begin}-{end}"


def quiet_until(hours: str, zone: tzinfo, now: int) -> int | None:
    """Return when the quiet hours end that it is now, in milliseconds; None if it is not quiet now.

    `hours`: as `check` returns them. What is returned is later than `now`, and it is not quiet then.
    """
    if not hours:
        return None
    begin, end = hours.split("-")
    until, over_midnight = None, begin > end
    moment = now
    while True:
        begins, ends = _next(begin, zone, moment), _next(end, zone, moment)
        if begins is None or ends is None:  # the calendar ends
            return until
        # Both in one moment: the minutes between them do not exist today. Over midnight, those are the
        # ones that are not quiet, so it stays quiet; else there are no quiet hours today.
        if ends > begins or (ends == begins and not over_midnight):
            return until
        moment = until = ends


def _next(time: str, zone: tzinfo, after: int) -> int | None:
    hour, minute = time.split(":")
    return next(cron_slots(f"{int(minute)} {int(hour)} * * *", after, zone), None)
