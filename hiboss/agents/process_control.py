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
from functools import lru_cache
from time import monotonic
from typing import NamedTuple

from . import process_table
from .process_table import MARK as MARK
from .process_table import Process, Table

STEP_SECONDS = 1.0  # between INT, TERM and KILL: after an interrupt too, all must end within five seconds
KILL_SECONDS = 5.0  # rounds of KILL last at most so long: a process may start others meanwhile
CHASE_SECONDS = 1.0  # one of those rounds, against processes that are born as fast as others end
STOPS = 20  # rounds of STOP, for the same reason
POLL_SECONDS = 0.02
LOCKS = 10  # RLIMIT_LOCKS, which the module `resource` does not name


class RunProcesses(NamedTuple):
    """How the processes of a run, or of several, are recognised."""

    sessions: frozenset[int] = frozenset()  # the pid of its program, which leads a session
    marks: frozenset[str] = frozenset()
    since: int = 0  # when the program was started, in clock ticks: none of its processes is older


# --- ending and stopping ---------------------------------------------------------------


async def end(run: RunProcesses, leader_gone: Callable[[], bool] = lambda: True) -> bool:
    """End all processes of a run: INT, then TERM, then KILL. Its program may have ended already.

    Return whether all are gone. Else some could not be ended, or start others faster than they are found.
    """
    clock = asyncio.get_running_loop().time
    left = await look(run)
    for number in (signal.SIGINT, signal.SIGTERM):
        if not left.pids:
            break  # if some may have been missed, there is nobody to be asked
        signal_all(left.pids, number)
        signal_all(left.pids, signal.SIGCONT)  # a stopped process does not see a signal before
        # Children of a program that has ended need less time: nobody waits for their output.
        seconds = STEP_SECONDS / 10 if leader_gone() else STEP_SECONDS
        until = clock() + seconds  # looking takes time too, on a busy machine
        while left.pids and clock() < until:
            await asyncio.sleep(POLL_SECONDS)
            left = await look(run)
    return left.are_none or await _kill(run)


async def _kill(run: RunProcesses) -> bool:
    """Send KILL until nobody is left: a process that was started meanwhile got none of the signals before."""
    clock = asyncio.get_running_loop().time
    until, before = clock() + KILL_SECONDS, frozenset[int]()
    signal_all(_led(run), signal.SIGKILL)  # a look may take long if many come and go
    while not (left := await look(run)).are_none:
        signal_all([*left.groups, *left.pids], signal.SIGKILL)
        if clock() > until:
            return False
        if left.missed or (before and not before.issuperset(left.pids)):  # others were born meanwhile
            await asyncio.to_thread(chase, run, signal.SIGKILL)
        else:
            await asyncio.sleep(POLL_SECONDS)
        before = frozenset(left.pids)
    return True


def chase(run: RunProcesses, number: int) -> bool:
    """Send a signal to each process of a run as soon as it is seen; return whether the last one got it.

    It does not sleep, looks only at new processes, and begins with the newest: that one has most likely
    not started its successor yet. So it catches up with a chain in which each process starts the next one
    and ends. Call it in a thread.
    """
    seen, until = {os.getpid()}, monotonic() + CHASE_SECONDS
    while monotonic() < until:
        is_last = True
        for one in process_table.unseen(seen, run.since, with_marks=bool(run.marks)):
            if one is None:
                is_last = False
            elif is_of(one, run):
                signal_all([-one.group, one.pid] if _is_apart(one) else [one.pid], number)
                is_last = False
        if is_last:
            return True
    return False


def stop(run: RunProcesses) -> None:
    """Send STOP to every process of a run, also to those that start meanwhile. Call it in a thread."""
    if not process_table.is_there():
        signal_all(find(run), signal.SIGSTOP)
        return
    signal_all(_led(run), signal.SIGSTOP)
    for _ in range(STOPS):
        found = [(pid, process_table.stat_of(pid)) for pid in find(run)]
        running = [pid for pid, stat in found if stat is not None and stat.state not in "Tt"]
        if not running:
            return
        chase(run, signal.SIGSTOP)


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


class Left(NamedTuple):
    """The live processes of a run."""

    pids: list[int]
    # Of their process groups, those that have no process of others: as kill() takes them, negative numbers.
    # All of a group get a signal at the same moment, also one that is being started.
    groups: frozenset[int] = frozenset()
    missed: bool = False  # there may be more: some processes of the machine ended before they could be read

    @property
    def are_none(self) -> bool:
        """Whether it is sure that there is none."""
        return not self.pids and not self.missed


def find(run: RunProcesses) -> list[int]:
    """Return the live processes of a run. Where there is no /proc: its process group, as one number.

    It reads files of every process of the machine that is younger than the run: call it in a thread.
    """
    if not process_table.is_there():
        return _groups(run)
    return _chosen(process_table.read(run.since, with_marks=bool(run.marks)), run).pids


async def look(run: RunProcesses) -> Left:
    """Do the same on the event loop; all who look at the same time share one look at the processes."""
    if not process_table.is_there():
        return Left(_groups(run))
    return _chosen(await process_table.look(run.since), run)


def members(session: int) -> list[int]:
    """Return the live processes of a session."""
    return find(RunProcesses(frozenset({session})))


def marked(marks: frozenset[str]) -> list[int]:
    """Return the live processes that carry one of these marks."""
    return find(RunProcesses(marks=marks))


def is_of(one: Process, run: RunProcesses) -> bool:
    """Tell whether a process is one of a run."""
    if one.session in run.sessions or one.marks & run.marks:
        return True
    return one.limit is not None and any(one.limit == _limit(mark) for mark in run.marks)


def _chosen(table: Table, run: RunProcesses) -> Left:
    """Return those of a run."""
    found = {pid for session in run.sessions for pid in table.sessions.get(session, ())}
    for mark in run.marks:
        found.update(table.marks.get(mark, ()))
        found.update(table.limits.get(_limit(mark), ()))
    pids = [pid for pid in sorted(found) if table.all[pid].started >= run.since and _may_signal(pid)]
    groups = frozenset(-table.all[pid].group for pid in pids if _is_apart(table.all[pid]))
    return Left(pids, groups, table.missed)


def _is_apart(process: Process) -> bool:
    """Tell whether the process group of a process of a run can only have processes of that run.

    Not if it is in the session of the daemon: a provider may have started it there.
    """
    return process.group > 1 and process.session != os.getsid(0)


def _led(run: RunProcesses) -> list[int]:
    """Return the process groups that the programs of a run lead or led, in the form that kill() takes.

    So they get a signal also if each of their processes ends before it can be read. The number of a group
    is given to no other process while it has one; if one has it now, it must be the program itself.
    """
    stats = {leader: process_table.stat_of(leader) for leader in run.sessions if leader != os.getsid(0)}
    return [
        -leader
        for leader, stat in stats.items()
        if leader > 1 and (stat is None or stat.is_dead or int(stat.started) == run.since)
    ]


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


@lru_cache(maxsize=256)
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


def mark_process(pid: int, mark: str) -> bool:
    """Mark a process that was started without `marking`; what it has already started is not marked.

    Return whether a look at all processes finds it by its mark now, also after this daemon was killed.
    """
    return _set_limit(pid, _limit(mark)) and process_table.is_there()


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
