"""Quiet hours: which texts say them, and when they end, also over midnight and when the clock changes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hiboss.core import clock, quiet_hours

MINUTE = 60_000
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # changed its clock at midnight
    "Australia/Lord_Howe",  # changes it by half an hour
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
)
TIMES = st.integers(0, 24 * 60 - 1).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")


def end(hours: str, now: str, zone: str = "Europe/Berlin") -> str | None:
    """When it ends, by the clock of the zone; `now` may have an offset."""
    place = ZoneInfo(zone)
    moment = datetime.fromisoformat(now)
    at = clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=place))
    until = quiet_hours.quiet_until(hours, place, at)
    return None if until is None else f"{clock.from_ms(until, place):%Y-%m-%d %H:%M%z}"


@pytest.mark.parametrize(
    ("written", "hours"),
    [
        ("22:00-07:00", "22:00-07:00"),
        (" 22:00 - 7:00 ", "22:00-07:00"),
        ("0:00-23:59", "00:00-23:59"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_hours_are_two_times_of_a_day_or_nothing(written: str, hours: str) -> None:
    assert quiet_hours.check(written) == hours


@pytest.mark.parametrize(
    "written",
    [
        "22-7",
        "22:00",
        "22:00-",
        "22:00-24:00",
        "22:60-07:00",
        "22:00-22:00",
        "7:00-07:00",
        "22:00–07:00",
        "never",
        "22:00-07:00 UTC",
        "22:00-07:00-08:00",
        "10pm-7am",
        "２２:００-07:00",
        "-",
        "22:00-07:00\x00",
    ],
)
def test_everything_else_is_refused(written: str) -> None:
    assert quiet_hours.check(written) is None


ENDS = [
    ("22:00-07:00", "2030-01-10 21:59:59", None),
    ("22:00-07:00", "2030-01-10 22:00", "2030-01-11 07:00+0100"),
    ("22:00-07:00", "2030-01-11 00:00", "2030-01-11 07:00+0100"),
    ("22:00-07:00", "2030-01-11 06:59:59", "2030-01-11 07:00+0100"),
    ("22:00-07:00", "2030-01-11 07:00", None),
    ("13:00-14:30", "2030-01-11 12:59", None),
    ("13:00-14:30", "2030-01-11 13:00", "2030-01-11 14:30+0100"),
    ("13:00-14:30", "2030-01-11 14:30", None),
    ("22:00-00:00", "2030-12-31 23:59", "2031-01-01 00:00+0100"),
    ("22:00-00:00", "2031-01-01 00:00", None),
    ("", "2030-01-11 03:00", None),
    # In Berlin, at 02:00, the clock goes to 03:00.
    ("22:00-07:00", "2030-03-30 23:00", "2030-03-31 07:00+0200"),
    ("22:00-02:30", "2030-03-31 01:59", "2030-03-31 03:00+0200"),
    ("22:00-02:30", "2030-03-31 03:00", None),
    ("02:30-07:00", "2030-03-31 01:59", None),
    ("02:30-07:00", "2030-03-31 03:00", "2030-03-31 07:00+0200"),
    ("02:10-02:50", "2030-03-31 01:59", None),  # none of it exists on that day
    ("02:50-02:10", "2030-03-31 01:59", "2030-04-01 02:10+0200"),  # the rest of the day does not
    # At 03:00 it goes back to 02:00.
    ("22:00-07:00", "2030-10-26 23:00", "2030-10-27 07:00+0100"),
    ("22:00-02:30", "2030-10-27 02:29:00+02:00", "2030-10-27 02:30+0200"),
    ("22:00-02:30", "2030-10-27 02:10:00+01:00", None),  # they have ended the first time
    ("02:30-07:00", "2030-10-27 02:10:00+01:00", "2030-10-27 07:00+0100"),  # they have begun
]


def test_they_last_from_the_first_time_until_the_second_once_also_when_the_clock_changes() -> None:
    assert [(hours, now, end(hours, now)) for hours, now, _ in ENDS] == ENDS


def test_another_zone_has_them_at_another_moment() -> None:
    now = "2030-01-10T23:00:00+00:00"
    assert end("22:00-07:00", now, "UTC") == "2030-01-11 07:00+0000"
    assert end("22:00-07:00", now, "America/New_York") is None
    assert end("22:00-07:00", now, "Asia/Kathmandu") == "2030-01-11 07:00+0545"


@given(
    begin=TIMES,
    finish=TIMES,
    zone=st.sampled_from(ZONES),
    now=st.integers(
        clock.to_ms(datetime(2010, 1, 1, tzinfo=UTC)), clock.to_ms(datetime(2035, 1, 1, tzinfo=UTC))
    ),
)
@example(begin="02:50", finish="02:10", zone="Europe/Berlin", now=1901149200000)
@example(begin="00:30", finish="00:15", zone="America/Sao_Paulo", now=1540695600000)
def test_the_end_is_always_later_and_it_is_not_quiet_then(
    begin: str, finish: str, zone: str, now: int
) -> None:
    hours = quiet_hours.check(f"{begin}-{finish}")
    if hours is None:
        assert begin == finish
        return
    place = ZoneInfo(zone)
    until = quiet_hours.quiet_until(hours, place, now)
    if until is None:
        return
    assert until > now and quiet_hours.quiet_until(hours, place, until) is None
    # All the time until then it is quiet, and until the same moment.
    for moment in (now + 1, (now + until) // 2, until - MINUTE, until - 1):
        if now < moment < until:
            assert quiet_hours.quiet_until(hours, place, moment) == until
