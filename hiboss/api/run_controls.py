"""Operations that control one run: cancel, pause and resume. They are `control.send`, for one run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors, ids
from ..core.errors import NotFound, NotRunning
from ..store import run_history
from ..store.connection import Row
from ..store.controls import APPLIED, REFUSED, Order
from . import control_rights
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .param_sizes import Word
from .runs import ById


class Cancel(ById):
    reason: Word | None = Field(None, description="shown with the run")
    requeue: bool = Field(False, description="what it works on is due again, and begins anew")


class RunChange(TypedDict):
    id: Annotated[str, Field(description="like r9")]
    changed: Annotated[bool, Field(description="false: it was in this state already")]


@operation(
    "run.cancel",
    level=Level.RESTRICTED,
    effect="destructive",
    params=Cancel,
    result=RunChange,
    errors=(NotFound, errors.BadId, NotRunning, errors.TooLarge, errors.BadText),
)
async def cancel(context: Context, caller: Caller, params: Cancel) -> RunChange:
    """Cancel a run: its program is ended, and its envelopes are cancelled; they can be retried."""
    reason = context.settings.check_word("reason", params.reason or "").strip() or None
    outcome, row = await _send(context, caller, "cancel", params, reason, requeue=params.requeue)
    changed = outcome == APPLIED
    if not changed and not (row["status"] == "running" and row["ends_as"] in ("cancelled", "requeued")):
        raise _not_running(row, "cancelled")
    return {"id": f"r{row['id']}", "changed": changed}


@operation(
    "run.pause",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=ById,
    result=RunChange,
    errors=(NotFound, errors.BadId, NotRunning),
)
async def pause(context: Context, caller: Caller, params: ById) -> RunChange:
    """Pause a run: its processes stop where they are, its time limits do not count, and its lane is held."""
    outcome, row = await _send(context, caller, "pause", params)
    if outcome == REFUSED and row["paused_at"] is None:
        state = "a run without a program of its own, which cannot be paused"
        raise NotRunning(id=f"r{row['id']}", state=state, what="paused, and only if it has one")
    if outcome not in (APPLIED, REFUSED):
        raise _not_running(row, "paused")
    return {"id": f"r{row['id']}", "changed": outcome == APPLIED}


@operation(
    "run.resume",
    level=Level.RESTRICTED,
    effect="idempotent",
    params=ById,
    result=RunChange,
    errors=(NotFound, errors.BadId, NotRunning),
)
async def resume(context: Context, caller: Caller, params: ById) -> RunChange:
    """Resume a paused run. One that was ended because its pause was too long begins again."""
    outcome, row = await _send(context, caller, "resume", params)
    if outcome not in (APPLIED, REFUSED):
        raise _not_running(row, "resumed")
    return {"id": f"r{row['id']}", "changed": outcome == APPLIED}


async def _send(
    context: Context,
    caller: Caller,
    event: str,
    params: ById,
    reason: str | None = None,
    *,
    requeue: bool = False,
) -> tuple[str, Row]:
    """Send the control; return its outcome, and the run as it is now."""
    run = ids.number(params.id, "run")
    order = Order(
        event=event,
        actor=caller.id,
        by=caller.name,
        run=run,
        reason=reason,
        requeue=requeue,
        is_boss=caller.is_boss,
        check=control_rights.check(context, caller, event),
    )
    outcome = await context.controls.send(order)
    row = context.store.read(lambda c: run_history.get(c, run))
    assert row is not None
    return outcome.outcome, row


def _not_running(row: Row, what: str) -> NotRunning:
    state = "about to end" if row["status"] == "running" else row["status"]
    return NotRunning(id=f"r{row['id']}", state=state, what=what)
