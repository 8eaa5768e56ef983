"""Better, equal or worse: by a table, and how often it is wrong where nothing differs."""

from __future__ import annotations

from bench.beside import NOT_THERE, _row, summary, table
from bench.verdicts import BETTER, EQUAL, NONE, WORSE, interval, judge
from tests.support.failures import seeded
from tests.support.sweeps import sweep

SEED = 33
NOISE = (1.2, 0.9, 1.0, 1.1, 0.8, 1.0, 1.3, 0.7, 1.0, 1.0, 1.1, 0.9, 1.0, 1.05, 0.95)  # their median is 1
STEADY = (1.0,) * 15
CASES = (
    # what was measured here, what there, whether it is a rate, the grain, the verdict
    (STEADY, STEADY, False, 0.0, EQUAL),
    ([1.02] * 15, STEADY, False, 0.0, EQUAL),
    ([1.031] * 15, STEADY, False, 0.0, WORSE),
    ([0.98] * 15, STEADY, False, 0.0, EQUAL),
    ([0.97] * 15, STEADY, False, 0.0, BETTER),
    ([1.1] * 15, STEADY, True, 0.0, BETTER),
    ([0.9] * 15, STEADY, True, 0.0, WORSE),
    (NOISE, STEADY, False, 0.0, EQUAL),
    ([1.5 * one for one in NOISE], STEADY, False, 0.0, WORSE),
    ([0.6 * one for one in NOISE], STEADY, False, 0.0, BETTER),
    # Three rounds beside the way do not decide; four of fifteen on the other side take the verdict away.
    ([1.5] * 12 + [0.5] * 3, STEADY, False, 0.0, WORSE),
    ([1.5] * 11 + [0.5] * 4, STEADY, False, 0.0, EQUAL),
    ([2.0] * 14, [1.0] * 14, False, 0.0, NONE),
    ([2.0] * 3, [1.0] * 3, False, 0.0, NONE),
    # Next to nothing, or nothing at all.
    ([0.002] * 15, [0.001] * 15, False, 1.0, EQUAL),
    ([0.0] * 15, [0.0] * 15, False, 1.0, EQUAL),
    ([3.0] * 15, [0.0] * 15, False, 1.0, WORSE),
)


def test_a_row_is_better_or_worse_when_the_whole_interval_is_beyond_three_per_cent() -> None:
    with sweep() as row:
        for number, (here, there, is_rate, grain, word) in enumerate(CASES):
            with row(f"case {number}"):
                assert judge(here, there, is_rate=is_rate, grain=grain).word == word


def test_the_interval_of_fifteen_is_from_the_fourth_to_the_twelfth() -> None:
    assert interval([float(one) for one in range(15, 0, -1)]) == (4.0, 12.0)
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_where_nothing_differs_almost_nothing_is_said_to_be_worse_and_a_tenth_is_seen() -> None:
    random = seeded(SEED)

    def words(factor: float, noise: float) -> list[str]:
        def taken(times: float) -> list[float]:
            return [times * random.lognormvariate(0.0, noise) for _ in range(15)]

        return [judge(taken(factor), taken(1.0), is_rate=False).word for _ in range(400)]

    for noise in (0.02, 0.1, 0.3):
        assert words(1.0, noise).count(WORSE) <= 0.025 * 400
    assert words(1.1, 0.02).count(WORSE) >= 0.95 * 400
    assert words(0.9, 0.02).count(BETTER) >= 0.95 * 400


def test_what_the_other_tree_does_not_have_is_shown_and_does_not_count() -> None:
    facts = {"key": "sends", "work": "durable sends", "unit": "/s", "taken": [9_000.0] * 15, "grain": 0.0}
    slower = {**facts, "key": "list", "work": "list 10", "unit": "ms", "taken": [2.0] * 15}
    rows = [_row(facts, None), _row(slower, {**slower, "taken": [1.0] * 15})]
    assert [row.word for row in rows] == [NOT_THERE, WORSE]
    _, _, sends, listed = table(rows).splitlines()
    assert sends.split() == ["durable", "sends", "9,000/s", "not", "there"]
    assert listed.split() == ["list", "10", "2.00", "ms", "1.00", "ms", "2.00", "2.00", "to", "2.00", "WORSE"]
    assert summary(rows) == "2 rows: 1 WORSE, 1 not there"
