"""Operations about runs: list them, follow their output, cancel, pause and resume."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..agents.run_execution import Execution
from ..core import clock, errors, ids
from ..core.contracts.provider import Progress
from ..core.errors import NotFound, NotRunning
from ..store import agents, run_history, run_start
from ..store.connection import Connection, Row
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, operation
from .param_sizes import Word
from .request_limits import deadline, page_size

START_CHECKS = 100  # one every 10 ms: how long a stored run may take to be under way


class List(Params):
    agent: str | None = Field(None, description="only runs of this agent, by its name")
    status: Literal["running", "completed", "failed", "cancelled", "interrupted"] | None = None
    trace: Word | None = Field(None, description="only runs of this trace, like m57, or of your own name")
    page_size: int | None = None
    after: Id | None = Field(None, description="the `next` of the previous page")


class Run(TypedDict):
    id: str
    agent: str  # its name
    kind: str  # turn or background
    status: str  # running, completed, failed, cancelled, interrupted
    provider: str
    conversation: str | None
    envelopes: list[str]  # the ids of the envelopes it was shown
    trace: str | None
    hops: int  # how many runs of the trace led to this one
    started_at: str
    ended_at: str | None
    paused: bool
    text: str | None  # the final text
    answer: str | None  # the id of the message that the final text was sent as
    note: str | None  # why the final text was not sent, and the like
    error: str | None
    error_kind: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None  # in dollars
    pid: int | None  # of its program, while it runs


class RunList(TypedDict):
    runs: list[Run]
    next: str | None  # to be given as `after` for the next page
    timezone: str


class ById(Params):
    id: Id = Field(description="the run, like r9")


class RunDetail(TypedDict):
    run: Run
    timezone: str


class Tail(ById):
    after: int = Field(0, ge=0, description="the `next` of the previous answer")
    timeout: str = Field("55s", description="how long to wait for more, like 55s")


class OutputPart(TypedDict):
    kind: str  # delta (a piece of the answer) or tool (what the agent does now)
    text: str


class RunOutput(TypedDict):
    run: Run
    parts: list[OutputPart]
    next: int  # to be given as `after` in the next call
    timezone: str


class Cancel(ById):
    reason: Word | None = Field(None, description="shown with the run")


class RunChange(TypedDict):
    id: str
    changed: bool  # false: it was in this state already


@operation(
    "run.list",
    level=Level.RESTRICTED,
    params=List,
    result=RunList,
    errors=(
        errors.UnknownAgent,
        errors.BadId,
        errors.BossOnly,
        errors.InvalidParams,
        errors.TooLarge,
        errors.BadText,
    ),
)
async def listed(context: Context, caller: Caller, params: List) -> RunList:
    """List runs, newest first. An agent sees its own, the boss sees all."""
    limit = page_size(context, params.page_size)
    before = None if params.after is None else ids.number(params.after, "run")
    if params.trace is not None:
        context.settings.check_word("trace", params.trace)
    agent = _whose(context, caller, params.agent)

    def read(connection: Connection) -> RunList:
        page = run_history.page(
            connection,
            agent=agent,
            status=params.status,
            trace=None if params.trace is None else _full_trace(caller, params.trace),
            before=before,
            limit=limit,
            most_bytes=context.settings.page_bytes,
        )
        shown = [to_json(row) for row in page.rows]
        return {
            "runs": shown,
            "next": shown[-1]["id"] if page.more else None,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _full_trace(caller: Caller, trace: str) -> str:
    """Return the trace that is meant: an id like m57 or s3@…, a full name, or a name that the caller gave."""
    full = re.fullmatch(r"m[0-9]+|s[0-9]+@.*|(agent|user):[^/]+/.*", trace)
    return trace if full else f"{caller.address}/{trace}"


def _whose(context: Context, caller: Caller, name: str | None) -> int | None:
    """Return the id of the agent whose runs are listed; None: everybody's."""
    if name is None:
        return None if caller.is_boss else caller.id
    found = int(context.store.read(lambda c: agents.get(c, name))["id"])
    if not caller.is_boss and found != caller.id:
        raise errors.BossOnly(what="listing another agent's runs (agent)", caller=caller.name)
    return found


@operation("run.get", level=Level.RESTRICTED, params=ById, result=RunDetail, errors=(NotFound, errors.BadId))
def get(context: Context, caller: Caller, params: ById) -> RunDetail:
    """Show one run in full."""
    return {"run": to_json(_visible(context, caller, params.id)), "timezone": context.timezone}


@operation(
    "run.tail",
    level=Level.RESTRICTED,
    waits=True,
    params=Tail,
    result=RunOutput,
    errors=(NotFound, errors.BadId, errors.BadDuration, errors.Stopping),
)
async def tail(context: Context, caller: Caller, params: Tail) -> RunOutput:
    """Wait for output of a run; answer when there is more, when the run ends, or at the time limit."""
    row = _visible(context, caller, params.id)
    parts, position = await _wait_for_output(context, row, params.after, deadline(params.timeout))
    context.auth.recheck(caller)
    run, timezone = context.store.read(
        lambda _: (to_json(_visible(context, caller, params.id)), context.timezone)
    )
    shown: list[OutputPart] = [{"kind": part.kind, "text": part.text} for part in parts]
    return {"run": run, "parts": shown, "next": position, "timezone": timezone}


async def _wait_for_output(context: Context, row: Row, after: int, end: float) -> tuple[list[Progress], int]:
    """Return a run's output after a position as soon as there is some; none at the end of run or time."""
    loop = asyncio.get_running_loop()
    execution = await _execution(context, row)
    if execution is None:
        return [], after
    with context.waiters.waiting(-execution.turn.agent) as bell:
        while True:
            parts, position = execution.live_output.after(after)
            over = context.runner.execution(row["id"]) is None or loop.time() >= end
            if parts or over or not await context.waiters.wait(bell, end - loop.time()):
                return parts, position


@operation(
    "run.cancel",
    level=Level.BOSS,
    params=Cancel,
    result=RunChange,
    errors=(NotFound, errors.BadId, NotRunning, errors.TooLarge, errors.BadText),
)
async def cancel(context: Context, caller: Caller, params: Cancel) -> RunChange:
    """Cancel a run: its program is ended, and its envelopes fail and can be retried."""
    reason = context.settings.check_word("reason", params.reason or "").strip()
    execution, row = await _running(context, caller, params.id)
    context.auth.recheck(caller)
    why = f"{caller.name} cancelled it" + (f": {reason}" if reason else "")
    changed = execution.end("cancelled", why, gives_up=True, by=caller.id)
    if not changed and execution.ending != "cancelled":
        raise _about_to_end(row)
    return {"id": f"r{row['id']}", "changed": changed}


@operation(
    "run.pause", level=Level.BOSS, params=ById, result=RunChange, errors=(NotFound, errors.BadId, NotRunning)
)
async def pause(context: Context, caller: Caller, params: ById) -> RunChange:
    """Pause a run: its processes stop where they are, and its time limits do not count."""
    execution, row = await _running(context, caller, params.id)
    if execution.pid is None:
        raise NotRunning(
            id=f"r{row['id']}", state="a run without a program of its own, which cannot be paused"
        )
    async with execution.control:
        if execution.paused:
            return {"id": f"r{row['id']}", "changed": False}
        # Recorded first: the caller's right is checked there, and nothing stands still without a reason.
        now = clock.now()
        noted = await context.write(caller, lambda tx: run_start.note_pause(tx, row["id"], now))
        if not noted or not await context.runner.pause(execution):
            raise _about_to_end(row)
    return {"id": f"r{row['id']}", "changed": True}


@operation(
    "run.resume", level=Level.BOSS, params=ById, result=RunChange, errors=(NotFound, errors.BadId, NotRunning)
)
async def resume(context: Context, caller: Caller, params: ById) -> RunChange:
    """Resume a paused run."""
    execution, row = await _running(context, caller, params.id)
    async with execution.control:
        if not execution.paused:
            return {"id": f"r{row['id']}", "changed": False}
        now = clock.now()
        await context.write(caller, lambda tx: run_start.note_resume(tx, row["id"], now))
        if not await context.runner.resume(execution):
            raise _about_to_end(row)
    return {"id": f"r{row['id']}", "changed": True}


def _about_to_end(row: Row) -> NotRunning:
    return NotRunning(id=f"r{row['id']}", state="about to end")


async def _running(context: Context, caller: Caller, given: Id) -> tuple[Execution, Row]:
    """Return a run that is under way; raises NotRunning."""
    row = _visible(context, caller, given)
    execution = await _execution(context, row)
    if execution is None:
        raise NotRunning(id=f"r{row['id']}", state=row["status"])
    return execution, row


async def _execution(context: Context, row: Row) -> Execution | None:
    """Return the execution of a run. A run is stored a moment before its execution begins."""
    for _ in range(START_CHECKS):
        execution = context.runner.execution(row["id"])
        if execution is not None or row["status"] != "running":
            return execution
        await asyncio.sleep(0.01)
    return None


def _visible(context: Context, caller: Caller, given: Id) -> Row:
    """Return a run that the caller may see: its own, or for the boss any."""
    number = ids.number(given, "run")
    row = context.store.read(lambda c: run_history.get(c, number))
    if row is None or not (caller.is_boss or row["agent"] == caller.id):
        raise NotFound(what="run", value=f"r{number}", where="hiboss run list")
    return row


def to_json(row: Row) -> Run:
    conversation, answer = row["conversation"], row["answer"]
    return {
        "id": f"r{row['id']}",
        "agent": row["agent_name"],
        "kind": row["kind"],
        "status": row["status"],
        "provider": row["provider"],
        "conversation": None if conversation is None else f"c{conversation}",
        "envelopes": row["envelopes"].split(",") if row["envelopes"] else [],
        "trace": row["trace"],
        "hops": row["hops"],
        "started_at": clock.iso(row["started_at"]),
        "ended_at": clock.iso_or_none(row["ended_at"]),
        "paused": row["paused_at"] is not None,
        "text": row["final_text"],
        "answer": None if answer is None else f"m{answer}",
        "note": row["note"],
        "error": row["error"],
        "error_kind": row["error_kind"],
        "tokens_in": row["tokens_in"],
        "tokens_out": row["tokens_out"],
        "cost": row["cost"],
        "pid": row["pid"] if row["status"] == "running" else None,
    }
