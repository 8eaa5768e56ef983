"""Durable sends: how many a second, against the same rows written by a plain loop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .bare import Bare, Wrote
from .figures import AT_MOST, Figure, Ratio, middle, middle_ratio
from .homes import AGENT, TEXT, cpu, new_home, say
from .load import Load, Outcome, generate


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


# The floors of CPU are a fifth over what was measured; its aims are 0.6 of what a send cost in November 2026.
ONE = Way(
    key="sends_1",
    connections=1,
    in_flight=1,
    goal="2,500/s",
    floor=0.5,
    aim=0.6,
    cpu_floor=2.8,
    cpu_aim=1.7,
)
MANY = Way(
    key="sends_32",
    connections=32,
    in_flight=1,
    goal="10,000/s",
    floor=0.33,
    aim=0.42,
    cpu_floor=4.0,
    cpu_aim=2.5,
)
DEEP = Way(
    key="sends_256",
    connections=32,
    in_flight=8,
    goal="18,000/s",
    floor=0.33,
    aim=0.4,
    cpu_floor=3.5,
    cpu_aim=2.7,
)
WAYS = (ONE, MANY, DEEP)
WARM_SECONDS = 0.1
PAIRS = 3  # in a round, each of a third of its seconds: others disturb both sides of a short pair alike


@dataclass(frozen=True, kw_only=True)
class Slice:
    """What one round gave for one way: bare, then the daemon, one right after the other."""

    bare: Wrote
    sent: Outcome
    cpu: float  # the daemon's, microseconds a send


def measure(directory: Path, rounds: int, seconds: float) -> list[Figure]:
    daemon = new_home(directory / "sends")
    bare = Bare(directory / "bare")
    slices: dict[str, list[Slice]] = {way.key: [] for way in WAYS}
    try:
        daemon.start()
        for number in range(rounds):
            say(f"sends, round {number + 1} of {rounds}")
            for way in (*WAYS,) * PAIRS:
                slices[way.key].append(_slice(daemon, bare, way, seconds / PAIRS))
        memory = psutil.Process(daemon.pid).memory_info().rss / 1e6
        total = sum(one.sent.answered for taken in slices.values() for one in taken)
        say("checking that what was written is right")
        check(daemon, total)
        bare.check()
    finally:
        daemon.stop()
        bare.close()
    return [*_figures(slices), _memory(memory, total)]


def _slice(daemon: RunningDaemon, bare: Bare, way: Way, seconds: float) -> Slice:
    wrote = bare.run(way.group, seconds, WARM_SECONDS)
    sent, spent = send(daemon, way, seconds)
    return Slice(bare=wrote, sent=sent, cpu=spent)


def send(daemon: RunningDaemon, way: Way, seconds: float) -> tuple[Outcome, float]:
    """What came of it, and the microseconds that the daemon worked for one send."""
    before = cpu(daemon)
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
    return sent, (cpu(daemon) - before) / sent.answered


def check(daemon: RunningDaemon, answered: int) -> None:
    """Speed counts only if everything answered is there, and nothing else."""
    with daemon.database() as connection:
        stored = connection.execute("SELECT count(*) FROM envelope").fetchone()[0]
    if stored != answered:
        raise AssertionError(f"{answered} sends were answered and {stored} envelopes are stored")
    daemon.check()


def _figures(slices: dict[str, list[Slice]]) -> list[Figure]:
    works = {
        ONE: "durable sends, one connection",
        MANY: "durable sends, 32 connections",
        DEEP: "durable sends, 32 connections × 8 in flight",
    }
    rates = [_rate(way, work, slices[way.key]) for way, work in works.items()]
    return [*rates, *(_cpu(way, slices[way.key]) for way in WAYS)]


def _rate(way: Way, work: str, taken: list[Slice]) -> Figure:
    sent = middle([one.sent for one in taken])
    bare = [one.bare.rate for one in taken]
    ratio = Ratio(
        key="to_bare",
        value=middle_ratio([one.sent.rate for one in taken], bare),
        of=f"of bare in groups of {way.group} ({median(bare):,.0f}/s)",
        floor=way.floor,
        aim=way.aim,
        needs_quiet=True,
    )
    return Figure(
        key=way.key,
        work=work,
        value=sent.rate,
        unit="/s",
        goal=way.goal,
        p50=sent.p50,
        p99=sent.p99,
        ratios=(ratio,),
    )


def _cpu(way: Way, taken: list[Slice]) -> Figure:
    """Steadier than any rate on a machine that others use too: who waits for a core spends nothing."""
    bare = [one.bare.cpu for one in taken]
    ratio = Ratio(
        key="to_bare",
        value=middle_ratio([one.cpu for one in taken], bare),
        of=f"× the CPU of a bare message in groups of {way.group} ({median(bare):.0f} µs)",
        sense=AT_MOST,
        floor=way.cpu_floor,
        aim=way.cpu_aim,
    )
    return Figure(
        key=f"cpu_{way.key}",
        work=f"daemon CPU a send, {way.group} in flight",
        value=median(one.cpu for one in taken),
        unit="µs",
        ratios=(ratio,),
    )


def _memory(value: float, sends: int) -> Figure:
    return Figure(
        key="memory_after_sends", work=f"daemon memory after {sends:,} sends", value=value, unit="MB"
    )
