"""When to try to connect again, and when to give up."""

from __future__ import annotations

import time

START_SECONDS = 10.0  # for a daemon to come when a client starts
AWAY_SECONDS = 600.0  # for the daemon to come back
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two tries
STEADY_SECONDS = 10.0  # a worker that lasted longer did not fail at its start


class ReconnectTiming:
    """Counts failures in a row. A connection that was lost soon counts as one of them."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._limit = START_SECONDS
        self._next = 0.0
        self._connected_at = 0.0
        self.failures = 0

    def connected(self) -> None:
        self._connected_at = time.monotonic()

    def lost(self) -> None:
        """A connection was lost. The first try comes at once."""
        now = time.monotonic()
        if self._limit != AWAY_SECONDS or now - self._connected_at > STEADY_SECONDS:
            self._limit, self._began, self.failures = AWAY_SECONDS, now, 0
        self.failed()

    def failed(self) -> None:
        pause = FIRST_PAUSE * 2.0 ** (self.failures - 1) if self.failures else 0.0
        self._next = time.monotonic() + min(pause, LONGEST_PAUSE)
        self.failures += 1

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def is_over(self) -> bool:
        return time.monotonic() >= self._began + self._limit

    def pause(self) -> float:
        """Return how many seconds there are until the next try."""
        return max(0.0, self._next - time.monotonic())
