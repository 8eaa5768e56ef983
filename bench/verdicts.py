"""Better, equal or worse: what the rounds of two trees, measured in turns, say about a row.

Each round gives a ratio: what the row costs here by what it costs there (for a rate the other way round), so
more than 1 is worse. The interval is that of the median ratio, by its order statistics: of 15 sorted ratios
from the 4th to the 12th, which holds the true median in 96 of 100 runs, whatever the noise is like. A row is

- worse   when the whole interval is over 1.03,
- better  when the whole interval is under 1 / 1.03,
- equal   otherwise: a difference of 3 % or less, or one that these rounds do not show.

With fewer than 15 rounds nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import NamedTuple

MARGIN = 1.03
ROUNDS = 15  # the least for a verdict
SURE = 0.95
BETTER, EQUAL, WORSE, NONE = "better", "equal", "WORSE", "no verdict"


class Verdict(NamedTuple):
    ratio: float
    low: float
    high: float
    word: str


def interval(ratios: Sequence[float], sure: float = SURE) -> tuple[float, float]:
    """Where the true median is, with this certainty at least; with few ratios, from the least to the most."""
    ordered, number = sorted(ratios), len(ratios)
    outside, aside = 0.0, 0  # how many are left aside at each end
    while aside < number // 2:
        outside += 2 * comb(number, aside) / 2**number
        if outside > 1 - sure:
            break
        aside += 1
    first = max(aside - 1, 0)
    return ordered[first], ordered[number - 1 - first]


def judge(here: Sequence[float], there: Sequence[float], *, is_rate: bool, grain: float = 0.0) -> Verdict:
    """Compare the values of each round; `grain` is added to both, so that next to nothing is nothing."""
    costs, others = (there, here) if is_rate else (here, there)
    ratios = [(one + grain) / (other + grain) for one, other in zip(costs, others, strict=True)]
    low, high = interval(ratios)
    if len(ratios) < ROUNDS:
        word = NONE
    elif low > MARGIN:
        word = WORSE
    elif high < 1 / MARGIN:
        word = BETTER
    else:
        word = EQUAL
    return Verdict(median(ratios), low, high, word)
