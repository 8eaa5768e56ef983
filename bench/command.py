"""The CLI: what the frequent commands and the help cost, against `python -c pass`, run in turns.

CPU time of the process: on a machine that others use too, it says what the command itself costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import SETTLED, WAITING, say

WARM_RUNS = 2
FREQUENT, HELP = 3.2, 4.0  # times `python -c pass`, at most
NOTHING = [sys.executable, "-c", "pass"]


class Command(NamedTuple):
    key: str
    words: str  # {id} is an envelope of its agent
    agent: str = SETTLED
    lines: int = 1  # that it prints at least
    floor: float = FREQUENT


COMMANDS = (
    Command("cli_list", "envelope list", lines=10),
    Command("cli_get", "envelope get {id}", lines=8),
    Command("cli_send", "send user:boss hello"),
    Command("cli_envelope_send", "envelope send --to user:boss --text hello --priority high"),
    Command("cli_inbox", "inbox", lines=10),
    Command("cli_read", "read {id}", lines=8),
    Command("cli_reply", "reply {id} hello"),
    Command("cli_ack", "envelope ack {id}", agent=WAITING),
    Command("cli_poll", "poll", agent=WAITING, lines=8),
    Command("cli_wait", "envelope wait --timeout 1s", agent=WAITING, lines=8),
    Command("cli_watch", "watch --timeout 1s", agent=WAITING, lines=8),
    Command("cli_team", "team", lines=3),
    Command("cli_runs", "run list"),
    Command("cli_help", "--help", lines=40, floor=HELP),
)


class Cost(NamedTuple):
    """Milliseconds of CPU time, of a command and of Python doing nothing, run one after the other."""

    command: float
    nothing: float


def measure(daemon: RunningDaemon, runs: int) -> list[Figure]:
    say(f"{len(COMMANDS)} commands and python -c pass, {runs} runs each")
    return [_figure(one, _costs(daemon, one, runs)) for one in COMMANDS]


def _costs(daemon: RunningDaemon, command: Command, runs: int) -> list[Cost]:
    token = daemon.token(command.agent)
    (listed,) = daemon.call("envelope.list", token=token, page_size=1)["envelopes"]
    words = command.words.format(id=listed["id"]).split()
    program = [os.fspath(Path(sys.executable).with_name("hiboss")), *words]
    environment = {**os.environ, "HIBOSS_HOME": daemon.home.path, "HIBOSS_TOKEN": token}
    found = [
        Cost(_run(program, environment, command.lines), _run(NOTHING, environment, lines=0))
        for _ in range(WARM_RUNS + runs)
    ]
    return found[WARM_RUNS:]


def _figure(command: Command, costs: list[Cost]) -> Figure:
    nothing = median(one.nothing for one in costs)
    ratio = Ratio(
        key="to_python",
        value=median(one.command / one.nothing for one in costs),
        of=f"× python -c pass ({nothing:.0f} ms)",
        sense=AT_MOST,
        floor=command.floor,
    )
    took = [one.command for one in costs]
    return Figure(
        key=command.key,
        work=f"CPU of hiboss {command.words.format(id='ID')}",
        value=median(took),
        unit="ms",
        p50=median(took),
        p99=max(took),
        ratios=(ratio,),
    )


def _run(command: list[str], environment: dict[str, str], lines: int) -> float:
    """Milliseconds of CPU time; what it prints must have at least so many lines."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or printed.count(b"\n") < lines:
        complaint = printed.decode(errors="replace").strip()[-500:]
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {complaint}")
    return (used.ru_utime + used.ru_stime) * 1000
