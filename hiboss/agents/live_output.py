"""What a run has reported so far: kept in memory only, for those who follow the run."""

from __future__ import annotations

from collections.abc import Callable

from ..core.contracts.provider import Progress

PARTS = 5_000  # the latest are kept, older ones are dropped


class LiveOutput:
    """The parts that one run has reported. A reader asks for what came after its position."""

    def __init__(self, on_output: Callable[[], None]) -> None:
        self._parts: list[Progress] = []
        self._dropped = 0
        self._on_output = on_output  # wakes those who follow the run

    def add(self, part: Progress) -> None:
        self._parts.append(part)
        if len(self._parts) > PARTS:
            del self._parts[: PARTS // 10]
            self._dropped += PARTS // 10
        self._on_output()

    def after(self, position: int) -> tuple[list[Progress], int]:
        """Return the parts after a position, and the position for the next call."""
        start = max(0, position - self._dropped)
        return self._parts[start:], self._dropped + len(self._parts)
