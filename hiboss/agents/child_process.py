"""One program in hand: a session of its own, bounded output, and no orphan left.

A program is asked to end three times, each more firmly: INT, TERM, KILL; and with it goes
whatever it started. Only when it ends by itself may stay what left its session on purpose.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from . import process_search

POLL_SECONDS = 0.02
READ_BYTES = 1 << 16
COMPLAINT_BYTES = 4_000  # of standard error, its end is kept


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
        mark = None if by_itself else self._env.get(process_search.MARK)
        await process_search.end_session(
            child.pid, mark=mark, leader_gone=lambda: child.returncode is not None
        )

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
    _, left = await asyncio.wait(parts, timeout=process_search.STEP_SECONDS)
    for one in left:
        one.cancel()
    await asyncio.gather(*parts, return_exceptions=True)
    if left:
        child._transport.close()  # type: ignore[attr-defined] # else our ends stay open as long as theirs
