"""Events: facts in the past tense, published inside the daemon to its subscribers.

No delivery depends on them: everything that must happen follows from the store. A subscriber
that is too slow is told how many events it missed, and never blocks anybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvelopesArrived(Event):
    """Envelopes are in the boxes of their recipients now."""

    envelopes: tuple[int, ...]
    recipients: tuple[int, ...]  # address ids, in the same order


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvelopeSettled(Event):
    envelope: int
    status: str  # done, failed
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneWaits(Event):
    """A lane had a failure and is retried later."""

    address: str
    error: str
    until: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted(Event):
    run: int
    agent: int  # address id


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded(Event):
    run: int
    agent: int
    status: str
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterStarted(Event):
    binding: int
    address: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterFailed(Event):
    binding: int
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap(Event):
    """This many events before this point were dropped for this subscriber."""

    missed: int


class Subscription:
    """The events that one subscriber has not seen yet: `async for event in subscription`."""

    def __init__(self, bus: Bus, kinds: tuple[type[Event], ...], size: int) -> None:
        self._bus = bus
        self._kinds = kinds
        self._size = size
        self._waiting: deque[Event] = deque()
        self._missed = 0
        self._ready = asyncio.Event()

    def offer(self, event: Event) -> None:
        """Add an event if this subscriber asked for its kind; when full, drop the oldest one."""
        if self._kinds and not isinstance(event, self._kinds):
            return
        if len(self._waiting) >= self._size:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(event)
        self._ready.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        if self._missed:
            missed, self._missed = self._missed, 0
            return Gap(at=self._waiting[0].at, missed=missed)
        return self._waiting.popleft()

    def close(self) -> None:
        self._bus.drop(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Bus:
    """Publish events to subscribers. Use it on the event loop's thread only; publishing never waits."""

    def __init__(self) -> None:
        self._watchers: list[Subscription] = []

    def publish(self, event: Event) -> None:
        for watcher in self._watchers:
            watcher.offer(event)

    @property
    def watched(self) -> bool:
        """Tell whether there is a subscriber: without one, skip building costly events."""
        return bool(self._watchers)

    def subscribe(self, *kinds: type[Event], size: int = 1_000) -> Subscription:
        """Subscribe to every event from now on, or only to events of these kinds."""
        watcher = Subscription(self, kinds, size)
        self._watchers.append(watcher)
        return watcher

    def drop(self, watcher: Subscription) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)
