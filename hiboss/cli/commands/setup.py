"""`hiboss setup`"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from ...core import clock
from ...core.errors import BadTimezone, DaemonRunning, DaemonUnreachable
from ...core.paths import Home
from .. import client, output
from ..client import Answered
from ..daemon_process import call_once
from ..options import Json, Text, flag, single_command

app = single_command()
DEMO = "demo"  # answers without a program, so that a new home works at once
SETTING_UP = "setting up"

BossName = Annotated[Text, flag("--boss-name", "NAME", "Your name; by default your login name.")]
Timezone = Annotated[
    Text, flag("--timezone", "ZONE", "Your time zone, like Europe/Berlin; by default the machine's.")
]
AgentName = Annotated[Text, flag("--agent-name", "NAME", "Your first agent; by default nex.")]
Provider = Annotated[
    Text,
    flag(
        "--provider", "NAME", "What gives that agent's answers; by default demo. none: it fetches its mail."
    ),
]


@app.command()
def setup(
    boss_name: BossName = None,
    timezone: Timezone = None,
    agent_name: AgentName = None,
    provider: Provider = None,
    json_: Json = False,
) -> None:
    """Set up this home: the boss, a first agent, and their tokens, which are shown only now.

    On a terminal it asks for what is not given; else it takes the defaults. A second setup
    changes nothing.
    """
    chosen = DEMO if provider is None else provider
    show(execute(Home(), boss_name, timezone, agent_name, provider=chosen))


def execute(
    home: Home,
    boss_name: str | None,
    timezone: str | None,
    agent_name: str | None,
    *,
    provider: str = DEMO,
) -> dict[str, Any]:
    """Set up, through the daemon if one runs; ask for what was not given."""
    asks = sys.stdin is not None and sys.stdin.isatty() and not output.Mode.json
    if asks and not (facts := call(home, "setup.check", {}))["set_up"]:
        boss_name = boss_name or typer.prompt("Your name", default=facts["default_boss_name"], err=True)
        timezone = timezone or _ask_zone(facts["default_timezone"])
        agent_name = agent_name or typer.prompt(
            "Your first agent", default=facts["default_agent_name"], err=True
        )
    given = {"boss_name": boss_name, "timezone": timezone, "agent_name": agent_name, "provider": provider}
    result: dict[str, Any] = call(home, "setup.execute", {k: v for k, v in given.items() if v is not None})
    return result


def _ask_zone(default: str) -> str:
    """Ask until the answer is a time zone."""
    while True:
        name: str = typer.prompt("Your time zone", default=default, err=True)
        try:
            return str(clock.zone(name))
        except BadTimezone as error:
            output.note(error.message)


def call(home: Home, method: str, params: dict[str, Any]) -> Any:
    with output.ProgressBar(SETTING_UP) as waiting:
        for tries_left in range(100, -1, -1):
            try:
                return client.call(home, method, params, waiting=waiting)
            except DaemonUnreachable:
                pass
            try:
                return call_once(home, method, params, SETTING_UP)
            except Answered as error:  # another set-up is under way, or a daemon is starting
                if error.stable_code != DaemonRunning.code or not tries_left:
                    raise
            waiting()
            time.sleep(0.1)


def show(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
    elif not result["changed"]:
        output.record({"changed": False, "boss-name": result["boss_name"], "timezone": result["timezone"]})
        output.note("This home is already set up. Nothing was changed.")
    else:
        output.record(
            {
                name: result[name]
                for name in ("boss_name", "timezone", "boss_token", "agent_name", "agent_token")
            }
        )
        output.note(
            "The tokens are shown only now. They are stored for --as in:\n  "
            + "\n  ".join(result["profiles"])
        )
