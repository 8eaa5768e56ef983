"""`hiboss up`"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any

from ...core.errors import DaemonRunning, HibossError
from ...core.paths import Home
from .. import output
from ..call import call, notice_other_version
from ..chat.conversation import first_answering
from ..daemon_process import spawn
from ..gateway import settled
from ..options import Json, flag, single_command
from . import setup
from .setup import DEMO, AgentName, BossName, Timezone

app = single_command()
HARNESSES = ("claude", "codex")  # providers that need a program which many people have


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
    done = setup.execute(home, boss_name, timezone, agent_name)
    if done["changed"] and not output.Mode.json:
        setup.show(done)
    _note_unused(done, {"--boss-name": boss_name, "--timezone": timezone, "--agent-name": agent_name})
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


def _note_unused(done: dict[str, Any], given: dict[str, str | None]) -> None:
    """Print a note about options that only a first set-up uses."""
    unused = [name for name, value in given.items() if value is not None]
    if unused and not done["changed"]:
        verb = "was" if len(unused) == 1 else "were"
        output.note(f"This home is already set up; {' and '.join(unused)} {verb} not used.")


def _tell(home: Home, done: dict[str, Any], facts: dict[str, Any]) -> None:
    facts |= {"web": _web_url()}
    steps = _steps(home, _this_command(home), first=done["changed"])
    if output.Mode.json:
        output.document((done if done["changed"] else {}) | facts | {"next": list(steps.values())})
        return
    output.record(facts)
    output.line("\nNext:")
    for what, step in steps.items():
        output.line(f"  # {what}\n  {step}")
    sys.stdout.flush()  # the daemon keeps running: a reader of a pipe must get this now


def _web_url() -> str | None:
    """Where HTTP is served; prints a note if it should be and is not."""
    try:
        found = settled()
    except HibossError:  # the daemon runs all the same, or the next command says why not
        return None
    if found["error"]:
        output.note(f"HTTP is not served: {found['error']}.")
    url: str | None = found["url"]
    return url


def _steps(home: Home, command: str, *, first: bool) -> dict[str, str]:
    """What to try next: what it does, and the command. `first`: this home was set up just now."""
    found = _agents(home)
    look = {"Show the state of your agents:": f"{command} team"}
    if not found:
        return {"Register an agent:": f"{command} agent register nex --provider {DEMO}"} | look
    agent = first_answering(found)
    name = agent["name"]
    steps = {f"Talk with {name}:": f"{command} chat {name}"} | look | _pairing(command)
    if agent["provider"] == DEMO:
        steps |= _harnesses(command, name) if first else {}
        steps[f"Let a program of yours answer for {name}, instead of the built-in demo:"] = (
            f'{command} agent set {name} --workspace "$PWD" --command "python3 agent.py"'
        )
    return steps


def _harnesses(command: str, agent: str) -> dict[str, str]:
    """How an agent gets its answers from a program for agents that is installed here."""
    steps = {}
    output.note(f"Looking for {' and '.join(HARNESSES)} …")  # one that hangs takes some seconds
    for provider in HARNESSES:
        try:
            told = call("agent.check", {"name": agent, "provider": provider})["found"] or {}
        except HibossError:  # as in the shell of an agent
            return {}
        if found := told.get("found"):
            words = (
                f"Let {provider} answer for {agent} (found: {output.shown(output.word(found), sys.stdout)}):"
            )
            steps[words] = f'{command} agent set {agent} --workspace "$PWD" --provider {provider}'
    return steps


def _pairing(command: str) -> dict[str, str]:
    """A code for an account that does not know the boss yet; nothing if there is none.

    A new code ends the last one, so none is made for JSON, where it would not be seen.
    """
    try:
        known = call("boss.get", {})["ids"]
        waiting = [
            one
            for one in call("agent.bindings", {})["bindings"]
            if one["closed"] and one["adapter_type"] not in known
        ]
        if not waiting:
            return {}
        code = None if output.Mode.json else call("boss.pair", {})["code"]
    except HibossError:  # as in the shell of an agent
        return {}
    name = waiting[0]["name"] or waiting[0]["account"]
    words = f"Send the code {code} to {name} within an hour, so that it knows you. To get another code:"
    return {words: f"{command} boss pair"}


def _agents(home: Home) -> list[dict[str, Any]]:
    """The agents; without a token that may list them, those whose tokens are stored here."""
    try:
        agents: list[dict[str, Any]] = call("agent.list", {})["agents"]
    except HibossError:  # as in the shell of an agent: the daemon runs all the same
        agents = [
            {"name": name, "provider": None, "created_at": ""} for name in home.profiles() if name != "boss"
        ]
    return agents


def _this_command(home: Home) -> str:
    """The command that calls this hiboss from any directory."""
    program = os.path.abspath(sys.argv[0])
    words = [sys.executable, "-m", "hiboss.cli.entry"] if program.endswith(".py") else [program]
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
