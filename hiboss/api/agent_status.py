"""Operations about how agents stand: idle, at work, waiting or paused; and tasks in the background."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from ..core import clock, errors
from ..core.address import BACKGROUND, BOSS
from ..core.envelope import Lane
from ..store import agent_pauses, agents, due_envelopes, lanes, run_history, run_limits
from ..store.connection import Connection, Row
from ..store.group_commit import Tx
from ..store.turn_selection import notices_of
from . import runs
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, Params, operation
from .sending import Send, Sent, send


class Named(Params):
    name: str


class Pause(Named):
    reason: str | None = None


class AgentStatus(TypedDict):
    name: str
    address: str
    mode: str
    provider: str | None
    state: str
    why: str | None
    until: str | None
    due: int | str
    oldest_unanswered_at: str | None
    running: list[runs.Run]
    last_run: runs.Run | None
    tokens_today: int | None
    cost_today: float | None
    counted_since: str | None  # today, when the boss let it go on over its limit
    daily_tokens: int | None
    daily_cost: float | None
    last_seen_at: str | None


class Status(TypedDict):
    agent: AgentStatus
    timezone: str


class Team(TypedDict):
    team: list[AgentStatus]
    timezone: str


class Changed(TypedDict):
    name: str
    changed: bool


class Background(Params):
    task: str
    subject: str | None = None
    agent: str | None = Field(None, description="whose task (for the boss, who must give it)")


@operation("agent.status", level=Level.RESTRICTED, params=Named, result=Status, errors=(errors.UnknownAgent,))
async def status(context: Context, caller: Caller, params: Named) -> Status:
    """How one agent stands: its state, what waits for it, its runs, what it has used up today."""
    row = context.store.read(lambda c: agents.get(c, params.name))
    day = context.runner.bounds().day_begins
    found = await context.store.read_slowly(lambda c: _status(context, c, row, day, caller))
    return {"agent": found, "timezone": context.timezone}


@operation("agent.team", level=Level.RESTRICTED, result=Team)
async def team(context: Context, caller: Caller, params: Nothing) -> Team:
    """How all agents stand."""
    day = context.runner.bounds().day_begins

    def read(connection: Connection) -> list[AgentStatus]:
        return [_status(context, connection, row, day, caller) for row in agents.listed(connection)]

    return {"team": await context.store.read_slowly(read), "timezone": context.timezone}


@operation(
    "agent.pause",
    level=Level.BOSS,
    params=Pause,
    result=Changed,
    errors=(errors.UnknownAgent, errors.TooLarge, errors.BadText),
)
async def pause(context: Context, caller: Caller, params: Pause) -> Changed:
    """Give an agent no more turns; what it has under way goes on, its mail waits."""
    reason = context.settings.check_word("reason", params.reason or "").strip() or f"{caller.name} paused it"
    now = clock.now()

    def write(tx: Tx) -> tuple[str, bool]:
        row = agents.get(tx, params.name)
        return row["name"], agent_pauses.pause(tx, row["id"], "boss", reason, now)

    name, changed = await context.write(caller, write)
    return {"name": name, "changed": changed}


@operation("agent.resume", level=Level.BOSS, params=Named, result=Changed, errors=(errors.UnknownAgent,))
async def resume(context: Context, caller: Caller, params: Named) -> Changed:
    """Let a paused agent go on; what a guard has stopped may go as far again."""
    now, bounds = clock.now(), context.runner.bounds()

    def write(tx: Tx) -> tuple[Row, bool]:
        row = agents.get(tx, params.name)
        reopened = lanes.reopen(tx, Lane(row["id"], None), ("waiting",))
        return row, agent_pauses.resume(tx, row, bounds, now) or reopened

    row, changed = await context.write(caller, write)
    context.runner.wake([row["id"]], eager=True)
    context.runner.look_for_tasks()
    return {"name": row["name"], "changed": changed}


@operation(
    "agent.background",
    level=Level.STANDARD,
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
    """Have a task done beside one's turns, by one's own provider; the result comes in the same thread."""
    sender = None
    if params.agent is not None:
        name = params.agent.removeprefix("agent:")
        sender = f"agent:{context.store.read(lambda c: agents.get(c, name))['name']}"
    elif caller.is_boss:
        raise errors.InvalidParams(detail=f"say whose task: agent (--name), like nex; {BOSS} has no provider")
    given = {"to": str(BACKGROUND), "text": params.task, "subject": params.subject, "from": sender}
    sent: Sent = await send(context, caller, Send.model_validate(given))
    return sent


def _status(context: Context, connection: Connection, row: Row, day: int, caller: Caller) -> AgentStatus:
    lane = lanes.get(connection, Lane(row["id"], None))
    running = run_history.running(connection, row["id"])
    last = run_history.last(connection, row["id"])
    spent = run_limits.spent(connection, row, day)
    oldest = run_history.oldest_unanswered(connection, row["id"], notices_of(connection, row["id"]))
    again = run_history.tried_again(connection, row["id"]) if row["mode"] == "run" else None
    state, why, until = _state(row, lane, running, again)
    sees = caller.is_boss or caller.id == row["id"]
    return {
        "name": row["name"],
        "address": f"agent:{row['name']}",
        "mode": row["mode"],
        "provider": row["provider"],
        "state": state,
        "why": why if sees else None,  # it may quote what a run was about
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


def state_of(connection: Connection, address: int) -> tuple[str | None, str | None]:
    """The state of an agent and why, by its address's id; None of whoever is no agent."""
    row = agents.with_provider(connection, address)
    if row is None:
        return None, None
    lane = lanes.get(connection, Lane(address, None))
    again = run_history.tried_again(connection, address)
    state, why, _ = _state(row, lane, run_history.running(connection, address), again)
    return state, why


def _state(
    row: Row, lane: Row | None, running: list[Row], again: Row | None
) -> tuple[str, str | None, int | None]:
    """One word for how it stands, why, and until when."""
    turns = [one for one in running if one["kind"] == "turn"]
    if turns:
        halted = [
            f"r{one['id']} is halted (hiboss run resume --id r{one['id']})"
            for one in turns
            if one["paused_at"] is not None
        ]
        return "running", halted[0] if halted else row["paused_why"], None
    if row["paused_at"] is not None:
        return "paused", row["paused_why"], row["paused_until"]
    if lane is not None and lane["state"] == "waiting":
        return "waiting", lane["error_text"], lane["wake_at"]
    if lane is not None and lane["state"] == "paused":
        return "paused", "its lane is paused (hiboss lane resume --as boss)", None
    if again is not None:
        return "retrying", again["error_text"], again["wake_at"]
    return ("idle" if row["mode"] == "run" else "fetches"), None, None
