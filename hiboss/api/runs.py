"""Operations about runs: list them, show one, follow its output."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from ..agents.run_execution import Execution
from ..core import clock, errors, ids
from ..core.errors import NotFound, NotRunning
from ..store import agents, ask_messages, ask_rules, asks, run_asks, run_history, run_turns
from ..store.connection import Connection, Row
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, Timezone, operation
from .param_sizes import Word
from .request_limits import fitting_text, page_size


class List(Params):
    agent: str | None = Field(None, description="only runs of this agent, by its name")
    status: Literal["running", "completed", "failed", "cancelled", "interrupted"] | None = Field(
        None, description="only runs with this status"
    )
    trace: Word | None = Field(None, description="only runs of this trace, like m57, or of your own name")
    page_size: int | None = Field(None, description="how many at most, 1 to 100; default 10")
    after: Id | None = Field(None, description="the `next` of the previous page")


class Run(TypedDict):
    id: Annotated[str, Field(description="like r9")]
    agent: Annotated[str, Field(description="its name")]
    kind: Annotated[str, Field(description="turn or background")]
    status: Annotated[str, Field(description="running, completed, failed, cancelled, interrupted")]
    provider: Annotated[str, Field(description="how the answer was made, like command")]
    model: Annotated[str | None, Field(description="that answered; null: the provider did not say")]
    session: Annotated[
        str | None, Field(description="the provider's own id of its memory of the conversation; null: none")
    ]
    conversation: Annotated[str | None, Field(description="where its envelopes come from, like c4")]
    envelopes: Annotated[list[str], Field(description="the ids of the envelopes it was shown")]
    trace: Annotated[str | None, Field(description="the chain of messages and runs it belongs to, like m57")]
    hops: Annotated[int, Field(description="how many runs of the trace led to this one")]
    started_at: Annotated[str, Field(description="when its turn began")]
    ended_at: Annotated[str | None, Field(description="null while it runs")]
    paused: Annotated[bool, Field(description="true: its program stands still")]
    text: Annotated[str | None, Field(description="the final text")]
    answer: Annotated[str | None, Field(description="the id of the message that the final text was sent as")]
    note: Annotated[str | None, Field(description="why the final text was not sent, and the like")]
    error: Annotated[str | None, Field(description="what went wrong, in words")]
    error_kind: Annotated[str | None, Field(description="what went wrong, in one word")]
    tokens_in: Annotated[int | None, Field(description="tokens the provider read; null: it did not say")]
    tokens_out: Annotated[int | None, Field(description="tokens the provider wrote; null: it did not say")]
    cost: Annotated[float | None, Field(description="in dollars; null: the provider did not say")]
    usage_estimated: Annotated[
        bool,
        Field(description="true: it ended without a result, and these are what was seen until then"),
    ]
    context: Annotated[
        int | None, Field(description="tokens that its last model call read: how full its session is")
    ]
    pid: Annotated[int | None, Field(description="the process id of its program, while it runs")]


class RunList(TypedDict):
    runs: Annotated[list[Run], Field(description="newest first")]
    next: Annotated[
        str | None, Field(description="to be given as `after` for the next page; null: this is the last")
    ]
    timezone: Timezone


class ById(Params):
    id: Id = Field(description="the run, like r9")


class Get(ById):
    turn: bool = Field(False, description="also answer with the text of its turn")


class RunQuestion(TypedDict):
    id: Annotated[str, Field(description="the ask, like q2")]
    text: Annotated[
        str,
        Field(
            description="what is asked, and what a tool would do; shortened only if it is too long for one "
            "answer: ask.get has all of it"
        ),
    ]
    tool: Annotated[str | None, Field(description="that would be used; null: it is no permission")]
    options: Annotated[list[str], Field(description="one of them is the answer")]
    scopes: Annotated[
        list[str], Field(description="for how long an answer can hold: once, session, rule (ask.answer)")
    ]
    default: Annotated[str, Field(description="the option that counts when nobody answers in time")]
    asked_at: Annotated[str, Field(description="when it was asked")]


class RunDetail(TypedDict):
    run: Annotated[Run, Field(description="with its whole final text")]
    questions: Annotated[list[RunQuestion], Field(description="what it asks people now; ask.answer answers")]
    turn: Annotated[
        str | None,
        Field(
            description="what the provider was given, exactly; null: not asked for, not given yet, or too "
            "long ago (the latest 1000 runs keep it)"
        ),
    ]
    turn_left_out: Annotated[
        int,
        Field(
            description="how many characters of the turn are left out at its end, because they are too many "
            "for one answer; its envelopes have them"
        ),
    ]
    timezone: Timezone


class Tail(ById):
    after: int = Field(0, ge=0, description="the `next` of the previous answer")


class OutputPart(TypedDict):
    kind: Annotated[
        str,
        Field(
            description="delta (a piece of the answer), tool (what the agent does), tool_result, thinking, "
            "ask and answer (a question to people), steer (words of a person)"
        ),
    ]
    text: Annotated[str, Field(description="a piece of the answer, or a line about what it does")]


class RunOutput(TypedDict):
    run: Annotated[Run, Field(description="as it is now; its status tells whether more can come")]
    parts: Annotated[list[OutputPart], Field(description="its output after the position given")]
    next: Annotated[int, Field(description="to be given as `after` in the next call")]
    timezone: Timezone


@operation(
    "run.list",
    level=Level.RESTRICTED,
    effect="read",
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
            trace=None if params.trace is None else full_trace(caller, params.trace),
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


def full_trace(caller: Caller, trace: str) -> str:
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


@operation("run.get", level=Level.RESTRICTED, params=Get, result=RunDetail, errors=(NotFound, errors.BadId))
def get(context: Context, caller: Caller, params: Get) -> RunDetail:
    """Show one run in full, what it asks people now, and if wanted what its provider was given."""

    def read(connection: Connection) -> RunDetail:
        row = _visible(context, caller, params.id)
        asked = run_asks.open_of_run(connection, row["id"]) if row["status"] == "running" else []
        left = context.settings.page_bytes - len(orjson.dumps(row["final_text"]))
        shown: list[RunQuestion] = []
        for one in asked:
            left -= len(orjson.dumps(one["question"]))
            shown.append(_question(connection, one, in_full=left >= 0))
        turn, left_out = _turn(context, connection, row["id"], left) if params.turn else (None, 0)
        return {
            "run": to_json(row),
            "questions": shown,
            "turn": turn,
            "turn_left_out": left_out,
            "timezone": context.timezone,
        }

    return context.store.read(read)


def _turn(context: Context, connection: Connection, run: int, most_bytes: int) -> tuple[str | None, int]:
    """Return the text of a turn, as much of it as fits, and how many characters do not."""
    text = context.runner.turn_text(run)
    if text is None:
        text = run_turns.get(connection, run)
    if text is None:
        return None, 0
    shown = fitting_text(text, most_bytes)
    return shown, len(text) - len(shown)


def _question(connection: Connection, ask: Row, *, in_full: bool) -> RunQuestion:
    return {
        "id": f"q{ask['id']}",
        "text": ask["question"] if in_full else ask_messages.in_short(ask["id"], ask["question"]),
        "tool": ask["tool"],
        "options": list(asks.options_of(ask)),
        "scopes": ask_rules.possible(connection, ask["run"], ask["tool"], ask["subject"]),
        "default": ask["fallback"],
        "asked_at": clock.iso(ask["created_at"]),
    }


@operation("run.tail", level=Level.RESTRICTED, params=Tail, result=RunOutput, errors=(NotFound, errors.BadId))
def tail(context: Context, caller: Caller, params: Tail) -> RunOutput:
    """Show the latest output of a run that is under way; it is not stored. Facts (run.progress) follow it."""
    row = _visible(context, caller, params.id)
    execution = context.runner.execution(row["id"])
    parts, position = ([], params.after) if execution is None else execution.live_output.after(params.after)
    shown: list[OutputPart] = [{"kind": part.kind, "text": part.text} for part in parts]
    return {"run": to_json(row), "parts": shown, "next": position, "timezone": context.timezone}


async def running(context: Context, caller: Caller, given: Id, what: str) -> tuple[Execution, Row]:
    """Return a run that is under way; raises NotRunning, which names what can be done only then."""
    row = _visible(context, caller, given)
    execution = await context.runner.begun(row["id"])
    if execution is None:
        raise NotRunning(id=f"r{row['id']}", state=row["status"], what=what)
    return execution, row


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
        "model": row["model"],
        "session": row["session"],
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
        "usage_estimated": bool(row["usage_estimated"]),
        "context": row["context"],
        "pid": row["pid"] if row["status"] == "running" else None,
    }
