"""The calls of one batch, run one after another; those in a row that are like sends run at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby

from ..core.errors import BatchTooLarge
from . import codec

Call = codec.Request | codec.Malformed


def is_notification(call: Call) -> bool:
    return isinstance(call, codec.Request) and call.notification


async def run(
    calls: list[Call],
    answer: Callable[[Call], Awaitable[bytes]],
    may_run_together: Callable[[str], bool],
    limit: int,
    note: Callable[[int], None],
    is_read: Callable[[], Awaitable[bool]],
) -> bytes:
    """Return the answer to a batch. It never needs the memory of all its calls at once.

    When the answers reach the limit, the calls that are left are not run, and answered with that. `note` is
    told by how many bytes more wait. `is_read` waits for the peer; the first call never does, since what
    follows the batch must not begin before it.
    """

    def runs_with(numbered: tuple[int, Call]) -> int:
        """Return a key that is the same for calls in a row which run at the same time."""
        number, call = numbered
        return -1 if isinstance(call, codec.Request) and may_run_together(call.method) else number

    answers: list[bytes] = []
    size = 0
    for _, alike in groupby(enumerate(calls), key=runs_with):
        row = [call for _, call in alike]
        if row[0] is not calls[0] and not await is_read():
            break
        if size > limit:
            found = [_not_run(call, limit) for call in row]
        elif len(row) == 1:
            found = [await answer(row[0])]
        else:
            found = await asyncio.gather(*map(answer, row))
        kept = [one for one, call in zip(found, row, strict=True) if not is_notification(call)]
        answers += kept
        added = sum(map(len, kept))
        size += added
        note(added)
        await asyncio.sleep(0)  # a call that only reads does not wait: let others have their turn
    note(-size)
    return codec.batch(answers) if answers else b""


def _not_run(call: Call, limit: int) -> bytes:
    """Return the answer to a call of a batch whose answers have reached the limit."""
    error = call.error if isinstance(call, codec.Malformed) else BatchTooLarge(limit=limit)
    return codec.failure(call.id, error)
