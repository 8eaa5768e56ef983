"""`hiboss daemon …`"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from typing import Annotated

import typer

from ...core.errors import DaemonUnreachable, TimedOut
from ...core.paths import Home
from .. import client, output
from ..daemon_process import holder, spawn
from ..session import Json, call_openly, noun

app = noun("Start, stop and look at the daemon.")
STOP_SECONDS = 30.0


@app.command()
def start(json_: Json = False) -> None:
    """Start the daemon; returns when it answers."""
    _start(Home())


@app.command()
def stop(json_: Json = False) -> None:
    """Let the daemon finish what it has in hand, and end it."""
    pid = _stop(Home())
    output.answer({"stopped": pid is not None, "pid": pid})
    if pid is None:
        output.note(f"No daemon runs in {Home()}.")


@app.command()
def restart(json_: Json = False) -> None:
    """Stop the daemon if it runs, then start it."""
    home = Home()
    from ...core.settings import Configuration

    Configuration(home.config, os.environ)  # wrong settings are said while the good daemon still runs
    _stop(home)
    _start(home)


@app.command()
def status(json_: Json = False) -> None:
    """Show how the daemon is and how much it has in hand."""
    output.status(call_openly("daemon.status", {}))


@app.command()
def ping(json_: Json = False) -> None:
    """See whether the daemon answers."""
    output.answer(call_openly("daemon.ping", {}))


@app.command("time")
def time_(json_: Json = False) -> None:
    """Show the daemon's clock, in UTC and in the boss's zone."""
    output.answer(call_openly("daemon.time", {}))


@app.command()
def logs(
    number: Annotated[int, typer.Option("-n", "--number", metavar="N", min=0, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on printing what comes.")] = False,
    json_: Json = False,
) -> None:
    """Print the end of the daemon's log."""
    path = Home().log_file
    try:
        file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
    except (FileNotFoundError, NotADirectoryError):
        output.note(f"There is no log yet ({path}).")
        return
    lines = [line.rstrip("\n") for line in deque(file, maxlen=number)]
    if output.Mode.json:
        output.document({"lines": lines})
        return
    output.lines(lines)
    while follow:
        rotated = os.path.exists(path) and os.stat(path).st_ino != os.fstat(file.fileno()).st_ino
        output.lines([line.rstrip("\n") for line in file])  # after the look: what was written before it
        if rotated:
            file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - it was rotated
        else:
            time.sleep(0.3)


def _start(home: Home) -> None:
    process = spawn(home, detach=True)
    output.answer({"started": True, "pid": process.pid, "home": str(home), "log": home.log_file})
    process.returncode = 0  # it lives on without us; do not warn about that


def _stop(home: Home) -> int | None:
    """The pid that ended; None when nothing ran."""
    pid = holder(home)
    if pid is None:
        return None
    with output.Progress("stopping the daemon") as waiting:
        seconds = STOP_SECONDS
        try:
            stopping = client.call(home, "daemon.stop", {}, timeout=5, waiting=waiting)
            seconds += stopping.get("seconds", 0)
        except (DaemonUnreachable, TimedOut):
            os.kill(pid, signal.SIGTERM)  # it holds the lock but does not answer
        deadline = time.monotonic() + seconds
        while holder(home) == pid:
            waiting()
            if time.monotonic() > deadline:
                raise TimedOut(seconds=seconds)
            time.sleep(0.02)
    return pid
