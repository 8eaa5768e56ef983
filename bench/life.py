"""The daemon at rest: how long it takes to start, and how much memory it holds."""

from __future__ import annotations

from statistics import median
from time import perf_counter, sleep

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import say

REST_SECONDS = 0.3
MEMORY_LIMIT = 80.0  # MB


def measure(large: RunningDaemon, small: RunningDaemon, sizes: tuple[int, int], rounds: int) -> list[Figure]:
    """Neither daemon runs at the beginning; both do at the end."""
    say(f"starting the daemon, {rounds} times each with {sizes[0]:,} and {sizes[1]:,} pending")
    starts: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for taken, daemon in zip(starts, (large, small), strict=True):
            begin = perf_counter()
            daemon.start()
            taken.append((perf_counter() - begin) * 1000)
            if number < rounds - 1:
                daemon.stop()
    flat = Ratio(
        key="flat",
        value=middle_ratio(*starts),
        of=f"× the same with {sizes[1]:,}",
        sense=AT_MOST,
        aim=2.0,
    )
    begins = [
        Figure(
            key="start_large",
            work=f"daemon start, {sizes[0]:,} pending",
            value=median(starts[0]),
            unit="ms",
            goal="500 ms",
            ratios=(flat,),
        ),
        Figure(
            key="start",
            work=f"daemon start, {sizes[1]:,} pending",
            value=median(starts[1]),
            unit="ms",
            goal="500 ms",
        ),
    ]
    rests = [*_memory(small, "idle", sizes[1]), *_memory(large, "idle_large", sizes[0])]
    return [*begins, *rests]


def _memory(daemon: RunningDaemon, key: str, pending: int) -> list[Figure]:
    """RSS is what is promised; PSS leaves out what is shared with other processes."""
    daemon.call("daemon.ping")
    sleep(REST_SECONDS)
    memory = psutil.Process(daemon.pid).memory_full_info()
    work = f"daemon idle, {pending:,} pending"
    rss = Figure(
        key=key, work=f"{work}, RSS", value=memory.rss / 1e6, unit="MB", goal="70 MB", at_most=MEMORY_LIMIT
    )
    pss = getattr(memory, "pss", None)  # Linux only
    return (
        [rss]
        if pss is None
        else [rss, Figure(key=f"{key}_pss", work=f"{work}, PSS", value=pss / 1e6, unit="MB")]
    )
