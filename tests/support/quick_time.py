"""An event loop whose clock jumps: nothing sleeps, and every time is exact."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would sleep until its next timer, time passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class _QuickLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_in_quick_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; its loop's time begins at 0. Take fractions of a second like 1/8: they are exact."""
    with asyncio.Runner(loop_factory=_QuickLoop) as runner:
        return runner.run(work)
