"""Programs of hiboss, loaded once and forked for each start: processes of their own, without the imports.

The command costs a tenth of a second and the daemon half a second, most of it imports, and the tests start
thousands of them. A server loads one program; it ends with the process of the tests that started it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from types import SimpleNamespace
from typing import IO, Any, NoReturn

from tests.support import crash_groups

COMMAND, DAEMON = "command", "daemon"
WHOLE_WAY = "hiboss-by-typer"  # in place of the name of the command: let Typer read also what is read quickly
PAUSES = "PAUSES_IN_TESTS"  # a variable of forked programs; see forked_daemons.pauses
PACKAGES = {
    COMMAND: ["hiboss.cli"],
    DAEMON: [
        f"hiboss.{one}"
        for one in ("core", "store", "rpc", "web", "routing", "agents", "channels", "api", "daemon")
    ],
}
# What they import only when they need it: a bound bot 80 ms, every command 10 ms.
LATE = {
    COMMAND: ["typer._click.decorators"],
    DAEMON: [
        "anyio._backends._asyncio",
        "anyio.streams.tls",
        "apscheduler.executors.asyncio",
        "certifi",
        "encodings.utf_16_le",
        "hiboss.testing.scripted_adapter",
        "httpcore",
        "markdown_it",
    ],
}


def main(path: str, program: str) -> None:
    """Serve until the standard input ends."""
    for package in PACKAGES[program]:
        _load(package)
    for module in LATE[program]:
        importlib.import_module(module)
    if importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment] # httpcore looks for it in each request
    gc.freeze()
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(1, b"ready\n")
        running: dict[int, socket.socket] = {}
        while sys.stdin not in (ready := select.select([server, ended, sys.stdin], [], [])[0]):
            if ended in ready:
                os.read(ended, 4_096)
                _tell_ends(running)
            if server not in ready:
                continue
            connection, _ = server.accept()
            asked, streams = _request(connection)
            if child := os.fork():
                for stream in streams:
                    os.close(stream)
                running[child] = connection
                connection.sendall(f"{child}\n".encode())
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for own in (server, connection, *running.values()):
                own.close()
            os.close(ended)
            os.close(wake)
            _end(partial(_run, program, asked, streams))


def _request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return what is asked for, and the streams that came with it."""
    data, streams, _, _ = socket.recv_fds(connection, 1_000_000, 4)
    while not data.endswith(b"\n"):
        data += connection.recv(1_000_000)
    return json.loads(data), streams


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Tell of each program that has ended how it ended. They are waited for here, so their time is counted as ours."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with running.pop(child) as connection:
            try:
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            except OSError:
                pass  # the test did not wait for it


def _load(package: str) -> None:
    for one in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(one.name)


def _end(run: Callable[[], int | None]) -> NoReturn:
    """Run it and end as Python ends, but leave the memory to the kernel: to free it takes longest."""
    status: Any
    try:
        status = run() or 0
    except SystemExit as error:
        status = error.code or 0
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    os._exit(status)


def _run(program: str, asked: dict[str, Any], streams: list[int]) -> int | None:
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
        os.close(stream)
    # As Python makes them in this locale. The old ones remember what kind of file they were.
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    if crashpoint := sys.modules.get("hiboss.core.crashpoint"):
        importlib.reload(crashpoint)  # it reads its variable at the import
    for one in asked["env"].get(PAUSES, "").split():
        _shorten(*one.split("="))
    if program == COMMAND:
        sys.argv = asked["words"]
        fork_daemons(lambda: str(asked["daemons"]))
        way = "main" if asked["words"][0] == WHOLE_WAY else "entry"
        return importlib.import_module(f"hiboss.cli.{way}").main()
    os.setsid()
    os.umask(asked["umask"])
    resource.setrlimit(resource.RLIMIT_NOFILE, asked["files"])
    time.tzset()
    given = asked["env"].get("PYTHONPATH")
    sys.path[:1] = [asked["cwd"], *(given.split(":") if given else [])]  # as `python -m` has it
    if submits := asked["env"].get(crash_groups.VARIABLE):
        crash_groups.count_only(submits.split())
    serve: Callable[[list[str]], int] = importlib.import_module("hiboss.daemon.__main__").main
    return serve([*asked["words"], *map(str, streams[3:])])


def _shorten(name: str, seconds: str) -> None:
    module = importlib.import_module(name.rpartition(".")[0])  # HTTP is loaded later
    constant = name.rpartition(".")[2]
    assert isinstance(getattr(module, constant), float), name
    setattr(module, constant, float(seconds))


def fork_daemons(where: Callable[[], str]) -> None:
    """Let the daemons that the CLI starts in this process be forked too, by a server; how it starts them stays."""
    starts = importlib.import_module("hiboss.cli.daemon_process")
    popen = type("Popen", (ForkedChild,), {"address": staticmethod(where)})
    starts.__dict__["subprocess"] = SimpleNamespace(**{**vars(subprocess), "Popen": popen})


class ForkedChild(Popen[bytes]):
    """A Popen of `python -m hiboss.daemon …`, which a server forks for us: the streams and the waits are Popen's."""

    address: Callable[[], str]

    def _execute_child(self, *given: Any) -> None:
        (command, _, _, _, kept, cwd, env, _, _, _, *pipes) = given[:16]
        assert command[1:3] == ["-m", "hiboss.daemon"], command
        os.umask(mask := os.umask(0))
        asked = {
            "words": [word for word in command[3:] if word not in map(str, kept)],
            "cwd": cwd,
            "env": env,
            "umask": mask,
            "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        }
        theirs = [pipes[0], pipes[3], pipes[5]]
        assert -1 not in theirs, "it is given all streams"
        self._forked = Forked(self.address(), asked, [*theirs, *kept])
        self.pid = self._forked.pid
        self._child_created = True
        for one in set(theirs):
            os.close(one)

    def _internal_poll(self, _deadstate: int | None = None, *_: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._forked.poll()
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        status = self._forked.poll() if flags else self._forked.wait()
        if status is None:
            return 0, 0
        return self.pid, -status if status < 0 else status << 8


# --- in the process of the tests -------------------------------------------------------


@cache
def address(program: str) -> str:
    """Start the server of this process; return where it listens."""
    path = os.path.join(tempfile.mkdtemp(prefix="hiboss-test-"), "server")
    root = str(Path(__file__).parents[2])
    process = Popen(
        [sys.executable, "-m", "tests.support.forked_programs", path, program],
        stdin=PIPE,
        stdout=PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"LANG": "C.UTF-8"},
        cwd=root,  # from where it imports `tests`
    )
    _keep.append(process)  # its standard input ends with this process
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return path


_keep: list[Any] = []


class Forked:
    """A started program; used like a Popen. It is the child of a server that waits for it and tells how it ended."""

    def __init__(self, address: str, asked: dict[str, Any], streams: list[int]) -> None:
        """Start it. `streams`: its standard input, output and error, and what else it inherits."""
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        data = json.dumps(asked).encode() + b"\n"
        socket.send_fds(self._connection, [data[:1]], streams)
        self._connection.sendall(data[1:])
        self._told: IO[str] = self._connection.makefile("r")
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit status, minus the number of the signal that ended it; None while it runs."""
        return self.returncode if self._ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return what `poll` returns."""
        if not self._ended(timeout):
            raise TimeoutExpired("hiboss", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and its status is on its way
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float | None) -> bool:
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.returncode = int(self._told.readline())
            self._told.close()
            self._connection.close()
        return self.returncode is not None


if __name__ == "__main__":
    main(*sys.argv[1:])
