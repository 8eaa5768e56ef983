"""The journal of the spike (bench/journal_server.py): records with a number and a checksum, in two files."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

Record = tuple[int, bytes]  # its number, and what it says
HEAD = struct.Struct("<IIQ")  # length, CRC-32 of the rest, number


class Journal:
    """Two files of a fixed size, written in turns: what is in one is given up when SQLite has it for good.

    Zeros are written beforehand: then fdatasync has no new size and no new blocks to store.
    """

    def __init__(self, directory: Path, size: int) -> None:
        self._paths = [directory / "journal.0", directory / "journal.1"]
        self._size = size
        for path in self._paths:
            if not path.exists() or path.stat().st_size < size:
                path.write_bytes(bytes(size))
        self._files = [os.open(path, os.O_RDWR) for path in self._paths]
        names = os.open(directory, os.O_RDONLY)
        for file in (*self._files, names):
            os.fsync(file)
        os.close(names)
        self._current, self._offset = 0, 0
        self._last = 0  # number of the last record in the current file
        self.left_behind: int | None = None  # the last number of the other file, until it is released
        self._released = threading.Condition()

    def append(self, group: list[Record]) -> None:
        """Return when they are on disk. It waits while the other file is needed and not released."""
        parts = []
        for number, payload in group:
            rest = number.to_bytes(8, "little") + payload
            parts += [HEAD.pack(len(payload), zlib.crc32(rest), number), payload]
        data = b"".join(parts)
        if self._offset + len(data) > self._size:
            with self._released:
                self._released.wait_for(lambda: self.left_behind is None)
                self.left_behind = self._last
            self._current, self._offset = 1 - self._current, 0
        os.pwrite(self._files[self._current], data, self._offset)
        os.fdatasync(self._files[self._current])
        self._offset += len(data)
        self._last = group[-1][0]

    def release(self) -> None:
        """The other file may be written over."""
        with self._released:
            self.left_behind = None
            self._released.notify()

    def after(self, applied: int) -> list[Record]:
        """What was appended and not applied, in order."""
        files = sorted((list(records(path.read_bytes())) for path in self._paths), key=lambda one: one[:1])
        found = [record for file in files for record in file if record[0] > applied]
        numbers = [number for number, _ in found]
        if numbers != list(range(applied + 1, applied + 1 + len(numbers))):
            raise AssertionError(f"the journal has a gap after {applied}: {numbers[:3]} …")
        return found


def records(data: bytes) -> Iterator[Record]:
    """Up to the first that is not whole, or is left from an earlier use of the file."""
    offset, last = 0, None
    while offset + HEAD.size <= len(data):
        length, checksum, number = HEAD.unpack_from(data, offset)
        end = offset + HEAD.size + length
        payload = data[offset + HEAD.size : end]
        if len(payload) < length or (last is not None and number != last + 1) or not number:
            return
        if zlib.crc32(number.to_bytes(8, "little") + payload) != checksum:
            return
        yield number, payload
        offset, last = end, number
