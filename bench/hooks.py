"""Hooks of a harness: what one costs it, with a daemon and without one, against `python -c pass`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from hiboss.testing.running_daemon import running_daemon

from .figures import AT_MOST, Figure, Ratio
from .homes import say

WARM_RUNS = 2
EVENT = {"hook_event_name": "Stop", "cwd": "/", "last_assistant_message": "Done."}


def measure(directory: Path, runs: int) -> list[Figure]:
    say(f"hiboss hook claude and python -c pass, {runs} runs each")
    (directory / "hooks").mkdir()
    with running_daemon(directory / "hooks") as daemon:
        there = _figure("hook", "hook, with a daemon", daemon.home.path, runs, floor=8.0)
        daemon.stop()
        away = _figure("hook_away", "hook, no daemon", daemon.home.path, runs, floor=6.0)
        daemon.start()
    return [there, away]


def _figure(key: str, work: str, home: str, runs: int, floor: float) -> Figure:
    # The process that calls the hook stands for the harness.
    own = {"CLAUDE_PID": str(os.getpid()), "CLAUDE_CODE_ENTRYPOINT": "cli", "HIBOSS_HOME": home}
    environment = {**os.environ, **own}
    hook = [os.fspath(Path(sys.executable).with_name("hiboss")), "hook", "claude"]
    took: list[float] = []
    least: list[float] = []
    for _ in range(WARM_RUNS + runs):
        took.append(_run(hook, environment))
        least.append(_run([sys.executable, "-c", "pass"], environment))
    took, least = took[WARM_RUNS:], least[WARM_RUNS:]
    ratio = Ratio(
        key="to_python",
        value=median(took) / median(least),
        of=f"× python -c pass ({median(least):.0f} ms)",
        sense=AT_MOST,
        floor=floor,
    )
    return Figure(
        key=key,
        work=work,
        value=median(took),
        unit="ms",
        goal="200 ms",
        p50=median(took),
        p99=max(took),
        ratios=(ratio,),
    )


def _run(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds; nothing may be printed."""
    event = json.dumps({**EVENT, "session_id": "bench"}).encode()
    begin = perf_counter()
    done = subprocess.run(command, env=environment, input=event, capture_output=True, check=False)
    took = (perf_counter() - begin) * 1000
    if done.returncode or done.stdout or done.stderr:
        raise RuntimeError(f"{' '.join(command)} said {done.stdout + done.stderr!r}")
    return took
