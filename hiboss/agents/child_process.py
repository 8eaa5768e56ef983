"""One program: it gets a session of its own, its output is limited, and none of its processes stays behind.

However a program ends, what it started is ended with it: by INT, then TERM, then KILL.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from . import process_control, process_exit, recent_processes, survivors

READ_BYTES = 1 << 16
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
        self._child: asyncio.subprocess.Process | None = None
        self._exited = asyncio.Event()
        self._since = 0  # in clock ticks
        self._began_at = 0.0
        self._stderr = bytearray()

    async def start(self) -> int:
        """Start it and return its pid, which is also its session id. Raises OSError if that fails."""
        # Shielded: asyncio hangs when it is cancelled between the fork and the pipes.
        starting = asyncio.create_task(self._start())
        try:
            await _shielded(starting)
        except asyncio.CancelledError:
            if starting.exception() is None:
                self._child = starting.result()
                await _shielded(self.end())
            raise
        self._child = starting.result()
        return self._child.pid

    async def report(self, started: Callable[[int], Awaitable[None]]) -> None:
        """Tell of its pid, before it gets its input (`started` is that of the LiveRun).

        If that fails, it is ended: what nobody has noted would be left running by a crash.
        """
        assert self._child is not None
        try:
            await started(self._child.pid)
        except BaseException:
            await _shielded(self.end())
            raise

    async def _start(self) -> asyncio.subprocess.Process:
        process_exit.let_asyncio_use_pidfds()
        loop = asyncio.get_running_loop()
        self._began_at = monotonic()
        transport, protocol = await _Marked(
            loop.subprocess_exec(
                lambda: _Protocol(self._exited),
                *self._arguments,
                cwd=self._cwd,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            ),
            self._env.get(process_control.MARK),
        )
        child = asyncio.subprocess.Process(transport, protocol, loop)
        self._since = int(process_control.started_at(child.pid) or 0)
        return child

    async def run_to_end(
        self, given: bytes, on_output: OnOutput, *, keep_input: bool = False
    ) -> ProcessResult:
        """Feed it, read it, and return when it and all it started have ended. If cancelled, end it first.

        `on_output` gets standard output as it comes, and b"" for each output on standard error. What it
        raises ends the program, and is raised here. `keep_input`: standard input stays open, for `write`.
        """
        child = self._child
        assert child is not None and child.stdin and child.stdout and child.stderr
        reading = asyncio.create_task(self._read_stdout(child.stdout, on_output))
        pipes = [
            asyncio.create_task(self._feed(child.stdin, given, keep_input)),
            reading,
            asyncio.create_task(self._read_stderr(child.stderr, on_output)),
        ]
        try:
            await self._until_exited(reading)
        finally:
            # Also the processes it left: a pipe stays open as long as one of them has it.
            await _shielded(self.end())
            await _shielded(_read_rest(child, pipes))
        if (error := _error(reading)) is not None:
            raise error
        return ProcessResult(
            status=child.returncode if child.returncode is not None else -signal.SIGKILL,
            stderr_tail=self._stderr[-STDERR_BYTES:].decode("utf-8", "replace").strip(),
            too_much_output=self._too_much_output,
        )

    async def end(self) -> bool:
        """End it and what it started: INT, then TERM, then KILL. Return whether all are gone."""
        child = self._child
        assert child is not None
        mark = self._env.get(process_control.MARK)
        marks = frozenset({mark} if mark else ())
        run = process_control.RunProcesses(frozenset({child.pid}), marks, self._since)
        seconds = monotonic() - self._began_at
        if self._exited.is_set() and recent_processes.is_none_left(run, child.pid, seconds):
            return True
        gone = await process_control.end(run, leader_gone=lambda: child.returncode is not None)
        if mark and not gone:
            survivors.note(mark)
        if gone and not self._exited.is_set():  # it has ended, and the event loop is about to be told
            await asyncio.wait(
                [asyncio.create_task(self._exited.wait())], timeout=process_control.STEP_SECONDS
            )
        return gone

    def write(self, line: bytes) -> bool:
        """Give it more input, without waiting until it is read. Return False if it takes no more."""
        child = self._child
        if child is None or child.stdin is None or child.returncode is not None or child.stdin.is_closing():
            return False
        if child.stdin.transport.get_write_buffer_size() > UNREAD_BYTES:
            return False
        child.stdin.write(line)
        return True

    def close_input(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()

    async def _until_exited(self, reading: asyncio.Task[None]) -> None:
        """Wait until it has ended, or reading it failed. child.wait() would also wait for the pipes.

        Other processes may keep those open.
        """
        exited = asyncio.create_task(self._exited.wait())
        reading.add_done_callback(lambda task: exited.cancel() if _error(task) is not None else None)
        try:
            await asyncio.wait([exited])
        finally:
            exited.cancel()

    async def _feed(self, stdin: asyncio.StreamWriter, given: bytes, keep_open: bool) -> None:
        try:
            stdin.write(given)
            await stdin.drain()
            if not keep_open:
                stdin.close()
                await stdin.wait_closed()
        except (BrokenPipeError, ConnectionResetError):
            pass  # a program need not read its input

    async def _read_stdout(self, stdout: asyncio.StreamReader, on_output: OnOutput) -> None:
        while part := await stdout.read(READ_BYTES):
            if self._too_much_output:
                continue  # read on: a program that cannot write does not end
            await on_output(part[: self._bytes_left])
            self._bytes_left -= len(part)
            if self._bytes_left < 0:
                self._too_much_output = True
                await self.end()

    async def _read_stderr(self, stderr: asyncio.StreamReader, on_output: OnOutput) -> None:
        while part := await stderr.read(READ_BYTES):
            await on_output(b"")
            self._stderr = (self._stderr + part)[-2 * STDERR_BYTES :]


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells of the end of a program at once, whoever has its pipes."""

    def __init__(self, exited: asyncio.Event) -> None:
        super().__init__(limit=READ_BYTES, loop=asyncio.get_running_loop())
        self._exited = exited

    def process_exited(self) -> None:
        self._exited.set()
        super().process_exited()


_Started = tuple[asyncio.SubprocessTransport, _Protocol]


class _Marked:
    """Starts a process with a mark. The mark is on while the first step runs, until the first wait.

    In that step asyncio forks. A mark that stayed on would also be given to what others start meanwhile.
    """

    def __init__(self, starting: Coroutine[Any, Any, _Started], mark: str | None) -> None:
        self._starting = starting
        self._mark = mark

    def __await__(self) -> Generator[Any, Any, _Started]:
        try:
            with process_control.marking(self._mark):
                waits_for = self._starting.send(None)
            while True:
                try:
                    received = yield waits_for
                except BaseException as error:  # noqa: BLE001 - passed on, whatever it is
                    waits_for = self._starting.throw(error)
                else:
                    waits_for = self._starting.send(received)
        except StopIteration as started:
            result: _Started = started.value
            return result


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


async def _read_rest(child: asyncio.subprocess.Process, pipes: Sequence[asyncio.Task[None]]) -> None:
    """Read what is still in the pipes, for a limited time: a process that left may keep them open."""
    _, left = await asyncio.wait(pipes, timeout=process_control.STEP_SECONDS)
    for one in left:
        one.cancel()
    await asyncio.gather(*pipes, return_exceptions=True)
    if left or any(_error(one) is not None for one in pipes):
        child._transport.close()  # type: ignore[attr-defined] # else our ends would stay open
