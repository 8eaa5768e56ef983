"""The operation that follows one message: how far it got, who worked on it, and what came of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, ids
from ..core.errors import BadId, NotFound
from ..core.shortening import shorten
from ..store import envelope_rows, traces
from ..store.connection import Connection, Row
from . import receipts
from .auth import Caller
from .context import Context
from .operation import Id, Level, Params, Timezone, operation

SHOWN = 100  # messages that came of it
RECIPIENTS = 10  # of one message
PREVIEW = 120  # characters of a text


class Trace(Params):
    id: Id = Field(description="the envelope, like e81, or the message, like m57")


class TracedMessage(TypedDict):
    id: Annotated[str, Field(description="like m57")]
    conversation: Annotated[str, Field(description="the conversation it is in, like c4")]
    thread: Annotated[str, Field(description="like t57: the number of the first message of the thread")]
    sender: Annotated[str, Field(description="who sent it")]
    to: Annotated[list[str], Field(description="to whom it was sent, at most 10")]
    reply_to: Annotated[str | None, Field(description="the message that it answers; null: none")]
    run: Annotated[str | None, Field(description="the run that sent it, like r9; null: none")]
    trace: Annotated[str, Field(description="the chain of messages and runs it belongs to, like m57")]
    hops: Annotated[int, Field(description="how many runs of the trace led to it")]
    created_at: Annotated[str, Field(description="when it was sent")]
    arrived_at: Annotated[str | None, Field(description="when it arrived; null: it is deferred")]
    deleted: Annotated[bool, Field(description="true: it was deleted, and its text is not shown")]
    preview: Annotated[str, Field(description="its subject, or how its text begins")]


class TracedEnvelope(TypedDict):
    id: Annotated[str, Field(description="like e81")]
    to: Annotated[str, Field(description="the address it goes to")]
    receipt: Annotated[receipts.Receipt, Field(description="how far it got, and when")]


class TracedRun(TypedDict):
    id: Annotated[str, Field(description="like r9")]
    agent: Annotated[str, Field(description="its name")]
    kind: Annotated[str, Field(description="turn or background")]
    status: Annotated[str, Field(description="running, completed, failed, cancelled, interrupted")]
    started_at: Annotated[str, Field(description="when its turn began")]
    ended_at: Annotated[str | None, Field(description="null while it runs")]
    error_kind: Annotated[str | None, Field(description="what went wrong, in one word; null: nothing")]
    error: Annotated[
        str | None, Field(description="in words; null for the runs of others, since it may quote a message")
    ]


class TraceResult(TypedDict):
    message: Annotated[TracedMessage, Field(description="what is followed")]
    envelopes: Annotated[list[TracedEnvelope], Field(description="those of it that you may see, at most 100")]
    more_envelopes: Annotated[bool, Field(description="true: there are more than these")]
    runs: Annotated[list[TracedRun], Field(description="the runs that had these envelopes, at most 100")]
    more_runs: Annotated[bool, Field(description="true: there are more than these")]
    messages: Annotated[
        list[TracedMessage],
        Field(
            description="what came of it and you may see: what those runs sent, the replies, and what came "
            "of these; oldest first, at most 100"
        ),
    ]
    more: Annotated[bool, Field(description="true: there may be more messages than these")]
    timezone: Timezone


@operation(
    "envelope.trace",
    level=Level.RESTRICTED,
    effect="read",
    params=Trace,
    result=TraceResult,
    errors=(NotFound, BadId),
)
async def trace(context: Context, caller: Caller, params: Trace) -> TraceResult:
    """Follow a message: how far each of its envelopes got, which runs had it, and what came of it."""
    kind, number = ids.parse(params.id, "envelope", "message")
    now = clock.now()

    def read(connection: Connection) -> TraceResult:
        message = number
        if kind == "envelope":
            message = envelope_rows.visible(connection, number, caller.sees)["message"]
        rows = traces.visible(connection, [message], caller.sees, 1)
        if not rows:
            raise NotFound(what=kind, value=f"{kind[0]}{number}")
        mine = traces.envelopes_of(connection, message, caller.sees)
        runs = traces.runs_of(connection, mine.ids)
        walk = traces.came_of(connection, message)
        later = traces.visible(connection, walk.ids, caller.sees, SHOWN + 1)
        to = traces.recipients(connection, [row["id"] for row in rows + later], RECIPIENTS)
        return {
            "message": _message(rows[0], to),
            "envelopes": _envelopes(connection, mine.ids, caller.sees, now),
            "more_envelopes": mine.more,
            "runs": [_run(row, caller) for row in runs[: traces.RUNS]],
            "more_runs": len(runs) > traces.RUNS,
            "messages": [_message(row, to) for row in later[:SHOWN]],
            "more": walk.more or len(later) > SHOWN,
            "timezone": context.timezone,
        }

    return await context.store.read_in_thread(read)


def _envelopes(
    connection: Connection, numbers: list[int], viewer: int | None, now: int
) -> list[TracedEnvelope]:
    found = receipts.of_envelopes(connection, numbers, viewer, now)
    where = {row["id"]: row["to_address"] for row in envelope_rows.fetch(connection, numbers)}
    return [{"id": f"e{one}", "to": where[one], "receipt": found[one]} for one in numbers]


def _message(row: Row, to: dict[int, list[str]]) -> TracedMessage:
    return {
        "id": f"m{row['id']}",
        "conversation": f"c{row['conversation']}",
        "thread": f"t{row['thread'] or row['id']}",
        "sender": row["sender_address"],
        "to": to.get(row["id"], []),
        "reply_to": None if row["reply_to"] is None else f"m{row['reply_to']}",
        "run": None if row["run"] is None else f"r{row['run']}",
        "trace": row["trace"] or f"m{row['id']}",
        "hops": row["hops"],
        "created_at": clock.iso(row["created_at"]),
        "arrived_at": clock.iso_or_none(row["arrived_at"]),
        "deleted": row["deleted_at"] is not None,
        "preview": shorten(row["subject"] or row["text"], PREVIEW),
    }


def _run(row: Row, caller: Caller) -> TracedRun:
    own = caller.is_boss or caller.id == row["agent"]
    return {
        "id": f"r{row['id']}",
        "agent": row["agent_name"],
        "kind": row["kind"],
        "status": row["status"],
        "started_at": clock.iso(row["started_at"]),
        "ended_at": clock.iso_or_none(row["ended_at"]),
        "error_kind": row["error_kind"],
        "error": row["error"] if own else None,
    }
