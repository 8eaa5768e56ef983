"""What waits in memory for all clients together: answers that they have not read, and incomplete requests.

Each connection has limits of its own, but there can be thousands. Above the limit for all, the
connection that has read nothing for the longest time is closed. So clients that read their answers
do not notice others that do not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from ..core.settings import Settings

log = logging.getLogger(__name__)
UNCOUNTED = 64 * 1024  # bytes of one connection; so the usual request costs one comparison


class Waiting(Protocol):
    """A connection, as far as it is measured here."""

    finished: asyncio.Future[None]

    def measure(self) -> int: ...

    def hang_up(self) -> None: ...


class WaitingBytes:
    """Counts the bytes that wait, by connection."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counted: dict[Waiting, int] = {}  # who has read nothing for the longest time is first
        self.total = 0

    def note(self, connection: Waiting, size: int) -> None:
        """Note how much waits for a connection now."""
        if (size > UNCOUNTED or connection in self._counted) and not connection.finished.done():
            self._count(connection, size)
            if self.total > self._settings.waiting_bytes:
                self._make_room()

    def forget(self, connection: Waiting) -> None:
        """Count a connection no more."""
        self._count(connection, 0)

    def _count(self, connection: Waiting, size: int) -> None:
        before = self._counted.get(connection, 0)
        self.total += size - before
        if size < before:  # it has read something, so it goes to the end
            del self._counted[connection]
        if size:
            self._counted[connection] = size

    def _make_room(self) -> None:
        """Close connections until the others are within the limit."""
        for connection in list(self._counted):  # some have read since they were noted
            self._count(connection, connection.measure())
        while self.total > self._settings.waiting_bytes:
            first, size = next(iter(self._counted.items()))
            log.warning(
                "Disconnected a client for which %d bytes waited, of %d for all clients; the limit is %d.",
                size,
                self.total,
                self._settings.waiting_bytes,
                extra={"action": "rpc"},
            )
            self.forget(first)
            first.hang_up()
