"""Helpers for tests with a daemon: requests and answers, waiting with a limit, a daemon with other settings."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.paths import Home
from hiboss.core.settings import TABLE
from hiboss.testing.running_daemon import RunningDaemon, running_daemon, set_up_home
from tests.support import forked_daemons
from tests.support.forked_programs import Forked


def line(method: str, id_: Any = 1, **params: Any) -> bytes:
    """Return one request as it is sent over the socket."""
    if "from_" in params:
        params["from"] = params.pop("from_")
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": id_}).encode() + b"\n"


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


def daemon_fixture(**settings: Any) -> Any:
    """Return a fixture: a daemon with these settings for all tests of a module. Its store is checked at the end."""

    @pytest.fixture(scope="module")
    def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
        with daemon_with(tmp_path_factory.mktemp("d"), **settings) as running:
            yield running
            running.check()

    return daemon


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
