"""When schedules are due: cron(5), clock changes, and a comparison with a walk minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiboss.core import clock, schedule_times
from hiboss.core.errors import BadCron
from hiboss.core.schedule_times import Timing

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def times(expression: str, after: str, zone: str = "UTC", count: int = 3) -> list[str]:
    """Return the next slots as local times of a zone; `after` may have an offset."""
    place = ZoneInfo(zone)
    moment = datetime.fromisoformat(after)
    start = clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=place))
    found = islice(schedule_times.cron_slots(schedule_times.check(expression), start, place), count)
    return [f"{clock.from_ms(slot, place):%Y-%m-%d %H:%M%z}".removesuffix("+0000") for slot in found]


def days(expression: str, after: str, count: int = 4) -> list[str]:
    return [one.removesuffix(" 00:00") for one in times(expression, after, count=count)]


# --- the fields ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 9 * * *", ["2030-01-01 09:30", "2030-01-02 09:30", "2030-01-03 09:30"]),
        ("*/25 * * * *", ["2030-01-01 00:25", "2030-01-01 00:50", "2030-01-01 01:00"]),
        ("7-7/20 * * * *", ["2030-01-01 00:07", "2030-01-01 01:07", "2030-01-01 02:07"]),
        ("5/20 * * * *", ["2030-01-01 00:05", "2030-01-01 00:25", "2030-01-01 00:45"]),
        ("0 8-10 * * *", ["2030-01-01 08:00", "2030-01-01 09:00", "2030-01-01 10:00"]),
        ("0 8-20/6 * * *", ["2030-01-01 08:00", "2030-01-01 14:00", "2030-01-01 20:00"]),
        ("7,3,5 1 * * *", ["2030-01-01 01:03", "2030-01-01 01:05", "2030-01-01 01:07"]),
        ("0 0,12-13 2 * *", ["2030-01-02 00:00", "2030-01-02 12:00", "2030-01-02 13:00"]),
        ("0 0 1 feb,Apr *", ["2030-02-01 00:00", "2030-04-01 00:00", "2031-02-01 00:00"]),
        ("0 0 1 JUN-AUG *", ["2030-06-01 00:00", "2030-07-01 00:00", "2030-08-01 00:00"]),
        ("59 23 31 12 *", ["2030-12-31 23:59", "2031-12-31 23:59", "2032-12-31 23:59"]),
        ("0 0 29 2 *", ["2032-02-29 00:00", "2036-02-29 00:00", "2040-02-29 00:00"]),
        ("0 0 31 * *", ["2030-01-31 00:00", "2030-03-31 00:00", "2030-05-31 00:00"]),
        ("  0\t0 \n 1   1 * ", ["2031-01-01 00:00", "2032-01-01 00:00", "2033-01-01 00:00"]),
    ],
)
def test_fields_are_numbers_names_lists_ranges_and_steps(expression: str, expected: list[str]) -> None:
    assert times(expression, "2030-01-01 00:00") == expected


@pytest.mark.parametrize("name", schedule_times.NAMES)
def test_a_name_means_its_five_fields(name: str) -> None:
    for written in (name, name.upper(), f" {name} "):
        assert times(written, "2030-01-01 00:00") == times(schedule_times.NAMES[name], "2030-01-01 00:00")


def test_the_names_mean_what_they_say() -> None:
    after = "2030-01-01 00:00"  # a Tuesday
    firsts = {name: times(name, after, count=1) for name in schedule_times.NAMES}
    assert firsts["@yearly"] == firsts["@annually"] == ["2031-01-01 00:00"]
    assert (firsts["@monthly"], firsts["@weekly"]) == (["2030-02-01 00:00"], ["2030-01-06 00:00"])
    assert firsts["@daily"] == firsts["@midnight"] == ["2030-01-02 00:00"]
    assert firsts["@hourly"] == ["2030-01-01 01:00"]


@pytest.mark.parametrize("sunday", ["0", "7", "SUN", "sun", "7-7", "0,7"])
def test_nought_and_seven_are_sunday(sunday: str) -> None:
    expected = ["2030-01-06", "2030-01-13", "2030-01-20"]  # Sundays by the calendar
    assert days(f"0 0 * * {sunday}", "2030-01-01 00:00", 3) == expected


def test_weekdays_are_counted_from_sunday() -> None:
    for number, name in enumerate(WEEKDAYS):
        found = times(f"0 0 * * {number}", "2030-01-01 00:00", count=1)
        assert found == times(f"0 0 * * {name}", "2030-01-01 00:00", count=1)
        assert datetime.fromisoformat(found[0]).strftime("%a").upper() == name
    assert days("0 0 * * 5-7", "2030-01-01 00:00", 3) == ["2030-01-04", "2030-01-05", "2030-01-06"]
    assert days("0 0 * * MON-FRI/2", "2030-01-01 00:00", 3) == ["2030-01-02", "2030-01-04", "2030-01-07"]


def test_day_of_month_and_day_of_week_are_alternatives_when_both_are_given() -> None:
    expected = ["2030-09-13", "2030-09-20", "2030-09-27", "2030-10-04", "2030-10-11", "2030-10-13"]
    assert days("0 0 13 * FRI", "2030-09-08 00:00", 6) == expected


def test_with_a_star_in_one_of_them_both_must_hold() -> None:
    assert days("0 0 13 * *", "2030-09-01 00:00", 2) == ["2030-09-13", "2030-10-13"]
    assert days("0 0 * * FRI", "2030-09-01 00:00", 2) == ["2030-09-06", "2030-09-13"]
    odd_days_that_are_fridays = ["2030-09-13", "2030-09-27", "2030-10-11", "2030-10-25"]
    assert days("0 0 */2 * FRI", "2030-09-01 00:00") == odd_days_that_are_fridays


def test_the_moment_itself_is_over_and_a_millisecond_before_it_is_not() -> None:
    slot = clock.to_ms(datetime(2030, 1, 1, 9, tzinfo=UTC))
    timing = Timing("0 9 * * *", None, None, UTC)
    assert timing.after(slot) == slot + DAY and timing.after(slot - 1) == slot
    assert timing.after(slot + 1) == timing.after(slot + 999) == slot + DAY


def test_the_end_of_a_year_and_of_february() -> None:
    assert times("* * * * *", "2030-12-31 23:58", count=3) == [
        "2030-12-31 23:59",
        "2031-01-01 00:00",
        "2031-01-01 00:01",
    ]
    assert days("0 0 28-31 2 *", "2032-02-27 12:00", 3) == ["2032-02-28", "2032-02-29", "2033-02-28"]
    assert days("0 0 29 2 *", "2096-02-29 00:00", 1) == ["2104-02-29"]  # 2100 is no leap year


# --- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "'' is not a valid cron expression: it has 0 fields instead of 5"),
        (" \t\n", "'' is not a valid cron expression: it has 0 fields instead of 5"),
        ("* * * *", "4 fields instead of 5"),
        ("0 0 9 * * *", "6 fields instead of 5"),
        ("0 0 9 * * * 2030", "7 fields instead of 5"),
        ("daily", "1 field instead of 5"),
        ("@reboot", "there is no @reboot"),
        ("@dayly", "did you mean @daily"),
        ("@daily *", "2 fields"),
        ("60 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1.5 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("5- * * * *", "minute"),
        ("30-10 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("٣ * * * *", "minute"),
        ("9" * 5_000 + " * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 noon * * *", "hour"),
        ("0 0 0 * *", "day-of-month"),
        ("0 0 32 * *", "day-of-month"),
        ("0 0 1 0 *", "month"),
        ("0 0 1 13 *", "month"),
        ("0 0 1 JANUARY *", "month"),
        ("0 0 * * 8", "day-of-week"),
        ("0 0 * * FRI-MON", "day-of-week"),
        ("0 0 * * 1L/2", "day-of-week"),
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 31 2,4,6,9,11 *", "day-of-month"),
        ("$(reboot) * * * *", "minute"),
        ("* * * * *;", "day-of-week"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(expression: str, why: str) -> None:
    with pytest.raises(BadCron) as caught:
        schedule_times.check(expression)
    assert caught.value.code == "bad_cron"
    assert why in caught.value.message
    assert len(caught.value.message) < 400


@given(st.text(max_size=40) | st.from_regex(r"[0-9*/,#LW@a-z -]{1,30}", fullmatch=True))
def test_whatever_is_written_is_refused_or_can_be_due(text: str) -> None:
    try:
        expression = schedule_times.check(text)
    except BadCron:
        return
    assert Timing(expression, None, None, ZoneInfo("Europe/Berlin")).after(0) is not None


# --- clock changes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "day", "missing", "first_valid", "next_day"),
    [
        ("America/New_York", "2030-03-10", "2", "03:00-0400", "2030-03-11 02:15-0400"),
        ("Europe/Berlin", "2030-03-31", "2", "03:00+0200", "2030-04-01 02:15+0200"),
        ("Australia/Lord_Howe", "2030-10-06", "2", "02:30+1100", "2030-10-07 02:15+1100"),
        ("America/Sao_Paulo", "2018-11-04", "0", "01:00-0200", "2018-11-05 00:15-0200"),
        ("Africa/Cairo", "2030-04-26", "0", "01:00+0300", "2030-04-27 00:15+0300"),
        ("Asia/Beirut", "2030-03-31", "0", "01:00+0300", "2030-04-01 00:15+0300"),
    ],
)
def test_a_time_that_is_missing_fires_at_the_first_minute_there_is(
    zone: str, day: str, missing: str, first_valid: str, next_day: str
) -> None:
    before = (datetime.fromisoformat(day) - timedelta(hours=4)).isoformat()
    assert times(f"15 {missing} * * *", before, zone, 2) == [f"{day} {first_valid}", next_day]
    twice = times(f"5,15 {missing} * * *", before, zone, 2)
    assert twice == [f"{day} {first_valid}", next_day.replace(":15", ":05")]


@pytest.mark.parametrize(
    ("zone", "day", "doubled", "first", "next_day"),
    [
        ("America/New_York", "2030-11-03", "45 1", "01:45-0400", "2030-11-04 01:45-0500"),
        ("Europe/Berlin", "2030-10-27", "45 2", "02:45+0200", "2030-10-28 02:45+0100"),
        ("Australia/Lord_Howe", "2030-04-07", "45 1", "01:45+1100", "2030-04-08 01:45+1030"),
        ("America/Sao_Paulo", "2018-02-17", "45 23", "23:45-0200", "2018-02-18 23:45-0300"),
        ("America/Havana", "2030-11-03", "45 0", "00:45-0400", "2030-11-04 00:45-0500"),
    ],
)
def test_a_time_that_comes_twice_fires_the_first_time_only(
    zone: str, day: str, doubled: str, first: str, next_day: str
) -> None:
    slot = datetime.strptime(f"{day} {first}", "%Y-%m-%d %H:%M%z")
    before = (slot - timedelta(hours=2)).isoformat()
    assert times(f"{doubled} * * *", before, zone, 2) == [f"{day} {first}", next_day]
    between = clock.to_ms(slot) + 20 * MINUTE
    after = Timing(f"{doubled} * * *", None, None, ZoneInfo(zone)).after(between)
    assert after is not None and after > between  # asked while the doubled time runs again
    assert f"{clock.from_ms(after, ZoneInfo(zone)):%Y-%m-%d %H:%M%z}" == next_day


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("America/New_York", "2030-03-10T05:00+00:00"),
        ("America/New_York", "2030-11-03T04:00+00:00"),
        ("Europe/Berlin", "2030-03-30T23:00+00:00"),
        ("Europe/Berlin", "2030-10-26T23:00+00:00"),
        ("America/Sao_Paulo", "2018-11-04T01:00+00:00"),
        ("America/Sao_Paulo", "2018-02-18T00:00+00:00"),
    ],
)
def test_what_runs_every_hour_or_minute_runs_in_elapsed_time(zone: str, start: str) -> None:
    begin = clock.to_ms(datetime.fromisoformat(start))
    hourly = list(islice(schedule_times.cron_slots("0 * * * *", begin, ZoneInfo(zone)), 6))
    assert hourly == [begin + n * HOUR for n in range(1, 7)]
    every_minute = list(islice(schedule_times.cron_slots("* * * * *", begin, ZoneInfo(zone)), 360))
    assert every_minute == [begin + n * MINUTE for n in range(1, 361)]


def test_where_the_clock_is_changed_by_half_an_hour_the_full_hours_stay_full() -> None:
    assert times("0 * * * *", "2030-10-06 00:30", "Australia/Lord_Howe") == [
        "2030-10-06 01:00+1030",
        "2030-10-06 03:00+1100",  # two o'clock is missing, and an hour and a half is half past two
        "2030-10-06 04:00+1100",
    ]
    assert times("0 * * * *", "2030-04-07 00:30", "Australia/Lord_Howe") == [
        "2030-04-07 01:00+1100",
        "2030-04-07 02:00+1030",
        "2030-04-07 03:00+1030",
    ]


def test_an_interval_is_elapsed_time_from_its_beginning() -> None:
    begun = clock.to_ms(datetime(2030, 3, 10, 6, 30, tzinfo=UTC))
    timing = Timing(None, 90 * MINUTE, None, ZoneInfo("America/New_York"), begun)
    assert timing.after(begun) == timing.after(begun + 90 * MINUTE - 1) == begun + 90 * MINUTE
    assert timing.after(begun + 90 * MINUTE) == begun + 180 * MINUTE
    assert timing.after(begun - 5 * DAY) == begun + 90 * MINUTE  # a clock set back


def test_a_single_time_comes_once() -> None:
    timing = Timing(None, None, 5_000, UTC)
    assert [timing.after(4_999), timing.after(5_000), timing.after(5_001)] == [5_000, None, None]


# --- against a walk by the minute ----------------------------------------------------

PLACES = [
    ("America/New_York", 2030),
    ("Europe/Berlin", 2030),
    ("Australia/Lord_Howe", 2030),
    ("America/Sao_Paulo", 2018),
    ("Africa/Cairo", 2030),
    ("Asia/Beirut", 2030),
    ("America/Havana", 2030),
    ("America/St_Johns", 2030),
    ("Pacific/Apia", 2011),  # a whole day is missing
    ("Asia/Kathmandu", 2030),
]
AROUND = 3 * 1440  # minutes walked before and after a change
FIELDS = [(0, 59, []), (0, 23, []), (1, 31, []), (1, 12, MONTHS), (0, 7, WEEKDAYS)]


@lru_cache
def changes(zone: str, year: int) -> list[datetime]:
    """Return the clock changes of a zone in a year; the new year if there are none."""
    start, place = datetime(year, 1, 1, tzinfo=UTC), ZoneInfo(zone)
    halves = [start + timedelta(minutes=30 * n) for n in range(366 * 48)]
    offsets = [moment.astimezone(place).utcoffset() for moment in halves]
    return [halves[n] for n in range(1, len(halves)) if offsets[n] != offsets[n - 1]] or [start]


@lru_cache(maxsize=32)
def walk(zone: str, change: datetime) -> list[tuple[int, datetime]]:
    """Return every minute around a change, with its local time."""
    place = ZoneInfo(zone)
    minutes = [change + timedelta(minutes=n) for n in range(-AROUND, AROUND + 1)]
    return [
        (clock.to_ms(moment), moment.astimezone(place).replace(tzinfo=None, fold=0)) for moment in minutes
    ]


def numbers(field: str, low: int, high: int, names: list[str]) -> set[int]:
    def number(word: str) -> int:
        return names.index(word) + low if word in names else int(word)

    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        else:
            begin = number(first)
            end = number(last) if last else (high if step else begin)
        found |= {n for n in range(begin, end + 1) if (n - begin) % int(step or 1) == 0}
    return found


class Fields:
    """An expression as cron(5) describes it."""

    def __init__(self, expression: str) -> None:
        words = expression.split()
        parsed = [numbers(word, *limits) for word, limits in zip(words, FIELDS, strict=True)]
        self.minutes, self.hours, self.days, self.months, weekdays = parsed
        self.weekdays = {number % 7 for number in weekdays}
        self.both = words[2].startswith("*") or words[4].startswith("*")
        self.at_fixed_times = not (words[0].startswith("*") or words[1].startswith("*"))

    def match(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        by_date, by_weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return (by_date and by_weekday) if self.both else (by_date or by_weekday)


def walked(expression: str, zone: str, change: datetime) -> list[int]:
    """Return the slots around a change, found by looking at every minute."""
    fields, found = Fields(expression), []
    minutes = walk(zone, change)
    latest = minutes[0][1]  # the farthest the clock on the wall has come
    for moment, wall in minutes[1:]:
        if not fields.at_fixed_times:
            due = fields.match(wall)
        else:
            new = int((wall - latest) / timedelta(minutes=1))  # more than one when some are missing
            due = any(fields.match(wall - timedelta(minutes=back)) for back in range(new))
        if due:
            found.append(moment)
        latest = max(latest, wall)
    return found


def field(low: int, high: int, near: list[int], names: list[str]) -> st.SearchStrategy[str]:
    number = st.sampled_from([low, *near]) | st.integers(low, high)
    word = number.map(str)
    if names:
        word |= st.sampled_from(names)
    step = st.integers(1, high).map(str)
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    one = word | span | st.tuples(span | word | st.just("*"), step).map("/".join)
    return st.just("*") | one | st.lists(one, min_size=2, max_size=3).map(",".join)


EXPRESSIONS = st.tuples(
    field(0, 59, [0, 15, 29, 30, 31, 59], []),
    field(0, 23, [0, 1, 2, 3, 23], []),
    st.just("*") | field(1, 31, [1, 28, 29, 30, 31], []),
    st.just("*") | field(1, 12, [], MONTHS),
    st.just("*") | field(0, 7, [0, 7], WEEKDAYS),
).map(" ".join)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime, int]:
    """A zone, a change of its clock, and a moment near it."""
    zone, year = draw(st.sampled_from(PLACES))
    change = draw(st.sampled_from(changes(zone, year)))
    seconds = draw(st.integers(-3 * 3600, 3 * 3600) | st.integers(-2 * 86400, 2 * 86400))
    return zone, change, clock.to_ms(change) + seconds * 1000 + draw(st.sampled_from([0, 0, 1, 999]))


@pytest.mark.slow
@settings(max_examples=40)
@given(EXPRESSIONS, moments())
def test_the_next_times_are_those_a_walk_by_the_minute_finds(
    expression: str, moment: tuple[str, datetime, int]
) -> None:
    zone, change, after = moment
    place, end = ZoneInfo(zone), clock.to_ms(change) + AROUND * MINUTE
    expected = [slot for slot in walked(expression, zone, change) if slot > after][:40]
    try:
        timing = Timing(schedule_times.check(expression), None, None, place)
    except BadCron:
        assert expected == []  # a date that never comes
        return
    found: list[int] = []
    slot = timing.after(after)
    while slot is not None and slot <= end and len(found) < 40:
        found.append(slot)
        slot = timing.after(slot)
    assert found == expected
    assert list(islice(schedule_times.cron_slots(expression, after, place), len(found))) == found
