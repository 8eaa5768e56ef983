"""Operations about the daemon itself, and about the operations."""

from __future__ import annotations

import os

from typing_extensions import TypedDict

from .. import __version__
from ..core import clock, errors
from ..store import counters, due_envelopes, lanes
from ..store.boss import find_boss
from .auth import Caller
from .bindings import BindingJson
from .bindings import envelopes_json as adapters_json
from .context import Context
from .lanes import LaneJson
from .lanes import to_json as lane_json
from .operation import Level, Nothing, operation

ENDING_SECONDS = 10.0  # for programs that must be told three times


class Pong(TypedDict):
    pong: bool
    version: str
    pid: int


class Time(TypedDict):
    now: str
    local: str
    timezone: str


class Stopping(TypedDict):
    stopping: bool
    pid: int
    seconds: float  # it may take, by its settings


class Status(TypedDict):
    version: str
    pid: int
    home: str
    socket: str
    set_up: bool
    boot: int
    started_at: str
    timezone: str
    connections: int
    writes_waiting: int
    database_bytes: int
    agents: int | str
    next_wake_at: str | None
    oldest_due_at: str | None
    lanes: list[LaneJson]
    adapters: list[BindingJson]
    due: int | str
    deferred: int | str
    failed: int | str


class Login(TypedDict):
    address: str
    level: str


@operation("daemon.ping", level=Level.OPEN, result=Pong)
async def ping(context: Context, caller: Caller, params: Nothing) -> Pong:
    """Answers at once: is somebody there, and which version is it?"""
    return {"pong": True, "version": __version__, "pid": os.getpid()}


@operation("daemon.time", level=Level.OPEN, result=Time)
async def time(context: Context, caller: Caller, params: Nothing) -> Time:
    """The daemon's clock, in UTC and in the boss's zone."""
    now = clock.now()
    return {"now": clock.iso(now), "local": clock.local(now, context.zone), "timezone": context.timezone}


@operation("daemon.status", level=Level.OPEN, result=Status)
async def status(context: Context, caller: Caller, params: Nothing) -> Status:
    """How the daemon is and how much it has in hand."""
    exact_to = context.settings.count_exact_to
    counts = await context.store.read_in_thread(lambda c: counters.counts(c, exact_to))
    oldest = await context.store.read_in_thread(due_envelopes.oldest)
    rows = await context.store.read_in_thread(lanes.listed)
    return {
        "version": __version__,
        "pid": os.getpid(),
        "home": str(context.home),
        "socket": context.home.socket,
        "set_up": context.store.read(find_boss) is not None,
        "boot": context.store.boot,
        "started_at": clock.iso(context.started_at),
        "timezone": context.timezone,
        "connections": context.connections(),
        "writes_waiting": context.store.waiting,
        "database_bytes": os.path.getsize(context.home.database),
        "next_wake_at": clock.iso_or_none(context.scheduler.next_wake),
        "oldest_due_at": clock.iso_or_none(oldest),
        "lanes": [lane_json(row) for row in rows if row["state"] != "open" or row["due"] or row["failures"]],
        "adapters": adapters_json(context),
        **counts,  # type: ignore[typeddict-item]
    }


@operation("daemon.stop", level=Level.OPEN, result=Stopping)
async def stop(context: Context, caller: Caller, params: Nothing) -> Stopping:
    """Ask the daemon to finish what it has in hand and end."""
    # Needs no token: whoever may use this socket may also end the process.
    context.stop()
    limits = context.settings
    seconds = limits.stop_seconds + limits.drain_seconds + limits.finish_seconds + ENDING_SECONDS
    return {"stopping": True, "pid": os.getpid(), "seconds": seconds}


@operation("auth.login", level=Level.RESTRICTED, result=Login, errors=(errors.BadToken, errors.NoToken))
async def login(context: Context, caller: Caller, params: Nothing) -> Login:
    """Give a token once; this connection's later requests need none."""
    return {"address": str(caller.address), "level": caller.level.name.lower()}
