"""The server of the spike (bench/journal_server.py) as a process, in a home that hiboss set up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson
import psutil

from hiboss.core import clock

from .homes import AGENT, TEXT, new_home
from .journal import Record
from .load import ROOT, Load, Outcome, generate
from .sends import WARM_SECONDS, Way

SIZE = 4 << 20  # of each journal file: about 11,000 sends


class Spike:
    """One real send has begun the conversation; the server goes on from there."""

    def __init__(self, directory: Path, size: int = SIZE) -> None:
        self._daemon, self._size = new_home(directory), size
        self.home, self.token = self._daemon.home, self._daemon.token(AGENT)
        self._daemon.start()
        self._daemon.call("envelope.send", token=self.token, to=f"agent:{AGENT}", text="the first")
        self._daemon.stop()
        self.socket = os.fspath(directory / "spike.sock")
        with self._daemon.database() as connection:
            found = connection.execute("SELECT conversation, sender FROM message").fetchone()
        self._conversation, self._agent = found

    def start(self) -> int:
        """Return how many records it replayed."""
        Path(self.socket).unlink(missing_ok=True)
        given = [self.home.path, self.socket, str(self._size)]
        command = [sys.executable, "-m", "bench.journal_server", *given]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def kill(self) -> None:
        """End it with kill -9."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def records(self, first: int, count: int) -> list[Record]:
        """Records with these numbers, as the server itself would write them after the first send."""
        now, agent = clock.now(), self._agent
        rows = [
            [number + 1, self._conversation, number + 1, agent, agent, number + 1, now, TEXT]
            for number in range(first, first + count)
        ]
        return [(first + index, orjson.dumps(row)) for index, row in enumerate(rows)]

    def load(self, method: str, way: Way, seconds: float) -> Load:
        return Load(
            socket=self.socket,
            method=method,
            params={"token": self.token, "to": f"agent:{AGENT}", "text": TEXT},
            connections=way.connections,
            in_flight=way.in_flight,
            seconds=seconds,
            warm_seconds=WARM_SECONDS,
        )

    def send(self, way: Way, seconds: float) -> tuple[Outcome, float, float]:
        """What came of it; the CPU of each, applying it included; seconds from then until all is applied."""
        before = self._cpu()
        [sent] = generate(self.load("envelope.send", way, seconds))
        begin = perf_counter()
        self.wait()
        late = perf_counter() - begin
        return sent, (self._cpu() - before) / sent.answered, late

    def wait(self) -> None:
        """Until all that was accepted is in SQLite."""
        self.ask("applied.wait")

    def ask(self, method: str, **params: str) -> dict[str, Any]:
        """One request on a connection of its own; raises OSError when there is no answer."""
        with self.connected() as line:
            line.sendall(orjson.dumps({"id": 1, "method": method, "params": params}) + b"\n")
            answer = line.recv(65_536)
        if not answer:
            raise ConnectionResetError
        found: dict[str, Any] = orjson.loads(answer)["result"]
        return found

    def connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.connect(self.socket)
        return line

    def check(self) -> None:
        """Raise when an invariant of hiboss's own store is broken."""
        self._daemon.check()

    def texts(self) -> list[tuple[str, str]]:
        """The id and the text of all that is stored but the first."""
        with self._daemon.database() as connection:
            rows = connection.execute(
                "SELECT 'm' || id, text FROM message WHERE text <> 'the first'"
            ).fetchall()
        return [(row[0], row[1]) for row in rows]

    def _cpu(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system) * 1e6
