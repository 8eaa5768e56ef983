"""The answers of one connection that are not sent yet, in the order in which they are sent."""

from __future__ import annotations

from collections import deque

# Bytes given to the transport at once. It copies what it cannot send into a buffer of its own, whose memory
# is not free for others before the next garbage collection.
WRITTEN_AT_ONCE = 256 * 1024


class PendingAnswer:
    """The place of one answer in the order of answers."""

    __slots__ = ("content", "done")

    def __init__(self) -> None:
        self.content = b""
        self.done = False


class Answers:
    """Collects answers. Those that have a place are sent in order, the others when they are ready."""

    def __init__(self) -> None:
        self._pending: deque[PendingAnswer] = deque()  # in the order of their requests
        self._ready: list[bytes] = []
        self._outgoing: deque[memoryview] = deque()  # what the transport takes when the peer has read more
        self.size = 0  # bytes of all that is settled or added

    def __bool__(self) -> bool:
        """Tell whether something is not given to the transport yet."""
        return bool(self._pending or self._ready or self._outgoing)

    def reserve(self) -> PendingAnswer:
        """Return the next place in the order."""
        pending = PendingAnswer()
        self._pending.append(pending)
        return pending

    def settle(self, pending: PendingAnswer, answer: bytes) -> None:
        """Fill a place; nothing is sent for an empty answer."""
        pending.content, pending.done = answer, True
        self.size += len(answer)

    def add(self, answer: bytes) -> None:
        """Add an answer that has no place in the order; it comes after those that are ready now."""
        self._collect()
        self._ready.append(answer)
        self.size += len(answer)

    def next_piece(self) -> bytes | memoryview | None:
        """Remove and return the next bytes to send; None if there is nothing to send now."""
        self._collect()
        if len(self._ready) == 1 and not self._outgoing and self.size < WRITTEN_AT_ONCE:  # the usual case
            answer = self._ready.pop()
            self.size -= len(answer)
            return answer + b"\n"
        if self._ready:
            lines = b"\n".join((*self._ready, b""))
            self.size += len(self._ready)  # the ends of the lines
            self._ready.clear()
            self._outgoing.append(memoryview(lines))
        if not self._outgoing:
            return None
        first = self._outgoing.popleft()
        if len(first) > WRITTEN_AT_ONCE:
            self._outgoing.appendleft(first[WRITTEN_AT_ONCE:])
            first = first[:WRITTEN_AT_ONCE]
        self.size -= len(first)
        return first

    def _collect(self) -> None:
        """Take over the answers whose turn it is."""
        while self._pending and self._pending[0].done:
            if answer := self._pending.popleft().content:
                self._ready.append(answer)

    def clear(self) -> None:
        """Drop everything: nobody is left to read it."""
        self._pending.clear()
        self._ready.clear()
        self._outgoing.clear()
        self.size = 0
