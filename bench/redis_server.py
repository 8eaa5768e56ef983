"""`--beside redis`: sends in turns with Debian's redis-server, as durable as hiboss.

Every answer comes after an fsync of its append-only file. It listens on a unix socket in the directory of the
bench, on no port, and lies on the same file system as our home. The client is our own load generator: the
same connections, as many in flight, the same text.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from .bare import Bare
from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import TEXT, cpu, new_home
from .load import Load, Outcome, generate
from .rounds import Size, rounds
from .sends import DEEP, MANY, ONE, WARM_SECONDS, WAYS, Taken, Way, check, cpu_figure, rate, send

PROGRAM = "redis-server"
ADVICE = "redis-server is not installed: install it (Debian: apt-get install redis-server) and measure again"
STREAM = "bench"
START_SECONDS = 30.0
Send = Callable[[Way, float], tuple[Outcome, float]]
AIMS = {ONE.key: 0.5, MANY.key: 0.35, DEEP.key: 0.25}


def installed() -> bool:
    return shutil.which(PROGRAM) is not None


class RedisServer:
    """A server of our own, from `start` to `stop`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._socket = os.fspath(directory / "redis.sock")
        self._process: subprocess.Popen[bytes] | None = None
        self._answered = 0

    def start(self) -> None:
        options = {
            "port": "0",
            "unixsocket": self._socket,
            "dir": os.fspath(self._directory),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "auto-aof-rewrite-percentage": "0",  # or it would fork and write all anew in the midst of a round
        }
        given = [word for name, value in options.items() for word in (f"--{name}", value)]
        log = (self._directory / "log").open("wb")
        with log:
            self._process = subprocess.Popen([PROGRAM, *given], stdin=subprocess.DEVNULL, stdout=log)
        end = monotonic() + START_SECONDS
        while not os.path.exists(self._socket):
            if self._process.poll() is not None or monotonic() > end:
                raise RuntimeError(f"redis-server did not start: {(self._directory / 'log').read_text()}")
            sleep(0.01)
        if b"always" not in self._ask("CONFIG", "GET", "appendfsync"):
            raise RuntimeError("redis-server does not sync each answer")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None

    def send(self, way: Way, seconds: float) -> tuple[Outcome, float]:
        """Append to one stream. What came of it, and the microseconds the server worked for one."""
        before = self._cpu()
        [sent] = generate(
            Load(
                socket=self._socket,
                raw=encoded("XADD", STREAM, "*", "text", TEXT),
                answer_lines=2,  # the length of an id, and the id
                connections=way.connections,
                in_flight=way.in_flight,
                seconds=seconds,
                warm_seconds=WARM_SECONDS,
            )
        )
        self._answered += sent.answered
        return sent, (self._cpu() - before) / sent.answered

    def check(self) -> None:
        """Speed counts only if everything answered is there, and nothing else."""
        stored = int(self._ask("XLEN", STREAM)[1:])
        if stored != self._answered:
            raise AssertionError(f"{self._answered} XADD were answered and {stored} are stored")

    def _cpu(self) -> float:
        assert self._process is not None
        return cpu(self._process.pid)

    def _ask(self, *words: str) -> bytes:
        """The first part of an answer: all of a short one."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(START_SECONDS)
            line.connect(self._socket)
            line.sendall(encoded(*words).encode())
            return line.recv(4096)


def encoded(*words: str) -> str:
    """A command as Redis reads it: how many words, then each with its length."""
    parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}"


def measure(directory: Path, size: Size) -> list[Figure]:
    """In each round every way to send: bare, this tree, Redis; the next round goes the other way round."""
    bare, daemon, server = (
        Bare(directory / "bare"),
        new_home(directory / "ours"),
        RedisServer(directory / "redis"),
    )
    ours = {way: Taken() for way in WAYS}
    theirs = {way: Taken() for way in WAYS}
    try:
        daemon.start()
        server.start()
        for number in rounds(size.rounds, "sends beside Redis"):
            for way in WAYS:
                ours[way].bare.append(bare.run(way.group, size.seconds, WARM_SECONDS))
                turns: list[tuple[dict[Way, Taken], Send]] = [
                    (ours, partial(send, daemon)),
                    (theirs, server.send),
                ]
                for taken, act in turns[:: 1 if number % 2 else -1]:
                    sent, spent = act(way, size.seconds)
                    taken[way].sent.append(sent)
                    taken[way].cpu.append(spent)
        bare.check()
        check(daemon, sum(one.answered for taken in ours.values() for one in taken.sent))
        server.check()
    finally:
        bare.close()
        daemon.stop()
        server.stop()
    rates = [rate(way, ours[way], _share(way, ours[way], theirs[way])) for way in WAYS]
    return [*rates, *(cpu_figure(way, ours[way], _times(ours[way], theirs[way])) for way in WAYS)]


def _share(way: Way, ours: Taken, theirs: Taken) -> Ratio:
    rates = [one.rate for one in theirs.sent]
    of_bare = middle_ratio(rates, [one.rate for one in ours.bare])
    of = f"of XADD to Redis, appendfsync always ({median(rates):,.0f}/s, {of_bare:.2f} of bare)"
    value = middle_ratio([one.rate for one in ours.sent], rates)
    return Ratio(key="to_redis", value=value, of=of, aim=AIMS[way.key])


def _times(ours: Taken, theirs: Taken) -> Ratio:
    of = f"× Redis ({median(theirs.cpu):.2f} µs)"
    return Ratio(key="to_redis", value=middle_ratio(ours.cpu, theirs.cpu), of=of, sense=AT_MOST)
