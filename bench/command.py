"""The CLI: a whole `hiboss envelope list` against `python -c pass`, run in turns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import SETTLED, say

WARM_RUNS = 2


def measure(daemon: RunningDaemon, runs: int) -> Figure:
    say(f"hiboss envelope list and python -c pass, {runs} runs each")
    environment = {**os.environ, "HIBOSS_HOME": daemon.home.path, "HIBOSS_TOKEN": daemon.token(SETTLED)}
    program = Path(sys.executable).with_name("hiboss")
    command = [os.fspath(program), "envelope", "list"]
    nothing = [sys.executable, "-c", "pass"]
    took: list[float] = []
    least: list[float] = []
    for _ in range(WARM_RUNS + runs):
        took.append(_run(command, environment, lines=10))
        least.append(_run(nothing, environment, lines=0))
    took, least = took[WARM_RUNS:], least[WARM_RUNS:]
    ratio = Ratio(
        key="to_python",
        value=median(took) / median(least),
        of=f"× python -c pass ({median(least):.0f} ms)",
        sense=AT_MOST,
        floor=7.0,
    )
    return Figure(
        key="cli_list",
        work="CLI hiboss envelope list",
        value=median(took),
        unit="ms",
        goal="75 ms",
        p50=median(took),
        p99=max(took),
        ratios=(ratio,),
    )


def _run(command: list[str], environment: dict[str, str], lines: int) -> float:
    """Milliseconds; what it prints must have at least so many lines."""
    begin = perf_counter()
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    took = (perf_counter() - begin) * 1000
    if done.returncode or done.stdout.count(b"\n") < lines:
        complaint = (done.stderr or done.stdout).decode(errors="replace").strip()[-500:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {complaint}")
    return took
