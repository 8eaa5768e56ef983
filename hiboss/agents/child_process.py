"""One program: it gets a session of its own, its output is limited, and none of its processes stays behind.

However a program ends, what it started is ended with it: by INT, then TERM, then KILL.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from . import process_control, process_exit, recent_processes, survivors
from .process_control import RunProcesses
from .program_pipes import InputPipe, OutputPipe

STDERR_BYTES = 4_000  # the end of standard error that is kept
UNREAD_BYTES = 4 * 1024 * 1024  # of input that it has not read: more is not given

OnOutput = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessResult:
    """How a program ended."""

    status: int  # exit status; a negative number is a signal
    stderr_tail: str
    too_much_output: bool  # it wrote more than allowed and was ended for that


class Process:
    """Started once, given its input, read until it ends."""

    def __init__(self, arguments: Sequence[str], cwd: str, env: Mapping[str, str], output_bytes: int) -> None:
        self._arguments = list(arguments)
        self._cwd = cwd
        self._env = dict(env)
        self._bytes_left = output_bytes
        self._too_much_output = False
        self._started: _Started | None = None
        self._is_read = False
        self._stderr = bytearray()

    async def start(self) -> int:
        """Start it and return its pid, which is also its session id. Raises OSError if that fails."""
        began_at, mark = monotonic(), self._env.get(process_control.MARK)
        with process_control.marking(mark):  # nothing else is started meanwhile, on this thread
            child = subprocess.Popen(  # noqa: ASYNC220 - it returns when the program runs, as that of asyncio
                self._arguments,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        self._started = _Started(child, mark, began_at)
        return child.pid

    async def report(self, started: Callable[[int], Awaitable[None]]) -> None:
        """Tell of its pid, before it gets its input (`started` is that of the LiveRun).

        If that fails, it is ended: what nobody has noted would be left running by a crash.
        """
        assert self._started is not None
        try:
            await started(self._started.pid)
        except BaseException:
            await _shielded(self.end())
            raise

    async def run_to_end(
        self, given: bytes, on_output: OnOutput, *, keep_input: bool = False
    ) -> ProcessResult:
        """Feed it, read it, and return when it and all it started have ended. If cancelled, end it first.

        `on_output` gets standard output as it comes, and b"" for each output on standard error. What it
        raises ends the program, and is raised here. `keep_input`: standard input stays open, for `write`.
        """
        program = self._started
        assert program is not None
        self._is_read = True
        reading = asyncio.create_task(self._read_stdout(program.stdout, on_output))
        pipes = [reading, asyncio.create_task(self._read_stderr(program.stderr, on_output))]
        program.stdin.write(given)
        if not keep_input:
            program.stdin.close_when_written()
        try:
            await _exited_or_failed(program.exited, reading)
        finally:
            await _shielded(self._finish(program, pipes))
        if (error := _error(reading)) is not None:
            raise error
        return ProcessResult(
            status=program.status,
            stderr_tail=self._stderr[-STDERR_BYTES:].decode("utf-8", "replace").strip(),
            too_much_output=self._too_much_output,
        )

    async def _finish(self, program: _Started, pipes: Sequence[asyncio.Task[None]]) -> None:
        # Also the processes it left: a pipe stays open as long as one of them has it.
        if not program.left_nothing():
            await self.end()
        await _read_rest(pipes)
        program.close_pipes()

    async def end(self) -> bool:
        """End it and what it started: INT, then TERM, then KILL. Return whether all are gone."""
        program = self._started
        assert program is not None
        gone = program.left_nothing() or await process_control.end(program.processes, program.exited.done)
        if program.mark and not gone:
            survivors.note(program.mark)
        if gone:  # if it is not reaped yet, that is about to happen
            await asyncio.wait([program.exited], timeout=process_control.STEP_SECONDS)
        if not self._is_read:
            program.close_pipes()
        return gone

    def write(self, line: bytes) -> bool:
        """Give it more input, without waiting until it is read. Return False if it takes no more."""
        program = self._started
        if program is None or program.exited.done() or program.stdin.unwritten > UNREAD_BYTES:
            return False
        return program.stdin.write(line)

    def close_input(self) -> None:
        if self._started is not None:
            self._started.stdin.close_when_written()

    async def _read_stdout(self, stdout: OutputPipe, on_output: OnOutput) -> None:
        while part := await stdout.read():
            if self._too_much_output:
                continue  # read on: a program that cannot write does not end
            await on_output(part[: self._bytes_left])
            self._bytes_left -= len(part)
            if self._bytes_left < 0:
                self._too_much_output = True
                await self.end()

    async def _read_stderr(self, stderr: OutputPipe, on_output: OnOutput) -> None:
        while part := await stderr.read():
            await on_output(b"")
            self._stderr = (self._stderr + part)[-2 * STDERR_BYTES :]


class _Started:
    """A program that was started, until it is reaped: its pipes, and what its processes are recognised by."""

    def __init__(self, child: subprocess.Popen[bytes], mark: str | None, began_at: float) -> None:
        assert child.stdin and child.stdout and child.stderr
        self.pid = child.pid
        self.mark = mark
        self.stdin = InputPipe(child.stdin)
        self.stdout = OutputPipe(child.stdout)
        self.stderr = OutputPipe(child.stderr)
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        since = int(process_control.started_at(child.pid) or 0)
        self.processes = RunProcesses(frozenset({child.pid}), frozenset({mark} if mark else ()), since)
        self._child = child
        self._began_at = began_at
        process_exit.watch_child(child, self._reaped)

    def _reaped(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    @property
    def status(self) -> int:
        """Its exit status; a negative number is a signal."""
        found: int | None = self._child.returncode
        return -signal.SIGKILL if found is None else found

    def left_nothing(self) -> bool:
        """Tell whether it is sure, without a look at all processes, that it and all it started have ended."""
        seconds = monotonic() - self._began_at
        return self.exited.done() and recent_processes.is_none_left(self.processes, self.pid, seconds)

    def close_pipes(self) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


async def _exited_or_failed(exited: asyncio.Future[None], reading: asyncio.Task[None]) -> None:
    """Wait until a program has ended, or reading it failed. What it started may still have its pipes."""
    over = asyncio.get_running_loop().create_future()

    def release(one: asyncio.Future[None]) -> None:
        if not over.done() and (one is exited or _error(reading) is not None):
            over.set_result(None)

    exited.add_done_callback(release)
    reading.add_done_callback(release)
    await over


async def _shielded(ending: Awaitable[object]) -> None:
    """Wait until something is done, also while this task is cancelled; then raise the cancellation."""
    task = asyncio.ensure_future(ending)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _error(task: asyncio.Task[None]) -> BaseException | None:
    """Return what a task raised; None while it runs, or when it was cancelled."""
    return task.exception() if task.done() and not task.cancelled() else None


async def _read_rest(pipes: Sequence[asyncio.Task[None]]) -> None:
    """Read what is still in the pipes, for a limited time: a process that left may keep them open."""
    _, left = await asyncio.wait(pipes, timeout=process_control.STEP_SECONDS)
    for one in left:
        one.cancel()
    await asyncio.gather(*pipes, return_exceptions=True)
