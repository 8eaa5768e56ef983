"""The processes of this machine, as /proc shows them: one look reads them all, and many can share it.

It reads three files of each process. Where fifty runs end at the same time, each would look fifty times a
second: so all who ask while a look is going on share the next one. None gets an older one than its question.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

PROC = "/proc"  # Linux only; elsewhere the processes that a crashed daemon left are not found
MARK = "HIBOSS_RUN"  # in the environment of every process of a run; empty: it may stay after the run


@dataclass(frozen=True, slots=True)
class Stat:
    """What is used of /proc/PID/stat."""

    state: str
    session: int
    started: str  # clock ticks since the boot of the machine


@dataclass(slots=True)
class Table:
    """The live processes, by what they can be recognised by. Without those that are older than wanted."""

    started: dict[int, int] = field(default_factory=dict)  # by pid, in clock ticks
    sessions: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    marks: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    limits: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    missed: bool = False  # a process ended before it could be looked at: it may have started others


def read(since: int = 0, *, with_marks: bool = True) -> Table:
    """Look at all processes that are not older. It reads many files: call it in a thread."""
    table = Table()
    for pid in processes():
        stat = stat_of(pid)
        if stat is None:
            table.missed = True
        elif stat.state == "Z" or int(stat.started) < since or pid == os.getpid():
            continue
        else:
            table.started[pid] = int(stat.started)
            table.sessions[stat.session].append(pid)
            if with_marks:
                _read_marks(table, pid)
    return table


def _read_marks(table: Table, pid: int) -> None:
    beginning = f"{MARK}=".encode()
    variables = _read(pid, "environ").split(b"\0")  # a process may hide it, like ssh-agent
    marks = {one.removeprefix(beginning) for one in variables if one.startswith(beginning)}
    for mark in marks:
        table.marks[mark.decode("utf-8", "surrogateescape")].append(pid)
    if b"" in marks:  # it may stay after the run, whatever its limits say
        return
    lines = _read(pid, "limits").splitlines()  # it cannot hide these
    words = next((line.split()[3:4] for line in lines if line.startswith(b"Max file locks")), [])
    if words and words[0].isdigit():
        table.limits[int(words[0])].append(pid)


# --- looks that are shared -----------------------------------------------------------


class _SharedLooks:
    """The looks of one event loop, one at a time."""

    def __init__(self) -> None:
        self._going = False
        self._task: asyncio.Task[None] | None = None  # the event loop does not keep it
        self._wanted: list[tuple[int, asyncio.Future[Table]]] = []  # `since`, for the next look

    async def look(self, since: int) -> Table:
        answer: asyncio.Future[Table] = asyncio.get_running_loop().create_future()
        self._wanted.append((since, answer))
        if not self._going:
            self._going = True
            self._task = asyncio.create_task(self._look())
        return await answer

    async def _look(self) -> None:
        try:
            while self._wanted:
                asked, self._wanted = self._wanted, []
                try:
                    table = await asyncio.to_thread(read, min(since for since, _ in asked))
                except Exception as error:  # noqa: BLE001 - given to all who asked
                    _answer(asked, error)
                else:
                    _answer(asked, table)
        finally:  # the event loop ends, perhaps
            self._going = False
            for _, answer in self._wanted:
                answer.cancel()


def _answer(asked: Iterable[tuple[int, asyncio.Future[Table]]], found: Table | Exception) -> None:
    for _, answer in asked:
        if answer.done():  # who asked is gone
            continue
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedLooks] = WeakKeyDictionary()


async def look(since: int = 0) -> Table:
    """Look at all processes, together with whoever asks for that now. It may hold older ones too."""
    return await _looks.setdefault(asyncio.get_running_loop(), _SharedLooks()).look(since)


# --- /proc ---------------------------------------------------------------------------


def is_there() -> bool:
    """Tell whether this machine has a /proc."""
    return os.path.isdir(PROC)


def processes() -> list[int]:
    """Return the pids of all processes, also of those that have ended and are not reaped yet."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()] if is_there() else []


def stat_of(pid: int) -> Stat | None:
    """Return what is known of a process; None if there is none."""
    # The name, in brackets, may be any bytes; only what follows it is text and can be split.
    fields = _read(pid, "stat").rpartition(b")")[2].decode("ascii").split()
    return Stat(fields[0], int(fields[3]), fields[19]) if fields else None


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; nothing if the process has ended, or hides the file from us."""
    try:
        with open(f"{PROC}/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
