"""Find, stop and end all processes of a run: by their session, and by a mark in their environment.

The mark (`HIBOSS_RUN`) also finds a process that has left the session.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

STEP_SECONDS = 2.0  # between INT, TERM and KILL
KILLS = 50  # rounds of KILL: a process may start others meanwhile
STOPS = 20  # rounds of STOP, for the same reason
POLL_SECONDS = 0.02
PROC = "/proc"  # Linux only; elsewhere the processes that a crashed daemon left are not found
MARK = "HIBOSS_RUN"  # in the environment of every process of a run


async def end_session(
    pid: int, *, mark: str | None = None, leader_gone: Callable[[], bool] = lambda: True
) -> None:
    """End all processes of a session, and all that carry the mark: INT, then TERM, then KILL.

    The leader of the session (`pid`) may have ended already.
    """
    # KILL more than once: a process started meanwhile got none of the signals before.
    steps = [signal.SIGINT, signal.SIGTERM, *[signal.SIGKILL] * KILLS]
    for number in steps:
        if not (left := await asyncio.to_thread(_to_end, pid, mark)):
            return
        signal_all(left, number)
        signal_all(left, signal.SIGCONT)  # a stopped process does not see a signal before
        # Children of a program that has ended need less time: nobody waits for their output.
        seconds = STEP_SECONDS / 10 if leader_gone() else STEP_SECONDS
        for _ in range(int(seconds / POLL_SECONDS)):
            await asyncio.sleep(POLL_SECONDS)
            left = await asyncio.to_thread(_to_end, pid, mark)
            if not left or number == signal.SIGKILL:
                break


def _to_end(session: int, mark: str | None) -> list[int]:
    return list({*members(session), *(marked(frozenset({mark})) if mark else ())} - {os.getpid()})


def stop_all(session: int) -> None:
    """Send STOP to every process of a session, also to those that start meanwhile."""
    if not os.path.isdir(PROC):
        signal_all(_group(session), signal.SIGSTOP)
        return
    for _ in range(STOPS):
        running = [
            pid for pid in members(session) if (stat := _stat(pid)) is not None and stat.state not in "Tt"
        ]
        if not running:
            return
        signal_all(running, signal.SIGSTOP)


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def members(session: int) -> list[int]:
    """Return the live processes of a session. Where there is no /proc: its process group, as one number."""
    if not os.path.isdir(PROC):
        return _group(session)
    found = []
    for pid in _processes():
        stat = _stat(pid)
        if stat is not None and stat.session == session and stat.state != "Z":
            found.append(pid)
    return found


def _group(leader: int) -> list[int]:
    """Return the process group of a leader in the form that kill() takes: a negative number."""
    try:
        os.kill(-leader, 0)
    except (ProcessLookupError, PermissionError):  # PermissionError: macOS, for a group of zombies
        return []
    return [-leader]


def marked(marks: frozenset[str]) -> list[int]:
    """Return the live processes that have one of these marks in their environment."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    found = []
    for pid in _processes():
        try:
            with open(f"{PROC}/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:  # it has ended, or belongs to another user
            continue
        if not wanted.isdisjoint(variables):
            found.append(pid)
    return found


def started_at(pid: int) -> str | None:
    """Return when a process was started. With the pid it identifies a process: pids are used again."""
    stat = _stat(pid)
    return stat.started if stat else None


@dataclass(frozen=True, slots=True)
class _Stat:
    """What is used of /proc/PID/stat."""

    state: str
    session: int
    started: str  # clock ticks since the boot of the machine


def _processes() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()] if os.path.isdir(PROC) else []


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"{PROC}/{pid}/stat") as file:
            # The name, in brackets, may contain anything; only what follows it can be split.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(fields[0], int(fields[3]), fields[19])
