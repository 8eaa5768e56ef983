"""The delays between attempts after failures: one policy for everything that is retried."""

from __future__ import annotations

import random

SECONDS = (5.0, 30.0, 120.0, 600.0, 3600.0)  # then every hour


def delay_seconds(failures: int) -> float:
    """Return the seconds to wait before the next attempt, after `failures` earlier failures (with jitter)."""
    return SECONDS[min(failures, len(SECONDS) - 1)] * random.uniform(0.9, 1.1)


def delays_ms() -> tuple[int, ...]:
    """Return the delays after the first failure, the second and so on, in milliseconds."""
    return tuple(int(delay_seconds(failures) * 1000) for failures in range(len(SECONDS)))
