"""A whole program, from its start to its end, against `python -c pass`: run in turns.

CPU time counts, as the median over the pairs: on a machine that others use too, the time on the clock
depends on them more than on us.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

from .figures import AT_MOST, Figure, Ratio, middle_ratio

HIBOSS = os.fspath(Path(sys.executable).with_name("hiboss"))
Ended = subprocess.CompletedProcess[bytes]


def is_silent(done: Ended) -> bool:
    return not done.stdout and not done.stderr


@dataclass(kw_only=True)
class Program:
    """What to run, what to give it, whether what it said is right, and what its runs took."""

    key: str
    work: str
    command: list[str]
    environment: dict[str, str]
    floor: float  # times the CPU of `python -c pass`
    is_right: Callable[[Ended], bool] = is_silent
    given: bytes = b""
    runs: list[tuple[float, float]] = field(default_factory=list)  # milliseconds on the clock, and of CPU
    nothing: list[tuple[float, float]] = field(default_factory=list)  # of `python -c pass`

    def run(self) -> None:
        """Run it, and then Python doing nothing."""
        self.runs.append(self._one(self.command, self.is_right))
        self.nothing.append(self._one([sys.executable, "-c", "pass"], is_silent))

    def _one(self, command: list[str], is_right: Callable[[Ended], bool]) -> tuple[float, float]:
        worked, begin = _children(), perf_counter()
        done = subprocess.run(
            command, env=self.environment, input=self.given, capture_output=True, check=False
        )
        took, spent = (perf_counter() - begin) * 1000, _children() - worked
        if done.returncode or not is_right(done):
            said = (done.stderr or done.stdout).decode(errors="replace").strip()[-500:]
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {said}")
        return took, spent

    def figure(self) -> Figure:
        (took, spent), (least_took, least_spent) = (
            tuple(zip(*side, strict=True)) for side in (self.runs, self.nothing)
        )
        ratios = (
            Ratio(
                key="to_python_cpu",
                value=middle_ratio(spent, least_spent),
                of=f"× the CPU of python -c pass ({median(least_spent):.0f} ms)",
                sense=AT_MOST,
                floor=self.floor,
            ),
            Ratio(
                key="to_python",
                value=middle_ratio(took, least_took),
                of=f"× python -c pass on the clock ({median(least_took):.0f} ms)",
                sense=AT_MOST,
            ),
        )
        return Figure(
            key=self.key,
            work=self.work,
            taken=spent,
            unit="ms",
            p50=median(took),
            p99=max(took),
            ratios=ratios,
        )


def _children() -> float:
    """Milliseconds of CPU of the programs that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000
