"""When schedules are due: cron expressions, intervals and single times.

A cron expression has five fields as in cron(5), or is a name like @daily. 0 and 7 are Sunday.
When day of month and day of week are both given, either one is enough. In a zone with clock
changes, a fixed time that does not exist fires at the first minute that does, and one that
exists twice fires once. A schedule for every hour or every minute follows elapsed time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from cronsim import CronSim, CronSimError

from . import clock
from .errors import BadCron
from .quoting import nearest

NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EXPRESSION_BYTES = 1_000  # enough to list every minute, hour, day, month and weekday
_WEEK_MS = 7 * 24 * 3_600_000  # no zone changes its clock twice in one week
_RANGE_OF_ONE = re.compile(r"\b(\w+)-\1/0*[1-9][0-9]*(?=,|$)", re.ASCII | re.IGNORECASE)


class Timing(NamedTuple):
    """When a schedule fires: exactly one of `cron`, `every_ms` and `at` is given."""

    cron: str | None
    every_ms: int | None
    at: int | None
    zone: tzinfo
    begun: int = 0  # intervals are counted from here

    def after(self, moment: int) -> int | None:
        """Return the first slot after a moment; None if there is none."""
        if self.cron is not None:
            return next(cron_slots(self.cron, moment, self.zone), None)
        if self.every_ms is not None:
            passed = max(moment - self.begun, 0) // self.every_ms
            return self.begun + (passed + 1) * self.every_ms
        return self.at if self.at is not None and self.at > moment else None

    def shortest(self, moment: int) -> int | None:
        """Return the shortest time between slots, of a cron expression among 20; None: it fires once."""
        if self.cron is None:
            return self.every_ms
        slots = [*islice(cron_slots(self.cron, moment, self.zone), 20)]
        return min((later - slot for slot, later in pairwise(slots)), default=None)

    def slots_from(self, first: int) -> Iterator[int]:
        """Yield this slot and every one after it, in order."""
        yield first
        if self.cron is not None:
            yield from cron_slots(self.cron, first, self.zone)
            return
        slot = self.after(first)
        while slot is not None:
            yield slot
            slot = self.after(slot)


def check(expression: str) -> str:
    """Return the cron expression if it is valid and can be due; raise BadCron if not."""
    fields = _checked_fields(expression)
    start = clock.from_ms(0)
    try:
        next(CronSim(fields, start))
    except (CronSimError, StopIteration, ValueError) as error:
        # ValueError: a number with thousands of digits.
        why = str(error)[:60].lower() or "it is never due"
        raise BadCron(value=_quoted(expression), why=why) from None
    return expression.strip()


def _checked_fields(expression: str) -> str:
    """Return the five fields of an expression; raise BadCron for one that is too long or has not five."""
    # Before anything else is done with it: a long list of values costs seconds, at each slot again.
    if len(expression) > EXPRESSION_BYTES or len(expression.encode(errors="replace")) > EXPRESSION_BYTES:
        why = f"it is longer than {EXPRESSION_BYTES} bytes"
        raise BadCron(value=_quoted(expression[:200]), why=why)
    return _fields(expression)


def _quoted(expression: str) -> str:
    return expression.strip()[:80] or "''"


@lru_cache(maxsize=256)
def _fields(expression: str) -> str:
    words = expression.split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0].lower() not in NAMES:
            hint = nearest(words[0], list(NAMES))
            raise BadCron(value=_quoted(expression), why=f"there is no {words[0][:20]}{hint}")
        return NAMES[words[0].lower()]
    if len(words) != 5:
        fields = "1 field" if len(words) == 1 else f"{len(words)} fields"
        raise BadCron(value=_quoted(expression), why=f"it has {fields} instead of 5")
    # A range of one value with a step (5-5/2) means that value; cronsim would continue after it.
    return " ".join(_RANGE_OF_ONE.sub(r"\1", word) for word in words)


def cron_slots(expression: str, after: int, zone: tzinfo) -> Iterator[int]:
    """Yield every slot after a moment, in order."""
    fields = _checked_fields(expression)
    minute, hour = fields.split()[:2]
    often = minute.startswith("*") or hour.startswith("*")
    slots = _elapsed(fields, after, zone) if often else _fixed(fields, after, zone)
    try:
        yield from slots
    except (CronSimError, OverflowError):
        return


def _fixed(fields: str, after: int, zone: tzinfo) -> Iterator[int]:
    for moment in CronSim(fields, clock.from_ms(after, zone)):
        slot = clock.to_ms(moment)
        if slot > after:  # in the second pass of a repeated hour, cronsim begins with the first pass
            yield slot


def _elapsed(fields: str, after: int, zone: tzinfo) -> Iterator[int]:
    """Yield every minute whose wall clock matches, also when that time exists twice.

    Computed for one UTC offset at a time: cronsim gives wrong times across a clock change of half
    an hour or at midnight.
    """
    begin = clock.from_ms(after, zone).replace(tzinfo=None)
    walls = CronSim(fields, begin)
    wall = next(walls, None)  # nothing else matches between `begin` and this one
    while wall is not None:
        offset = timezone(clock.from_ms(after, zone).utcoffset() or timedelta())
        slot = clock.to_ms(wall.replace(tzinfo=offset))
        change = _offset_change(after, slot, zone)
        if change is None:
            yield slot
            after, begin, wall = slot, wall, next(walls, None)
            continue
        after = change
        here = clock.from_ms(change, zone).replace(tzinfo=None) - timedelta(seconds=1)  # include that minute
        if not begin <= here < wall:
            begin, walls = here, CronSim(fields, here)
            wall = next(walls, None)


def _offset_change(after: int, until: int, zone: tzinfo) -> int | None:
    """Return the first moment up to `until` with another UTC offset than `after` has; None if none."""
    offset = clock.from_ms(after, zone).utcoffset()
    while after < until:
        ahead = min(after + _WEEK_MS, until)
        if clock.from_ms(ahead, zone).utcoffset() != offset:
            while ahead - after > 1:
                middle = (after + ahead) // 2
                if clock.from_ms(middle, zone).utcoffset() == offset:
                    after = middle
                else:
                    ahead = middle
            return ahead
        after = ahead
    return None
