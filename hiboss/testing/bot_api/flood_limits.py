"""How much a bot may send: one message a second in a chat, 20 a minute in a group, 30 a second in all.

Messages and edits count; drafts, reactions and chat actions do not: that is a guess, for nothing is published
about them. Who goes on while it is told to wait waits twice as long, as was seen; the factor is a guess.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from .refusals import too_many_requests
from .server_clock import ServerClock

CHAT_SECONDS = 1.0
GROUP_WINDOW = (20, 60.0)
ALL_WINDOW = (30, 1.0)
BURST = 3  # so many at once are let through in one chat, as "about one a second" means
LONGEST_WAIT = 120  # seconds; longer ones were not seen often

Key = tuple[int, int | None]  # a bot and a chat, or all its chats


@dataclass(frozen=True, kw_only=True)
class Flood:
    """A 429 that was given, or a call that was made although the bot was told to wait."""

    method: str
    bot: int
    chat: int | None
    at: float
    retry_after: int  # 0: it was let through, for the limits are off
    during_wait: bool = False  # the bot was told to wait, and did not
    bot_wide: bool = False
    scripted: bool = False  # by BotApi.fault


@dataclass(frozen=True)
class _Wait:
    until: float
    seconds: int


class FloodLimits:
    """Counts by the server's clock. It refuses nothing unless a test wants it; waits are watched always."""

    def __init__(self, clock: ServerClock, *, on: bool) -> None:
        self.on = on
        self.floods: list[Flood] = []
        self._clock = clock
        self._sent: dict[Key, deque[float]] = {}
        self._waits: dict[Key, _Wait] = {}

    def count(self, bot: int, chat: int, method: str, *, group: bool, items: int = 1) -> None:
        """Note a message or an edit, or refuse it. An album is one message, but in a group `items` of them.

        Nothing is published about albums; people who were refused count each part, and an album of ten could
        not be sent at all if each part had to wait a second.
        """
        now = self._clock.now()
        keys: list[Key] = [(bot, None), (bot, chat)]
        for key in keys:
            wait = self._waits.get(key)
            if wait is not None and now < wait.until:
                self._again(key, chat, method, wait, now)
        if not self.on:
            return
        rules = [(keys[0], ALL_WINDOW, 1), (keys[1], (BURST, BURST * CHAT_SECONDS), 1)]
        if group:
            rules.append(((-bot, chat), GROUP_WINDOW, items))  # apart from the other: it looks back further
        waits = [self._wait(key, window, weight, now) for key, window, weight in rules]
        if max(waits) > 0:
            whole = waits[0] == max(waits)
            self._refuse((bot, None if whole else chat), chat, method, max(1, math.ceil(max(waits))), now)
        for counted, _, weight in rules:
            self._sent[counted].extend([now] * weight)

    def told_to_wait(self, bot: int, chat: int | None, method: str, seconds: int, *, counted: bool) -> None:
        """Note a 429 that a test scripted, so that calls made into its wait are seen.

        One for a draft, a reaction or a chat action says nothing about messages.
        """
        now = self._clock.now()
        if counted:
            self._waits[bot, chat] = _Wait(now + seconds, seconds)
        self._note(method, bot, chat, now, seconds, scripted=True)

    def _again(self, key: Key, chat: int, method: str, wait: _Wait, now: float) -> None:
        """Deal with a call into a running wait: it gets longer."""
        if self.on:
            longer = min(2 * wait.seconds, max(LONGEST_WAIT, wait.seconds))
            self._refuse(key, chat, method, longer, now, during_wait=True)
        self._note(method, key[0], chat, now, 0, during_wait=True, bot_wide=key[1] is None)

    def _refuse(
        self, key: Key, chat: int, method: str, seconds: int, now: float, *, during_wait: bool = False
    ) -> None:
        self._waits[key] = _Wait(now + seconds, seconds)
        self._note(method, key[0], chat, now, seconds, during_wait=during_wait, bot_wide=key[1] is None)
        raise too_many_requests(seconds)

    def _note(
        self, method: str, bot: int, chat: int | None, at: float, retry_after: int, **facts: bool
    ) -> None:
        self.floods.append(Flood(method=method, bot=bot, chat=chat, at=at, retry_after=retry_after, **facts))

    def _wait(self, key: Key, window: tuple[int, float], weight: int, now: float) -> float:
        """Return how long it is until so many more fit into a window."""
        most, seconds = window
        sent = self._sent.setdefault(key, deque())
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        too_many = len(sent) + min(weight, most) - most
        return sent[too_many - 1] + seconds - now if too_many > 0 else 0.0
