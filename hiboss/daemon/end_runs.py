"""`python -m hiboss.daemon --end-runs`: pull the breaker while the daemon does not answer, or none runs.

The command line starts it. It leaves a flag in the home, which the daemon obeys before it starts a run, at
its next heartbeat, and at its next start; then it ends the processes of all recorded runs itself, also if
the flag cannot be left. It only reads the database: a daemon that hangs may hold its locks.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ..agents import left_processes, process_control
from ..api.breaker import Pull, checked_reason, held_json
from ..api.param_sizes import check_sizes, sizes
from ..core import clock
from ..core.crashpoint import BREAKER_FLAGGED, crashpoint
from ..core.errors import BadConfig, BadToken, Forbidden, HibossError, NoToken, NotSetUp
from ..core.paths import Home
from ..core.settings import DEFAULTS, Configuration
from ..core.stop_flag import StopFlag
from ..rpc import codec
from ..store import breaker, breaker_holds, counters, schema_files, tokens
from ..store.boss import boss_timezone, find_boss
from ..store.connection import Connection, Row, reading

WAIT_SECONDS = 5.0  # for a lock of the database
ROUNDS = 3  # a daemon that was only slow may start runs until it sees the flag
COUNT_EXACT_TO = 1_000
OPERATION = "breaker.pull"


def end_runs(home: Home, line: bytes) -> bytes:
    """Leave the flag, end the processes of all recorded runs, and return what was ended and what waits."""
    request = codec.parse(line)
    params = request.params if isinstance(request, codec.Request) and isinstance(request.params, dict) else {}
    if not os.path.exists(home.database):
        raise NotSetUp(home=str(home))
    with reading(home, wait_seconds=WAIT_SECONDS) as connection:
        schema_files.check(connection, home)
        _check_boss(connection, home, params.get("token"))
        not_durable = _leave_flag(home, _reason(home, params.get("reason")))
        crashpoint(BREAKER_FLAGGED)
        runs = asyncio.run(_end(connection, home.identity))
        waits = breaker_holds.waiting(connection, clock.now(), COUNT_EXACT_TO)
        zone = boss_timezone(connection)
    found = {"runs": runs, "waits": held_json(waits), "timezone": zone, "not_durable": not_durable}
    return codec.result(1, found)


def _reason(home: Home, given: object) -> str | None:
    """Return the reason, checked as by breaker.pull. Wrong settings do not keep anybody from stopping."""
    try:
        settings = Configuration(home.config, os.environ).settings
    except BadConfig:
        settings = DEFAULTS
    reason = given if isinstance(given, str) else None
    check_sizes(OPERATION, sizes(Pull), {"reason": reason}, settings)
    return checked_reason(reason, settings)


def _leave_flag(home: Home, reason: str | None) -> str | None:
    """Leave the flag; return why that was not possible."""
    try:
        StopFlag(home).leave(reason)
    except HibossError as error:
        return error.message
    return None


def _check_boss(connection: Connection, home: Home, token: object) -> None:
    """Raise unless the token is the boss's: no policy is asked while the daemon does not answer."""
    if find_boss(connection) is None:
        raise NotSetUp(home=str(home))
    if token is None:
        raise NoToken()
    row = tokens.find(connection, tokens.digest(token)) if isinstance(token, str) else None
    if row is None:
        raise BadToken()
    if row["kind"] != "boss":
        name, level = f"{row['address_kind']}:{row['name']}", row["level"] or "standard"
        raise Forbidden(operation=OPERATION, needed="boss", caller=name, level=level)


async def _end(connection: Connection, home: str) -> list[dict[str, Any]]:
    """End all recorded runs; return them, with whether all their processes are gone.

    None in a copy of a home in which no daemon has run yet: those are the runs of the first one.
    """
    if not counters.is_home(connection, home):
        return []
    marks, known = counters.run_marks(connection, home), dict[int, Row]()
    for _ in range(ROUNDS):
        rows = breaker.recorded_runs(connection)
        if not rows or known.keys() >= {row["id"] for row in rows}:
            break
        known |= {row["id"]: row for row in rows}
        await left_processes.end_recorded(marks, rows)
    left = await process_control.look(await left_processes.find(marks, known.values()))
    ended = not known or left.are_none
    return [
        {"id": f"r{number}", "agent": f"agent:{row['name']}", "ended": ended} for number, row in known.items()
    ]
