"""The CLI: what the frequent commands, the help and the hooks of a harness cost, against `python -c pass`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from hiboss.testing.running_daemon import RunningDaemon

from .figures import Figure
from .homes import SETTLED, SMALL, WAITING, full_home, new_home
from .programs import HIBOSS, Ended, Program
from .rounds import Size, if_there, rounds

FREQUENT, HELP, HOOK = 3.2, 4.0, 4.5  # times `python -c pass`, at most
EVENT = {
    "hook_event_name": "Stop",
    "cwd": "/",
    "last_assistant_message": "Done.",
    "session_id": "bench",
}


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


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon, away = full_home(directory.parent / "small", SMALL), new_home(directory / "away")
    daemon.start()
    try:
        tried = [_program(daemon, one) for one in COMMANDS]
        tried.append(_hook("hook", "hook, with a daemon", daemon))
        tried.append(_hook("hook_away", "hook, no daemon", away))
        programs = []
        for program in tried:
            with if_there(program.work):
                program.run()  # once beforehand: its files are read then
                programs.append(program)
                program.runs.clear()
                program.nothing.clear()
        for _ in rounds(size.rounds, f"{len(programs)} commands"):
            for program in programs:
                program.run()
    finally:
        daemon.stop()
    return [program.figure() for program in programs]


def _program(daemon: RunningDaemon, command: Command) -> Program:
    token = daemon.token(command.agent)
    (listed,) = daemon.call("envelope.list", token=token, page_size=1)["envelopes"]

    def is_right(done: Ended) -> bool:
        return done.stdout.count(b"\n") >= command.lines

    return Program(
        key=command.key,
        work=f"CPU of hiboss {command.words.format(id='ID')}",
        command=[HIBOSS, *command.words.format(id=listed["id"]).split()],
        environment={**os.environ, "HIBOSS_HOME": daemon.home.path, "HIBOSS_TOKEN": token},
        floor=command.floor,
        is_right=is_right,
    )


def _hook(key: str, work: str, daemon: RunningDaemon) -> Program:
    # The process that calls the hook stands for the harness.
    own = {
        "CLAUDE_PID": str(os.getpid()),
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "HIBOSS_HOME": daemon.home.path,
    }
    return Program(
        key=key,
        work=work,
        command=[HIBOSS, "hook", "claude"],
        environment={**os.environ, **own},
        floor=HOOK,
        given=json.dumps(EVENT).encode(),
    )
