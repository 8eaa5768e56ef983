"""Time: the only module that reads the clock, and the parsing of times and durations that people write.

Inside hiboss a time is an integer: milliseconds since 1970, UTC.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from .errors import BadDuration, BadTime, BadTimeOfDay, BadTimezone, TooFar
from .quoting import nearest

DEFERRAL_YEARS = 100
_SURELY_NEAR_MS = (DEFERRAL_YEARS - 1) * 365 * 24 * 3600 * 1000
_RELATIVE = re.compile(r"([+-])((?:[0-9]{1,9}[YMDhms])+)")
_PART = re.compile(r"([0-9]+)([YMDhms])")
_CALENDAR = {"Y": "years", "M": "months", "D": "days"}
_ELAPSED = {"h": "hours", "m": "minutes", "s": "seconds"}
_NEVER_SET = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS: its monotonic clock also sleeps
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_ahead: int | None = None  # by how much the clock of the daemon is ahead of `elapsed`; see `follow`


def now() -> int:
    """Return the milliseconds since 1970. Call it on the event loop's thread and pass the value on."""
    return wall() if _ahead is None else elapsed() + _ahead


def wall() -> int:
    """Return what the clock of the machine shows, in milliseconds since 1970."""
    # datetime and not time.time(): freezegun does not freeze the latter on some threads.
    return to_ms(datetime.now(UTC))


def follow(ahead: int | None) -> None:
    """Let `now` be so much ahead of `elapsed`, whatever the wall clock shows; None: follow the wall clock.

    When somebody sets the clock, the daemon goes over to it in one moment, together with everything
    that waits (routing/clock_watch.py). Until then its own clock goes on as if nothing had happened.
    """
    global _ahead
    _ahead = ahead


def elapsed() -> int:
    """Return milliseconds of a clock that nobody sets; it also runs while the machine sleeps.

    Only differences mean something. The difference to `wall` changes when somebody sets the clock.
    """
    return time.clock_gettime_ns(_NEVER_SET) // 1_000_000


def machine_boot() -> str:
    """Return what identifies this boot of the machine, since which `elapsed` counts; '' if unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def to_ms(moment: datetime) -> int:
    """Return a moment as milliseconds since 1970."""
    # Integer arithmetic: a float of seconds loses milliseconds far from 1970.
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int, zone: tzinfo = UTC) -> datetime:
    """Return milliseconds since 1970 as a moment in a zone."""
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone)


@lru_cache(maxsize=4_096)  # a list shows most times again and again
def iso(ms: int) -> str:
    """Return 2026-01-28T12:08:45.120Z: the form of times at every API and in every export."""
    minute, rest = divmod(ms, 60_000)
    seconds = f"{rest:05}"  # and milliseconds
    return f"{_minute(minute)}{seconds[:2]}.{seconds[2:]}Z"


@lru_cache(maxsize=1_024)
def _minute(number: int) -> str:
    """Return 2026-01-28T12:08: for a minute since 1970. The calendar is most of the cost of a new time."""
    return from_ms(number * 60_000).isoformat(timespec="minutes")[:-6] + ":"


def iso_or_none(ms: int | None) -> str | None:
    """Return `iso(ms)`, or None for None."""
    return None if ms is None else iso(ms)


def local(ms: int, zone: tzinfo) -> str:
    """Return 2026-01-28T20:08:45+08:00: the form of times for people and agents."""
    return from_ms(ms, zone).isoformat(timespec="seconds")


def zone(name: str) -> ZoneInfo:
    """Return the time zone with this IANA name; raise BadTimezone if there is none."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # OSError: 'Europe' is a directory in the zone database
        hint = nearest(name, list(available_timezones()))
        raise BadTimezone(value=name[:80] or "''", hint=hint) from None


def local_zone_name() -> str:
    """Return the IANA name of the machine's own zone, or UTC when it has none."""
    from tzlocal import get_localzone_name  # only setup needs it

    try:
        name = os.environ.get("TZ", "").lstrip(":") or get_localzone_name() or "UTC"
        return str(zone(name))
    except (BadTimezone, LookupError, ValueError):  # the machine's own settings contradict each other
        return "UTC"


def day(ms: int, zone: tzinfo) -> tuple[int, int]:
    """Return when the day of a moment begins and ends in a zone, in milliseconds."""
    first = from_ms(ms, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    # Step from noon to noon: a day can have 23 or 25 hours, and midnight may not exist.
    noon = first.replace(hour=12) + timedelta(days=1)
    return to_ms(first), to_ms(noon.replace(hour=0))


def parse(text: str, *, now: int, zone: tzinfo) -> int:
    """Return the moment that `text` means, in milliseconds; it may be in the past."""
    try:
        if match := _RELATIVE.fullmatch(text.strip()):
            moment = _relative(match, now, zone)
        else:
            moment = to_ms(_iso(text.strip(), zone))
        from_ms(moment)  # a time that cannot be shown must not be stored
    except OverflowError:
        raise BadTime(value=text[:60], why="it is outside the years 1 to 9999") from None
    return moment


_LENGTH = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)s)?")


def duration(text: str, *, most: int) -> int:
    """Return a duration like 90s, 10m or 1h30m in milliseconds; it must be from 1 to `most`."""
    match = _LENGTH.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise BadDuration(value=text.strip()[:40] or "''", why="")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    length = round((hours * 3600 + minutes * 60 + seconds) * 1000)
    if not 1 <= length <= most:
        why = ": it is zero" if length < 1 else f": at most {most // 3_600_000}h is possible"
        raise BadDuration(value=text[:40], why=why)
    return length


def length(seconds: int) -> str:
    """Return a duration as `duration` reads it, like 1h30m."""
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


def time_of_day(text: str) -> str:
    """Return a time of a day as 04:00; raise BadTimeOfDay if it is none."""
    match = _TIME_OF_DAY.fullmatch(text.strip())
    if match is None:
        raise BadTimeOfDay(value=text.strip()[:40])
    return f"{match[1]:0>2}:{match[2]}"


def deliver_at(text: str, *, now: int, zone: tzinfo) -> int | None:
    """Return the delivery time in milliseconds; None if it is now or in the past, so already due."""
    moment = parse(text, now=now, zone=zone)
    if moment - now > _SURELY_NEAR_MS:  # only then: the calendar costs more than all the rest
        from dateutil.relativedelta import relativedelta  # the import takes 15 ms; the CLI does without it

        if moment > to_ms(from_ms(now, zone) + relativedelta(years=DEFERRAL_YEARS)):
            raise TooFar(value=text[:60], years=DEFERRAL_YEARS)
    return moment if moment > now else None


def _relative(match: re.Match[str], now: int, zone: tzinfo) -> int:
    from dateutil.relativedelta import relativedelta

    sign = 1 if match[1] == "+" else -1
    amounts: dict[str, int] = {}
    for digits, unit in _PART.findall(match[2]):
        if unit in amounts:
            raise BadTime(value=match[0][:60], why=f"the unit {unit} is given twice")
        amounts[unit] = sign * int(digits)
    try:
        # Years, months and days move the wall clock of the boss's zone (+1D is the same
        # hour tomorrow, also across a clock change); hours, minutes and seconds are elapsed time.
        calendar = {_CALENDAR[u]: n for u, n in amounts.items() if n and u in _CALENDAR}
        moment = from_ms(now, zone)
        if calendar:
            moment += relativedelta(**calendar)  # type: ignore[arg-type]
        elapsed = {_ELAPSED[u]: n for u, n in amounts.items() if u in _ELAPSED}
        return to_ms(moment) + timedelta(**elapsed) // timedelta(milliseconds=1)
    except ValueError:  # relativedelta raises it for a year outside 1..9999
        raise OverflowError from None


def _iso(text: str, zone: tzinfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        why = (
            "the units are Y M D h m s, upper or lower case as written here"
            if text.startswith(("+", "-"))
            else "it is neither relative nor ISO 8601"
        )
        raise BadTime(value=text[:60] or "''", why=why[:120]) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
