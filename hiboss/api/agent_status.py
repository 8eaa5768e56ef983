"""Operations about the state of agents (idle, running, asks, waiting, paused), and background tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from ..agents.questions import OpenQuestion
from ..core import clock, errors
from ..core.address import BACKGROUND, BOSS
from ..core.envelope import Lane
from ..core.escaping import quote
from ..store import agent_pauses, agents, asks, breaker, due_envelopes, lanes, run_history, run_limits
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from . import runs
from .auth import Caller
from .context import Context
from .operation import ByName, Level, Nothing, Params, Timezone, operation
from .param_sizes import Line, Text, Word
from .sending import Send, Sent, send

TEAM_TEXT = 1_000  # characters of a run's final text in agent.team
QUESTION_TEXT = 200  # characters of a question in the reason of a state
Asking = Mapping[int, OpenQuestion]  # what runs ask now, by run id (Runner.asking)
# The presence of an agent in each state. While it runs it may also be `typing`; one that fetches its mail
# is `offline` when it has gone; and so is one that has no provider.
PRESENCE = {
    "running": "running",
    "asks": "waiting",
    "stuck": "stuck",
    "idle": "idle",
    "retrying": "idle",
    "fetches": "idle",
    "waiting": "offline",
    "paused": "offline",
}


def _no(number: int) -> bool:
    return False


class Live(NamedTuple):
    """What is known of agents in memory only."""

    asking: Asking = {}
    is_stuck: Callable[[int], bool] = _no  # a run
    writes: Callable[[int], bool] = _no  # a run
    is_here: Callable[[int], bool] = _no  # an agent: it is connected, or called lately


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
            "answer of a person), idle, retrying, waiting, paused; fetches: it has no turns and pulls mail"
        ),
    ]
    presence: Annotated[
        str,
        Field(
            description="in short: typing, running, waiting (for an answer), stuck, idle, or offline (it gets "
            "no turn now, or has gone)"
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
    now, live = clock.now(), live_of(context)

    def read(connection: Connection) -> OneAgentStatus:
        row, day = agents.get(connection, params.name), clock.day(now, context.zone)[0]
        return {"agent": _status(context, connection, row, day, caller, live), "timezone": context.timezone}

    return await context.store.read_in_thread(read)


@operation("agent.team", level=Level.RESTRICTED, effect="read", result=Team)
async def team(context: Context, caller: Caller, params: Nothing) -> Team:
    """Show the state of every agent."""
    now, live = clock.now(), live_of(context)

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
    sent: Sent = await send(context, caller, Send.model_validate(given))
    return sent


def live_of(context: Context) -> Live:
    """Return what is known of agents in memory now."""
    present = context.presence
    return Live(context.runner.asking(), present.is_stuck, present.writes, present.is_here)


def _status(
    context: Context, connection: Connection, row: Row, day: int, caller: Caller, live: Live
) -> AgentStatus:
    running = run_history.running(connection, row["id"])
    last = run_history.last(connection, row["id"])
    spent = run_limits.spent(connection, row, day)
    oldest = run_history.oldest_unanswered(connection, row["id"])
    state, why, until = _state_of_row(connection, row, running, live)
    sees = caller.is_boss or caller.id == row["id"]
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "mode": row["mode"],
        "provider": row["provider"],
        "state": state,
        "presence": _presence(row, state, running, live),
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
    }


def _in_short(status: AgentStatus) -> AgentStatus:
    """Cut the text of the last run: the texts of all agents together could be too large for an answer."""
    run = status["last_run"]
    if run is None or len(run["text"] or "") <= TEAM_TEXT:
        return status
    return {**status, "last_run": {**run, "text": (run["text"] or "")[:TEAM_TEXT] + "…"}}


def state_of(connection: Connection, address: int, live: Live) -> tuple[str | None, str | None]:
    """Return the state of an agent and its reason, by address id; None, None if it has no provider."""
    row = agents.with_provider(connection, address)
    return (None, None) if row is None else _state_and_reason(connection, row, live)


def state_and_presence(connection: Connection, address: int, live: Live) -> tuple[str | None, str]:
    """Return the state of any agent and its presence, each in one word; the state None if it is not there."""
    row = agents.by_id(connection, address)
    if row is None:
        return None, "offline"
    running = run_history.running(connection, address)
    state = _state_of_row(connection, row, running, live)[0]
    return state, _presence(row, state, running, live)


def state_and_reason(connection: Connection, address: int, live: Live) -> tuple[str, str | None]:
    """Return the state of an agent in one word, and the reason, which is for the boss."""
    row = agents.by_id(connection, address)
    return ("deleted", None) if row is None else _state_and_reason(connection, row, live)


def _state_and_reason(connection: Connection, row: Row, live: Live) -> tuple[str, str | None]:
    state, why, _ = _state_of_row(connection, row, run_history.running(connection, row["id"]), live)
    return state, why


def _presence(row: Row, state: str, running: list[Row], live: Live) -> str:
    """Return in one word whether an agent is here: the only place that decides it."""
    turns = [one for one in running if one["kind"] == "turn"]
    if state == "running" and all(one["paused_at"] is not None for one in turns):
        return PRESENCE["paused"]
    if state == "running" and any(live.writes(one["id"]) for one in turns):
        return "typing"
    gone = state == "fetches" and not live.is_here(row["id"])
    no_turns = state in ("idle", "retrying") and row["provider"] is None
    return "offline" if gone or no_turns else PRESENCE[state]


def _state_of_row(
    connection: Connection, row: Row, running: list[Row], live: Live
) -> tuple[str, str | None, int | None]:
    for one in running:
        for ask in asks.open_of_run(connection, one["id"])[:1] if one["id"] not in live.asking else ():
            text = quote(ask["question"], QUESTION_TEXT)
            return "asks", f"r{one['id']} asks q{ask['id']}: {text} (hiboss ask list)", None
    lane = lanes.get(connection, Lane(row["id"], None))
    retried = run_history.next_retry(connection, row["id"]) if row["mode"] == "run" else None
    return _state(row, lane, running, retried, live, breaker.get(connection))


def _state(
    row: Row, lane: Row | None, running: list[Row], retried: Row | None, live: Live, pulled: Row | None
) -> tuple[str, str | None, int | None]:
    """Return the state in one word, its reason, and when it ends."""
    for one in running:
        if (asked := live.asking.get(one["id"])) is not None:
            text = quote(asked.question.text, QUESTION_TEXT)
            return "asks", f"r{one['id']} asks: {text} (hiboss run get r{one['id']})", None
    turns = [one for one in running if one["kind"] == "turn"]
    if (stuck := next((one["id"] for one in turns if live.is_stuck(one["id"])), None)) is not None:
        return "stuck", f"r{stuck} gives no sign of life (hiboss run tail r{stuck})", None
    if turns:
        paused = [
            f"r{one['id']} is paused (hiboss run resume r{one['id']})"
            for one in turns
            if one["paused_at"] is not None
        ]
        return "running", paused[0] if paused else row["paused_why"], None
    if pulled is not None:
        return "paused", breaker.why(pulled), None
    if row["paused_at"] is not None:
        return "paused", row["paused_why"], row["paused_until"]
    if lane is not None and lane["state"] == "waiting":
        return "waiting", lane["error_text"], lane["wake_at"]
    if lane is not None and lane["state"] == "paused":
        return "paused", f"its lane is paused (hiboss lane resume {row['name']})", None
    if retried is not None:
        return "retrying", retried["error_text"], retried["wake_at"]
    return ("idle" if row["mode"] == "run" else "fetches"), None, None
