"""Hooks of a harness: what one costs it, with a daemon and without one, against `python -c pass`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hiboss.testing.running_daemon import running_daemon

from . import programs
from .figures import Figure
from .homes import say

EVENT = {"hook_event_name": "Stop", "cwd": "/", "last_assistant_message": "Done."}


def measure(directory: Path, runs: int) -> list[Figure]:
    say(f"hiboss hook claude and python -c pass, {runs} runs each")
    (directory / "hooks").mkdir()
    with running_daemon(directory / "hooks") as daemon:
        there = _figure("hook", "hook, with a daemon", daemon.home.path, runs, floor=4.5)
        daemon.stop()
        away = _figure("hook_away", "hook, no daemon", daemon.home.path, runs, floor=4.5)
        daemon.start()
    return [there, away]


def _figure(key: str, work: str, home: str, runs: int, floor: float) -> Figure:
    # The process that calls the hook stands for the harness.
    own = {"CLAUDE_PID": str(os.getpid()), "CLAUDE_CODE_ENTRYPOINT": "cli", "HIBOSS_HOME": home}
    hook = programs.Program(
        command=[os.fspath(Path(sys.executable).with_name("hiboss")), "hook", "claude"],
        environment={**os.environ, **own},
        is_right=programs.is_silent,
        given=json.dumps({**EVENT, "session_id": "bench"}).encode(),
    )
    return programs.measure(key, work, hook, runs, floor=floor, goal="200 ms")
