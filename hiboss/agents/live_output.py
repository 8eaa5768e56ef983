"""What a run says while it goes on, kept in memory for those who follow it."""

from __future__ import annotations

from collections.abc import Callable

from ..core.contracts.provider import Progress

PARTS = 5_000  # of what a run says live, the latest are kept


class LiveOutput:
    """What a run has said so far, for whoever looks on. It is kept nowhere else."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._parts: list[Progress] = []
        self._dropped = 0
        self._ring = ring  # tells whoever looks on

    def add(self, part: Progress) -> None:
        self._parts.append(part)
        if len(self._parts) > PARTS:
            del self._parts[: PARTS // 10]
            self._dropped += PARTS // 10
        self._ring()

    def after(self, position: int) -> tuple[list[Progress], int]:
        """What was said after a position, and the position behind it."""
        start = max(0, position - self._dropped)
        return self._parts[start:], self._dropped + len(self._parts)
