"""Daemons for the tests, forked where they are loaded already: what `spawn` of the CLI does, in a tenth of the time.

The daemons that `hiboss up` and `hiboss daemon start` start in tests, and those of the soaks, are started by the CLI.
"""

from __future__ import annotations

import json
import os
import resource
import select
from typing import Any

from hiboss.cli.client import Answered, start_command
from hiboss.cli.daemon_process import CALLERS_OWN, START_SECONDS
from hiboss.core.errors import DaemonRunning, DaemonUnreachable, TimedOut
from hiboss.core.paths import Home
from tests.support import failures
from tests.support.forked_programs import DAEMON, PAUSES, Forked, address


def spawn(home: Home, env: dict[str, str]) -> Forked:
    """Start a daemon and return when its socket answers; raise the reason when it does not."""
    process, report, complaint = launch(home, env)
    if report.get("ready"):
        return process
    process.wait()
    if not report:
        why = f"it ended with status {process.returncode}: {complaint[-2000:] or 'it said nothing'}"
        raise DaemonUnreachable(socket=home.socket, why=why, start=start_command(home))
    if report["code"] == DaemonRunning.code:
        raise DaemonRunning(pid=report["pid"], home=report["home"])
    raise Answered({"message": report.pop("message"), "data": report})


def launch(home: Home, env: dict[str, str]) -> tuple[Forked, dict[str, Any], str]:
    """Start a daemon; return it, its report about the start (empty: it died) and what it complained about."""
    failures.note_log(home.log_file)
    reports, report = os.pipe()
    complaints, complaint = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    theirs = [nothing, nothing, complaint, report]
    try:
        process = Forked(address(DAEMON), _asked(home, env), theirs)
    finally:
        for stream in set(theirs):
            os.close(stream)
    with open(reports, "rb") as reader, open(complaints, "rb") as errors:
        if not select.select([reader], [], [], START_SECONDS)[0]:
            process.kill()
            raise TimedOut(seconds=START_SECONDS)
        words = reader.readline()
        return (
            process,
            json.loads(words or b"{}"),
            "" if words else errors.read().decode(errors="replace").strip(),
        )


def _asked(home: Home, env: dict[str, str]) -> dict[str, Any]:
    """Return what a child of ours would have of us."""
    os.umask(mask := os.umask(0))
    own = {name: value for name, value in os.environ.items() if name not in CALLERS_OWN}
    return {
        "words": ["--ready-fd"],
        "cwd": "/",
        "env": {**own, "HIBOSS_HOME": home.path, **env},
        "umask": mask,
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }


def pauses(seconds: dict[str, float]) -> dict[str, str]:
    """Return the variable that gives a daemon or a command other pauses, by the names of constants below `hiboss`.

    For what a test waits for, and nothing else: what must not happen in a pause needs the pause as it is.
    """
    return {PAUSES: " ".join(f"hiboss.{name}={value}" for name, value in seconds.items())}
