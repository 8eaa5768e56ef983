"""One program in hand: a session of its own, bounded output, and no orphan left.

A program is asked to end three times, each more firmly: INT, TERM, KILL; and with it goes
whatever it started. Only when it ends by itself may stay what left its session on purpose.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

STEP_SECONDS = 2.0  # between INT, TERM and KILL
POLL_SECONDS = 0.02
KILLS = 50  # rounds of KILL, for those who multiply
HALTS = 20
READ_BYTES = 1 << 16
COMPLAINT_BYTES = 4_000  # of standard error, its end is kept
PROC = "/proc"  # Linux's; elsewhere what a crashed daemon left behind is not found
MARK = "HIBOSS_RUN"  # in the environment of every process of a run


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a program ended."""

    status: int  # as the system says: negative is a signal
    complaint: str  # the end of standard error
    flooded: bool  # it wrote more than it may, and was ended for that


class Process:
    """Started once, fed once, heard until its end."""

    def __init__(self, words: Sequence[str], cwd: str, env: Mapping[str, str], output_bytes: int) -> None:
        self._words = list(words)
        self._cwd = cwd
        self._env = dict(env)
        self._room = output_bytes
        self._flooded = False
        self._child: asyncio.subprocess.Process | None = None
        self._complaint = bytearray()

    async def start(self) -> int:
        """Its pid, which is also its session's. Raises OSError when it cannot be started."""
        # asyncio waits for ever when it is cancelled between the fork and the pipes.
        starting = asyncio.create_task(self._start())
        try:
            await _in_any_case(starting)
        except asyncio.CancelledError:
            if starting.exception() is None:
                self._child = starting.result()
                await _in_any_case(self.end())
            raise
        self._child = starting.result()
        return self._child.pid

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._words,
            cwd=self._cwd,
            env=self._env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    async def see_through(self, given: bytes, heard: Callable[[bytes], None]) -> Ended:
        """Feed it, hear it, and return when it and all it started are gone; cancelled, end it first.

        `heard` gets standard output as it comes, and an empty piece for a word on standard error.
        """
        child = self._child
        assert child is not None and child.stdin and child.stdout and child.stderr
        parts = [
            asyncio.create_task(self._feed(child.stdin, given)),
            asyncio.create_task(self._on_progress(child.stdout, heard)),
            asyncio.create_task(self._hear_complaints(child.stderr, heard)),
        ]
        by_itself = False
        try:
            # child.wait() also waits for our pipes, which others may keep open.
            pause = POLL_SECONDS / 10
            while child.returncode is None:  # no event is told apart from the pipes
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, POLL_SECONDS)
            by_itself = not self._flooded
        finally:
            # Also what it left behind: as long as one of them has our pipe, it does not end.
            await _in_any_case(self.end(by_itself=by_itself))
            await _in_any_case(_last_words(child, parts))
        return Ended(
            status=child.returncode if child.returncode is not None else -signal.SIGKILL,
            complaint=self._complaint[-COMPLAINT_BYTES:].decode("utf-8", "replace").strip(),
            flooded=self._flooded,
        )

    async def end(self, *, by_itself: bool = False) -> None:
        """Ask it, and what it started, to end; more and more firmly."""
        child = self._child
        assert child is not None
        mark = None if by_itself else self._env.get(MARK)
        await end_session(child.pid, mark=mark, leader_gone=lambda: child.returncode is not None)

    async def _feed(self, stdin: asyncio.StreamWriter, given: bytes) -> None:
        try:
            stdin.write(given)
            await stdin.drain()
            stdin.close()
            await stdin.wait_closed()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it does not read its turn; that is its own business

    async def _on_progress(self, stdout: asyncio.StreamReader, heard: Callable[[bytes], None]) -> None:
        while part := await stdout.read(READ_BYTES):
            if self._flooded:
                continue  # read on, or it could not end
            heard(part[: self._room])
            self._room -= len(part)
            if self._room < 0:
                self._flooded = True
                await self.end()

    async def _hear_complaints(self, stderr: asyncio.StreamReader, heard: Callable[[bytes], None]) -> None:
        while part := await stderr.read(READ_BYTES):
            heard(b"")
            self._complaint = (self._complaint + part)[-2 * COMPLAINT_BYTES :]


async def _in_any_case(ending: Awaitable[object]) -> None:
    """See something through, although we are being cancelled."""
    task = asyncio.ensure_future(ending)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _last_words(child: asyncio.subprocess.Process, parts: Sequence[asyncio.Task[None]]) -> None:
    """What is still in the pipes; whoever left its session on purpose may keep them open for ever."""
    _, left = await asyncio.wait(parts, timeout=STEP_SECONDS)
    for one in left:
        one.cancel()
    await asyncio.gather(*parts, return_exceptions=True)
    if left:
        child._transport.close()  # type: ignore[attr-defined] # else our ends stay open as long as theirs


# --- sessions ------------------------------------------------------------------------


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
