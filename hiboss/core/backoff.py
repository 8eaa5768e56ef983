"""The delays between attempts after failures: one policy for everything that is retried."""

from __future__ import annotations

import math
import random
from datetime import timedelta

SECONDS = (5.0, 30.0, 120.0, 600.0, 3600.0)  # then every hour
LONGEST_SECONDS = 24 * 3600.0  # whatever a platform asks for
SHORTEST_SECONDS = 0.05
JITTER = 0.1  # of a delay, so that not everybody tries at the same moment


def step(failing_seconds: float) -> int:
    """Return which delay comes next, for something that has failed for so long.

    It depends on the time and not on the number of attempts: new mail may cause many attempts
    within a minute, and a minute's outage must not cost an hour.
    """
    passed = 0.0
    for number, seconds in enumerate(SECONDS[:-1]):
        passed += seconds * (1 - JITTER)
        if failing_seconds < passed:
            return number
    return len(SECONDS) - 1


def delay_seconds(failing_seconds: float) -> float:
    """Return the seconds to wait before the next attempt (with jitter)."""
    return _jittered(SECONDS[step(failing_seconds)])


def next_wait(failing_seconds: float, retry_after: object) -> tuple[float, bool]:
    """Return the seconds to wait, and whether the other side named that time (`retry_after`)."""
    named = named_seconds(retry_after)
    if named is None:
        return delay_seconds(failing_seconds), False
    # Who says "at once" again and again is not tried all the time.
    shortest = min(max(failing_seconds, SHORTEST_SECONDS), 1.0)
    return min(max(named, shortest), LONGEST_SECONDS), True


def named_seconds(given: object) -> float | None:
    """Return the seconds that an error names, also as a text or a timedelta; None if it names none."""
    if isinstance(given, timedelta):
        return given.total_seconds()
    try:
        seconds = float(given)  # type: ignore[arg-type] # somebody else's value
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and not isinstance(given, (bool, bytes)) else None


def delays_ms() -> tuple[int, ...]:
    """Return all delays in order, in milliseconds (with jitter)."""
    return tuple(int(_jittered(seconds) * 1000) for seconds in SECONDS)


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)
