"""What was measured, its ratios, and the floors under them (DESIGN.md §9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .load import Outcome

AT_LEAST, AT_MOST = "≥", "≤"


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A figure against another of the same run. Without a floor it is for orientation only."""

    key: str
    value: float
    of: str  # what it is a ratio to, with its figure
    sense: str = AT_LEAST
    floor: float | None = None
    aim: float | None = None
    needs_quiet: bool = False  # a rate: processes that others keep waiting reach it or not by chance
    excused: bool = False

    @property
    def below(self) -> bool:
        return self.floor is not None and not self._reaches(self.floor)

    @property
    def missed(self) -> bool:
        return self.below and not self.excused

    @property
    def reaches_aim(self) -> bool:
        return self.aim is not None and self._reaches(self.aim)

    @property
    def verdict(self) -> str:
        """MISSED counts, and is about the floor; an aim that is not reached yet is no failure."""
        if self.below:
            return "doubtful" if self.excused else "MISSED"
        if self.reaches_aim:
            return "reached"
        return "" if self.floor is None else "ok"

    def _reaches(self, mark: float) -> bool:
        return self.value >= mark if self.sense == AT_LEAST else self.value <= mark


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row of the table, with a value for each round. `at_most` is a floor on the figure itself."""

    key: str
    work: str
    taken: Sequence[float]  # one each round: what is compared with another tree
    unit: str  # "/s", "ms", "MB", "µs"
    goal: str = ""  # the absolute figure aimed at, for orientation
    p50: float | None = None  # milliseconds
    p99: float | None = None
    at_most: float | None = None
    ratios: tuple[Ratio, ...] = ()
    longest: bool = False  # the longest round counts, not the middle one
    grain: float = 0.0  # less than this is nothing: it is added to both sides of a comparison

    @property
    def value(self) -> float:
        return max(self.taken) if self.longest else median(self.taken)

    @property
    def missed(self) -> bool:
        return self.at_most is not None and self.value > self.at_most

    @property
    def verdict(self) -> str:
        if self.at_most is None:
            return ""
        return "MISSED" if self.missed else "ok"

    def facts(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "value": self.value,
            "taken": list(self.taken),
            "unit": self.unit,
            "p50_ms": self.p50,
            "p99_ms": self.p99,
            "at_most": self.at_most,
            "missed": self.missed,
            "ratios": {
                one.key: {
                    "value": one.value,
                    "floor": one.floor,
                    "aim": one.aim,
                    "sense": one.sense,
                    "missed": one.missed,
                }
                for one in self.ratios
            },
        }


def on_a_busy_machine(figures: list[Figure]) -> list[Figure]:
    """The same, but no floor counts that only a quiet machine can hold; those of CPU time do."""
    return [
        replace(figure, ratios=tuple(replace(one, excused=one.needs_quiet) for one in figure.ratios))
        for figure in figures
    ]


def misses(figures: list[Figure]) -> list[str]:
    """A sentence for each floor that is not reached."""
    sentences = []
    for figure in figures:
        if figure.missed:
            sentences.append(f"{figure.work}: {show(figure.value, figure.unit)} is over {figure.at_most:g}")
        for one in figure.ratios:
            if one.missed:
                sentences.append(
                    f"{figure.work}: {one.value:.2f} {one.of}, floor {one.sense} {one.floor:.3g}"
                )
    return sentences


def show(value: float, unit: str) -> str:
    if unit == "/s":
        return f"{value:,.0f}/s"
    return f"{value:,.2f} {unit}" if value < 10 else f"{value:,.0f} {unit}"


def timed(key: str, work: str, outcomes: Sequence[Outcome], *ratios: Ratio, goal: str = "") -> Figure:
    """How long a call took, by the middle call of each round."""
    taken = [one.p50 for one in outcomes]
    p99 = median(one.p99 for one in outcomes)
    return Figure(
        key=key, work=work, taken=taken, unit="ms", goal=goal, p50=median(taken), p99=p99, ratios=ratios
    )


def rated(key: str, work: str, outcomes: Sequence[Outcome], *ratios: Ratio, goal: str = "") -> Figure:
    """How many calls were answered a second."""
    return replace(
        timed(key, work, outcomes, *ratios, goal=goal), taken=[one.rate for one in outcomes], unit="/s"
    )


def middle_ratio(numbers: Sequence[float], to: Sequence[float]) -> float:
    """The median over rounds of a ratio whose two sides were measured one after the other."""
    return median(one / other for one, other in zip(numbers, to, strict=True))


def quantile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]
