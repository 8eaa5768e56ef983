"""Operations that control one run: cancel, pause and resume. They are `control.send`, for one run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors, ids
from ..core.errors import NotFound, NotRunning
from ..core.quoting import redact
from ..store.connection import Row
from ..store.control_targets import Target
from ..store.controls import APPLIED, REFUSED, Decision, Order
from . import control_rights
from .auth import Caller
from .context import Context
from .operation import Level, operation
from .param_sizes import Word
from .runs import ById


class _Unchanged(Exception):
    """It is in the wanted state already: nothing is stored."""


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
    reason = redact(context.settings.check_word("reason", params.reason or "")).strip() or None

    def decided(decision: Decision, target: Target) -> None:
        run = _named(target)
        if run["status"] == "running" and run["ends_as"] in ("cancelled", "requeued"):
            raise _Unchanged
        if decision.outcome != APPLIED:
            raise _not_running(run, "cancelled")

    order = _order(context, caller, "cancel", params)._replace(reason=reason, requeue=params.requeue)
    return await _send(context, order._replace(decided=decided))


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

    def decided(decision: Decision, target: Target) -> None:
        run = _named(target)
        if decision.outcome == REFUSED and run["paused_at"] is not None:
            raise _Unchanged
        if decision.outcome == REFUSED:
            state = "a run without a program of its own, which cannot be paused"
            raise NotRunning(id=f"r{run['id']}", state=state, what="paused, and only if it has one")
        if decision.outcome != APPLIED:
            raise _not_running(run, "paused")

    return await _send(context, _order(context, caller, "pause", params)._replace(decided=decided))


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

    def decided(decision: Decision, target: Target) -> None:
        if decision.outcome == REFUSED:
            raise _Unchanged
        if decision.outcome != APPLIED:
            raise _not_running(_named(target), "resumed")

    return await _send(context, _order(context, caller, "resume", params)._replace(decided=decided))


def _order(context: Context, caller: Caller, event: str, params: ById) -> Order:
    return Order(
        event=event,
        actor=caller.id,
        by=caller.name,
        run=ids.number(params.id, "run"),
        is_boss=caller.is_boss,
        check=control_rights.check(context, caller, event),
    )


async def _send(context: Context, order: Order) -> RunChange:
    """Send the control; what was not applied raises in its transaction, so that nothing is stored."""
    try:
        await context.controls.send(order)
    except _Unchanged:
        return {"id": f"r{order.run}", "changed": False}
    return {"id": f"r{order.run}", "changed": True}


def _named(target: Target) -> Row:
    assert target.run is not None
    return target.run


def _not_running(run: Row, what: str) -> NotRunning:
    state = "about to end" if run["status"] == "running" else run["status"]
    return NotRunning(id=f"r{run['id']}", state=state, what=what)
