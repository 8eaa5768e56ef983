"""`hiboss go`"""

from __future__ import annotations

from typing import Any

from ...core.errors import DaemonUnreachable, TimedOut
from ...core.paths import Home
from .. import output
from ..call import call_as
from ..credentials import find_token
from ..daemon_process import call_once, holder
from ..options import As, Json, Token, single_command
from ..views import breaker as views

app = single_command()
ANSWER_SECONDS = 10.0


@app.command()
def go(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Let everybody work again after hiboss stop --all.

    What waited goes on: turns, schedules by their catch-up, posts. Also while no daemon runs: then the next one works.
    """
    home = Home()
    found = find_token(home, token, as_)
    try:
        # If the daemon hangs and carries this out later, it does not undo a stop that was ordered meanwhile.
        meant = call_as(home, "breaker.status", {}, found, ANSWER_SECONDS)["pull"] or ""
        result = call_as(home, "breaker.release", {"pull": meant}, found, ANSWER_SECONDS)
    except DaemonUnreachable:
        if holder(home) is not None or not home.has_profile("boss"):
            raise
        given: dict[str, Any] = {} if found is None else {"token": found}
        result = call_once(home, "breaker.release", given, "releasing the breaker")
    except TimedOut:
        output.note("Everything stays stopped while the daemon does not answer. First: hiboss daemon restart")
        raise
    views.released(result)
