"""Start the daemon as a process of its own, never by import; find out whether one runs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any

from ..core.errors import DaemonRunning, DaemonUnreachable, TimedOut
from ..core.paths import Home
from . import output
from .client import SLICE, Answered, start_command, unwrap

if TYPE_CHECKING:
    from ..core.settings import Configuration

START_SECONDS = 30.0
# What belongs to the caller alone: the daemon lives on, and would give them to every run.
CALLERS_OWN = ("HIBOSS_TOKEN", "HIBOSS_TOKEN_FILE", "HIBOSS_RUN", "HIBOSS_AGENT")


def spawn(home: Home, *, detach: bool, extra_env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a daemon and return when its socket answers; raise the reason when it does not."""
    reader, writer = os.pipe()
    environment = {**_environment(home), **(extra_env or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "hiboss.daemon", "--ready-fd", str(writer)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[writer],
        start_new_session=detach,
        cwd="/",  # so that it keeps no directory of the user in use
    )
    os.close(writer)
    try:
        with open(reader, "rb") as pipe:
            report = _read_report(pipe.fileno(), process)
    except BaseException:  # interrupted: leave no daemon behind that nobody waits for
        process.terminate()
        raise
    assert process.stderr is not None
    if not report:
        with process.stderr:
            complaint = process.stderr.read().decode(errors="replace").strip()
        process.wait()
        why = f"it ended with status {process.returncode}: {complaint[-2000:] or 'it said nothing'}"
        raise DaemonUnreachable(socket=home.socket, why=why, start=start_command(home))
    process.stderr.close()
    if not report["ready"]:
        process.wait()
        if report["code"] == DaemonRunning.code:
            raise DaemonRunning(pid=report["pid"], home=report["home"])
        raise Answered({"message": report.pop("message"), "data": report})
    return process


def _environment(home: Home) -> dict[str, str]:
    """Our environment, without what belongs to the caller alone."""
    kept = {name: value for name, value in os.environ.items() if name not in CALLERS_OWN}
    return {**kept, "HIBOSS_HOME": home.path}


def _read_report(reader: int, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What the daemon reports about its start; empty when it died before it could."""
    import select

    parts = b""
    end = time.monotonic() + START_SECONDS
    while not parts.endswith(b"\n"):
        with output.ProgressBar("starting the daemon") as waiting:
            while not select.select([reader], [], [], SLICE)[0]:
                waiting()
                if time.monotonic() > end:
                    process.kill()
                    raise TimedOut(seconds=START_SECONDS)
        part = os.read(reader, 65_536)
        if not part:
            return {}
        parts += part
    report: dict[str, Any] = json.loads(parts)
    return report


def call_once(home: Home, method: str, params: dict[str, Any], doing: str = "setting up") -> Any:
    """Call an operation while no daemon runs, in a process that lives for this one call.

    `doing` is what the progress bar says.
    """
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
    return _ask(home, "--once", request.encode(), doing, math.inf)


def end_runs(home: Home, token: str | None, reason: str | None) -> Any:
    """Pull the breaker while no daemon answers: a process ends all recorded runs, and leaves a flag for it."""
    params = {"token": token, "reason": reason}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "breaker.pull", "params": params}) + "\n"
    return _ask(home, "--end-runs", request.encode(), "ending all runs", START_SECONDS)


def check_settings(home: Home) -> Configuration:
    """Return the settings that a start would use; raise what it would refuse.

    Modules are loaded in a process like the daemon's: its directory and what can be imported are others
    than ours.
    """
    from ..core.settings import Configuration

    found = Configuration(home.config, os.environ)
    if found.settings.provider_modules or found.settings.adapter_modules:
        _ask(home, "--check", b"", "loading the modules", START_SECONDS)
    return found


def _ask(home: Home, option: str, request: bytes, doing: str, seconds: float) -> Any:
    """Start a process of the daemon that answers once and ends; return its answer or raise its error."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hiboss.daemon", option],
        env=_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    with process:
        try:
            answer, complaint = _outputs(process, request, doing, seconds)
        finally:
            if process.poll() is None:  # interrupted
                process.kill()
    if not answer:
        why = complaint.decode(errors="replace").strip()[-2000:] or f"status {process.returncode}"
        raise DaemonUnreachable(socket=home.socket, why=why, start=start_command(home))
    return unwrap(json.loads(answer))


def _outputs(
    process: subprocess.Popen[bytes], given: bytes, doing: str, seconds: float
) -> tuple[bytes, bytes]:
    """What the process wrote to standard output and standard error, once it has ended."""
    pipe, process.stdin = process.stdin, None
    assert pipe is not None
    # Not by `communicate`: in slices of time it would lose what does not fit into the pipe at once.
    threading.Thread(target=_give, args=(pipe, given), daemon=True).start()
    end = time.monotonic() + seconds
    with output.ProgressBar(doing) as waiting:
        while time.monotonic() < end:
            try:
                return process.communicate(timeout=SLICE)
            except subprocess.TimeoutExpired:
                waiting()
    raise TimedOut(seconds=seconds)


def _give(pipe: IO[bytes], given: bytes) -> None:
    try:
        with pipe:
            pipe.write(given)
    except OSError:  # it has ended, and says why
        pass


def holder(home: Home) -> int | None:
    """The pid of the daemon that holds this home's lock; None when none does."""
    import fcntl

    try:
        file = os.open(home.pid_file, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        word = os.read(file, 100).split()[:1]
        return int(word[0]) if word else None
    finally:
        os.close(file)
