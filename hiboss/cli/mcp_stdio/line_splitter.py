"""Whole lines from the parts in which they are read; a line over the limit is dropped, but for its ends."""

from __future__ import annotations

KEPT_ENDS = 4_096  # bytes of each end of a line that was dropped: its id stands in one of them


class TooLong:
    """A line that was dropped. (Named tuples take half a millisecond each to make.)"""

    def __init__(self, size: int, head: bytes, tail: bytes) -> None:
        self.size, self.head, self.tail = size, head, tail


class LineSplitter:
    """Takes parts, and gives the lines that are whole with their line ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # of a line that is being dropped

    def feed(self, part: bytes) -> list[bytes | TooLong]:
        """Return the lines that end in this part."""
        found: list[bytes | TooLong] = []
        start = 0
        while (end := part.find(b"\n", start) + 1) > 0:
            self._add(part[start:end])
            found.append(self._take())
            start = end
        if start < len(part):
            self._add(part[start:] if start else part)
        return found

    def rest(self) -> bytes | TooLong | None:
        """Return the last line, which has no end; None: there is none."""
        return self._take() if self._size else None

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._parts.append(piece)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            if self._head is None:
                self._head = whole[:KEPT_ENDS]
            self._parts = [whole[-KEPT_ENDS:]]

    def _take(self) -> bytes | TooLong:
        data, size, head = b"".join(self._parts), self._size, self._head
        self._parts, self._size, self._head = [], 0, None
        return data if head is None else TooLong(size, head, data)
