"""The processes of this machine, as /proc shows them: one look reads them all, and many can share it.

It reads three files of each process. Where fifty runs end at the same time, each would look fifty times a
second: so all who ask while a look is going on share the next one. None gets an older one than its question.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

PROC = "/proc"  # Linux only; elsewhere the processes that a crashed daemon left are not found
MARK = "HIBOSS_RUN"  # in the environment of every process of a run; empty: it may stay after the run
READ_BYTES = 1 << 16
PASSES = 8  # at most, in one look, while processes end before they can be read: they may have started others


@dataclass(frozen=True, slots=True)
class Stat:
    """What is used of /proc/PID/stat."""

    state: str
    group: int
    session: int
    threads: int
    started: str  # clock ticks since the boot of the machine
    parent: int

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, and is not reaped yet. Its first thread may have ended before the others."""
        return self.state in "ZX" and self.threads <= 1


@dataclass(frozen=True, slots=True)
class Process:
    """A live process, and what it can be recognised by."""

    pid: int
    group: int
    session: int
    started: int  # in clock ticks
    marks: frozenset[str] = frozenset()  # in its environment
    limit: int | None = None  # of file locks; None also if it may stay, whatever its limits say


@dataclass(slots=True)
class Table:
    """The live processes, by what they can be recognised by. Without those that are older than wanted."""

    all: dict[int, Process] = field(default_factory=dict)  # by pid
    sessions: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    marks: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    limits: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    missed: bool = False  # to the end, some had ended before they could be read: others may be there


def read(since: int = 0, *, with_marks: bool = True) -> Table:
    """Look at all processes that are not older. It reads many files: call it in a thread."""
    table, seen = Table(), {os.getpid()}
    for _ in range(PASSES):
        table.missed = False
        for one in unseen(seen, since, with_marks=with_marks):
            if one is None:
                table.missed = True
            else:
                _add(table, one)
        if not table.missed:
            break
    return table


def unseen(seen: set[int], since: int = 0, *, with_marks: bool = True) -> Iterator[Process | None]:
    """Yield the live processes that were not seen before, newest first, and add all to `seen`.

    None stands for one that has ended meanwhile. It may have started another one that is not in this list,
    but is in the next: so if there is a None, look again. If there is none, no descendant of an unseen
    process is missing: Linux lists them in the order of their numbers, and gives them in that order.
    """
    for pid in sorted(set(processes()) - seen, reverse=True):
        seen.add(pid)
        try:
            one = process(pid, since, with_marks=with_marks)
        except (FileNotFoundError, ProcessLookupError):
            yield None
            continue
        if one is None or one.started >= since:
            yield one


def process(pid: int, since: int, *, with_marks: bool = True) -> Process | None:
    """Return a live process; None if it has ended and is not reaped yet. Raises if it is gone."""
    stat = _stat(_read(pid, "stat"))
    if stat is None:  # it is hidden from us, so it is no process of ours
        return Process(pid, 0, 0, -1)
    if stat.is_dead:
        return None
    started = int(stat.started)
    if started < since or not with_marks:
        return Process(pid, stat.group, stat.session, started)
    beginning = f"{MARK}=".encode()
    variables = _environ(pid).split(b"\0")
    marks = {one.removeprefix(beginning) for one in variables if one.startswith(beginning)}
    limit = None if b"" in marks else _limit(_read(pid, "limits"))  # it cannot hide these
    texts = frozenset(mark.decode("utf-8", "surrogateescape") for mark in marks)
    return Process(pid, stat.group, stat.session, started, texts, limit)


def _environ(pid: int) -> bytes:
    """Return the environment; nothing if the process hides it, like ssh-agent, or its first thread ended."""
    try:
        return _read(pid, "environ")
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _limit(limits: bytes) -> int | None:
    lines = limits.splitlines()
    words = next((line.split()[3:4] for line in lines if line.startswith(b"Max file locks")), [])
    return int(words[0]) if words and words[0].isdigit() else None


def _add(table: Table, one: Process) -> None:
    table.all[one.pid] = one
    table.sessions[one.session].append(one.pid)
    for mark in one.marks:
        table.marks[mark].append(one.pid)
    if one.limit is not None:
        table.limits[one.limit].append(one.pid)


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
    try:
        return _stat(_read(pid, "stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def _stat(line: bytes) -> Stat | None:
    # The name, in brackets, may be any bytes; only what follows it is text and can be split.
    fields = line.rpartition(b")")[2].decode("ascii").split()
    if not fields:
        return None
    return Stat(fields[0], int(fields[2]), int(fields[3]), int(fields[17]), fields[19], int(fields[1]))


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; nothing if the process hides the file from us. Raises if it has ended."""
    try:
        return read_file(f"{pid}/{name}")
    except (FileNotFoundError, ProcessLookupError):
        raise
    except OSError:
        return b""


def read_file(name: str) -> bytes:
    """Return a file of /proc. Not by open(), which asks four more things of each file than are needed."""
    file = os.open(f"{PROC}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(file, READ_BYTES):
            content += part
        return content
    finally:
        os.close(file)
