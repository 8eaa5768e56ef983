"""The breaker: how soon everything is stopped under fifty running processes, half of which hear no signal.

Each run is a shell with a child. Half of them, and their children, ignore INT and TERM, so that only KILL
ends them. All of them are told to end at once, and share one look at the processes of the machine. It is done
when every process is gone and every run is settled.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from hiboss.testing.running_daemon import RunningDaemon

from .figures import Figure
from .homes import is_alive, new_home
from .rounds import Size, rounds

RUNS = 50
LIMIT = 10_000.0  # milliseconds
WAIT_SECONDS = 60.0
PROGRAMS = ("", "trap '' INT TERM\n")  # what the script of every second run begins with


def measure(directory: Path, size: Size) -> list[Figure]:
    """Pull the breaker in each round, each time under fifty running processes."""
    daemon = new_home(directory)
    daemon.start(HIBOSS_RUNS_PARALLEL_RUNS=str(RUNS))
    boss = daemon.token("boss")
    try:
        pids = [_agent(daemon, directory, number) for number in range(RUNS)]
        for number in range(RUNS):
            daemon.call("envelope.send", token=boss, to=f"agent:agent-{number}", text="begin")
        pulls = rounds(size.rounds, f"the breaker under {RUNS} running processes")
        times = [_round(daemon, boss, pids) for _ in pulls]
        daemon.check()
    finally:
        daemon.stop()
    work = f"The breaker: until {RUNS} runs have ended, half of them deaf, longest"
    return [
        Figure(
            key="breaker_done",
            work=work,
            taken=times,
            unit="ms",
            p50=median(times),
            at_most=LIMIT,
            longest=True,
        )
    ]


def _agent(daemon: RunningDaemon, directory: Path, number: int) -> Path:
    """Register an agent; return the file in which its program writes down its processes."""
    program, pids = directory / f"agent-{number}", directory / f"agent-{number}.pids"
    lines = [f"P={shlex.quote(str(pids))}", "sleep 1000 &", 'echo "$$ $!" > "$P.new"', 'mv "$P.new" "$P"']
    program.write_text("#!/bin/sh\n" + PROGRAMS[number % 2] + "\n".join(lines) + "\nexec sleep 1000\n")
    program.chmod(0o700)
    settings = {"command": shlex.quote(str(program))}
    boss = daemon.token("boss")
    daemon.call("agent.register", token=boss, name=f"agent-{number}", provider="command", settings=settings)
    return pids


def _round(daemon: RunningDaemon, boss: str, files: list[Path]) -> float:
    """Wait until all runs are under way, pull the breaker, and let everything go on; in milliseconds."""
    _wait(lambda: all(file.exists() for file in files))
    processes = [int(word) for file in files for word in file.read_text().split()]
    for file in files:
        file.unlink()
    begun = monotonic()
    daemon.call("breaker.pull", token=boss)
    _wait(lambda: all(one["ended"] for one in daemon.call("breaker.status", token=boss)["runs"]))
    _wait(lambda: not any(map(is_alive, processes)))
    lasted = (monotonic() - begun) * 1000
    assert not any(file.exists() for file in files), "a run has begun while the breaker was pulled"
    daemon.call("breaker.release", token=boss)
    return lasted


def _wait(condition: Callable[[], bool]) -> None:
    end = monotonic() + WAIT_SECONDS
    while not condition():
        if monotonic() > end:
            raise AssertionError("it took longer than a minute")
        sleep(0.01)
