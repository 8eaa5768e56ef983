"""The `hiboss` command, loaded once and forked for each call: a process of its own, without the imports.

A call of the command costs a tenth of a second, most of it imports, and the tests make thousands of them. Started
by tests/support/cli.py; it ends with the process that started it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

ROOM = 60_000  # bytes of standard input that fit into a pipe


def main() -> None:
    """Serve until the standard input ends."""
    import hiboss.cli

    for one in pkgutil.walk_packages(hiboss.cli.__path__, "hiboss.cli."):
        importlib.import_module(one.name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for a command
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                child = os.fork() == 0
                if not child:
                    continue
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _serve(connection)
                return


def _serve(connection: socket.socket) -> None:
    """Run one command in a process of its own, and tell how it ended."""
    data, streams, _, _ = socket.recv_fds(connection, 1_000_000, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(1_000_000)
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        connection.sendall(f"{child}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(f"{status}\n".encode())
        os._exit(0)
    connection.close()
    asked = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # As Python makes them in this locale. The old ones remember what kind of file they were.
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["words"]
    sys.exit(importlib.import_module("hiboss.cli.main").main())


# --- in the process of the tests -------------------------------------------------------


@cache
def _address() -> str:
    """Start the server of this process; return where it listens."""
    path = os.path.join(tempfile.mkdtemp(prefix="hiboss-test-"), "server")
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "LANG": "C.UTF-8", "PYTHONPATH": root}
    process = Popen(
        [sys.executable, "-m", "tests.support.command_server", path],
        stdin=PIPE,
        stdout=PIPE,
        env=env,
        cwd=root,
    )
    _keep.append(process)  # its standard input ends with this process
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return path


_keep: list[Any] = []


def call(
    words: list[str], stdin: bytes, cwd: str, env: dict[str, str], seconds: float
) -> tuple[int, bytes, bytes]:
    """Run the command; return its status and what it wrote to standard output and standard error."""
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        connection = stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(_address())
        pipes = [os.pipe() for _ in range(3)]
        os.write(pipes[0][1], stdin)
        os.close(pipes[0][1])
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        asked = json.dumps({"words": words, "cwd": cwd, "env": env}).encode() + b"\n"
        socket.send_fds(connection, [asked[:1]], theirs)
        connection.sendall(asked[1:])
        for stream in theirs:
            os.close(stream)
        answer = stack.enter_context(connection.makefile("r"))
        pid = int(answer.readline())
        out, err = pipes[1][0], pipes[2][0]
        stack.callback(os.close, out)
        stack.callback(os.close, err)
        written = _read({out: b"", err: b""}, end)
        if written is None:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"{' '.join(words)} did not end")
        return int(answer.readline()), written[out], written[err]


def _read(written: dict[int, bytes], end: float) -> dict[int, bytes] | None:
    """Read until all streams have ended; None: not in time."""
    streams = list(written)
    while streams:
        ready = select.select(streams, [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            return None
        for one in ready:
            part = os.read(one, 65_536)
            written[one] += part
            if not part:
                streams.remove(one)
    return written


if __name__ == "__main__":
    main()
