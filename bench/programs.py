"""A whole program, from its start to its end, against `python -c pass`: run in turns.

CPU time counts, as the median over the pairs: on a machine that others use too, the time on the clock
depends on them more than on us.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from .figures import AT_MOST, Figure, Ratio, middle_ratio

WARM_RUNS = 2
NOTHING = [sys.executable, "-c", "pass"]
Ended = subprocess.CompletedProcess[bytes]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run, what to give it, and whether what it said is right."""

    command: list[str]
    environment: dict[str, str]
    is_right: Callable[[Ended], bool]
    given: bytes = b""

    def run(self, command: list[str] | None = None) -> tuple[float, float]:
        """Milliseconds on the clock, and of CPU."""
        worked, begin = _children(), perf_counter()
        done = subprocess.run(
            command or self.command, env=self.environment, input=self.given, capture_output=True, check=False
        )
        took, spent = (perf_counter() - begin) * 1000, _children() - worked
        if done.returncode or not (command or self.is_right(done)):
            said = (done.stderr or done.stdout).decode(errors="replace").strip()[-500:]
            raise RuntimeError(f"{' '.join(self.command)} ended with {done.returncode}: {said}")
        return took, spent


def measure(
    key: str,
    work: str,
    program: Program,
    runs: int,
    *,
    floor: float,
    aim: float | None = None,
    goal: str = "",
) -> Figure:
    """`floor` and `aim` are times the CPU of `python -c pass`."""
    pairs = [(program.run(), program.run(NOTHING)) for _ in range(WARM_RUNS + runs)][WARM_RUNS:]
    (took, spent), (least_took, least_spent) = (
        tuple(zip(*side, strict=True)) for side in zip(*pairs, strict=True)
    )
    ratios = (
        Ratio(
            key="to_python_cpu",
            value=middle_ratio(list(spent), list(least_spent)),
            of=f"× the CPU of python -c pass ({median(least_spent):.0f} ms)",
            sense=AT_MOST,
            floor=floor,
            aim=aim,
        ),
        Ratio(
            key="to_python",
            value=middle_ratio(list(took), list(least_took)),
            of=f"× python -c pass on the clock ({median(least_took):.0f} ms)",
            sense=AT_MOST,
        ),
    )
    p50, p99 = median(took), max(took)
    return Figure(key=key, work=work, value=p50, unit="ms", goal=goal, p50=p50, p99=p99, ratios=ratios)


def is_silent(done: Ended) -> bool:
    return not done.stdout and not done.stderr


def _children() -> float:
    """Milliseconds of CPU of the programs that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000
