"""Work that may hang, in a thread of its own.

A file system that does not answer (a network that is gone) blocks a thread for good. In
the pool all share, a few such threads would hold up everybody else, and the daemon's end.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.contracts.failures import LaneError

T = TypeVar("T")
_left: dict[str, threading.Thread] = {}  # for each place, the thread nobody waits for any more


async def run_blocking(place: str, function: Callable[..., T], *arguments: Any) -> T:
    """What it returns or raises. While an earlier one hangs in the same place, no other is sent after it."""
    earlier = _left.get(place)
    if earlier is not None and earlier.is_alive():
        raise LaneError("hangs", f"{place} does not answer")
    _left.pop(place, None)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            _hand_back(loop, _fail, future, error)
        else:
            _hand_back(loop, _answer, future, result)

    thread = threading.Thread(target=work, name=f"aside {place}", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        _left[place] = thread
        raise


def _hand_back(loop: asyncio.AbstractEventLoop, how: Callable[..., None], *what: Any) -> None:
    try:
        loop.call_soon_threadsafe(how, *what)
    except RuntimeError:
        pass  # the daemon has ended meanwhile


def _answer(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
