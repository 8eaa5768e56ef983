"""Operations about the daemon itself, and the login of a connection."""

from __future__ import annotations

import os

from typing_extensions import TypedDict

from .. import __version__
from ..core import clock, errors
from ..store import counters, due_envelopes, lanes
from ..store.boss import find_boss
from ..store.connection import Connection
from .auth import Caller
from .bindings import BindingJson, bindings_json
from .context import Context
from .lanes import LaneJson, may_see
from .lanes import to_json as lane_json
from .operation import Level, Nothing, operation

ENDING_SECONDS = 10.0  # for programs that end only at the third signal


class Pong(TypedDict):
    pong: bool
    version: str
    pid: int


class DaemonTime(TypedDict):
    now: str  # in UTC
    local: str  # in the boss's zone
    timezone: str


class StopResult(TypedDict):
    stopping: bool
    pid: int
    seconds: float  # how long it may take, by its settings


class DaemonStatus(TypedDict):
    version: str
    pid: int
    home: str
    socket: str
    set_up: bool
    boot: int  # counts the starts of the daemon in this home
    started_at: str
    timezone: str
    connections: int
    writes_waiting: int  # in the queue of the store's writer
    database_bytes: int
    agents: int | str  # counts over the limit of exact counts are texts, like 1000+
    next_wake_at: str | None  # when the scheduler looks into the store next
    oldest_due_at: str | None  # when the oldest envelope that is due arrived
    lanes: list[LaneJson]  # those that wait, are paused, failed or have mail
    adapters: list[BindingJson]
    due: int | str  # envelopes
    deferred: int | str  # envelopes
    failed: int | str  # envelopes


class Login(TypedDict):
    address: str
    level: str


@operation("daemon.ping", level=Level.OPEN, result=Pong)
def ping(context: Context, caller: Caller, params: Nothing) -> Pong:
    """Answer at once, with the daemon's version and process id."""
    return {"pong": True, "version": __version__, "pid": os.getpid()}


@operation("daemon.time", level=Level.OPEN, result=DaemonTime)
def time(context: Context, caller: Caller, params: Nothing) -> DaemonTime:
    """Show the daemon's time, in UTC and in the boss's zone."""
    now = clock.now()
    return {"now": clock.iso(now), "local": clock.local(now, context.zone), "timezone": context.timezone}


@operation("daemon.status", level=Level.OPEN, result=DaemonStatus)
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
        "writes_waiting": context.store.waiting,
        "database_bytes": os.path.getsize(context.home.database),
        "next_wake_at": clock.iso_or_none(context.scheduler.next_wake),
        "oldest_due_at": clock.iso_or_none(due_envelopes.oldest(connection)),
        "lanes": [lane_json(row, tells_error=may_see(caller, row)) for row in rows],
        "adapters": bindings_json(context, caller),
        **counters.counts(connection, context.settings.count_exact_to),  # type: ignore[typeddict-item]
    }


@operation("daemon.stop", level=Level.OPEN, result=StopResult)
def stop(context: Context, caller: Caller, params: Nothing) -> StopResult:
    """Ask the daemon to finish what it is doing and end."""
    # It needs no token: a process that can use this socket can also kill the daemon.
    context.stop()
    limits = context.settings
    seconds = limits.stop_seconds + limits.drain_seconds + limits.finish_seconds + ENDING_SECONDS
    return {"stopping": True, "pid": os.getpid(), "seconds": seconds}


@operation("auth.login", level=Level.RESTRICTED, result=Login, errors=(errors.BadToken, errors.NoToken))
def login(context: Context, caller: Caller, params: Nothing) -> Login:
    """Log a connection in with a token; its later requests need none."""
    return {"address": str(caller.address), "level": caller.level.name.lower()}
