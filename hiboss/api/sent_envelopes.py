"""Operations of senders about what they have sent: retry and cancel envelopes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..core import clock, errors, ids
from ..core.envelope import Lane
from ..store import ask_mail, envelopes, post_changes, posts
from ..store.group_commit import Tx
from .auth import Caller
from .context import Context
from .operation import ChangedCount, Ids, Level, Params, operation


class ByIds(Params):
    ids: Ids = Field(description="envelopes, like e81; all of them, or with one wrong id none")


@operation(
    "envelope.retry",
    level=Level.STANDARD,
    effect="idempotent",
    params=ByIds,
    result=ChangedCount,
    errors=(errors.NotFound, errors.BadId, errors.TooLate),
)
async def retry(context: Context, caller: Caller, params: ByIds) -> ChangedCount:
    """Retry failed or cancelled envelopes of the caller; an account that was bound again posts them."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> tuple[int, set[Lane]]:
        retried = envelopes.retry(tx, numbers, caller.sees, now)
        post_changes.follow_retried(tx, numbers)
        return retried

    changed, found = await context.write(caller, write)
    context.changes.added()
    context.delivery.wake(found, eager=True)
    context.scheduler.nudge(now)
    return {"changed": changed}


class CancelledCount(ChangedCount):
    partly_posted: Annotated[
        int,
        Field(
            description="how many of them are posted in part: that stays in the chat; to take it back, "
            "delete the message"
        ),
    ]


@operation(
    "envelope.cancel",
    level=Level.STANDARD,
    effect="destructive",
    params=ByIds,
    result=CancelledCount,
    errors=(errors.NotFound, errors.BadId, errors.TooLate, errors.AskFixed),
)
async def cancel(context: Context, caller: Caller, params: ByIds) -> CancelledCount:
    """Cancel envelopes that the caller sent, while nobody holds them."""
    numbers = [ids.number(given, "envelope") for given in params.ids]
    now = clock.now()

    def write(tx: Tx) -> CancelledCount:
        changed = envelopes.cancel(tx, numbers, caller.sees, now)
        ask_mail.check_cancel(tx, numbers, caller.id, now, boss=caller.is_boss)
        return {"changed": changed, "partly_posted": posts.begun(tx, numbers)}

    result = await context.write(caller, write)
    context.changes.added()
    return result
