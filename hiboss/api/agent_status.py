"""Operations about the state of agents (idle, running, asks, waiting, paused), and background tasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.address import BACKGROUND, BOSS
from ..core.envelope import Lane
from ..store import agent_pauses, agents, due_envelopes, lanes, run_history, run_limits
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from . import agent_states, attached, runs
from .agent_states import Live
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, Timezone, operation
from .param_sizes import Line, Text, Word
from .send_shapes import Send, Sent
from .sending import send_and_wait

TEAM_TEXT = 1_000  # characters of a run's final text in agent.team


class Pause(ByName):
    reason: Word | None = Field(None, description="shown wherever the agent's state is shown")


class AgentStatus(TypedDict):
    name: Annotated[str, Field(description="as given when it was registered")]
    address: Annotated[str, Field(description="where mail reaches it, like agent:nex")]
    mode: Annotated[str, Field(description="run: the daemon gives it turns; pull: it fetches its mail")]
    provider: Annotated[
        str | None, Field(description="how its answers are made, like command; null: it has none")
    ]
    state: Annotated[
        str,
        Field(
            description="running, stuck (its run gave no sign of life for long), asks (a run waits for the "
            "answer of a person), busy (its open session works on something else), idle, retrying, waiting, "
            "paused; fetches: it has no turns and pulls mail"
        ),
    ]
    presence: Annotated[
        str,
        Field(
            description="in short: typing, running, waiting (for an answer), stuck, idle, or offline (it "
            "gets no turn now, or has gone)"
        ),
    ]
    why: Annotated[
        str | None,
        Field(description="the reason of the state; null for other agents, since it may quote a message"),
    ]
    until: Annotated[str | None, Field(description="when the state ends by itself")]
    due: Annotated[
        int | str,
        Field(description="envelopes that wait for it now; over the limit of exact counts, like 1000+"),
    ]
    oldest_unanswered_at: Annotated[
        str | None,
        Field(description="when the oldest envelope that it has not dealt with arrived; null: there is none"),
    ]
    running: Annotated[list[runs.Run], Field(description="its runs under way; empty for other agents")]
    last_run: Annotated[
        runs.Run | None,
        Field(description="the last run that ended; null for other agents; in agent.team its text is cut"),
    ]
    tokens_today: Annotated[
        int | None, Field(description="input and output together, in the boss's day; null for other agents")
    ]
    cost_today: Annotated[
        float | None, Field(description="in dollars, in the boss's day; null for other agents")
    ]
    counted_since: Annotated[
        str | None, Field(description="when the boss resumed it over its limit today: usage counts from here")
    ]
    daily_tokens: Annotated[int | None, Field(description="the limit of tokens per day; null: none")]
    daily_cost: Annotated[float | None, Field(description="the limit of dollars per day; null: none")]
    last_seen_at: Annotated[str | None, Field(description="when it last called an operation; null: never")]
    attached: Annotated[
        list[attached.AttachedSession], Field(description="the harnesses that are open in a terminal as it")
    ]


class OneAgentStatus(TypedDict):
    agent: Annotated[AgentStatus, Field(description="its state now")]
    timezone: Timezone


class Team(TypedDict):
    team: Annotated[list[AgentStatus], Field(description="every agent, by name")]
    timezone: Timezone


class AgentChange(TypedDict):
    name: Annotated[str, Field(description="as given when it was registered")]
    changed: Annotated[bool, Field(description="false: it was in this state already")]


class Background(Params):
    task: Text = Field(description="what to do, in words")
    subject: Line | None = Field(None, description="shown with the task, and with its result")
    agent: str | None = Field(None, description="whose task (only for the boss, who must give it)")


@operation(
    "agent.status",
    level=Level.RESTRICTED,
    effect="read",
    params=ByName,
    result=OneAgentStatus,
    errors=(errors.UnknownAgent,),
)
async def status(context: Context, caller: Caller, params: ByName) -> OneAgentStatus:
    """Show the state of one agent: what waits for it, its runs, and what it used today."""
    now, live = clock.now(), agent_states.live_of(context)

    def read(connection: Connection) -> OneAgentStatus:
        row, day = agents.get(connection, params.name), clock.day(now, context.zone)[0]
        return {"agent": _status(context, connection, row, day, caller, live), "timezone": context.timezone}

    return await context.store.read_in_thread(read)


@operation("agent.team", level=Level.RESTRICTED, effect="read", result=Team)
async def team(context: Context, caller: Caller, params: Nothing) -> Team:
    """Show the state of every agent."""
    now, live = clock.now(), agent_states.live_of(context)

    def read(connection: Connection) -> Team:
        rows, day = agents.list_all(connection), clock.day(now, context.zone)[0]
        found = [_in_short(_status(context, connection, row, day, caller, live)) for row in rows]
        return {"team": found, "timezone": context.timezone}

    return await context.store.read_in_thread(read)


@operation(
    "agent.pause",
    level=Level.BOSS,
    effect="idempotent",
    params=Pause,
    result=AgentChange,
    errors=(errors.UnknownAgent, errors.TooLarge, errors.BadText),
    changes="agent",
)
async def pause(context: Context, caller: Caller, params: Pause) -> AgentChange:
    """Pause an agent: it gets no more turns and its mail waits. A run under way continues."""
    reason = context.settings.check_word("reason", params.reason or "").strip() or f"{caller.name} paused it"
    now = clock.now()

    def write(tx: Tx) -> tuple[str, bool]:
        row = agents.get(tx, params.name)
        return row["name"], agent_pauses.pause(tx, row["id"], "boss", reason, now)

    name, changed = await context.write(caller, write)
    return {"name": name, "changed": changed}


@operation(
    "agent.resume",
    level=Level.BOSS,
    effect="idempotent",
    params=ByName,
    result=AgentChange,
    errors=(errors.UnknownAgent,),
    changes="agent",
)
async def resume(context: Context, caller: Caller, params: ByName) -> AgentChange:
    """Resume a paused agent. If a limit paused it, it may use the same amount again."""
    now, bounds = clock.now(), context.runner.bounds()

    def write(tx: Tx) -> tuple[Row, bool]:
        row = agents.get(tx, params.name)
        reopened = lanes.reopen(tx, Lane(row["id"], None), now)
        return row, agent_pauses.resume(tx, row, bounds, now) or reopened

    row, changed = await context.write(caller, write)
    context.runner.wake([row["id"]], eager=True)
    context.runner.look_for_tasks()
    return {"name": row["name"], "changed": changed}


@operation(
    "agent.background",
    level=Level.STANDARD,
    effect="change",
    params=Background,
    result=Sent,
    errors=(
        errors.UnknownAgent,
        errors.UnknownRecipient,
        errors.NoProvider,
        errors.EmptyMessage,
        errors.BossOnly,
        errors.BadText,
        errors.TooLarge,
        errors.InvalidParams,
        errors.Busy,
        errors.StoreFull,
    ),
)
async def background(context: Context, caller: Caller, params: Background) -> Sent:
    """Start a task beside the agent's turns, with its own provider. The result arrives in the same thread."""
    sender = None
    if params.agent is not None:
        given_name = params.agent
        sender = f"agent:{context.store.read(lambda c: agents.get(c, given_name))['name']}"
    elif caller.is_boss:
        raise errors.InvalidParams(
            detail=f"give the agent whose task it is (--name), like nex; {BOSS} has no provider"
        )
    given = {"to": str(BACKGROUND), "text": params.task, "subject": params.subject, "from": sender}
    sent = await send_and_wait(context, caller, Send.model_validate(given))
    return sent


def _status(
    context: Context, connection: Connection, row: Row, day: int, caller: Caller, live: Live
) -> AgentStatus:
    running = run_history.running(connection, row["id"])
    last = run_history.last(connection, row["id"])
    spent = run_limits.spent(connection, row, day)
    oldest = run_history.oldest_unanswered(connection, row["id"])
    state, why, until = agent_states.of_row(connection, row, running, live)
    sees = caller.is_boss or caller.id == row["id"]
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "mode": row["mode"],
        "provider": row["provider"],
        "state": state,
        "presence": agent_states.presence(row, state, running, live),
        "why": why if sees else None,
        "until": clock.iso_or_none(until),
        "due": due_envelopes.count(connection, row["id"], context.settings.count_exact_to),
        "oldest_unanswered_at": clock.iso_or_none(oldest),
        "running": [runs.to_json(one) for one in running] if sees else [],
        "last_run": runs.to_json(last) if last is not None and sees else None,
        "tokens_today": spent.tokens if sees else None,
        "cost_today": round(spent.cost, 6) if sees else None,
        "counted_since": clock.iso(row["budget_from"]) if (row["budget_from"] or 0) > day else None,
        "daily_tokens": row["daily_tokens"],
        "daily_cost": row["daily_cost"],
        "last_seen_at": clock.iso_or_none(context.presence.last_seen(row["id"], row["last_seen_at"])),
        "attached": attached.sessions_json(context, connection, row["id"]),
    }


def _in_short(status: AgentStatus) -> AgentStatus:
    """Cut the text of the last run: the texts of all agents together could be too large for an answer."""
    run = status["last_run"]
    if run is None or len(run["text"] or "") <= TEAM_TEXT:
        return status
    return {**status, "last_run": {**run, "text": (run["text"] or "")[:TEAM_TEXT] + "…"}}
