"""Durable sends: how many a second, against the same rows written by a plain loop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .bare import Bare
from .figures import Figure, Ratio, middle, middle_ratio
from .homes import AGENT, TEXT, new_home, say
from .load import Load, Outcome, generate


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to send, and the group a plain loop writes at once for comparison."""

    key: str
    connections: int
    in_flight: int  # on each connection

    @property
    def group(self) -> int:
        return self.connections * self.in_flight


ONE = Way(key="sends_1", connections=1, in_flight=1)
MANY = Way(key="sends_32", connections=32, in_flight=1)
DEEP = Way(key="sends_256", connections=32, in_flight=8)
WAYS = (ONE, MANY, DEEP)
WARM_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Slice:
    """What one round gave for one way: bare, then the daemon, one right after the other."""

    bare: float
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
            for way in WAYS:
                slices[way.key].append(_slice(daemon, bare, way, seconds))
        memory = psutil.Process(daemon.pid).memory_info().rss / 1e6
        total = sum(one.sent.answered for taken in slices.values() for one in taken)
        say("checking that what was written is right")
        _check(daemon, total)
        bare.check()
    finally:
        daemon.stop()
        bare.close()
    return [*_figures(slices), _memory(memory, total)]


def _slice(daemon: RunningDaemon, bare: Bare, way: Way, seconds: float) -> Slice:
    rate = bare.run(way.group, seconds, WARM_SECONDS)
    process = psutil.Process(daemon.pid)
    before = process.cpu_times()
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
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return Slice(bare=rate, sent=sent, cpu=spent / sent.answered * 1e6)


def _check(daemon: RunningDaemon, answered: int) -> None:
    """Speed counts only if everything answered is there, and nothing else."""
    with daemon.database() as connection:
        stored = connection.execute("SELECT count(*) FROM envelope").fetchone()[0]
    if stored != answered:
        raise AssertionError(f"{answered} sends were answered and {stored} envelopes are stored")
    daemon.check()


def _figures(slices: dict[str, list[Slice]]) -> list[Figure]:
    one = [taken.sent.rate for taken in slices[ONE.key]]
    many = [taken.sent.rate for taken in slices[MANY.key]]
    over_one = Ratio(
        key="to_one",
        value=middle_ratio(many, one),
        of=f"× one connection ({median(one):,.0f}/s)",
        floor=2.0,
    )
    return [
        _figure(MANY, "durable sends, 32 connections", "10,000/s", slices, (0.25, 0.4), over_one),
        _figure(DEEP, "durable sends, 32 connections × 8 in flight", "18,000/s", slices, (None, None)),
        _figure(ONE, "durable sends, one connection", "2,500/s", slices, (0.35, 0.4)),
        _cpu(slices),
    ]


def _figure(
    way: Way,
    work: str,
    goal: str,
    slices: dict[str, list[Slice]],
    marks: tuple[float | None, float | None],
    *more: Ratio,
) -> Figure:
    taken = slices[way.key]
    sent = middle([one.sent for one in taken])
    bare = [one.bare for one in taken]
    ratio = Ratio(
        key="to_bare",
        value=middle_ratio([one.sent.rate for one in taken], bare),
        of=f"of bare in groups of {way.group} ({median(bare):,.0f}/s)",
        floor=marks[0],
        aim=marks[1],
    )
    return Figure(
        key=way.key,
        work=work,
        value=sent.rate,
        unit="/s",
        goal=goal,
        p50=sent.p50,
        p99=sent.p99,
        ratios=(ratio, *more),
    )


def _cpu(slices: dict[str, list[Slice]]) -> Figure:
    """Steadier than any rate on a machine that others use too."""
    value = median(one.cpu for one in slices[MANY.key])
    return Figure(key="send_cpu", work="daemon CPU a send, 32 connections", value=value, unit="µs")


def _memory(value: float, sends: int) -> Figure:
    return Figure(
        key="memory_after_sends", work=f"daemon memory after {sends:,} sends", value=value, unit="MB"
    )
