"""How much a bot may send: one message a second in a chat, 20 a minute in a group, 30 a second in all."""

from __future__ import annotations

import math
from collections import deque

from .refusals import too_many_requests
from .server_clock import ServerClock

CHAT_SECONDS = 1.0
GROUP_WINDOW = (20, 60.0)
ALL_WINDOW = (30, 1.0)
BURST = 3  # so many at once are let through in one chat, as "about one a second" means


class FloodLimits:
    """Counts by the server's clock. Off unless a test wants it."""

    def __init__(self, clock: ServerClock, *, on: bool) -> None:
        self.on = on
        self._clock = clock
        self._sent: dict[tuple[int, int | None], deque[float]] = {}

    def count(self, bot: int, chat: int, *, group: bool) -> None:
        """Note a message or an edit, or refuse it."""
        if not self.on:
            return
        now = self._clock.now()
        rules = [((bot, None), ALL_WINDOW), ((bot, chat), (BURST, BURST * CHAT_SECONDS))]
        if group:
            rules.append(((-bot, chat), GROUP_WINDOW))  # apart from the other: it looks back further
        waits = [self._wait(key, window, now) for key, window in rules]
        if max(waits) > 0:
            raise too_many_requests(max(1, math.ceil(max(waits))))
        for key, _ in rules:
            self._sent[key].append(now)

    def _wait(self, key: tuple[int, int | None], window: tuple[int, float], now: float) -> float:
        most, seconds = window
        sent = self._sent.setdefault(key, deque())
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        return sent[-most] + seconds - now if len(sent) >= most else 0.0
