"""The table of `make bench` says for each row: now, floor, aim."""

from __future__ import annotations

import pytest

from bench import report
from bench.figures import AT_LEAST, AT_MOST, Figure, Ratio, misses, on_a_busy_machine


def ratio(
    value: float, *, sense: str = AT_LEAST, floor: float | None = None, aim: float | None = None
) -> Ratio:
    return Ratio(key="to_bare", value=value, of="of bare", sense=sense, floor=floor, aim=aim)


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (ratio(0.2, floor=0.33, aim=0.4), "MISSED"),
        (ratio(0.35, floor=0.33, aim=0.4), "ok"),
        (ratio(0.4, floor=0.33, aim=0.4), "reached"),
        (ratio(0.3, aim=0.4), ""),
        (ratio(0.3), ""),
        (ratio(3.1, sense=AT_MOST, floor=3.0, aim=2.0), "MISSED"),
        (ratio(1.9, sense=AT_MOST, floor=3.0, aim=2.0), "reached"),
    ],
)
def test_only_a_floor_can_be_missed(one: Ratio, verdict: str) -> None:
    assert one.verdict == verdict


def test_each_row_shows_what_is_now_and_its_floor_and_its_aim() -> None:
    one = Figure(
        key="sends",
        work="durable sends",
        taken=[8_000],
        unit="/s",
        goal="10,000/s",
        p50=1.5,
        ratios=(ratio(0.25, floor=0.33, aim=0.4),),
    )
    other = Figure(key="idle", work="daemon idle", taken=[62, 63, 70], unit="MB", at_most=80)
    head, _, sends, of_bare, idle = report.table([one, other], None).splitlines()
    assert head.split() == ["work", "now", "p50", "ms", "p99", "ms", "floor", "aim"]
    assert sends.split() == ["durable", "sends", "8,000/s", "1.50", "10,000/s"]
    assert of_bare.split() == ["of", "bare", "0.25", "≥", "0.33", "≥", "0.4", "MISSED"]
    assert idle.split() == ["daemon", "idle", "63", "MB", "≤", "80", "MB", "ok"]
    assert of_bare.index("≥ 0.33") + len("≥ 0.33") == head.index("floor") + len("floor")
    assert misses([one, other]) == ["durable sends: 0.25 of bare, floor ≥ 0.33"]


def test_a_row_says_what_it_was_in_an_earlier_run() -> None:
    now = Figure(key="sends", work="durable sends", taken=[8_000], unit="/s", ratios=(ratio(0.5),))
    was = {"figures": {"sends": {"value": 4_000, "ratios": {"to_bare": {"value": 0.25}}}}}
    head, _, sends, of_bare = report.table([now], was).splitlines()
    assert head.endswith("was")
    assert sends.endswith("4,000/s (+100 %)")
    assert of_bare.endswith("0.25 (+100 %)")


def test_on_a_busy_machine_only_the_floor_of_a_rate_is_excused() -> None:
    rate = Ratio(key="to_bare", value=0.2, of="of bare", floor=0.33, needs_quiet=True)
    work = ratio(4.0, sense=AT_MOST, floor=3.0)
    one = Figure(key="sends", work="durable sends", taken=[8_000], unit="/s", ratios=(rate, work))
    assert len(misses([one])) == 2
    (busy,) = on_a_busy_machine([one])
    assert [one.verdict for one in busy.ratios] == ["doubtful", "MISSED"]
    assert misses([busy]) == ["durable sends: 4.00 of bare, floor ≤ 3"]
