"""`hiboss up`"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any

from ...core.errors import DaemonRunning
from ...core.paths import Home
from .. import output
from ..call import notice_other_version
from ..daemon_process import spawn
from ..options import Json, flag, single_command
from . import setup
from .setup import AgentName, BossName, Timezone

DEMO = "demo"  # answers without a program, so that a new home works at once

app = single_command()


@app.command()
def up(
    detach: Annotated[
        bool, flag("--detach", None, "Return when the daemon answers; it keeps running.", "-d")
    ] = False,
    boss_name: BossName = None,
    timezone: Timezone = None,
    agent_name: AgentName = None,
    json_: Json = False,
) -> None:
    """Set up this home if needed, and run the daemon here until Ctrl-C. Prints what to try next."""
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
        process.returncode = 0  # it keeps running without us; do not warn about that
        return
    sys.exit(_wait(process, lambda: _tell(home, done, facts)))


def _tell(home: Home, done: dict[str, Any], facts: dict[str, Any]) -> None:
    known = home.profiles()
    agents = [done["agent_name"] or "", "nex", *known]
    agent = next((name for name in agents if name != "boss" and name.lower() in known), "nex")
    command = _this_command(home)
    steps = {
        f"Talk with {agent}:": f"{command} chat {agent}",
        "Show the state of your agents:": f"{command} team",
        f"Let a program of yours answer for {agent}, instead of the built-in demo:": (
            f'{command} agent set {agent} --provider command --command "python agent.py"'
        ),
    }
    if output.Mode.json:
        output.document((done if done["changed"] else {}) | facts | {"next": list(steps.values())})
        return
    output.record(facts)
    output.line("\nNext:")
    for what, step in steps.items():
        output.line(f"  # {what}\n  {step}")
    sys.stdout.flush()  # the daemon keeps running: a reader of a pipe must get this now


def _this_command(home: Home) -> str:
    """The command that calls this hiboss from any directory."""
    program = os.path.abspath(sys.argv[0])
    words = [sys.executable, "-m", "hiboss.cli.main"] if program.endswith(".py") else [program]
    prefix = f"HIBOSS_HOME={shlex.quote(str(home))} " if os.environ.get("HIBOSS_HOME") else ""
    return prefix + shlex.join(words)


def _wait(process: subprocess.Popen[bytes], tell: Callable[[], None]) -> int:
    """Wait until the daemon ends; a signal that ends us ends it too."""
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
        # The terminal signals the daemon too, so ours can come when its handlers are already gone.
        return 0 if asked and status == -signal.SIGTERM else status
