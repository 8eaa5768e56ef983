"""`hiboss daemon …`"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated

from ...core.errors import DaemonUnreachable, HibossError, TimedOut, WrongUsage
from ...core.paths import Home
from .. import client, output
from ..call import call, call_with_any_token, call_without_token
from ..credentials import FILE_VARIABLE, RUN_VARIABLE
from ..daemon_process import check_settings, holder, spawn
from ..options import As, Json, Token, flag, noun
from ..views import daemon as views
from ..views import metrics as metric_views

app = noun("Start, stop and inspect the daemon.")
ANSWER_SECONDS = 5.0  # after that it gets a signal
STOP_SECONDS = 30.0  # and what its runs may take; after that it is killed
KILL_SECONDS = 10.0
LOG_LINES = 50


@app.command()
def start(json_: Json = False) -> None:
    """Start the daemon, and return when it answers."""
    _start(Home())


@app.command()
def stop(json_: Json = False) -> None:
    """Stop the daemon after it has finished what it is doing.

    If it hangs, it is killed after half a minute. Not inside a run of its home: the stop would end the run and every other one.
    """
    _refuse_in_run(Home(), "stop")
    pid = _stop(Home())
    output.answer({"stopped": pid is not None, "pid": pid})
    if pid is None:
        output.note(f"No daemon runs in {Home()}.")


@app.command()
def restart(json_: Json = False) -> None:
    """Stop the daemon if one runs, then start it.

    With wrong settings, or a module that cannot be loaded, the daemon is not stopped. Not inside a run of its home: the stop would end the run, and this command with it, before the start.
    """
    home = Home()
    _refuse_in_run(home, "restart")
    check_settings(home)  # what a start would refuse is found while the old daemon still runs
    _stop(home)
    _start(home)


@app.command()
def status(json_: Json = False) -> None:
    """Show the state of the daemon and how much work waits. The boss also sees why lanes and adapters wait."""
    views.status(call_with_any_token("daemon.status", {}))


@app.command()
def ping(json_: Json = False) -> None:
    """Check that the daemon answers."""
    output.answer(call_without_token("daemon.ping", {}))


@app.command()
def metrics(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the metrics of the daemon, a line for each sample. It needs the right observe."""
    metric_views.samples(call("daemon.metrics", {}, token=token, profile=as_))


@app.command("time")
def time_(json_: Json = False) -> None:
    """Show the daemon's clock, in UTC and in the boss's zone."""
    output.answer(call_without_token("daemon.time", {}))


@app.command()
def logs(
    number: Annotated[int | None, flag("-n", "N", "How many lines; by default 50.", "--number")] = None,
    follow: Annotated[bool, flag("-f", None, "Keep printing new lines.", "--follow")] = False,
    json_: Json = False,
) -> None:
    """Print the end of the daemon's log."""
    wanted = LOG_LINES if number is None else number
    if wanted < 0:
        detail = f"-n/--number must be a whole number from 0, not {wanted}"
        raise WrongUsage(detail=detail, help="hiboss daemon logs --help")
    path = Home().log_file
    try:
        file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
    except (FileNotFoundError, NotADirectoryError):
        output.note(f"There is no log yet ({path}).")
        return
    lines = [line.rstrip("\n") for line in deque(file, maxlen=wanted)]
    if output.Mode.json:
        output.document({"lines": lines})
        return
    output.lines(lines)
    while follow:
        rotated = os.path.exists(path) and os.stat(path).st_ino != os.fstat(file.fileno()).st_ino
        output.lines(
            [line.rstrip("\n") for line in file]
        )  # after the check: what was written before the rotation
        if rotated:
            file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - it was rotated
        else:
            time.sleep(0.3)


def _refuse_in_run(home: Home, verb: str) -> None:
    """Raise inside a run of this home. A run may stop a daemon of another home, like one it tries out."""
    token_file = os.environ.get(FILE_VARIABLE)
    elsewhere = token_file and not os.path.realpath(token_file).startswith(
        os.path.realpath(home.path) + os.sep
    )
    if os.environ.get(RUN_VARIABLE) and not elsewhere:
        detail = (
            f"a run cannot {verb} the daemon: the stop would end the run, and nobody would start it again"
        )
        raise WrongUsage(detail=f"{detail}; ask the boss to {verb} it", help=f"hiboss daemon {verb} --help")


def _start(home: Home) -> None:
    process = spawn(home, detach=True)
    output.answer({"started": True, "pid": process.pid, "home": str(home), "log": home.log_file})
    process.returncode = 0  # it keeps running without us; do not warn about that
    try:
        set_up = client.call(home, "daemon.status", {})["set_up"]
    except HibossError:  # it has started; whether it still runs is for the next command to find out
        return
    if not set_up:
        output.note("This home is not set up yet; run: hiboss up")


def _stop(home: Home) -> int | None:
    """The pid of the daemon that was stopped; None when none ran."""
    pid = holder(home)
    if pid is None:
        return None
    with output.ProgressBar("stopping the daemon") as waiting:
        seconds = STOP_SECONDS
        try:
            stopping = client.call(home, "daemon.stop", {}, timeout=ANSWER_SECONDS, waiting=waiting)
            seconds += stopping.get("seconds", 0)
        except (DaemonUnreachable, TimedOut):  # it holds the lock but does not answer
            _signal(home, pid, signal.SIGTERM)
            _signal(home, pid, signal.SIGCONT)  # a stopped process does not see a signal before
        if not _ends(home, pid, seconds, waiting):
            output.note(f"The daemon (pid {pid}) has not ended within {seconds:g} seconds: it is killed.")
            output.note("What its runs have started may go on, until a daemon starts or: hiboss stop --all")
            _signal(home, pid, signal.SIGKILL)
            if not _ends(home, pid, KILL_SECONDS, waiting):  # the kernel holds it, as for a disk that hangs
                raise TimedOut(seconds=seconds + KILL_SECONDS)
    return pid


def _ends(home: Home, pid: int, seconds: float, waiting: Callable[[], None]) -> bool:
    """Whether the daemon ends within this time; it holds the lock of its home until then."""
    deadline = time.monotonic() + seconds
    while holder(home) == pid:
        waiting()
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _signal(home: Home, pid: int, number: int) -> None:
    """Signal the daemon if it still holds the lock of its home: a process with its pid may be another one."""
    if holder(home) == pid:
        os.kill(pid, number)
