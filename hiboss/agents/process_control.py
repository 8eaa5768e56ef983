"""Find, stop and end all processes of a run: its session, and every process that carries its mark.

The mark is in the environment (`HIBOSS_RUN`) and in a resource limit. The limit is RLIMIT_LOCKS: Linux
has ignored it since version 2.4, but every process inherits it, over fork, exec and setsid, also one
that clears its environment and whose parent has ended. It needs no helper process, and it still
identifies the processes of a run after the daemon was killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from . import process_table
from .process_table import MARK as MARK
from .process_table import Table

STEP_SECONDS = 1.0  # between INT, TERM and KILL: after an interrupt too, all must end within five seconds
KILLS = 50  # rounds of KILL: a process may start others meanwhile
STOPS = 20  # rounds of STOP, for the same reason
LOOKS = 3  # at most, when processes end while they are looked at: they may have started others
POLL_SECONDS = 0.02
LOCKS = 10  # RLIMIT_LOCKS, which the module `resource` does not name


class RunProcesses(NamedTuple):
    """How the processes of a run, or of several, are recognised."""

    sessions: frozenset[int] = frozenset()  # the pid of its program, which leads a session
    marks: frozenset[str] = frozenset()
    since: int = 0  # when the program was started, in clock ticks: none of its processes is older


# --- ending and stopping ---------------------------------------------------------------


async def end(run: RunProcesses, leader_gone: Callable[[], bool] = lambda: True) -> None:
    """End all processes of a run: INT, then TERM, then KILL. Its program may have ended already."""
    # KILL more than once: a process started meanwhile got none of the signals before.
    steps = [signal.SIGINT, signal.SIGTERM, *[signal.SIGKILL] * KILLS]
    for number in steps:
        if not (left := await look(run)):
            return
        signal_all(left, number)
        signal_all(left, signal.SIGCONT)  # a stopped process does not see a signal before
        # Children of a program that has ended need less time: nobody waits for their output.
        seconds = STEP_SECONDS / 10 if leader_gone() else STEP_SECONDS
        until = asyncio.get_running_loop().time() + seconds  # looking takes time too, on a busy machine
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(POLL_SECONDS)
            left = await look(run)
            if not left or number == signal.SIGKILL:
                break


def stop(run: RunProcesses) -> None:
    """Send STOP to every process of a run, also to those that start meanwhile. Call it in a thread."""
    if not process_table.is_there():
        signal_all(find(run), signal.SIGSTOP)
        return
    for _ in range(STOPS):
        found = [(pid, process_table.stat_of(pid)) for pid in find(run)]
        running = [pid for pid, stat in found if stat is not None and stat.state not in "Tt"]
        if not running:
            return
        signal_all(running, signal.SIGSTOP)


def resume(run: RunProcesses) -> None:
    """Send CONT to every process of a run. Call it in a thread."""
    signal_all(find(run), signal.SIGCONT)


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


# --- finding -----------------------------------------------------------------------------


def find(run: RunProcesses) -> list[int]:
    """Return the live processes of a run. Where there is no /proc: its process group, as one number.

    It reads files of every process of the machine that is younger than the run: call it in a thread.
    """
    if not process_table.is_there():
        return _groups(run)
    found: list[int] = []
    for _ in range(LOOKS):
        table = process_table.read(run.since, with_marks=bool(run.marks))
        found = _chosen(table, run)
        if found or not table.missed:
            break
    return found


async def look(run: RunProcesses) -> list[int]:
    """Do the same on the event loop; all who look at the same time share one look at the processes."""
    if not process_table.is_there():
        return _groups(run)
    found: list[int] = []
    for _ in range(LOOKS):
        table = await process_table.look(run.since)
        found = _chosen(table, run)
        if found or not table.missed:
            break
    return found


def members(session: int) -> list[int]:
    """Return the live processes of a session."""
    return find(RunProcesses(frozenset({session})))


def marked(marks: frozenset[str]) -> list[int]:
    """Return the live processes that carry one of these marks."""
    return find(RunProcesses(marks=marks))


def _chosen(table: Table, run: RunProcesses) -> list[int]:
    """Return those of a run."""
    found = {pid for session in run.sessions for pid in table.sessions.get(session, ())}
    for mark in run.marks:
        found.update(table.marks.get(mark, ()))
        found.update(table.limits.get(_limit(mark), ()))
    return [pid for pid in sorted(found) if table.started[pid] >= run.since and _may_signal(pid)]


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # it runs as another user, as by sudo: waiting for its end would not end it
        return False
    except ProcessLookupError:  # it has just ended, but may have started others
        pass
    return True


def _groups(run: RunProcesses) -> list[int]:
    """Return the process groups of a run, in the form that kill() takes: negative numbers."""
    found = []
    for leader in run.sessions:
        try:
            os.kill(-leader, 0)
            found.append(-leader)
        except (ProcessLookupError, PermissionError):  # PermissionError: macOS, for a group of zombies
            pass
    return found


# --- marking -----------------------------------------------------------------------------


def _limit(mark: str) -> int:
    """Return the mark as a number of 62 bits, which nobody would set as a limit."""
    return int.from_bytes(hashlib.sha256(mark.encode()).digest()[:8], "big") >> 3 | 1 << 61


@contextmanager
def marking(mark: str | None) -> Iterator[None]:
    """Mark every process that this one starts inside the block. One block at a time."""
    marks = mark is not None and _set_limit(0, _limit(mark))
    try:
        yield
    finally:
        if marks:
            unmark()


def mark_process(pid: int, mark: str) -> None:
    """Mark a process that was started without `marking`; what it has already started is not marked."""
    _set_limit(pid, _limit(mark))


def unmark() -> None:
    """Take the mark off this process: a daemon that was started inside a run is no part of the run."""
    _set_limit(0, resource.RLIM_INFINITY)


def is_limit_lowered() -> bool:
    """Tell whether an administrator has lowered the hard limit, so that no mark can be set."""
    return sys.platform == "linux" and resource.prlimit(0, LOCKS)[1] != resource.RLIM_INFINITY


def _set_limit(pid: int, number: int) -> bool:
    """Set the soft limit of a process (0: this one). Return False where that is not possible."""
    if sys.platform != "linux":
        return False
    try:
        _, highest = resource.prlimit(pid, LOCKS)
        wanted = highest if number == resource.RLIM_INFINITY else number
        resource.prlimit(pid, LOCKS, (wanted, highest))
    except (OSError, ValueError):  # it has ended, or an administrator has set a lower limit
        return False
    return True


# --- one process -------------------------------------------------------------------------


def started_at(pid: int) -> str | None:
    """Return when a process was started. With the pid it identifies a process: pids are used again."""
    stat = process_table.stat_of(pid)
    return stat.started if stat else None
