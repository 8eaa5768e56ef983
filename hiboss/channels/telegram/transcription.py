"""Runs the program that writes down voice messages (the setting `telegram.transcribe_command`).

It is limited in time and output, and gets no secret of hiboss. When it is over, its process group is killed.
A process that left the group (setsid) stays, and so does the program when the daemon itself is killed
with SIGKILL: nothing looks for it afterwards.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Callable, Sequence

SECONDS = 60.0
RUN_SHARE = 0.8  # of the time there is; the rest is for ending it
MOST_BYTES = 64 * 1024
STDERR_BYTES = 4_000  # the end of what it says of errors
POLL_SECONDS = 0.02
END_SECONDS = 2.0  # after it was killed: for its pipes, and for its status


class NotTranscribed(Exception):
    """There is no text; the reason is one sentence for people."""


async def transcribe(command: str, path: str, seconds: float) -> str:
    """Return what the program prints for a file. Raises NotTranscribed. It takes at most `seconds`."""
    limit = min(SECONDS, seconds * RUN_SHARE)
    if limit <= 0:
        raise NotTranscribed("no time was left for it")
    try:
        arguments = [*shlex.split(command), path]
    except ValueError as error:
        raise NotTranscribed(f"telegram.transcribe_command cannot be read: {error}") from None
    try:
        child = await _started(arguments)
    except OSError as error:
        raise NotTranscribed(f"{arguments[0]} cannot be started: {error.strerror}") from None
    name = os.path.basename(arguments[0])
    output, errors = bytearray(), bytearray()
    assert child.stdout is not None and child.stderr is not None
    pipes = [
        asyncio.create_task(_read(child.stdout, output, MOST_BYTES + 1)),
        asyncio.create_task(_read(child.stderr, errors, STDERR_BYTES, tail=True)),
    ]
    try:
        await _until(limit, lambda: child.returncode is not None or len(output) > MOST_BYTES)
    except TimeoutError:
        raise NotTranscribed(f"{name} did not end within {limit:.3g} seconds") from None
    finally:
        await _finish(child, pipes, min(END_SECONDS, seconds * (1 - RUN_SHARE) / 2))
    return _text(name, child.returncode, output, errors)


async def _until(seconds: float, condition: Callable[[], bool]) -> None:
    """Wait for something. Polled: child.wait() also waits for the pipes, which others may keep open."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)


async def _finish(
    child: asyncio.subprocess.Process, pipes: Sequence[asyncio.Task[None]], seconds: float
) -> None:
    """End it and all of its group, and read what is left. It takes at most twice the seconds."""
    _end(child)
    await asyncio.wait(pipes, timeout=seconds)
    if any(not one.done() for one in pipes):  # a process that left the group has the pipes
        for one in pipes:
            one.cancel()
        child._transport.close()  # type: ignore[attr-defined] # else our ends would stay open
    try:
        await _until(seconds, lambda: child.returncode is not None)
    except TimeoutError:
        pass  # it was killed; then its status is not known


def _text(name: str, status: int | None, output: bytearray, errors: bytearray) -> str:
    if len(output) > MOST_BYTES:
        raise NotTranscribed(f"{name} printed more than {MOST_BYTES // 1024} KiB")
    if status != 0:
        said = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise NotTranscribed(f"{name} ended with status {status}" + (f": {said}" if said else ""))
    text = output.decode("utf-8", "replace").strip()
    if not text:
        raise NotTranscribed(f"{name} printed nothing")
    return text


async def _started(arguments: Sequence[str]) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *arguments,
            env={key: value for key, value in os.environ.items() if not key.startswith("HIBOSS_")},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        # Shielded: asyncio hangs when it is cancelled between the fork and the pipes.
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end_started)
        raise


def _end_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        _end(starting.result())


def _end(child: asyncio.subprocess.Process) -> None:
    """End its process group, whether it has ended itself or not."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # PermissionError: macOS, for a group of zombies
        pass


async def _read(pipe: asyncio.StreamReader, into: bytearray, most: int, *, tail: bool = False) -> None:
    """Read a pipe to its end; keep the first or the last bytes."""
    while block := await pipe.read(1 << 16):
        into += block
        if tail:
            del into[:-most]
        else:
            del into[most:]
