"""Tell from the numbers of processes that nothing of a program is left, without a look at all processes.

Linux gives out the numbers of processes and threads in ascending order and says which was the last one. So
what a program started has a number between its own and that one: after a short turn these are a few. It is
looked at in the same way, and by the same marks, as a look at all processes does (process_table.py).
"""

from __future__ import annotations

import os
from functools import cache

from . import process_control, process_table
from .process_control import RunProcesses

MOST = 64  # numbers that are looked at one by one, on the event loop: that takes about a millisecond
PASSES = 8  # at most, while others start processes
FASTEST = 100_000  # processes and threads in a second: hardly a machine starts more


def is_none_left(run: RunProcesses, leader: int, seconds: float) -> bool:
    """Tell whether it is sure that no process of a run is there. False: only a look at all can tell.

    `leader`: the number of its program, which has ended; it was started so many seconds ago.
    """
    if seconds * FASTEST > _numbers():  # all numbers may have been given since, and some of them twice
        return False
    first = leader + 1
    for _ in range(PASSES):
        last = _last_number()
        if last < first:  # none was given since the pass before; or the numbers began anew, at a low one
            return last == first - 1
        if last - leader > MOST:
            return False
        # In ascending order: a number may be given to a process that is not there yet. Then the one that
        # starts it is there, and has a lower one. What it starts later is looked at in the next pass.
        if any(_is_of(run, number) for number in range(first, last + 1)):
            return False
        first = last + 1
    return False


def _is_of(run: RunProcesses, number: int) -> bool:
    try:
        one = process_table.process(number, run.since)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return one is not None and one.started >= run.since and process_control.is_of(one, run)


def _last_number() -> int:
    """Return the number that was given last; 0 where that is not known.

    In some containers another file system (lxcfs) puts the numbers of the host in the place of ours.
    """
    try:
        if os.stat(f"{process_table.PROC}/loadavg").st_dev != os.stat(process_table.PROC).st_dev:
            return 0
        return int(process_table.read_file("loadavg").split()[4])
    except (OSError, IndexError, ValueError):
        return 0


@cache
def _numbers() -> int:
    """Return how many numbers there are; 0 where that is not known."""
    try:
        return int(process_table.read_file("sys/kernel/pid_max"))
    except (OSError, ValueError):
        return 0
