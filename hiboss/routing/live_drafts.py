"""Drafts of answers that grow: a platform shows them as no post yet, and lets them vanish by itself.

A draft is a sign, so it is never queued. The answer that follows waits for a draft on its way: one that
came after the answer would stay beside it for a while.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ..core.contracts.failures import LaneError
from ..store.live_posts import Key, Target
from .live_endings import ChatWaits
from .signs import Signs

AGAIN_SECONDS = 20.0  # one that does not change is shown again: platforms let it vanish after about 30


class _Draft(NamedTuple):
    chunk: str
    at: float  # on the loop's clock
    sending: asyncio.Task[BaseException | None]  # returns why it was dropped


class LiveDrafts:
    """Knows the last draft of each run in each place. Use it on the event loop's thread only."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self._last: dict[Key, _Draft] = {}

    def is_due(self, key: Key, chunk: str) -> bool:
        """Tell whether a draft would change something. Raise ChatWaits if the platform wants no more."""
        last = self._last.get(key)
        if last is None:
            return True
        if not last.sending.done():
            return False
        refused = last.sending.result()
        if isinstance(refused, LaneError) and refused.retry_after is not None:
            raise ChatWaits(refused.text) from refused
        return last.chunk != chunk or asyncio.get_running_loop().time() - last.at >= AGAIN_SECONDS

    def show(self, key: Key, target: Target, chunk: str) -> None:
        """Show a draft, or drop it."""
        sending = self._signs.show(target, "draft", key.run, chunk)
        if sending is not None:
            self._last[key] = _Draft(chunk, asyncio.get_running_loop().time(), sending)

    def has(self, key: Key) -> bool:
        """Tell whether a run has shown drafts in a place."""
        return key in self._last

    async def sent(self, key: Key) -> None:
        """Wait for the draft that is on its way; a sign ends soon, whatever happens."""
        if (last := self._last.get(key)) is not None:
            await asyncio.wait([last.sending])

    def forget(self, run: int) -> None:
        """Forget the drafts of a run that has ended, but for one that is still on its way."""
        self._last = {
            key: last for key, last in self._last.items() if key.run != run or not last.sending.done()
        }
