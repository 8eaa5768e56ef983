"""What a run has reported so far: kept in memory only, for those who follow the run."""

from __future__ import annotations

from collections.abc import Callable

from ..core.contracts.provider import Progress

# The latest parts are kept, older ones are dropped.
PARTS = 5_000
CHARACTERS = 2_000_000  # of all parts together; a longer part is cut


class LiveOutput:
    """The parts that one run has reported. A reader asks for what came after its position."""

    def __init__(self, on_output: Callable[[Progress, int], None]) -> None:
        self._parts: list[Progress] = []
        self._dropped = 0
        self._characters = 0
        self._on_output = on_output  # gets a part and its position; wakes those who follow the run

    def add(self, part: Progress) -> None:
        part = part._replace(text=part.text[:CHARACTERS])
        self._parts.append(part)
        self._characters += len(part.text)
        if len(self._parts) > PARTS or self._characters > CHARACTERS:
            self._drop()
        self._on_output(part, self._dropped + len(self._parts))

    def _drop(self) -> None:
        """Drop the oldest parts: a tenth of them, or as many as are too much."""
        number = PARTS // 10 if len(self._parts) > PARTS else 0
        left = self._characters - sum(len(part.text) for part in self._parts[:number])
        while left > CHARACTERS:
            left -= len(self._parts[number].text)
            number += 1
        del self._parts[:number]
        self._dropped += number
        self._characters = left

    def after(self, position: int) -> tuple[list[Progress], int]:
        """Return the parts after a position, and the position for the next call."""
        start = max(0, position - self._dropped)
        return self._parts[start:], self._dropped + len(self._parts)
