"""Calls that wait for mail: each is woken when something arrives for the address it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..core.errors import AlreadyWatched, Stopping


class Waiters:
    """Used in the event loop's thread only. A wake has no data: the caller then looks into the store."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._watched: set[int] = set()
        self._closed = False

    def wake(self, recipients: Iterable[int]) -> None:
        """Wake the calls that wait for one of these address ids."""
        if not self._waiting:
            return
        for recipient in recipients:
            for event in self._waiting.get(recipient, ()):
                event.set()

    @contextmanager
    def waiting(self, recipient: int) -> Iterator[asyncio.Event]:
        """Give an event that is set when something comes for this address id.

        ORDER: enter this block first, then look into the store, then wait; else a wake can be missed.
        """
        event = asyncio.Event()
        others = self._waiting.setdefault(recipient, set())
        others.add(event)
        try:
            yield event
        finally:
            others.discard(event)
            if not others:
                del self._waiting[recipient]

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Return whether the event was set in time. Raises Stopping when the daemon stops meanwhile."""
        if not self._closed:
            try:
                async with asyncio.timeout(seconds):
                    await event.wait()
            except TimeoutError:
                return False
        if self._closed:
            raise Stopping()
        event.clear()
        return True

    @contextmanager
    def only_watcher(self, recipient: int, name: str) -> Iterator[None]:
        """Hold the only watch of a recipient while the block runs; a second one raises AlreadyWatched."""
        if recipient in self._watched:
            raise AlreadyWatched(address=name)
        self._watched.add(recipient)
        try:
            yield
        finally:
            self._watched.discard(recipient)

    def close(self) -> None:
        """End all waits with Stopping: the daemon stops."""
        self._closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    @property
    def number(self) -> int:
        """How many calls wait."""
        return sum(map(len, self._waiting.values()))
