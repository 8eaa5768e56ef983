"""`hiboss stop --all`"""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from ...core.errors import EXIT_REFUSED, DaemonUnreachable, TimedOut, WrongUsage
from ...core.paths import Home
from .. import output
from ..call import call_as
from ..client import Answered
from ..credentials import find_token
from ..daemon_process import end_runs, holder
from ..options import As, Json, Text, Token, flag, single_command
from ..views import breaker as views

app = single_command()
ANSWER_SECONDS = 2.0  # after that this command ends the runs itself
END_SECONDS = 20.0  # for programs that end only at the third signal, and providers that do not end
POLL_SECONDS = 0.05
# Answers of a daemon that cannot pull the breaker now.
NOT_STORED = "breaker_not_stored"
UNKNOWN = "knows nothing of this, and gives turns again"
CANNOT = ("busy", "stopping", "internal_error", "store_error", "store_locked", "store_full", "store_damaged")
TEACHES = (
    "hiboss stop --all ends every run, and nobody gets a turn until hiboss go;"
    " to stop one run: hiboss run cancel r9; one agent: hiboss agent pause nex; the daemon: hiboss daemon stop"
)


@app.command()
def stop(
    all_: Annotated[bool, flag("--all", None, "Stop everything; without it nothing is stopped.")] = False,
    reason: Annotated[Text, flag("--reason", "TEXT", "Why, shown with the state of every agent.")] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Stop everything until hiboss go: every run ends, and nobody gets a turn.

    Schedules hold, and so does what agents post, except to you. If the daemon does not answer within two seconds, this command ends the runs itself, and the daemon obeys as soon as it can.
    """
    if not all_:
        raise WrongUsage(detail=f"say what to stop: {TEACHES}", help="hiboss stop --help")
    home = Home()
    found = find_token(home, token, as_)
    try:
        result, daemon = _ended_by_daemon(home, found, reason), None
    except (DaemonUnreachable, TimedOut, Answered) as error:
        if isinstance(error, Answered) and error.stable_code not in (*CANNOT, NOT_STORED):
            raise
        result = end_runs(home, found, reason)
        daemon = _away(home, error, durable=result["not_durable"] is None)
    views.stopped(result, daemon)
    if result.get("not_durable") or not all(one["ended"] for one in result["runs"]):
        raise typer.Exit(EXIT_REFUSED)


def _ended_by_daemon(home: Home, token: str | None, reason: str | None) -> Any:
    """Pull the breaker, and wait until all runs have ended; what the daemon says then."""
    result = call_as(home, "breaker.pull", {"reason": reason}, token, ANSWER_SECONDS)
    end = time.monotonic() + END_SECONDS
    with output.ProgressBar("ending all runs") as waiting:
        while not all(one["ended"] for one in result["runs"]) and time.monotonic() < end:
            waiting()
            time.sleep(POLL_SECONDS)
            result = call_as(home, "breaker.status", {}, token, ANSWER_SECONDS)
    return result


def _away(home: Home, error: DaemonUnreachable | TimedOut | Answered, *, durable: bool) -> str:
    """Say why the daemon had no part in it, and whether it will obey: if the flag could be left for it."""
    if isinstance(error, Answered) and error.stable_code == NOT_STORED:
        return "it could not store this; no run begins before it can" + (
            "" if durable else ", unless it ends"
        )
    if isinstance(error, Answered):
        return f"it could not do it ({error.stable_code}); it {'obeys as soon as it can' if durable else UNKNOWN}"
    pid = holder(home)
    if pid is None:
        return f"none runs; the next one {'obeys when it starts' if durable else UNKNOWN}"
    away = f"it does not answer (pid {pid})"
    if durable:
        return f"{away}; it obeys as soon as it can, at the latest when it starts again"
    return f"{away}; it may obey if it goes on, and not if it starts again"
