"""`hiboss up`"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from typing import Annotated, Any

import typer

from ..errors import DaemonRunning
from ..paths import Home
from . import output, setup
from .session import Json
from .setup import AgentName, BossName, Timezone
from .spawn import spawn

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
    done = setup.execute(home, boss_name, timezone, agent_name)
    if done["changed"]:
        setup.show(done)
    try:
        process = spawn(home, detach=detach)
    except DaemonRunning as running:
        _tell(home, done, {"running": True, "pid": running.pid, "home": str(home)})
        return
    _tell(home, done, {"running": True, "pid": process.pid, "home": str(home)})
    if not detach:
        sys.exit(_wait(process))


def _tell(home: Home, done: dict[str, Any], facts: dict[str, Any]) -> None:
    agent = done["agent_name"] or "nex"
    command = _this_command()
    steps = {
        f"Send {agent} a message:": (
            f'{command} envelope send --as boss --from user:boss --to agent:{agent} --text "hello {agent}"'
        ),
        f"Read it as {agent}:": f"{command} envelope list --as {agent}",
        "See how the daemon is:": f"{command} daemon status",
    }
    if output.Mode.json:
        output.document(facts | {"next": list(steps.values())})
        return
    output.record(facts)
    output.line("\nNext:")
    for what, step in steps.items():
        output.line(f"  # {what}\n  {step}")
    sys.stdout.flush()  # in front of a daemon that goes on, a pipe must see this now


def _this_command() -> str:
    """How to call hiboss from anywhere, as this call did."""
    program = os.path.abspath(sys.argv[0])
    words = [sys.executable, "-m", "hiboss.cli.main"] if program.endswith(".py") else [program]
    chosen = os.environ.get("HIBOSS_HOME")
    prefix = f"HIBOSS_HOME={shlex.quote(os.path.abspath(chosen))} " if chosen else ""
    return prefix + shlex.join(words)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Stay in front of the daemon; whoever ends this, ends it."""
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    signal.signal(signal.SIGHUP, lambda *_: process.terminate())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()  # the terminal told it too; twice does no harm
