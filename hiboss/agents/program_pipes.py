"""The pipes of a program: what it writes is read when it comes, and it gets input as fast as it takes it."""

from __future__ import annotations

import asyncio
import os
from typing import IO

READ_BYTES = 1 << 16  # what a pipe holds


class OutputPipe:
    """Standard output or standard error of a program, read by one task."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        os.set_blocking(file.fileno(), False)

    async def read(self) -> bytes:
        """Return what comes next; nothing at the end. Others always have their turn meanwhile."""
        while True:
            await self._until_readable()
            try:
                return os.read(self._file.fileno(), READ_BYTES)
            except BlockingIOError:  # another process has read it, which has the same pipe
                pass

    async def _until_readable(self) -> None:
        loop, fd = asyncio.get_running_loop(), self._file.fileno()
        readable = loop.create_future()
        loop.add_reader(fd, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(fd)

    def close(self) -> None:
        self._file.close()


class InputPipe:
    """Standard input of a program. Nobody waits for it; what it has not taken yet is kept."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._unwritten = bytearray()
        self._loop = asyncio.get_running_loop()
        self._closes = False  # when all is written
        os.set_blocking(file.fileno(), False)

    @property
    def takes_more(self) -> bool:
        """Whether more can be given to it."""
        return not self._closes and not self._file.closed

    @property
    def unwritten(self) -> int:
        """How many bytes it has not taken yet."""
        return len(self._unwritten)

    def write(self, given: bytes) -> bool:
        """Give it more. Return False if it takes no more: a program need not read its input."""
        if not self.takes_more:
            return False
        waits = bool(self._unwritten)
        self._unwritten += given
        if not waits:
            self._write_on()
            if self._unwritten:
                self._loop.add_writer(self._file.fileno(), self._write_on)
        return not self._file.closed

    def close_when_written(self) -> None:
        """Let its input end after what was given."""
        self._closes = True
        if not self._unwritten:
            self.close()

    def close(self) -> None:
        if not self._file.closed:
            self._loop.remove_writer(self._file.fileno())
            self._unwritten.clear()
            self._file.close()

    def _write_on(self) -> None:
        try:
            with memoryview(self._unwritten) as view:
                written = os.write(self._file.fileno(), view)
        except BlockingIOError:
            return
        except OSError:  # nobody has the other end any more
            self.close()
            return
        del self._unwritten[:written]
        if not self._unwritten:
            self._loop.remove_writer(self._file.fileno())
            if self._closes:
                self.close()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
