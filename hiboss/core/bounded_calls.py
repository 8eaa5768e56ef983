"""Await code of others (adapters, providers) without depending on it to end.

A coroutine may ignore its cancellation: it catches the CancelledError and goes on. Awaited directly,
it would keep its caller for ever, also at the stop of the daemon. Here it gets a task of its own,
and is left behind when it does not end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
GRACE_SECONDS = 2.0  # for a coroutine that was cancelled, to end
log = logging.getLogger(__name__)
_left_behind: set[asyncio.Task[Any]] = set()  # asyncio itself keeps only weak references to tasks


class TookTooLong(Exception):
    """A coroutine did not end within its time. Not a TimeoutError, which can be the coroutine's own."""


async def call(coroutine: Coroutine[Any, Any, T], what: str, seconds: float | None = None) -> T:
    """Await a coroutine; return or raise what it does. After `seconds` raise TookTooLong.

    When the time is over, or when the caller is cancelled, it is cancelled and has GRACE_SECONDS to
    end. `what` names it in the log if it does not.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(_outcome(coroutine))
    # What asyncio.wait would do, in half the time: every post goes through here.
    over = loop.create_future()
    task.add_done_callback(lambda task: _release(over))
    timer = None if seconds is None else loop.call_later(seconds, _release, over)
    try:
        await over
    except asyncio.CancelledError:
        await end((task,), what)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if not task.done():
        await end((task,), what)
        raise TookTooLong
    result, error = task.result()
    if error is not None:
        raise error
    return result  # type: ignore[return-value] # without an error there is a result


def _release(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


async def _outcome(coroutine: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """Return the result or the exception: asyncio lets some of them end the event loop."""
    try:
        return await coroutine, None
    except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
        return None, error


async def end(
    tasks: Collection[asyncio.Task[Any]], what: str, seconds: float = GRACE_SECONDS
) -> set[asyncio.Task[Any]]:
    """Cancel tasks and wait until they have ended; log and return those that have not after `seconds`."""
    for task in tasks:
        task.cancel()
    return await wait_or_leave(tasks, what, seconds)


async def wait_or_leave(
    tasks: Collection[asyncio.Task[Any]], what: str, seconds: float
) -> set[asyncio.Task[Any]]:
    """Wait until tasks that were cancelled have ended; log and return those that have not after `seconds`."""
    if not tasks:
        return set()
    _, left = await asyncio.wait(tasks, timeout=seconds)
    for task in left:
        log.error("%s ignores its cancellation; it is left behind.", what, extra={"action": "stop"})
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
    return left


def is_our_cancellation(error: BaseException) -> bool:
    """Return whether an exception means that our own task was cancelled.

    A CancelledError can also come from a task of an adapter, and SystemExit or KeyboardInterrupt from a
    library it uses (a SIGINT only stops the daemon in order). None of these may end the daemon or a delivery.
    """
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
