"""A real daemon process in a home of its own, for tests.

with running_daemon(tmp_path) as daemon:
    daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text="hello")
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from ..cli import client
from ..cli.client import Answered
from ..cli.daemon_process import call_once, spawn
from ..core.paths import Home
from ..store import counters, media_files
from ..store.invariants import violations

__all__ = ["Answered", "RunningDaemon", "running_daemon", "set_up_home"]


class Process(Protocol):
    """What is used of a Popen."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...


def _spawn(home: Home, env: dict[str, str]) -> Process:
    return spawn(home, detach=True, extra_env=env)


class RunningDaemon:
    """A daemon process and its home. It can be stopped, killed and started again."""

    spawn: Callable[[Home, dict[str, str]], Process] = staticmethod(
        _spawn
    )  # hiboss's own tests have a faster one

    def __init__(self, home: Home) -> None:
        self.home = home
        self.process: Process | None = None

    def start(self, **env: str) -> None:
        """Start it. `HIBOSS_CRASH_AT="store.after_commit:3"` makes it crash at that point."""
        self.process = self.spawn(self.home, env)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """End it with kill -9."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self) -> int | None:
        """Stop it with SIGTERM, wait, and return its exit status."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None
        return status

    def wait_for_death(self, seconds: float = 30) -> int:
        """Wait until a crash point has ended it; return its exit status."""
        assert self.process is not None
        status = self.process.wait(timeout=seconds)
        self.process = None
        return status

    def call(self, method: str, **params: Any) -> Any:
        """Call an operation over the socket; raises Answered. Write `from_` for `from`."""
        if "from_" in params:
            params["from"] = params.pop("from_")
        return client.call(self.home, method, params)

    def token(self, name: str) -> str:
        """Return the token of a profile: boss, nex, or an agent registered with `register`."""
        return Path(self.home.profile(name.lower())).read_text().strip()

    def register(self, name: str, **fields: Any) -> str:
        """Register an agent and return its token."""
        answer = self.call("agent.register", token=self.token("boss"), name=name, profile=True, **fields)
        return str(answer["token"])

    @contextmanager
    def connect(self) -> Iterator[socket.socket]:
        """Open a raw connection to the socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(30)
            connection.connect(self.home.socket)
            yield connection

    def exchange(self, *lines: str | bytes | dict[str, Any] | list[Any], answers: int) -> list[Any]:
        """Write lines to one connection and return `answers` answers."""
        with self.connect() as connection:
            for line in lines:
                data = json.dumps(line).encode() if isinstance(line, (dict, list)) else line
                connection.sendall((data.encode() if isinstance(data, str) else data) + b"\n")
            with connection.makefile("rb") as stream:
                return [json.loads(stream.readline()) for _ in range(answers)]

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open a separate connection to the database."""
        connection = sqlite3.connect(self.home.database)
        connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            connection.close()

    def check(self) -> None:
        """Raise AssertionError if an invariant of the store is broken, or an attachment is missing."""
        with self.database() as connection:
            broken = violations(connection) + media_files.missing(connection, self.home.media)
        if broken:
            raise AssertionError("\n".join(broken))


@cache
def _template() -> str:
    """Set up a home once for this process; a copy of it is cheaper than another set-up."""
    directory = tempfile.mkdtemp(prefix="hiboss-template-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    home = Home(os.path.join(directory, "home"))
    call_once(home, "setup.execute", {"boss_name": "Ada", "timezone": "UTC", "agent_name": "nex"})
    return home.path


def set_up_home(home: Home) -> None:
    """Set up a new home with boss Ada, zone UTC and agent nex; no daemon runs in it."""
    shutil.copytree(_template(), home.path)
    with closing(sqlite3.connect(home.database)) as connection, connection:
        counters.renew_epoch(connection)


@contextmanager
def running_daemon(
    directory: str | os.PathLike[str], *, set_up: bool = True, **env: str
) -> Iterator[RunningDaemon]:
    """Start a daemon in `directory`/home, set up with boss and agent nex; stop it at the end."""
    daemon = RunningDaemon(Home(os.path.join(os.fspath(directory), "home")))
    if set_up:
        set_up_home(daemon.home)
    daemon.start(**env)
    try:
        yield daemon
    finally:
        daemon.stop()
