"""A million envelopes that wait for their time: what they cost everything else.

A send, the look at what comes next, a start, and the memory held: each with many deferred
rows against the same with few, in turns. How late deferred mail is posted: bench/lateness.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from hiboss.core.settings import DEFAULTS
from hiboss.daemon.lock import Lock
from hiboss.routing.scheduler import Scheduler
from hiboss.store import overdue
from hiboss.store.store import Store
from hiboss.testing.running_daemon import RunningDaemon

from . import lateness
from .figures import AT_MOST, Figure, Ratio, middle_ratio, rated, timed
from .homes import AGENT, ENVIRONMENT, SMALL, TEXT, cpu, deferred_home, memory
from .lateness import Watched
from .load import Load, Outcome, generate
from .rounds import Size, rounds, say

Pair = tuple[RunningDaemon, RunningDaemon]  # many deferred, few deferred
SEND_LIMIT, WAKE_LIMIT = 1.2, 2.0
START_LIMIT, MEMORY_LIMIT = 500.0, 30.0  # ms and MB more
LOOKS = 500  # in one round
PLACE = "desk"
CONNECTIONS = 32
MOST_DEFERRED = 1_000  # more would fill the small store


def measure(directory: Path, size: Size) -> list[Figure]:
    """With many rows deferred and with few; then, for lateness, with many and with a tenth of them."""
    sizes = size.rows, SMALL
    tenth = max(size.rows // 10, 1)
    say(f"writing {sum(sizes) + tenth:,} envelopes that wait for their time")
    homes = {number: directory / f"deferred-{number}" for number in (*sizes, tenth)}
    daemons = {number: deferred_home(home, number, [PLACE]) for number, home in homes.items()}
    try:
        figures = _costs((daemons[sizes[0]], daemons[SMALL]), sizes, size)
        if tenth != SMALL:
            daemons[SMALL].stop()
            daemons[tenth].start(**ENVIRONMENT)
        many, fewer = [Watched(daemons[one], homes[one] / "account", PLACE) for one in (sizes[0], tenth)]
        figures += lateness.measure((many, fewer), (sizes[0], tenth), size.rounds)
    finally:
        for daemon in daemons.values():
            daemon.stop()
    return figures


def _costs(pair: Pair, sizes: tuple[int, int], size: Size) -> list[Figure]:
    """Neither daemon runs at the beginning; both do at the end."""
    figures = asyncio.run(_wakes(pair, sizes, size.rounds))
    figures += _starts(pair, sizes, size.rounds)
    return [*figures, *_sends(pair, sizes, size)]


# --- the next wake -------------------------------------------------------------------


@dataclass(frozen=True)
class _Wake:
    key: str
    work: str
    act: Callable[[Store, Scheduler], Any]


async def _look(store: Store, scheduler: Scheduler) -> None:
    store.read(overdue.next_wake)


async def _catch_up(store: Store, scheduler: Scheduler) -> None:
    """What a ring costs when nothing is overdue, and the bell is set anew for a nearer row."""
    await scheduler.catch_up()
    assert scheduler.next_wake is not None
    scheduler.nudge(scheduler.next_wake - 1)


WAKES = (
    _Wake("next_wake", "next wake read, {rows} deferred", _look),
    _Wake("catch_up", "next wake read and bell set anew, {rows} deferred", _catch_up),
)


async def _wakes(pair: Pair, sizes: tuple[int, int], number: int) -> list[Figure]:
    """In this process, with the daemon's own parts: over a socket it would not be seen."""
    async with AsyncExitStack() as life:
        parts = []
        for daemon in pair:
            life.callback(Lock(daemon.home).release)
            store = await Store.open(daemon.home, DEFAULTS)
            life.push_async_callback(store.close)
            scheduler = Scheduler(store, DEFAULTS, lambda woken: None)
            scheduler.start()
            life.push_async_callback(scheduler.close)
            await scheduler.settle()
            parts.append((store, scheduler))
        taken: dict[str, tuple[list[float], list[float]]] = {wake.key: ([], []) for wake in WAKES}
        for _ in rounds(number, "the next wake"):
            for wake in WAKES:
                for took, one in zip(taken[wake.key], await _wake(wake, parts), strict=True):
                    took.append(one)
        return [_wake_figure(wake, *taken[wake.key], sizes) for wake in WAKES]


async def _wake(wake: _Wake, parts: list[tuple[Store, Scheduler]]) -> list[float]:
    """Microseconds with many and with few; of single calls, since others disturb only a few."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(LOOKS):
        for took, (store, scheduler) in zip(taken, parts, strict=True):
            begin = perf_counter()
            await wake.act(store, scheduler)
            took.append((perf_counter() - begin) * 1e6)
    return [median(one) for one in taken]


def _wake_figure(wake: _Wake, many: list[float], few: list[float], sizes: tuple[int, int]) -> Figure:
    ratio = _flat(middle_ratio(many, few), sizes, f"{median(few):.0f} µs", WAKE_LIMIT)
    work = wake.work.format(rows=f"{sizes[0]:,}")
    return Figure(key=wake.key, work=work, taken=many, unit="µs", ratios=(ratio,))


def _flat(value: float, sizes: tuple[int, int], small: str, floor: float) -> Ratio:
    return Ratio(
        key="flat", value=value, of=f"× the same with {sizes[1]:,} ({small})", sense=AT_MOST, floor=floor
    )


# --- start and memory ----------------------------------------------------------------


def _starts(pair: Pair, sizes: tuple[int, int], number: int) -> list[Figure]:
    starts: tuple[list[float], list[float]] = ([], [])
    held: tuple[list[float], list[float]] = ([], [])
    for one in rounds(number, "starts with much deferred"):
        for which, daemon in enumerate(pair):
            begin = perf_counter()
            daemon.start(**ENVIRONMENT)
            starts[which].append((perf_counter() - begin) * 1000)
            held[which].append(memory(daemon))
            if one < number - 1:
                daemon.stop()
    rows = f"{sizes[0]:,} deferred"
    return [
        _more("deferred_start", f"daemon start, {rows}", starts, "ms", START_LIMIT),
        _more("deferred_memory", f"daemon memory at rest, {rows}", held, "MB", MEMORY_LIMIT),
    ]


def _more(key: str, work: str, taken: tuple[list[float], list[float]], unit: str, most: float) -> Figure:
    """What counts is how much more it is than with few."""
    more = Ratio(
        key="more",
        value=median(many - few for many, few in zip(*taken, strict=True)),
        of=f"{unit} more than with few ({median(taken[1]):.0f} {unit})",
        sense=AT_MOST,
        floor=most,
    )
    return Figure(key=key, work=work, taken=taken[0], unit=unit, ratios=(more,))


# --- sends ---------------------------------------------------------------------------


@dataclass
class _Sent:
    """What a way to send gave, round by round: with many deferred, with few; microseconds of the daemons."""

    key: str
    work: str
    more: dict[str, str] = field(default_factory=dict)
    most: int = 1_000_000
    taken: tuple[list[Outcome], list[Outcome]] = field(default_factory=lambda: ([], []))
    spent: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def round(self, pair: Pair, seconds: float) -> None:
        before = [cpu(daemon.pid) for daemon in pair]
        found = generate(*[_load(daemon, seconds, self.more, most=self.most) for daemon in pair])
        for which, (daemon, one) in enumerate(zip(pair, found, strict=True)):
            self.add(which, one, cpu(daemon.pid) - before[which])

    def add(self, which: int, sent: Outcome, spent: float) -> None:
        self.taken[which].append(sent)
        self.spent[which].append(spent / sent.answered)

    def ratios(self, sizes: tuple[int, int]) -> tuple[Ratio, Ratio]:
        """The floor is under the CPU: a time on the clock has an fsync in it, for which others wait too."""
        large, small = ([one.p50 for one in taken] for taken in self.taken)
        of = f"× the same with {sizes[1]:,} ({median(small):.2f} ms)"
        time = Ratio(key="flat_time", value=middle_ratio(large, small), of=of, sense=AT_MOST, aim=SEND_LIMIT)
        few = f"daemon CPU, {median(self.spent[1]):.0f} µs"
        return time, _flat(middle_ratio(*self.spent), sizes, few, SEND_LIMIT)


def _sends(pair: Pair, sizes: tuple[int, int], size: Size) -> list[Figure]:
    rows = f"{sizes[0]:,} deferred"
    one = _Sent("deferred_send", f"send, one connection, {rows}")
    later = _Sent("deferred_send_later", f"send for +2h, one connection, {rows}", {"deliver_at": "+2h"})
    later.most = max(2, MOST_DEFERRED // size.rounds)
    many = _Sent("deferred_sends_32", f"durable sends, {CONNECTIONS} connections, {rows}")
    held: tuple[list[float], list[float]] = ([], [])
    for _ in rounds(size.rounds, "sends with much deferred"):
        one.round(pair, size.seconds)
        later.round(pair, size.seconds)
        for which, daemon in enumerate(pair):
            before = cpu(daemon.pid)
            (sent,) = generate(_load(daemon, size.seconds, {}, connections=CONNECTIONS))
            many.add(which, sent, cpu(daemon.pid) - before)
            held[which].append(memory(daemon))
    figures = [timed(way.key, way.work, way.taken[0], *way.ratios(sizes)) for way in (one, later)]
    figures.append(rated(many.key, many.work, many.taken[0], *many.ratios(sizes)))
    after = f"daemon memory after sends, {rows}"
    return [*figures, _more("deferred_memory_after", after, held, "MB", MEMORY_LIMIT)]


def _load(daemon: RunningDaemon, seconds: float, more: dict[str, str], **how: Any) -> Load:
    params = {"token": daemon.token(AGENT), "to": f"agent:{AGENT}", "text": TEXT, **more}
    return Load(socket=daemon.home.socket, method="envelope.send", params=params, seconds=seconds, **how)
