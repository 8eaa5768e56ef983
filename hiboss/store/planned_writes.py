"""A write as a value: what to change, what to make of the result, and how its caller is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]  # gets the result or the error, on the event loop's thread


class PlannedWrite(NamedTuple, Generic[T]):
    """A change that is not submitted yet, and what is made of its result after COMMIT."""

    change: Callable[..., Any]  # takes the writer's Tx
    then: Callable[[Any], T]


def settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Give a future its result or its error."""
    if future.done():  # the caller is gone; its operation is written all the same
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
