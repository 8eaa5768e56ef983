"""The clock of the server. A test moves it forward; it also goes on by itself."""

from __future__ import annotations

from ...core import clock


class ServerClock:
    """Seconds since 1970 as the server sees them."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        return clock.wall() / 1000 + self._ahead

    def date(self) -> int:
        """Return the time as it is written into messages: whole seconds."""
        return int(self.now())

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
