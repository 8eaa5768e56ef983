"""Operations about the daemon itself, and the login of a connection."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from .. import __version__
from ..core import clock, errors
from ..store import breaker, counters, due_envelopes, lanes
from ..store.boss import find_boss
from ..store.connection import Connection
from .auth import Caller
from .bindings import BindingJson, bindings_json
from .breaker import BreakerState, state_json
from .context import Context
from .lanes import LaneJson, may_see
from .lanes import to_json as lane_json
from .operation import Level, Nothing, Params, Timezone, operation

ENDING_SECONDS = 10.0  # for programs that end only at the third signal


class Pong(TypedDict):
    pong: Annotated[bool, Field(description="always true")]
    version: Annotated[str, Field(description="of the daemon that runs")]
    pid: Annotated[int, Field(description="the daemon's process id")]


class DaemonTime(TypedDict):
    now: Annotated[str, Field(description="in UTC, ISO 8601")]
    local: Annotated[str, Field(description="in the boss's zone")]
    timezone: Timezone


class StopResult(TypedDict):
    stopping: Annotated[bool, Field(description="always true")]
    pid: Annotated[int, Field(description="of the process that will end")]
    seconds: Annotated[float, Field(description="how long it may take, by its settings")]


class WebJson(TypedDict):
    state: Annotated[str, Field(description="off, starting, listening, or retrying: its port is taken")]
    url: Annotated[str | None, Field(description="where it listens")]
    hooks_url: Annotated[str | None, Field(description="where only webhooks are served (web.hooks_port)")]
    error: Annotated[str | None, Field(description="why it does not listen")]


class DaemonStatus(TypedDict):
    version: Annotated[str, Field(description="of the daemon that runs")]
    pid: Annotated[int, Field(description="the daemon's process id")]
    home: Annotated[str, Field(description="the directory with everything it stores")]
    socket: Annotated[str, Field(description="the path of its unix socket")]
    set_up: Annotated[bool, Field(description="false: there is no boss yet, and only setup.execute works")]
    boot: Annotated[int, Field(description="counts the starts of the daemon in this home")]
    started_at: Annotated[str, Field(description="when this process began")]
    timezone: Timezone
    connections: Annotated[int, Field(description="clients connected to the socket now")]
    web: Annotated[WebJson, Field(description="the HTTP door")]
    mcp_pid: Annotated[int | None, Field(description="the process id of the MCP worker; null: none runs")]
    writes_waiting: Annotated[int, Field(description="changes in the queue of the store's writer")]
    database_bytes: Annotated[int, Field(description="the size of the database file")]
    agents: Annotated[
        int | str,
        Field(description="a count over the limit of exact counts is a text, like 1000+"),
    ]
    breaker: Annotated[
        BreakerState | None,
        Field(description="null: it is not pulled; the reason is null for callers without a token"),
    ]
    next_wake_at: Annotated[str | None, Field(description="when the scheduler looks into the store next")]
    oldest_due_at: Annotated[str | None, Field(description="when the oldest envelope that is due arrived")]
    lanes: Annotated[list[LaneJson], Field(description="those that wait, are paused, failed or have mail")]
    adapters: Annotated[
        list[BindingJson], Field(description="the bindings, with the state of the adapter of each")
    ]
    due: Annotated[int | str, Field(description="envelopes that could be delivered now")]
    deferred: Annotated[int | str, Field(description="envelopes whose time has not come")]
    failed: Annotated[int | str, Field(description="envelopes that were given up")]


class Login(TypedDict):
    address: Annotated[str, Field(description="whose token it is")]
    level: Annotated[
        str, Field(description="what the token is enough for: restricted, standard, privileged or boss")
    ]


@operation("daemon.ping", level=Level.OPEN, elsewhere=Level.RESTRICTED, result=Pong)
def ping(context: Context, caller: Caller, params: Nothing) -> Pong:
    """Answer at once, with the daemon's version and process id."""
    return {"pong": True, "version": __version__, "pid": os.getpid()}


@operation("daemon.time", level=Level.OPEN, elsewhere=Level.RESTRICTED, result=DaemonTime)
def time(context: Context, caller: Caller, params: Nothing) -> DaemonTime:
    """Show the daemon's time, in UTC and in the boss's zone."""
    now = clock.now()
    return {"now": clock.iso(now), "local": clock.local(now, context.zone), "timezone": context.timezone}


@operation("daemon.status", level=Level.OPEN, elsewhere=Level.RESTRICTED, effect="read", result=DaemonStatus)
async def status(context: Context, caller: Caller, params: Nothing) -> DaemonStatus:
    """Show the state of the daemon: its lanes, its adapters, and how many envelopes wait.

    Only the boss is shown error texts, and an agent those of its own lane and accounts.
    """
    return await context.store.read_in_thread(lambda connection: _status(context, connection, caller))


def _status(context: Context, connection: Connection, caller: Caller) -> DaemonStatus:
    rows = [
        row for row in lanes.list_all(connection) if row["state"] != "open" or row["due"] or row["failures"]
    ]
    return {
        "version": __version__,
        "pid": os.getpid(),
        "home": str(context.home),
        "socket": context.home.socket,
        "set_up": find_boss(connection) is not None,
        "boot": context.store.boot,
        "started_at": clock.iso(context.started_at),
        "timezone": context.timezone,
        "connections": context.connections(),
        "web": {
            "state": context.gateway.state,
            "url": context.gateway.url,
            "hooks_url": context.gateway.hooks_url,
            "error": context.gateway.error,
        },
        "mcp_pid": None if (worker := context.mcp.running) is None else worker.pid,
        "writes_waiting": context.store.waiting,
        "database_bytes": os.path.getsize(context.home.database),
        "breaker": _breaker(connection, caller),
        "next_wake_at": clock.iso_or_none(context.scheduler.next_wake),
        "oldest_due_at": clock.iso_or_none(due_envelopes.oldest(connection)),
        "lanes": [lane_json(row, tells_error=may_see(caller, row)) for row in rows],
        "adapters": bindings_json(context, caller),
        **counters.counts(connection, context.settings.count_exact_to),  # type: ignore[typeddict-item]
    }


def _breaker(connection: Connection, caller: Caller) -> BreakerState | None:
    found = state_json(breaker.get(connection))
    return found if found is None or caller.id else {**found, "reason": None}


@operation("daemon.stop", level=Level.OPEN, elsewhere=Level.BOSS, effect="destructive", result=StopResult)
def stop(context: Context, caller: Caller, params: Nothing) -> StopResult:
    """Ask the daemon to finish what it is doing and end."""
    # It needs no token: a process that can use this socket can also kill the daemon.
    context.stop()
    limits = context.settings
    seconds = limits.stop_seconds + limits.drain_seconds + limits.finish_seconds + ENDING_SECONDS
    return {"stopping": True, "pid": os.getpid(), "seconds": seconds}


class LogIn(Params):
    door: Literal["mcp"] | None = Field(
        None,
        description="mcp: this connection carries calls of MCP clients, and has no more rights than they",
    )


@operation(
    "auth.login",
    level=Level.RESTRICTED,
    params=LogIn,
    result=Login,
    errors=(errors.BadToken, errors.NoToken),
)
def login(context: Context, caller: Caller, params: LogIn) -> Login:
    """Log a connection in with a token; its later requests need none."""
    return {"address": str(caller.address), "level": caller.level.name.lower()}
