"""`hiboss up`"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ...core.errors import DaemonRunning
from ...core.paths import Home
from .. import output
from ..daemon_process import spawn
from ..session import Json, notice_other_version
from . import setup
from .setup import AgentName, BossName, Timezone

DEMO = "demo"  # so that everything can be tried on a fresh machine

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when the daemon answers; it goes on running.")
    ] = False,
    boss_name: BossName = None,
    timezone: Timezone = None,
    agent_name: AgentName = None,
    json_: Json = False,
) -> None:
    """Set up when needed, run the daemon here, and print what to try next. Ctrl-C stops it."""
    home = Home()
    done = setup.execute(home, boss_name, timezone, agent_name, provider=DEMO)
    if done["changed"] and not output.Mode.json:
        setup.show(done)
    if not detach:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
    try:
        process = spawn(home, detach=detach)
    except DaemonRunning as running:
        output.note("A daemon is already running here.")
        notice_other_version(home)
        _tell(home, done, {"running": True, "pid": int(running.pid), "home": str(home)})
        return
    facts = {"running": True, "pid": process.pid, "home": str(home)}
    if detach:
        _tell(home, done, facts)
        process.returncode = 0  # it lives on without us; do not warn about that
        return
    sys.exit(_wait(process, lambda: _tell(home, done, facts)))


def _tell(home: Home, done: dict[str, Any], facts: dict[str, Any]) -> None:
    known = home.profiles()
    agents = [done["agent_name"] or "", "nex", *known]
    agent = next((name for name in agents if name != "boss" and name.lower() in known), "nex")
    command = _this_command(home)
    steps = {
        f"Talk with {agent}:": f"{command} chat {agent}",
        "See how your agents stand:": f"{command} team",
        f"Let {agent} think with a program of yours, instead of the built-in demo:": (
            f'{command} agent set --as boss --name {agent} --provider command --command "python agent.py"'
        ),
    }
    if output.Mode.json:
        output.document((done if done["changed"] else {}) | facts | {"next": list(steps.values())})
        return
    output.record(facts)
    output.line("\nNext:")
    for what, step in steps.items():
        output.line(f"  # {what}\n  {step}")
    sys.stdout.flush()  # in front of a daemon that goes on, a pipe must see this now


def _this_command(home: Home) -> str:
    """How to call hiboss from anywhere, as this call did."""
    program = os.path.abspath(sys.argv[0])
    words = [sys.executable, "-m", "hiboss.cli.main"] if program.endswith(".py") else [program]
    prefix = f"HIBOSS_HOME={shlex.quote(str(home))} " if os.environ.get("HIBOSS_HOME") else ""
    return prefix + shlex.join(words)


def _wait(process: subprocess.Popen[bytes], tell: Callable[[], None]) -> int:
    """Stay in front of the daemon; whoever ends this, ends it."""
    asked = False
    try:
        tell()
    except KeyboardInterrupt:
        asked = True
        process.terminate()
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            asked = True
            process.terminate()
            continue
        # The terminal told it too, so ours may have met it when it had already put its handlers away.
        return 0 if asked and status == -signal.SIGTERM else status
