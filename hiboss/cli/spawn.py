"""Starting the daemon as a process of its own; never by import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from ..errors import DaemonRunning, DaemonUnreachable, TimedOut
from ..paths import Home
from ..rpc.client import Answered, unwrap

START_SECONDS = 30.0


def spawn(home: Home, *, detach: bool, extra_env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a daemon and return when its socket answers; else raise why it could not."""
    reader, writer = os.pipe()
    environment = {**os.environ, "HIBOSS_HOME": home.path, **(extra_env or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "hiboss.daemon", "--ready-fd", str(writer)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[writer],
        start_new_session=detach,
        cwd="/",  # so that no directory of the user's stays in use
    )
    os.close(writer)
    try:
        with open(reader, "rb") as pipe:
            word = _read_word(pipe.fileno(), home, process)
    except BaseException:  # interrupted: leave no daemon behind that nobody waits for
        process.terminate()
        raise
    assert process.stderr is not None
    if not word:
        with process.stderr:
            complaint = process.stderr.read().decode(errors="replace").strip()
        process.wait()
        why = f"it ended with status {process.returncode}: {complaint[-2000:] or 'without a word'}"
        raise DaemonUnreachable(socket=home.socket, why=why)
    process.stderr.close()
    if not word["ready"]:
        process.wait()
        if word["code"] == DaemonRunning.code:
            raise DaemonRunning(pid=word["pid"], home=word["home"])
        raise Answered({"message": word.pop("message"), "data": word})
    return process


def _read_word(reader: int, home: Home, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The daemon's one word about how its start went; empty when it died without one."""
    import select

    parts = b""
    while not parts.endswith(b"\n"):
        if not select.select([reader], [], [], START_SECONDS)[0]:
            process.kill()
            raise TimedOut(seconds=START_SECONDS)
        part = os.read(reader, 65_536)
        if not part:
            return {}
        parts += part
    word: dict[str, Any] = json.loads(parts)
    return word


def call_once(home: Home, method: str, params: dict[str, Any]) -> Any:
    """Call an operation while no daemon runs, by a process that lives for this one call."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", "hiboss.daemon", "--once"],
        env={**os.environ, "HIBOSS_HOME": home.path},
        input=request.encode(),
        capture_output=True,
        check=False,
        cwd="/",
    )
    if not done.stdout:
        why = done.stderr.decode(errors="replace").strip()[-2000:] or f"status {done.returncode}"
        raise DaemonUnreachable(socket=home.socket, why=why)
    return unwrap(json.loads(done.stdout))


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
