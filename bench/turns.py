"""Turns: an agent that is a program, against the bare program started as often, one after the other.

In short rounds, each beside one of the bare program: the median of their ratios holds on a machine that
others use too. Steadier still is the CPU time of a turn, of the daemon and the program together.
"""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import NamedTuple

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_LEAST, AT_MOST, Figure, Ratio
from .homes import AGENT, new_home
from .rounds import Size, rounds

PROGRAM = "cat"
TEAM = 4  # agents at work at the same time, as many as runs go on by default
ROUND = 40  # turns
# A bare `cat` takes about a millisecond; a turn that follows another one commits twice. Where others work
# too, each of its ten steps to another thread waits for them: then only the floor of the CPU time counts.
FLOOR_ONE, FLOOR_TEAM = 0.16, 0.2
MOST_CPU = 6.0  # of a turn, in the CPU time of the bare program


class Cost(NamedTuple):
    """What one turn, or one bare program, takes: seconds, and seconds of CPU time."""

    wall: float
    cpu: float


class Pair(NamedTuple):
    """The costs of a round of turns, and of as many bare programs just before."""

    turn: Cost
    bare: Cost


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    daemon.start()
    boss = daemon.token("boss")
    try:
        names = [AGENT, *(f"mate-{number}" for number in range(1, TEAM))]
        for name in names[1:]:
            daemon.call("agent.register", token=boss, name=name)
        for name in names:
            fields = {"provider": "command", "settings": {"command": PROGRAM}, "busy": "followup"}
            daemon.call("agent.set", token=boss, name=name, **fields)
        _turns(daemon, names)  # whatever is done once
        one, team = [], []
        for _ in rounds(size.rounds, "turns of agents that are programs"):
            bare = _bare()
            one.append(Pair(_turns(daemon, names[:1]), bare))
            team.append(Pair(_turns(daemon, names), bare))
    finally:
        daemon.stop()
    return [
        _rate(one, "turns_1", "turns of one agent", FLOOR_ONE),
        _cpu(one),
        _rate(team, "turns_4", f"turns of {TEAM} agents", FLOOR_TEAM),
    ]


def _rate(pairs: list[Pair], key: str, work: str, floor: float) -> Figure:
    ratio = Ratio(
        key="bare",
        value=median(one.bare.wall / one.turn.wall for one in pairs),
        of=f"of the bare program ({1 / median(one.bare.wall for one in pairs):,.0f}/s)",
        sense=AT_LEAST,
        floor=floor,
        needs_quiet=True,
    )
    rates = [1 / one.turn.wall for one in pairs]
    return Figure(key=key, work=work, taken=rates, unit="/s", ratios=(ratio,))


def _cpu(pairs: list[Pair]) -> Figure:
    ratio = Ratio(
        key="bare",
        value=median(one.turn.cpu / one.bare.cpu for one in pairs),
        of=f"× the bare program ({median(one.bare.cpu for one in pairs) * 1e6:,.0f} µs)",
        sense=AT_MOST,
        floor=MOST_CPU,
    )
    spent = [one.turn.cpu * 1e6 for one in pairs]
    return Figure(
        key="turn_cpu", work="CPU of a turn, with its program", taken=spent, unit="µs", ratios=(ratio,)
    )


def _bare() -> Cost:
    begun, spent = perf_counter(), _own_cpu()
    for _ in range(ROUND):
        subprocess.run([PROGRAM], input=b"a turn", capture_output=True, check=True, start_new_session=True)
    return Cost((perf_counter() - begun) / ROUND, (_own_cpu() - spent) / ROUND)


def _own_cpu() -> float:
    """Return the CPU time of this process and the programs that it has started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _cpu_of(daemon: RunningDaemon) -> float:
    """Return the CPU time of the daemon and the programs that it has started and reaped."""
    return sum(psutil.Process(daemon.pid).cpu_times()[:4])


def _turns(daemon: RunningDaemon, names: list[str]) -> Cost:
    """Mail for all of them, held back until it lies there, then worked through."""
    boss = daemon.token("boss")
    for name in names:
        daemon.call("agent.pause", token=boss, name=name)
    for number in range(ROUND):
        to = f"agent:{names[number % len(names)]}"
        daemon.call("envelope.send", token=boss, to=to, text=f"turn {number}", **{"from": "user:boss"})
    with daemon.database() as connection:  # asked here: to answer is work that no turn needs
        query = "SELECT count(*) FROM run WHERE status = 'completed'"
        wanted = connection.execute(query).fetchone()[0] + ROUND
        begun, spent = perf_counter(), _cpu_of(daemon)
        for name in names:
            daemon.call("agent.resume", token=boss, name=name)
        while connection.execute(query).fetchone()[0] < wanted:
            sleep(0.002)
    return Cost((perf_counter() - begun) / ROUND, (_cpu_of(daemon) - spent) / ROUND)
