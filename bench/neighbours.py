"""What others took of the machine while we measured: it decides what the figures are worth."""

from __future__ import annotations

import resource
from time import perf_counter

import psutil


class Neighbours:
    """Begins to watch when it is made."""

    def __init__(self) -> None:
        self._begin = perf_counter()
        self._busy = _busy()
        self._ours = _ours()

    def share(self) -> float:
        """0.25: a quarter of all cores. Our children count as ours once they have ended."""
        capacity = (perf_counter() - self._begin) * (psutil.cpu_count() or 1)
        taken = (_busy() - self._busy) - (_ours() - self._ours)
        return round(max(0.0, taken) / capacity, 3)


def _busy() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # already in user and nice
    return float(sum(times) - idle - guests)


def _ours() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
