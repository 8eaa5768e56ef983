"""Turns: an agent that is a program, against the bare program started as often, one after the other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import perf_counter, sleep

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_LEAST, Figure, Ratio, middle_ratio
from .homes import AGENT, new_home, say

PROGRAM = "cat"
TEAM = 4  # agents at work at the same time, as many as runs go on by default
FLOOR_ONE, FLOOR_TEAM = 0.08, 0.1  # a bare `cat` takes about a millisecond; a turn commits four times


def measure(directory: Path, rounds: int, turns: int) -> list[Figure]:
    daemon = new_home(directory / "turns")
    daemon.start()
    boss = daemon.token("boss")
    try:
        names = [AGENT, *(f"mate-{number}" for number in range(1, TEAM))]
        for name in names[1:]:
            daemon.call("agent.register", token=boss, name=name)
        for name in names:
            fields = {"provider": "command", "settings": {"command": PROGRAM}, "busy": "followup"}
            daemon.call("agent.set", token=boss, name=name, **fields)
        say(f"turns of agents that are programs, {rounds} rounds of {turns}")
        return [
            _figure(daemon, names[:1], rounds, turns, FLOOR_ONE, "turns of one agent"),
            _figure(daemon, names, rounds, turns, FLOOR_TEAM, f"turns of {TEAM} agents"),
        ]
    finally:
        daemon.stop()


def _figure(
    daemon: RunningDaemon, names: list[str], rounds: int, turns: int, floor: float, work: str
) -> Figure:
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(_bare(turns))
        ours.append(_round(daemon, names, turns))
    rate = sorted(ours)[len(ours) // 2]
    ratio = Ratio(
        key="bare",
        value=middle_ratio(ours, bare),
        of=f"of the bare program ({sorted(bare)[len(bare) // 2]:,.0f}/s)",
        sense=AT_LEAST,
        floor=floor,
    )
    return Figure(key=f"turns_{len(names)}", work=work, value=rate, unit="/s", ratios=(ratio,))


def _bare(turns: int) -> float:
    begun = perf_counter()
    for _ in range(turns):
        subprocess.run([PROGRAM], input=b"a turn", capture_output=True, check=True, start_new_session=True)
    return turns / (perf_counter() - begun)


def _round(daemon: RunningDaemon, names: list[str], turns: int) -> float:
    """Mail for all of them, held back until it lies there, then worked through."""
    boss = daemon.token("boss")
    for name in names:
        daemon.call("agent.pause", token=boss, name=name)
    for number in range(turns):
        to = f"agent:{names[number % len(names)]}"
        daemon.call("envelope.send", token=boss, to=to, text=f"turn {number}", **{"from": "user:boss"})
    begun = perf_counter()
    for name in names:
        daemon.call("agent.resume", token=boss, name=name)
    while any(one["due"] or one["running"] for one in daemon.call("agent.team", token=boss)["team"]):
        sleep(0.01)
    return turns / (perf_counter() - begun)
