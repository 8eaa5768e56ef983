"""`hiboss mcp` as a process of its own, between a client, a daemon and a worker that a test plays by hand."""

from __future__ import annotations

import json
import os
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from hiboss.core.paths import Home
from tests.support.waits import wait_until

SECONDS = 30.0  # a bound for what must happen; never a claim about speed
PROFILE_TOKEN = "hba_of-nex"  # what `--as nex` finds
PACKAGE = "hiboss.cli.mcp_stdio"

Message = dict[str, Any]


def write_until_full(stream: int, line: bytes, most: int) -> int:
    """Write a line again and again until nobody reads; return how often it was begun. A thread writes its rest."""
    os.set_blocking(stream, False)
    written = 0
    while select.select([], [stream], [], 0.5)[1]:
        with suppress(BlockingIOError):
            written += os.write(stream, line[written % len(line) :])
        assert written < most, "it is kept without a bound"
    os.set_blocking(stream, True)
    if rest := line[written % len(line) :] if written % len(line) else b"":
        threading.Thread(target=_write_all, args=(stream, rest), daemon=True).start()
    return -(-written // len(line))


def _write_all(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]


class WorkerConnection:
    """One connection of the pump, as the worker sees it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(SECONDS)
        self._connection = connection
        self._unread = b""
        self.greeting: Message = {}

    def line(self) -> bytes:
        """The next line of the pump; empty when it has closed its side."""
        while b"\n" not in self._unread:
            part = self._connection.recv(1 << 16)
            if not part:
                return b""
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line + b"\n"

    def read_some(self) -> None:
        """Read the beginning of a long line."""
        assert self._connection.recv(1 << 16)

    def receive(self) -> Message:
        return json.loads(self.line())

    def take(self, method: str) -> Message:
        message = self.receive()
        assert message["method"] == method, message
        return message

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def write_until_full(self, line: bytes, most: int) -> int:
        """Write a line again and again until nobody reads; return how often the other side will get it."""
        return write_until_full(self._connection.fileno(), line, most)

    def send(self, message: Message) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self, request: Message, **result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def die(self) -> None:
        """As after kill -9: what was not read is lost."""
        self._connection.close()


class _Listener:
    """A unix socket that gives each connection to a thread."""

    def __init__(self, path: str, serve: Callable[[socket.socket], None]) -> None:
        self.path, self._serve = path, serve
        self._socket: socket.socket | None = None
        self._served: list[socket.socket] = []

    def start(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            self._served.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._socket.close()
            self._socket = None
            os.unlink(self.path)

    def close(self) -> None:
        self.stop()
        for one in self._served:
            one.close()


class PumpRig:
    """A home with a profile for nex, a daemon, a worker, and one `hiboss mcp`."""

    def __init__(self, directory: Path) -> None:
        self.home = Home(str(directory / "home"))
        self.home.create()
        Path(self.home.profile("nex")).write_text(PROFILE_TOKEN + "\n")
        self.worker_path = str(directory / "worker.sock")
        self.starts: list[Message] = []  # the parameters of each mcp.start
        self.refusal: Message | None = None  # what the daemon answers instead
        self.greeting: bytes = b'{"ok": true}\n'
        self._connections: queue.Queue[WorkerConnection] = queue.Queue()
        self.daemon = _Listener(self.home.socket, self._serve_daemon)
        self.worker = _Listener(self.worker_path, self._serve_worker)
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def __enter__(self) -> Self:
        self.daemon.start()
        self.worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self.daemon.close()
        self.worker.close()

    # --- the daemon and the worker ---------------------------------------------------

    def _serve_daemon(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as file:
            request = json.loads(file.readline())
            assert request["method"] == "mcp.start", request
            self.starts.append(request["params"])
            result = {"socket": self.worker_path, "http_socket": "/nowhere", "pid": 1}
            said = {"result": result} if self.refusal is None else {"error": self.refusal}
            file.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}).encode() + b"\n")

    def _serve_worker(self, connection: socket.socket) -> None:
        found = WorkerConnection(connection)
        found.greeting = found.receive()
        found.write(self.greeting)
        if b"error" in self.greeting:
            found.die()
        else:
            self._connections.put(found)

    def connection(self) -> WorkerConnection:
        """The next connection of the pump to the worker."""
        return self._connections.get(timeout=SECONDS)

    def wait_for_starts(self, number: int) -> None:
        """Wait until the daemon was asked so often for the worker."""
        wait_until(lambda: len(self.starts) >= number, SECONDS)

    # --- the pump and its client -----------------------------------------------------

    def start(self, *words: str, times: dict[str, float] | None = None, **env: str) -> Self:
        """Start `hiboss mcp`; `times` are constants of its modules, like reconnect_timing.AWAY_SECONDS."""
        command = [sys.executable, "-m", "hiboss.cli.entry", "mcp", *words]
        if times is not None:
            modules = [f"import {PACKAGE}.{name.partition('.')[0]}" for name in times]
            values = [f"{PACKAGE}.{name} = {value}" for name, value in times.items()]
            script = "; ".join([*modules, *values, "from hiboss.cli.entry import main", "main()"])
            command = [sys.executable, "-c", script, "mcp", *words]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        self._process = subprocess.Popen(
            command,
            env={**kept, "HIBOSS_HOME": self.home.path, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        return self

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def opened(self, *words: str, times: dict[str, float] | None = None, **env: str) -> WorkerConnection:
        """Start it as nex; the first connection."""
        self.start(*(words or ("--as", "nex")), times=times, **env)
        return self.connection()

    def ask(self, worker: WorkerConnection, number: int, method: str, **params: Any) -> Message:
        """Send a request; return it as the worker got it."""
        self.send({"id": number, "method": method, "params": params})
        return worker.take(method)

    def open_session(self, worker: WorkerConnection) -> None:
        """Do what a client of the old era does first."""
        worker.answer(self.ask(worker, 0, "initialize", protocolVersion="2025-06-18"), serverInfo={})
        assert self.receive()["id"] == 0
        self.send({"method": "notifications/initialized"})
        worker.take("notifications/initialized")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def send(self, message: Message) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None  # `communicate` would flush it

    def line(self) -> bytes:
        """The next line of standard output; empty at its end."""
        assert self.process.stdout is not None
        end = time.monotonic() + SECONDS
        while b"\n" not in self._unread:
            ready = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, "nothing came"
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return b""
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line + b"\n"

    def receive(self) -> Message:
        return json.loads(self.line())

    def ended(self) -> tuple[int, bytes, str]:
        """How it ended by itself: the exit status, the rest of its output, its standard error."""
        self.process.wait(SECONDS)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, self._unread + out, err.decode()
