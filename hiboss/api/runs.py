"""Operations about runs: what agents did, are doing, and stopping it."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..agents.run_execution import Execution
from ..core import clock, errors, ids
from ..core.contracts.provider import Progress
from ..core.errors import NotFound, NotRunning
from ..store import agents, run_history, run_start
from ..store.connection import Row
from .auth import Caller
from .context import Context
from .envelopes import page_size
from .operation import Level, Params, operation

LONGEST_WAIT = 3_600_000
MOMENTS = 100


class List(Params):
    agent: str | None = Field(None, description="only this agent's, by its name")
    status: Literal["running", "completed", "failed", "cancelled", "interrupted"] | None = None
    trace: str | None = Field(None, description="only this errand's, like m57")
    page_size: int | None = None
    after: str | int | None = Field(None, description="the `next` of the page before")


class Run(TypedDict):
    id: str
    agent: str
    kind: str
    status: str
    provider: str
    conversation: str | None
    envelopes: list[str]
    trace: str | None
    hops: int
    started_at: str
    ended_at: str | None
    paused: bool
    text: str | None
    answer: str | None
    note: str | None
    error: str | None
    error_kind: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    pid: int | None


class Listed(TypedDict):
    runs: list[Run]
    next: str | None
    timezone: str


class Which(Params):
    id: str | int = Field(description="the run, like r9")


class Got(TypedDict):
    run: Run
    timezone: str


class Tail(Which):
    after: int = Field(0, ge=0, description="the `next` of the answer before")
    timeout: str = Field("55s", description="how long to wait for more, like 55s")


class Part(TypedDict):
    kind: str
    text: str


class Tailed(TypedDict):
    run: Run
    parts: list[Part]
    next: int
    timezone: str


class Cancel(Which):
    reason: str | None = None


class Changed(TypedDict):
    id: str
    changed: bool


@operation(
    "run.list",
    level=Level.RESTRICTED,
    params=List,
    result=Listed,
    errors=(
        errors.UnknownAgent,
        errors.BadId,
        errors.BossOnly,
        errors.InvalidParams,
        errors.TooLarge,
        errors.BadText,
    ),
)
async def listed(context: Context, caller: Caller, params: List) -> Listed:
    """Runs, newest first: an agent sees its own, the boss all."""
    limit = page_size(context, params.page_size)
    before = None if params.after is None else ids.number(params.after, "run")
    if params.trace is not None:
        context.settings.check_word("trace", params.trace)
    agent = _whose(context, caller, params.agent)
    rows = await context.store.read_in_thread(
        lambda c: run_history.page(
            c, agent=agent, status=params.status, trace=params.trace, before=before, limit=limit + 1
        )
    )
    shown = [to_json(row) for row in rows[:limit]]
    return {
        "runs": shown,
        "next": shown[-1]["id"] if len(rows) > limit else None,
        "timezone": context.timezone,
    }


def _whose(context: Context, caller: Caller, name: str | None) -> int | None:
    if name is None:
        return None if caller.is_boss else caller.id
    found = int(context.store.read(lambda c: agents.get(c, name.removeprefix("agent:")))["id"])
    if not caller.is_boss and found != caller.id:
        raise errors.BossOnly(what="looking at another agent's runs (agent)", caller=caller.name)
    return found


@operation("run.get", level=Level.RESTRICTED, params=Which, result=Got, errors=(NotFound, errors.BadId))
async def get(context: Context, caller: Caller, params: Which) -> Got:
    """One run in full."""
    return {"run": to_json(_visible(context, caller, params.id)), "timezone": context.timezone}


@operation(
    "run.tail",
    level=Level.RESTRICTED,
    waits=True,
    params=Tail,
    result=Tailed,
    errors=(NotFound, errors.BadId, errors.BadDuration, errors.Stopping),
)
async def tail(context: Context, caller: Caller, params: Tail) -> Tailed:
    """What a run says while it goes on; answers when there is more, when it ended, or at the time limit."""
    row = _visible(context, caller, params.id)
    seconds = clock.duration(params.timeout, most=LONGEST_WAIT) / 1000
    parts, place = await _more(context, row, params.after, seconds)
    return {
        "run": to_json(_visible(context, caller, params.id)),
        "parts": [{"kind": part.kind, "text": part.text} for part in parts],
        "next": place,
        "timezone": context.timezone,
    }


async def _more(context: Context, row: Row, after: int, seconds: float) -> tuple[list[Progress], int]:
    """What a run said after a position, once there is something; nothing when time is up or it ended."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    work = await _work(context, row)
    if work is None:
        return [], after
    with context.waiters.waiting(-work.turn.agent) as bell:
        while True:
            parts, place = work.live_output.after(after)
            over = context.runner.execution(row["id"]) is None or loop.time() >= end
            if parts or over or not await context.waiters.wait(bell, end - loop.time()):
                return parts, place


@operation(
    "run.cancel",
    level=Level.BOSS,
    params=Cancel,
    result=Changed,
    errors=(NotFound, errors.BadId, NotRunning, errors.TooLarge, errors.BadText),
)
async def cancel(context: Context, caller: Caller, params: Cancel) -> Changed:
    """End a run: its program is stopped, its envelopes fail and can be tried again."""
    reason = context.settings.check_word("reason", params.reason or "").strip()
    work, row = await _under_way(context, caller, params.id)
    why = f"{caller.name} cancelled it" + (f": {reason}" if reason else "")
    changed = work.end("cancelled", why, gives_up=True, by=caller.id)
    return {"id": f"r{row['id']}", "changed": changed}


@operation(
    "run.pause", level=Level.BOSS, params=Which, result=Changed, errors=(NotFound, errors.BadId, NotRunning)
)
async def pause(context: Context, caller: Caller, params: Which) -> Changed:
    """Halt a run's program where it is; its time limits stand still."""
    work, row = await _under_way(context, caller, params.id)
    if work.pid is None:
        raise NotRunning(
            id=f"r{row['id']}", state="a run without a program of its own, which cannot be halted"
        )
    changed = work.pause()
    now = clock.now()
    await context.write(caller, lambda tx: run_start.note_pause(tx, row["id"], now))
    return {"id": f"r{row['id']}", "changed": changed}


@operation(
    "run.resume", level=Level.BOSS, params=Which, result=Changed, errors=(NotFound, errors.BadId, NotRunning)
)
async def resume(context: Context, caller: Caller, params: Which) -> Changed:
    """Let a halted run go on."""
    work, row = await _under_way(context, caller, params.id)
    changed = work.resume()
    now = clock.now()
    await context.write(caller, lambda tx: run_start.note_resume(tx, row["id"], now))
    return {"id": f"r{row['id']}", "changed": changed}


async def _under_way(context: Context, caller: Caller, given: str | int) -> tuple[Execution, Row]:
    row = _visible(context, caller, given)
    work = await _work(context, row)
    if work is None:
        raise NotRunning(id=f"r{row['id']}", state=row["status"])
    return work, row


async def _work(context: Context, row: Row) -> Execution | None:
    """A run's work. What was only just written to begin is under way a moment later."""
    for _ in range(MOMENTS):
        work = context.runner.execution(row["id"])
        if work is not None or row["status"] != "running":
            return work
        await asyncio.sleep(0.01)
    return None


def _visible(context: Context, caller: Caller, given: str | int) -> Row:
    """A run of one's own; the boss sees all."""
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
