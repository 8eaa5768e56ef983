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
from ..session import Json

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

BossName = Annotated[
    str | None, typer.Option("--boss-name", metavar="NAME", help="Your name; by default your login name.")
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone", metavar="ZONE", help="Your time zone, like Europe/Berlin; by default the machine's."
    ),
]
AgentName = Annotated[
    str | None, typer.Option("--agent-name", metavar="NAME", help="Your first agent; by default nex.")
]

Provider = Annotated[
    str | None,
    typer.Option(
        "--provider", metavar="NAME", help="How that agent thinks, like demo; by default it fetches its mail."
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
    """Set this home up: the boss, a first agent, and their tokens, which are shown this once.

    Asks on a terminal, takes the defaults otherwise. Done again, it changes nothing.
    """
    show(execute(Home(), boss_name, timezone, agent_name, provider=provider))


def execute(
    home: Home,
    boss_name: str | None,
    timezone: str | None,
    agent_name: str | None,
    *,
    provider: str | None = None,
) -> dict[str, Any]:
    """Set up, by the daemon if it runs; asks for what was not given."""
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
    """Asked until it is one; whoever gives --timezone is not asked, and hears of a mistake at the end."""
    while True:
        name: str = typer.prompt("Your time zone", default=default, err=True)
        try:
            return str(clock.zone(name))
        except BadTimezone as error:
            output.note(error.message)


def call(home: Home, method: str, params: dict[str, Any]) -> Any:
    with output.Progress("setting up") as waiting:
        for patience in range(100, -1, -1):
            try:
                return client.call(home, method, params, waiting=waiting)
            except DaemonUnreachable:
                pass
            try:
                return call_once(home, method, params)
            except Answered as error:  # somebody else sets up, or a daemon is just starting
                if error.stable_code != DaemonRunning.code or not patience:
                    raise
            waiting()
            time.sleep(0.1)


def show(result: dict[str, Any]) -> None:
    if output.Mode.json:
        output.document(result)
    elif not result["changed"]:
        output.record({"changed": False, "boss-name": result["boss_name"], "timezone": result["timezone"]})
        output.note("This home is already set up; nothing was changed.")
    else:
        output.record(
            {
                name: result[name]
                for name in ("boss_name", "timezone", "boss_token", "agent_name", "agent_token")
            }
        )
        output.note(
            "The tokens are shown this once; they are kept for --as in:\n  " + "\n  ".join(result["profiles"])
        )
