"""When schedules are due: cron expressions, intervals and single times.

Cron has five fields as in cron(5), or a name like @daily: 0 and 7 are Sunday, and day of
month and day of week are alternatives when both are given. In a zone with clock changes a
fixed time that does not exist fires at the first minute that does, and one that comes twice
fires once; what runs every hour or minute runs in elapsed time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from functools import lru_cache
from typing import NamedTuple

from cronsim import CronSim, CronSimError

from . import clock
from .errors import BadCron, nearest

NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Timing(NamedTuple):
    """One of the first three is given."""

    cron: str | None
    every_ms: int | None
    at: int | None
    zone: tzinfo
    begun: int = 0  # from when an interval is counted

    def after(self, moment: int) -> int | None:
        """The first slot after a moment; None when there is none."""
        if self.cron is not None:
            return next(cron_slots(self.cron, moment, self.zone), None)
        if self.every_ms is not None:
            passed = max(moment - self.begun, 0) // self.every_ms
            return self.begun + (passed + 1) * self.every_ms
        return self.at if self.at is not None and self.at > moment else None


def check(expression: str) -> str:
    """The expression, when it is one that can ever be due."""
    fields = _fields(expression)
    start = clock.from_ms(0)
    try:
        next(CronSim(fields, start))
    except (CronSimError, StopIteration) as error:
        why = str(error).lower() or "it is never due"
        raise BadCron(value=expression[:80], why=why) from None
    return expression.strip()


@lru_cache(maxsize=256)
def _fields(expression: str) -> str:
    words = expression.split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0].lower() not in NAMES:
            raise BadCron(
                value=expression[:80], why=f"there is no {words[0][:20]}{nearest(words[0], list(NAMES))}"
            )
        return NAMES[words[0].lower()]
    if len(words) != 5:
        raise BadCron(value=expression[:80], why=f"it has {len(words)} fields instead of 5")
    return " ".join(words)


def cron_slots(expression: str, after: int, zone: tzinfo) -> Iterator[int]:
    """Every slot after a moment, in order."""
    moments = CronSim(_fields(expression), clock.from_ms(after, zone))
    while True:
        try:
            yield clock.to_ms(next(moments))
        except (CronSimError, StopIteration, OverflowError):
            return
