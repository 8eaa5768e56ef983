"""Run blocking calls that may hang, each in a thread of its own.

A file system that does not answer (a network share that is gone) blocks a thread for ever. In the
shared thread pool a few such threads would block everything else, and the stop of the daemon.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.contracts.failures import LaneError

T = TypeVar("T")
_abandoned: dict[str, threading.Thread] = {}  # by place: a thread whose caller was cancelled


async def run_blocking(place: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread; return or raise what it does.

    Raises LaneError while an earlier call for the same place still hangs, so that threads do not pile up.
    """
    earlier = _abandoned.get(place)
    if earlier is not None and earlier.is_alive():
        raise LaneError("hangs", f"{place} does not answer")
    _abandoned.pop(place, None)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            _call_in_loop(loop, _fail, future, error)
        else:
            _call_in_loop(loop, _answer, future, result)

    thread = threading.Thread(target=work, name=f"blocking call {place}", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        _abandoned[place] = thread
        raise


def _call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        pass  # the loop is closed: the daemon has stopped


def _answer(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
