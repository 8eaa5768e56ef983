"""Answers that wait: where the server stops until the test says go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

LOOK = 0.05  # seconds between two looks whether the client is still there


class Holds:
    """All answers that wait now."""

    def __init__(self) -> None:
        self._open: set[threading.Event] = set()
        self._changed = threading.Condition()
        self._closed = False

    def enter(self) -> threading.Event:
        """Begin a hold. Do this before the client hears something: `go_on` releases it from now on."""
        hold = threading.Event()
        with self._changed:
            if self._closed:
                hold.set()
            self._open.add(hold)
            self._changed.notify_all()
        return hold

    def stay(self, hold: threading.Event, is_gone: Callable[[], bool]) -> bool:
        """Wait for `go_on`. Return False if the client went away."""
        gone = False
        while not gone and not hold.wait(LOOK):
            gone = is_gone()
        with self._changed:
            self._open.discard(hold)
        return not gone

    def go_on(self) -> None:
        """Release all that wait now. They are not held from now on, whenever their threads go on."""
        with self._changed:
            for hold in self._open:
                hold.set()
            self._open.clear()

    def close(self) -> None:
        """Release all, for ever."""
        with self._changed:
            self._closed = True
        self.go_on()

    def wait(self, count: int, seconds: float) -> None:
        """Wait until so many answers are held. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._open) >= count, seconds):
                raise TimeoutError(f"{len(self._open)} answers are held, not {count}")
