"""A million envelopes that wait for their time: what they cost everything else.

A send, the look at what comes next, a start, and the memory held: each with many deferred
rows against the same with few, in turns. How late deferred mail is posted: bench/lateness.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import psutil

from hiboss.core.settings import DEFAULTS
from hiboss.daemon.lock import Lock
from hiboss.routing.scheduler import Scheduler
from hiboss.store import overdue
from hiboss.store.store import Store
from hiboss.testing.running_daemon import RunningDaemon

from . import lateness
from .figures import AT_MOST, Figure, Ratio, middle, middle_ratio
from .homes import AGENT, ENVIRONMENT, TEXT, cpu, deferred_home, say
from .lateness import Watched
from .load import Load, Outcome, generate

Pair = tuple[RunningDaemon, RunningDaemon]  # many deferred, few deferred
SEND_LIMIT, WAKE_LIMIT = 1.2, 2.0
START_LIMIT, MEMORY_LIMIT = 500.0, 30.0  # ms and MB more
LOOKS = 500  # in one round
REST_SECONDS = 0.3
PLACE = "desk"
CONNECTIONS = 32
MOST_DEFERRED = 1_000  # more would fill the small store


def measure(directory: Path, sizes: tuple[int, int], rounds: int, seconds: float) -> list[Figure]:
    """With many rows deferred and with few; then, for lateness, with many and with a tenth of them."""
    tenth = max(sizes[0] // 10, 1)
    say(f"writing {sum(sizes) + tenth:,} envelopes that wait for their time")
    homes = {size: directory / f"deferred-{size}" for size in (*sizes, tenth)}
    daemons = {size: deferred_home(home, size, [PLACE]) for size, home in homes.items()}
    try:
        figures = _costs((daemons[sizes[0]], daemons[sizes[1]]), sizes, rounds, seconds)
        daemons[sizes[1]].stop()
        daemons[tenth].start(**ENVIRONMENT)
        many, fewer = [Watched(daemons[size], homes[size] / "account", PLACE) for size in (sizes[0], tenth)]
        figures += lateness.measure((many, fewer), (sizes[0], tenth), (rounds + 1) // 2)
    finally:
        for daemon in daemons.values():
            daemon.stop()
    return figures


def _costs(pair: Pair, sizes: tuple[int, int], rounds: int, seconds: float) -> list[Figure]:
    """Neither daemon runs at the beginning; both do at the end."""
    figures = asyncio.run(_wakes(pair, sizes, rounds))
    figures.append(_start(pair, sizes, rounds))
    figures.append(_memory(pair, sizes, "deferred_memory", "at rest"))
    figures += _sends(pair, sizes, rounds, seconds)
    figures.append(_memory(pair, sizes, "deferred_memory_after", "after sends"))
    return figures


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


async def _wakes(pair: Pair, sizes: tuple[int, int], rounds: int) -> list[Figure]:
    """In this process, with the daemon's own parts: over a socket it would not be seen."""
    say(f"the next wake, {rounds * LOOKS:,} times with {sizes[0]:,} and {sizes[1]:,} deferred")
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
        return [await _wake(one, parts, sizes, rounds) for one in WAKES]


async def _wake(
    wake: _Wake, parts: list[tuple[Store, Scheduler]], sizes: tuple[int, int], rounds: int
) -> Figure:
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds * LOOKS):
        for took, (store, scheduler) in zip(taken, parts, strict=True):
            begin = perf_counter()
            await wake.act(store, scheduler)
            took.append((perf_counter() - begin) * 1e6)
    large, small = median(taken[0]), median(taken[1])  # of single calls: others disturb only a few
    return Figure(
        key=wake.key,
        work=wake.work.format(rows=f"{sizes[0]:,}"),
        value=large,
        unit="µs",
        ratios=(_flat(large / small, sizes, f"{small:.0f} µs", WAKE_LIMIT),),
    )


def _flat(value: float, sizes: tuple[int, int], small: str, floor: float) -> Ratio:
    return Ratio(
        key="flat", value=value, of=f"× the same with {sizes[1]:,} ({small})", sense=AT_MOST, floor=floor
    )


# --- start and memory ----------------------------------------------------------------


def _start(pair: Pair, sizes: tuple[int, int], rounds: int) -> Figure:
    say(f"starting the daemon, {rounds} times each with {sizes[0]:,} and {sizes[1]:,} deferred")
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for took, daemon in zip(taken, pair, strict=True):
            begin = perf_counter()
            daemon.start(**ENVIRONMENT)
            took.append((perf_counter() - begin) * 1000)
            if number < rounds - 1:
                daemon.stop()
    return Figure(
        key="deferred_start",
        work=f"daemon start, {sizes[0]:,} deferred: more than with {sizes[1]:,} ({median(taken[1]):.0f} ms)",
        value=median(many - few for many, few in zip(*taken, strict=True)),
        unit="ms",
        at_most=START_LIMIT,
    )


def _memory(pair: Pair, sizes: tuple[int, int], key: str, when: str) -> Figure:
    held = []
    for daemon in pair:
        daemon.call("daemon.ping")
        sleep(REST_SECONDS)
        held.append(psutil.Process(daemon.pid).memory_info().rss / 1e6)
    return Figure(
        key=key,
        work=f"daemon memory {when}, {sizes[0]:,} deferred: more than with {sizes[1]:,} ({held[1]:.0f} MB)",
        value=held[0] - held[1],
        unit="MB",
        at_most=MEMORY_LIMIT,
    )


# --- sends ---------------------------------------------------------------------------


def _sends(pair: Pair, sizes: tuple[int, int], rounds: int, seconds: float) -> list[Figure]:
    say(f"sends with {sizes[0]:,} and {sizes[1]:,} deferred, one connection")
    one = _in_turns(pair, seconds * rounds, {}, most=1_000_000)
    later = _in_turns(pair, seconds * rounds, {"deliver_at": "+2h"}, most=MOST_DEFERRED)
    many: tuple[list[Outcome], list[Outcome]] = ([], [])
    spent = [0.0, 0.0]
    for number in range(rounds):
        say(f"sends with {sizes[0]:,} and {sizes[1]:,} deferred, round {number + 1} of {rounds}")
        for which, daemon in enumerate(pair):
            before = cpu(daemon)
            many[which].extend(generate(_load(daemon, seconds, {}, connections=CONNECTIONS)))
            spent[which] += cpu(daemon) - before
    rows = f"{sizes[0]:,} deferred"
    return [
        _send_figure("deferred_send", f"send, one connection, {rows}", one, sizes),
        _send_figure("deferred_send_later", f"send for +2h, one connection, {rows}", later, sizes),
        _many_figure(many, spent, sizes),
    ]


def _load(daemon: RunningDaemon, seconds: float, more: dict[str, str], **how: int) -> Load:
    params = {"token": daemon.token(AGENT), "to": f"agent:{AGENT}", "text": TEXT, **more}
    return Load(socket=daemon.home.socket, method="envelope.send", params=params, seconds=seconds, **how)


def _in_turns(
    pair: Pair, seconds: float, more: dict[str, str], most: int
) -> tuple[list[Outcome], list[float]]:
    """What came of it, and the microseconds that each daemon worked for a send."""
    before = [cpu(daemon) for daemon in pair]
    taken = generate(*[_load(daemon, seconds, more, most=most) for daemon in pair])
    spent = [cpu(daemon) - begun for daemon, begun in zip(pair, before, strict=True)]
    return taken, [used / one.answered for used, one in zip(spent, taken, strict=True)]


def _send_figure(
    key: str, work: str, measured: tuple[list[Outcome], list[float]], sizes: tuple[int, int]
) -> Figure:
    """The floor is under the CPU: each time on the clock has an fsync in it, for which others wait too."""
    (large, small), spent = measured
    time = Ratio(
        key="flat_time",
        value=large.p50 / small.p50,
        of=f"× the same with {sizes[1]:,} ({small.p50:.2f} ms)",
        sense=AT_MOST,
        aim=SEND_LIMIT,
    )
    work_done = _flat(spent[0] / spent[1], sizes, f"daemon CPU, {spent[1]:.0f} µs", SEND_LIMIT)
    return Figure(
        key=key,
        work=work,
        value=large.p50,
        unit="ms",
        p50=large.p50,
        p99=large.p99,
        ratios=(time, work_done),
    )


def _many_figure(
    taken: tuple[list[Outcome], list[Outcome]], spent: list[float], sizes: tuple[int, int]
) -> Figure:
    """As costs, like the others. The floor is under the CPU: no rate is steady enough for it."""
    large, small = middle(taken[0]), middle(taken[1])
    each = [used / one.answered for used, one in zip(spent, (large, small), strict=True)]
    rate = Ratio(
        key="flat_rate",
        value=middle_ratio([one.rate for one in taken[1]], [one.rate for one in taken[0]]),
        of=f"× as long as with {sizes[1]:,} ({small.rate:,.0f}/s)",
        sense=AT_MOST,
        aim=SEND_LIMIT,
    )
    return Figure(
        key="deferred_sends_32",
        work=f"durable sends, {CONNECTIONS} connections, {sizes[0]:,} deferred",
        value=large.rate,
        unit="/s",
        p50=large.p50,
        p99=large.p99,
        ratios=(rate, _flat(each[0] / each[1], sizes, f"daemon CPU, {each[1]:.0f} µs", SEND_LIMIT)),
    )
