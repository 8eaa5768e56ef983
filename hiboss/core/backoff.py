"""How long to wait after a failure, and then after another: one policy for all who try again."""

from __future__ import annotations

import random

SECONDS = (5.0, 30.0, 120.0, 600.0, 3600.0)  # then hourly


def after(failures: int) -> float:
    """Seconds to wait when so many have gone before."""
    return SECONDS[min(failures, len(SECONDS) - 1)] * random.uniform(0.9, 1.1)


def steps() -> tuple[int, ...]:
    """The same for each failure in turn, in milliseconds."""
    return tuple(int(after(failures) * 1000) for failures in range(len(SECONDS)))
