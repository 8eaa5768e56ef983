"""Times: what people may write, what it means, and how it is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core import clock
from hiboss.core.errors import BadDuration, BadTime, BadTimeOfDay, BadTimezone, TooFar
from tests.support.raising import raised
from tests.support.sweeps import sweep

BERLIN = ZoneInfo("Europe/Berlin")
SHANGHAI = ZoneInfo("Asia/Shanghai")
HOUR = 3_600_000
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
ZONES = st.sampled_from(
    [UTC, BERLIN, SHANGHAI, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]
)
NOWS = st.integers(0, 7_000_000_000_000)


def ms(text: str) -> int:
    return clock.to_ms(datetime.fromisoformat(text))


def means(text: str, now: str = "2026-01-28T12:00:00+00:00", zone: str = "UTC") -> str:
    return clock.iso(clock.parse(text, now=ms(now), zone=ZoneInfo(zone)))


# --- relative ------------------------------------------------------------------------


RELATIVE = [
    ("2026-01-28T12:00:00+00:00", "+2h", "2026-01-28T14:00:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "+30m", "2026-01-28T12:30:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "+45s", "2026-01-28T12:00:45.000Z"),
    ("2026-01-28T12:00:00+00:00", "-15m", "2026-01-28T11:45:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "-1Y1D", "2025-01-27T12:00:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "+1Y2M3D", "2027-03-31T12:00:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "+1Y2M3D4h5m6s", "2027-03-31T16:05:06.000Z"),
    ("2026-01-28T12:00:00+00:00", "+0s", "2026-01-28T12:00:00.000Z"),
    ("2026-01-28T12:00:00+00:00", "  +2h\n", "2026-01-28T14:00:00.000Z"),
    ("2026-01-28T12:00:00.123+00:00", "+1D", "2026-01-29T12:00:00.123Z"),
    ("2026-01-31T12:00:00+00:00", "+1M", "2026-02-28T12:00:00.000Z"),
    ("2028-01-31T12:00:00+00:00", "+1M", "2028-02-29T12:00:00.000Z"),
    ("2026-03-31T12:00:00+00:00", "-1M", "2026-02-28T12:00:00.000Z"),
    ("2026-01-31T12:00:00+00:00", "+13M", "2027-02-28T12:00:00.000Z"),
    ("2028-02-29T12:00:00+00:00", "+1Y", "2029-02-28T12:00:00.000Z"),
    ("2028-02-29T12:00:00+00:00", "+4Y", "2032-02-29T12:00:00.000Z"),
    ("2026-12-31T23:59:59+00:00", "+1s", "2027-01-01T00:00:00.000Z"),
    # in UTC; in Berlin that day has 23 hours
    ("2026-03-28T12:00:00+01:00", "+1D", "2026-03-29T11:00:00.000Z"),
    # months and minutes are told apart by case
    ("2026-01-28T12:00:00+00:00", "+1m", "2026-01-28T12:01:00.000Z"),
]


def test_a_relative_time_is_counted_from_now() -> None:
    assert [(now, text, means(text, now)) for now, text, _ in RELATIVE] == RELATIVE


OVER_A_CLOCK_CHANGE = [
    # clocks go forward in the night to 29 March and back in the night to 25 October 2026
    ("2026-03-28T12:00:00+01:00", "+1D", "2026-03-29T12:00:00+02:00"),
    ("2026-03-28T12:00:00+01:00", "+24h", "2026-03-29T13:00:00+02:00"),
    ("2026-10-24T12:00:00+02:00", "+1D", "2026-10-25T12:00:00+01:00"),
    ("2026-10-24T12:00:00+02:00", "+24h", "2026-10-25T11:00:00+01:00"),
    ("2026-01-15T08:00:00+01:00", "+6M", "2026-07-15T08:00:00+02:00"),
    # 02:30 on 29 March does not exist; it is read with the offset of before
    ("2026-03-28T02:30:00+01:00", "+1D", "2026-03-29T03:30:00+02:00"),
    # 02:30 on 25 October exists twice; the first one is meant
    ("2026-10-24T02:30:00+02:00", "+1D", "2026-10-25T02:30:00+02:00"),
    # elapsed time goes on through the doubled hour
    ("2026-10-25T02:30:00+02:00", "+1h", "2026-10-25T02:30:00+01:00"),
    # a calendar part of nothing does not move the time in the doubled hour
    ("2026-10-25T02:30:00+01:00", "+0D30m", "2026-10-25T03:00:00+01:00"),
    ("2026-10-25T02:30:00+01:00", "+30m", "2026-10-25T03:00:00+01:00"),
]


def test_a_day_keeps_the_wall_clocks_hour_over_a_clock_change_and_hours_do_not() -> None:
    assert [
        (now, text, clock.local(clock.parse(text, now=ms(now), zone=BERLIN), BERLIN))
        for now, text, _ in OVER_A_CLOCK_CHANGE
    ] == OVER_A_CLOCK_CHANGE


# --- ISO 8601 ------------------------------------------------------------------------


ISO = [
    ("2026-01-27T16:30:00+08:00", "2026-01-27T08:30:00.000Z"),
    ("2026-01-27T16:30:00-05:30", "2026-01-27T22:00:00.000Z"),
    ("2026-01-27T16:30:00Z", "2026-01-27T16:30:00.000Z"),
    ("2026-01-27T16:30Z", "2026-01-27T16:30:00.000Z"),
    ("2026-01-27 16:30:00Z", "2026-01-27T16:30:00.000Z"),
    ("2026-01-27T16:30:00.120Z", "2026-01-27T16:30:00.120Z"),
    ("2026-01-27T16:30:00.1299Z", "2026-01-27T16:30:00.129Z"),
    # without a zone: the boss's, here one hour ahead of UTC
    ("2026-01-27T16:30:00", "2026-01-27T15:30:00.000Z"),
    ("2026-01-27 16:30", "2026-01-27T15:30:00.000Z"),
    ("2026-01-27", "2026-01-26T23:00:00.000Z"),
    ("2026-07-27 16:30", "2026-07-27T14:30:00.000Z"),
    # in the gap: read with the offset of before, so an hour later on the wall
    ("2026-03-29 02:30", "2026-03-29T01:30:00.000Z"),
    # in the doubled hour: the first of the two
    ("2026-10-25 02:30", "2026-10-25T00:30:00.000Z"),
]


def test_an_iso_time_means_its_offset_or_else_the_bosss_zone() -> None:
    assert [(text, means(text, zone="Europe/Berlin")) for text, _ in ISO] == ISO


REFUSED = {
    "write for example +2h": [
        *("", " ", "+", "-", "h", "2h", "+h", "++2h", "+ 2h", "+2h ago", "+1.5h", "+2h+3m", "+2h 3m", "+-2h"),
        *("now", "tomorrow", "12:00", "16:30:00Z", "2026", "2026-13-01", "2026-02-30", "2026-01-27T25:00"),
        *("2026-01-27T16:30:00+25:00", "2026-01-27T16:30:00 Europe/Berlin", "1769517000000"),
        *("\x00", "+2h\x00", "\ud800", "+9999999999h", "x" * 100_000, "+" + "1h" * 50_000),
    ],
    # a unit is taken in its own case only, with ASCII digits
    "units are Y M D h m s": [
        *("+1d", "+1y", "+1H", "+1S", "+1h1H", "+1w", "+1Dh", "+٣h", "+１h", "+²h"),
    ],
    "the unit h is given twice": ["+1h2h"],
    "the unit Y is given twice": ["+1Y1M1Y"],
    "the unit s is given twice": ["-1s1s"],
    "years 1 to 9999": [
        *("+9999Y", "-9999Y", "+999999999Y", "+999999999M", "-999999999M", "+999999999D", "-999999999D"),
        *("+999999999h", "-999999999h", "+999999999Y999999999M999999999D", "-2026Y1M"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
}


def test_what_is_no_time_is_refused_with_the_reason() -> None:
    with sweep() as row:
        for why, texts in REFUSED.items():
            for text in texts:
                with row(text[:50]):
                    error = raised(BadTime, means, text, zone="Europe/Berlin")
                    assert why in error.message and len(error.message) < 500


# --- deferring -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the past and the present are due now
        *(("-15m", None), ("+0s", None), ("2020-01-01", None), ("2026-01-28T12:00:00Z", None)),
        ("2026-01-28T12:00:00.001Z", "2026-01-28T12:00:00.001+00:00"),
        # a hundred years ahead are the most
        ("+100Y", "2126-01-28T12:00:00+00:00"),
        ("2126-01-28T12:00:00Z", "2126-01-28T12:00:00+00:00"),
        ("2126-01-28T20:00:00+08:00", "2126-01-28T12:00:00+00:00"),
    ],
)
def test_a_time_is_deferred_from_the_next_millisecond_to_a_hundred_years(
    text: str, expected: str | None
) -> None:
    deferred = clock.deliver_at(text, now=ms("2026-01-28T12:00:00+00:00"), zone=UTC)
    assert deferred == (None if expected is None else ms(expected))


@pytest.mark.parametrize("text", ["+100Y1s", "+101Y", "2126-01-28T12:00:00.001Z", "9999-12-31T23:59:59Z"])
def test_one_step_over_a_hundred_years_is_refused(text: str) -> None:
    with pytest.raises(TooFar):
        clock.deliver_at(text, now=ms("2026-01-28T12:00:00+00:00"), zone=UTC)


@given(now=NOWS, zone=ZONES)
def test_a_hundred_years_are_accepted_at_any_moment_in_any_zone(now: int, zone: ZoneInfo) -> None:
    assert clock.deliver_at("+100Y", now=now, zone=zone) is not None


def test_a_hundred_years_are_accepted_on_a_day_that_has_summer_time_only_now() -> None:
    now = ms("2026-03-29T12:00:00+02:00")  # in 2126 summer time begins two days later
    assert clock.deliver_at("+100Y", now=now, zone=BERLIN) == ms("2126-03-29T12:00:00+01:00")


# --- showing -------------------------------------------------------------------------


@freeze_time("2026-01-28T12:08:45.120999Z")
def test_now_is_whole_milliseconds_of_utc() -> None:
    assert clock.iso(clock.now()) == "2026-01-28T12:08:45.120Z"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (FIRST, "0001-01-01T00:00:00.000Z"),
        (LAST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_shown_as_utc_with_milliseconds(moment: int, text: str) -> None:
    assert clock.iso(moment) == clock.iso_or_none(moment) == text


def test_no_time_is_shown_as_none() -> None:
    assert clock.iso_or_none(None) is None


def test_people_see_their_zone_with_its_offset() -> None:
    assert clock.local(ms("2026-01-28T12:08:45.120+00:00"), SHANGHAI) == "2026-01-28T20:08:45+08:00"


@given(moment=st.integers(FIRST, LAST))
def test_what_is_shown_is_read_back_to_the_millisecond(moment: int) -> None:
    assert clock.parse(clock.iso(moment), now=0, zone=BERLIN) == moment


@given(now=NOWS, zone=ZONES, hours=st.integers(0, 100_000), sign=st.sampled_from("+-"))
def test_hours_are_elapsed_time_in_every_zone(now: int, zone: ZoneInfo, hours: int, sign: str) -> None:
    assert clock.parse(f"{sign}{hours}h", now=now, zone=zone) - now == int(f"{sign}{hours}") * HOUR


@given(text=st.text() | st.from_regex(r"\A[+-][0-9YMDhms]{0,20}\Z"), zone=ZONES)
def test_any_text_is_a_time_or_refused_as_none(text: str, zone: ZoneInfo) -> None:
    try:
        moment = clock.parse(text, now=0, zone=zone)
    except BadTime:
        return
    assert FIRST <= moment <= LAST


# --- zones ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "Europe", "../etc/passwd", "/etc/localtime", "A" * 5000, "\x00"]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    assert "write for example Europe/Berlin" in raised(BadTimezone, clock.zone, name).message


def test_a_mistyped_zone_gets_the_nearest_one_as_a_hint() -> None:
    assert "did you mean Europe/Berlin?" in raised(BadTimezone, clock.zone, "europe/berln").message


@pytest.mark.parametrize(
    ("variable", "name"),
    [("Europe/Berlin", "Europe/Berlin"), (":Asia/Shanghai", "Asia/Shanghai"), ("CET-1CEST,M3.5.0", "UTC")],
)
def test_the_machines_zone_is_an_iana_name_or_else_utc(
    variable: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", variable)
    assert clock.local_zone_name() == name


# --- durations -----------------------------------------------------------------------

DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90_000),
        ("10m", 600_000),
        ("2h", 2 * HOUR),
        ("1h30m", HOUR + 1_800_000),
        ("1h0m5s", HOUR + 5_000),
        ("0.001s", 1),
        ("1.001s", 1_001),
        (" 10m\n", 600_000),
        ("1440m", DAY),
        ("24h", DAY),
    ],
)
def test_a_length_of_time_is_hours_minutes_and_seconds(text: str, expected: int) -> None:
    assert clock.duration(text, most=DAY) == expected


REFUSED_LENGTHS = {
    "write for example 90s, 10m or 1h": [
        *("", " ", "10", "m", "+10m", "-10m", "10 m", "1h 30m", "30m1h", "1h1h", "10M", "1D", "1.5h", "1e3s"),
        *(
            "10m\x00",
            "\u0663m",
            "x" * 100_000,
            "1" * 100 + "s",
            "ten minutes",
            "2026-01-28",
            "1.0001s",
            ".5s",
        ),
    ],
    "zero": ["0s", "0h0m", "0.000s"],
    "at most 24h": ["24h0.001s", "25h", "999999h", "999999999s"],
}


def test_what_is_no_length_of_time_is_refused_with_the_reason() -> None:
    with sweep() as row:
        for why, texts in REFUSED_LENGTHS.items():
            for text in texts:
                with row(text[:50]):
                    error = raised(BadDuration, clock.duration, text, most=DAY)
                    assert why in error.message and len(error.message) < 200


@given(
    h=st.integers(0, 999), m=st.integers(0, 9_999), s=st.integers(0, 99_999), thousandths=st.integers(0, 999)
)
def test_a_length_is_exact_to_the_millisecond(h: int, m: int, s: int, thousandths: int) -> None:
    expected = h * HOUR + m * 60_000 + s * 1_000 + thousandths
    if expected:
        assert clock.duration(f"{h}h{m}m{s}.{thousandths:03d}s", most=10**12) == expected


@given(st.integers(1, 10**7))
def test_a_length_is_read_again_as_the_same_duration(seconds: int) -> None:
    assert clock.duration(clock.length(seconds), most=10**11) == seconds * 1000


@pytest.mark.parametrize(("text", "expected"), [("4:00", "04:00"), (" 23:59 ", "23:59"), ("00:00", "00:00")])
def test_a_time_of_a_day_has_hours_and_minutes(text: str, expected: str) -> None:
    assert clock.time_of_day(text) == expected


@pytest.mark.parametrize("text", ["", "4", "24:00", "4:60", "04:00:00", "٤:00", "4:0"])
def test_anything_else_is_no_time_of_a_day(text: str) -> None:
    with pytest.raises(BadTimeOfDay):
        clock.time_of_day(text)


@given(st.integers(FIRST, LAST))
def test_a_time_is_shown_as_the_calendar_has_it_to_the_millisecond(moment: int) -> None:
    shown = clock.from_ms(moment).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert clock.iso(moment) == shown
