"""A clock of the event loop that a test moves: what waits for hours there ends at once."""

from __future__ import annotations

import asyncio


class MovedClock:
    """The clock of the running event loop, which goes on by itself and can be moved."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._time, self._moved = loop.time, 0.0
        loop.time = self._now  # type: ignore[method-assign]

    def _now(self) -> float:
        return self._time() + self._moved

    async def move(self, seconds: float) -> None:
        """Move it, and let everything happen that is due then."""
        self._moved += seconds
        for _ in range(5):
            await asyncio.sleep(0)
