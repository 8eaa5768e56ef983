"""Helpers for tests with a daemon: requests and answers, waiting with a limit, a daemon with other settings."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hiboss.core.paths import Home
from hiboss.core.settings import TABLE
from hiboss.testing.running_daemon import RunningDaemon, running_daemon, set_up_home
from tests.support import forked_daemons
from tests.support.forked_programs import Forked


def line(method: str, id_: Any = 1, **params: Any) -> bytes:
    """Return one request as it is sent over the socket."""
    if "from_" in params:
        params["from"] = params.pop("from_")
    document = {"jsonrpc": "2.0", "method": method, "params": params, "id": id_}
    return json.dumps(document).encode() + b"\n"


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answers(connection: socket.socket, number: int) -> list[Any]:
    """Read so many answers; fewer when the daemon closes the connection."""
    with connection.makefile("rb") as stream:
        lines = [stream.readline() for _ in range(number)]
    return [json.loads(text) for text in lines if text]


def all_answers(connection: socket.socket) -> list[Any]:
    """Read all answers until the daemon closes the connection."""
    with connection.makefile("rb") as stream:
        return [json.loads(text) for text in stream]


def ask(connection: socket.socket, method: str, id_: Any = 1, **params: Any) -> Any:
    connection.sendall(line(method, id_, **params))
    return answers(connection, 1)[0]


def code(answer: dict[str, Any]) -> str:
    """Return the code of an error answer; 'ok' when it is not an error."""
    return str(answer["error"]["data"]["code"]) if "error" in answer else "ok"


def wait_until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Poll until a condition is true; the test fails here when it does not become true."""
    begin = time.monotonic()
    while not condition():
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError("it did not happen in time")
        time.sleep(pause(waited))


def pause(waited: float) -> float:
    """Return when to look again: a look is a call or a query, and the others need the processor too."""
    return min(max(0.005, waited / 10), 0.05)


def set_up(directory: Path) -> Home:
    """Make a home that is set up with boss and agent nex, without a daemon."""
    home = Home(os.path.join(directory, "home"))
    set_up_home(home)
    return home


@contextmanager
def started(directory: Path) -> Iterator[RunningDaemon]:
    """Start a daemon in a home that is set up; stop it at the end."""
    with running_daemon(directory) as daemon:
        yield daemon


def variables(settings: dict[str, Any]) -> dict[str, str]:
    """Return settings as environment variables."""
    return {one.variable: str(settings[one.name]) for one in TABLE if one.name in settings}


def launch(home: Home, **settings: Any) -> tuple[Forked, dict[str, Any]]:
    """Start a daemon process with other settings; return it and its report about the start."""
    process, report, _ = forked_daemons.launch(home, variables(settings))
    return process, report


@contextmanager
def daemon_with(directory: Path, **settings: Any) -> Iterator[RunningDaemon]:
    """Start a daemon with other settings; stop it at the end."""
    daemon = RunningDaemon(set_up(directory))
    daemon.process, report = launch(daemon.home, **settings)
    try:
        assert report["ready"]
        yield daemon
    finally:
        daemon.stop()


def mount(directory: Path) -> bool:
    """Mount a file system of 8 MiB there; return whether that was possible. Undo with `unmount`."""
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "hiboss-test", str(directory)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount(directory: Path) -> None:
    subprocess.run(["umount", str(directory)], check=True)


def can_mount() -> bool:
    directory = Path(tempfile.mkdtemp(prefix="hiboss-mount-"))
    try:
        mounted = mount(directory)
        if mounted:
            unmount(directory)
        return mounted
    finally:
        directory.rmdir()
