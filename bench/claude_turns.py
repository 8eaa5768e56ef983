"""hiboss's own share of a turn of Claude Code: the real program, with a scripted model on this machine.

By the daemon's own timestamps (hiboss/agents/own_time.py): from the claim of the envelopes until the program
is started, and from its result until the answer is committed, without what claude needs to end in between.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from hiboss.testing.model_server import ModelServer
from hiboss.testing.running_daemon import RunningDaemon

from .figures import Figure, quantile
from .homes import AGENT, new_home
from .rounds import Size, rounds, say

TURNS = 2  # in a round
AIM = 25.0  # milliseconds, the middle of all turns
WAIT_SECONDS = 60.0
_OWN = re.compile(r"claim to start ([\d.]+) ms, result to exit ([\d.]+) ms, exit to commit ([\d.]+) ms")


def measure(directory: Path, size: Size) -> list[Figure]:
    """Give an agent a few turns each round, one after the other, in one session."""
    program = _program()
    if program is None:
        say("claude is not installed: its turns are NOT measured (make real installs it)")
        return []
    with ModelServer() as server:
        daemon = new_home(directory)
        daemon.start(
            HIBOSS_LOG_LEVEL="debug",
            ANTHROPIC_BASE_URL=server.anthropic_url,
            ANTHROPIC_API_KEY="sk-ant-bench",
            CLAUDE_CONFIG_DIR=str(directory / "claude-config"),
        )
        try:
            boss = daemon.token("boss")
            settings = {"program": program}
            daemon.call("agent.set", token=boss, name=AGENT, provider="claude", settings=settings)
            for number in rounds(size.rounds, f"turns of {program}"):
                for turn in range(number * TURNS, (number + 1) * TURNS):
                    _turn(daemon, boss, turn)
        finally:
            daemon.stop()
    found = _OWN.findall(Path(daemon.home.log_file).read_text())
    assert len(found) == size.rounds * TURNS, f"{len(found)} turns were timed"
    before, ending, after = ([float(times[number]) for times in found] for number in range(3))
    both = [one + other for one, other in zip(before, after, strict=True)]
    return [
        _figure("claude_own", "own share of a turn of claude, p50", both, AIM),
        _figure("claude_start", "  from the claim until it is started", before),
        _figure("claude_commit", "  from its end until COMMIT", after),
        _figure("claude_exit", "claude itself, from its result to its end", ending),
    ]


def _program() -> str | None:
    """Return Claude Code: the one that `make real` installs, else the one on PATH."""
    installed = Path(sys.prefix) / "real" / "node_modules" / ".bin" / "claude"
    return str(installed) if os.access(installed, os.X_OK) else shutil.which("claude")


def _turn(daemon: RunningDaemon, boss: str, number: int) -> None:
    daemon.call("envelope.send", token=boss, to=f"agent:{AGENT}", text=f"turn {number}")
    end = monotonic() + WAIT_SECONDS
    while True:
        runs = daemon.call("run.list", token=boss, agent=AGENT, page_size=1)["runs"]
        if runs and runs[0]["status"] == "completed" and runs[0]["id"] == f"r{number + 1}":
            return
        assert monotonic() < end, f"turn {number} did not end: {runs[:1]}"
        sleep(0.02)


def _figure(key: str, work: str, times: list[float], limit: float | None = None) -> Figure:
    taken = [median(times[begin : begin + TURNS]) for begin in range(0, len(times), TURNS)]
    goal = f"≤ {limit:g} ms" if limit else ""
    p50, p99 = median(times), quantile(times, 0.99)
    return Figure(key=key, work=work, taken=taken, unit="ms", p50=p50, p99=p99, goal=goal)
