"""Finding, halting and ending every process of a run: by its session, and by the mark in its environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

STEP_SECONDS = 2.0  # between INT, TERM and KILL
KILLS = 50  # rounds of KILL, for those who multiply


HALTS = 20


PROC = "/proc"  # Linux's; elsewhere what a crashed daemon left behind is not found


MARK = "HIBOSS_RUN"  # in the environment of every process of a run


async def end_session(
    pid: int, *, mark: str | None = None, leader_gone: Callable[[], bool] = lambda: True
) -> None:
    """End every process of a session, whose leader may be gone: INT, TERM, KILL; and all who carry a mark."""
    steps = [signal.SIGINT, signal.SIGTERM, *[signal.SIGKILL] * KILLS]  # who is born meanwhile was not asked
    for number in steps:
        if not (left := await asyncio.to_thread(_to_end, pid, mark)):
            return
        signal_all(left, number)
        signal_all(left, signal.SIGCONT)  # one that was paused could not hear it
        # What a program left behind when it ended has no last words to say.
        for _ in range(int((STEP_SECONDS if not leader_gone() else STEP_SECONDS / 10) / 0.02)):
            await asyncio.sleep(0.02)
            left = await asyncio.to_thread(_to_end, pid, mark)
            if not left or number == signal.SIGKILL:
                break


def _to_end(session: int, mark: str | None) -> list[int]:
    return list({*members(session), *(marked(frozenset({mark})) if mark else ())} - {os.getpid()})


def halt(session: int) -> None:
    """Stop every process of a session where it is, also those born while we do."""
    if not os.path.isdir(PROC):
        signal_all(_group(session), signal.SIGSTOP)
        return
    for _ in range(HALTS):
        going = [
            pid for pid in members(session) if (stat := _stat(pid)) is not None and stat.state not in "Tt"
        ]
        if not going:
            return
        signal_all(going, signal.SIGSTOP)


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def members(session: int) -> list[int]:
    """The live processes of a session; where there is no /proc, its group as a whole."""
    if not os.path.isdir(PROC):
        return _group(session)
    found = []
    for pid in _processes():
        stat = _stat(pid)
        if stat is not None and stat.session == session and stat.state != "Z":
            found.append(pid)
    return found


def _group(leader: int) -> list[int]:
    """The process group of a leader, as the system takes it for one that is signalled: a negative number."""
    try:
        os.kill(-leader, 0)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return []
    return [-leader]


def marked(marks: frozenset[str]) -> list[int]:
    """The live processes whose environment carries one of these marks."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    found = []
    for pid in _processes():
        try:
            with open(f"{PROC}/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:  # gone, or somebody else's
            continue
        if not wanted.isdisjoint(variables):
            found.append(pid)
    return found


def started_at(pid: int) -> str | None:
    """When a process was started, in a word that tells it from a later one of the same number."""
    stat = _stat(pid)
    return stat.started if stat else None


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    session: int
    started: str  # in ticks since the machine started


def _processes() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()] if os.path.isdir(PROC) else []


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"{PROC}/{pid}/stat") as file:
            # The name, in brackets, may hold anything; after it there are only words.
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(words[0], int(words[3]), words[19])
