"""Those who wait for mail: woken by its arrival, and by nothing else's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..core.errors import AlreadyWatched, Stopping


class Waiters:
    """Belongs to the event loop's thread. A wake says only: look into the store."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._watched: set[int] = set()
        self._closed = False

    def wake(self, recipients: Iterable[int]) -> None:
        if not self._waiting:
            return
        for recipient in recipients:
            for bell in self._waiting.get(recipient, ()):
                bell.set()

    @contextmanager
    def waiting(self, *recipients: int) -> Iterator[asyncio.Event]:
        """A bell that rings when something comes for these; enrol first, then look, then wait.

        The negative of an agent's number stands for what that agent does just now.
        """
        bell = asyncio.Event()
        for recipient in recipients:
            self._waiting.setdefault(recipient, set()).add(bell)
        try:
            yield bell
        finally:
            for recipient in set(recipients):
                others = self._waiting[recipient]
                others.discard(bell)
                if not others:
                    del self._waiting[recipient]

    async def wait(self, bell: asyncio.Event, seconds: float) -> bool:
        """Whether it rang in time. Raises Stopping when the daemon ends meanwhile."""
        if not self._closed:
            try:
                async with asyncio.timeout(seconds):
                    await bell.wait()
            except TimeoutError:
                return False
        if self._closed:
            raise Stopping()
        bell.clear()
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
        """Let everybody go: the daemon ends."""
        self._closed = True
        for bells in self._waiting.values():
            for bell in bells:
                bell.set()

    @property
    def number(self) -> int:
        return len({id(bell) for bells in self._waiting.values() for bell in bells})
