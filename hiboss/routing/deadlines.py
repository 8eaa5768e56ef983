"""Many things that end by themselves unless they are repeated, by one timer.

Somebody types, was active, or gives output: each is noted again and again, and ends some seconds after the
last time. Only the event loop's clock counts, so nobody ends anything by setting the clock. To note
something costs the same however many others there are. Use it on the event loop's thread only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import NamedTuple


class _Deadline(NamedTuple):
    at: float
    ended: Callable[[], None]


class Deadlines:
    """What is going on now, by key, and when it ends."""

    def __init__(self, time: Callable[[], float] | None = None) -> None:
        self.time = time or (lambda: asyncio.get_running_loop().time())
        self._known: dict[Hashable, _Deadline] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False

    def note(self, key: Hashable, seconds: float, ended: Callable[[], None]) -> bool:
        """Let something go on for some seconds from now; return whether it begins with that.

        `ended` is called when they are over, unless it is noted again or forgotten.
        """
        at = self.time() + seconds
        new = key not in self._known
        self._known[key] = _Deadline(at, ended)
        if self._timer is None or at < self._timer_at:
            self._set_timer(at)
        return new

    def forget(self, key: Hashable) -> bool:
        """End something now, without a call; return whether it was going on."""
        return self._known.pop(key, None) is not None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def look(self) -> None:
        """End what is over, and set the timer for what comes next."""
        now = self.time()
        over = [(key, one.ended) for key, one in self._known.items() if one.at <= now]
        for key, _ in over:
            del self._known[key]
        self._timer_off()
        if self._known:
            self._set_timer(min(one.at for one in self._known.values()))
        for _, ended in over:
            ended()

    def close(self) -> None:
        """End nothing more: the daemon stops."""
        self._closed = True
        self._timer_off()

    def _set_timer(self, at: float) -> None:
        """Look at `at`, or later if what it was set for is noted again meanwhile."""
        self._timer_off()
        if not self._closed:
            self._timer_at = at
            delay = max(0.0, at - self.time())
            self._timer = asyncio.get_running_loop().call_later(delay, self.look)

    def _timer_off(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
