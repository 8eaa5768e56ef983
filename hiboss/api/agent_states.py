"""The state of agents in one word, with its reason; and their presence, the short word for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..agents.questions import OpenQuestion
from ..core.envelope import Lane
from ..core.escaping import quote
from ..store import agents, asks, attached_sessions, breaker, lanes, run_history
from ..store.connection import Connection, Row
from .context import Context

QUESTION_TEXT = 200  # characters of a question in the reason of a state
Asking = Mapping[int, OpenQuestion]  # what runs ask now, by run id (Runner.asking)
# The presence of an agent in each state. While it runs it may also be `typing`; one that fetches its mail
# is `offline` when it has gone; and so is one that has no provider.
PRESENCE = {
    "running": "running",
    "asks": "waiting",
    "stuck": "stuck",
    "busy": "running",
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

    asking: Asking = MappingProxyType({})
    is_stuck: Callable[[int], bool] = _no  # a run
    writes: Callable[[int], bool] = _no  # a run
    is_here: Callable[[int], bool] = _no  # an agent: it is connected, or called lately


def live_of(context: Context) -> Live:
    """Return what is known of agents in memory now."""
    present = context.presence
    return Live(context.runner.asking(), present.is_stuck, present.writes, present.is_here)


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
    state = of_row(connection, row, running, live)[0]
    return state, presence(row, state, running, live)


def state_and_reason(connection: Connection, address: int, live: Live) -> tuple[str, str | None]:
    """Return the state of an agent in one word, and the reason, which is for the boss."""
    row = agents.by_id(connection, address)
    return ("deleted", None) if row is None else _state_and_reason(connection, row, live)


def _state_and_reason(connection: Connection, row: Row, live: Live) -> tuple[str, str | None]:
    state, why, _ = of_row(connection, row, run_history.running(connection, row["id"]), live)
    return state, why


def presence(row: Row, state: str, running: list[Row], live: Live) -> str:
    """Return in one word whether an agent is here: the only place that decides it."""
    turns = [one for one in running if one["kind"] == "turn"]
    if state == "running" and all(one["paused_at"] is not None for one in turns):
        return PRESENCE["paused"]
    if state == "running" and any(live.writes(one["id"]) for one in turns):
        return "typing"
    gone = state == "fetches" and not live.is_here(row["id"])
    no_turns = state in ("idle", "retrying") and row["provider"] is None and row["mode"] == "run"
    return "offline" if gone or no_turns else PRESENCE[state]


def of_row(
    connection: Connection, row: Row, running: list[Row], live: Live
) -> tuple[str, str | None, int | None]:
    for one in running:
        for ask in asks.open_of_run(connection, one["id"])[:1] if one["id"] not in live.asking else ():
            text = quote(ask["question"], QUESTION_TEXT)
            return "asks", f"r{one['id']} asks q{ask['id']}: {text} (hiboss ask list)", None
    lane = lanes.get(connection, Lane(row["id"], None))
    retried = run_history.next_retry(connection, row["id"]) if row["mode"] == "run" else None
    found = _state(row, lane, running, retried, live, breaker.get(connection))
    if found[0] not in ("idle", "fetches") or not (
        there := attached_sessions.open_ones(connection, row["id"])
    ):
        return found
    if any(one["state"] == "idle" for one in there):
        return "idle", None, None
    return "busy", f"its open session works on something else ({there[0]['client']})", None


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
