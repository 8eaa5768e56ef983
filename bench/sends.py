"""Durable sends: how many a second, against the same rows written by a plain loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, rated
from .homes import AGENT, TEXT, cpu, new_home
from .load import Load, Outcome, generate
from .rounds import Size, rounds, say

if TYPE_CHECKING:
    from .bare import Bare, Wrote


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to send, and the group a plain loop writes at once for comparison."""

    key: str
    connections: int
    in_flight: int  # on each connection
    goal: str  # sends a second, for orientation
    floor: float  # share of bare
    aim: float
    cpu_floor: float  # times the CPU of a bare message (bare.py says what that is)
    cpu_aim: float

    @property
    def group(self) -> int:
        return self.connections * self.in_flight


# Floors are a sixth under the measured share of bare, and a fifth over the measured CPU. Aims of CPU are 0.6
# of what a send cost in November 2026.
ONE = Way(
    key="sends_1",
    connections=1,
    in_flight=1,
    goal="2,500/s",
    floor=0.45,
    aim=0.6,
    cpu_floor=3.3,
    cpu_aim=1.7,
)
MANY = Way(
    key="sends_32",
    connections=32,
    in_flight=1,
    goal="10,000/s",
    floor=0.28,
    aim=0.42,
    cpu_floor=4.5,
    cpu_aim=2.3,
)
DEEP = Way(
    key="sends_256",
    connections=32,
    in_flight=8,
    goal="18,000/s",
    floor=0.3,
    aim=0.4,
    cpu_floor=4.4,
    cpu_aim=2.2,
)
WAYS = (ONE, MANY, DEEP)
WARM_SECONDS = 0.1
WORKS = {
    ONE: "durable sends, one connection",
    MANY: "durable sends, 32 connections",
    DEEP: "durable sends, 32 connections × 8 in flight",
}


@dataclass
class Taken:
    """What one way gave, round by round: bare, then who was sent to, one right after the other."""

    bare: list[Wrote] = field(default_factory=list)
    sent: list[Outcome] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # the server's, microseconds a send


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory / "home")
    bare = None if size.beside else bare_loop(directory / "bare")
    ways = {way: Taken() for way in WAYS}
    memory: list[float] = []
    try:
        daemon.start()
        for _ in rounds(size.rounds, "sends"):
            for way, taken in ways.items():
                if bare is not None:
                    taken.bare.append(bare.run(way.group, size.seconds, WARM_SECONDS))
                sent, spent = send(daemon, way, size.seconds)
                taken.sent.append(sent)
                taken.cpu.append(spent)
            memory.append(psutil.Process(daemon.pid).memory_info().rss / 1e6)
        total = sum(one.answered for taken in ways.values() for one in taken.sent)
        say("checking that what was written is right")
        check(daemon, total)
        if bare is not None:
            bare.check()
    finally:
        daemon.stop()
        if bare is not None:
            bare.close()
    rates = [rate(way, taken) for way, taken in ways.items()]
    grown = Figure(
        key="memory_after_sends", work="daemon memory while it is sent to", taken=memory, unit="MB"
    )
    return [*rates, *(cpu_figure(way, taken) for way, taken in ways.items()), grown]


def bare_loop(directory: Path) -> Bare:
    """Imported when it is wanted: it knows the statements of the store, and another tree may have others."""
    from .bare import Bare

    return Bare(directory)


def send(daemon: RunningDaemon, way: Way, seconds: float) -> tuple[Outcome, float]:
    """What came of it, and the microseconds that the daemon worked for one send."""
    before = cpu(daemon.pid)
    [sent] = generate(
        Load(
            socket=daemon.home.socket,
            method="envelope.send",
            params={"token": daemon.token(AGENT), "to": f"agent:{AGENT}", "text": TEXT},
            connections=way.connections,
            in_flight=way.in_flight,
            seconds=seconds,
            warm_seconds=WARM_SECONDS,
        )
    )
    return sent, (cpu(daemon.pid) - before) / sent.answered


def check(daemon: RunningDaemon, answered: int) -> None:
    """Speed counts only if everything answered is there, and nothing else."""
    with daemon.database() as connection:
        stored = connection.execute("SELECT count(*) FROM envelope").fetchone()[0]
    if stored != answered:
        raise AssertionError(f"{answered} sends were answered and {stored} envelopes are stored")
    daemon.check()


def rate(way: Way, taken: Taken, *more: Ratio) -> Figure:
    bare = [one.rate for one in taken.bare]
    ratios = [
        Ratio(
            key="to_bare",
            value=middle_ratio([one.rate for one in taken.sent], bare),
            of=f"of bare in groups of {way.group} ({median(bare):,.0f}/s)",
            floor=way.floor,
            aim=way.aim,
            needs_quiet=True,
        )
        for _ in bare[:1]
    ]
    return rated(way.key, WORKS[way], taken.sent, *ratios, *more, goal=way.goal)


def cpu_figure(way: Way, taken: Taken, *more: Ratio) -> Figure:
    """Steadier than any rate on a machine that others use too: who waits for a core spends nothing."""
    bare = [one.cpu for one in taken.bare]
    ratios = [
        Ratio(
            key="to_bare",
            value=middle_ratio(taken.cpu, bare),
            of=f"× the CPU of a bare message in groups of {way.group} ({median(bare):.0f} µs)",
            sense=AT_MOST,
            floor=way.cpu_floor,
            aim=way.cpu_aim,
        )
        for _ in bare[:1]
    ]
    return Figure(
        key=f"cpu_{way.key}",
        work=f"daemon CPU a send, {way.group} in flight",
        taken=taken.cpu,
        unit="µs",
        ratios=(*ratios, *more),
    )
