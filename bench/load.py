"""The load generator: a process of its own, so that it takes nothing from the daemon's threads.

`python -m bench.load` reads JSON from standard input and writes JSON to standard output: groups of
loads, each answered with a list of outcomes. One load: a request, encoded beforehand, is
sent over and over on some connections with so many in flight on each, for so long, and every
answer is waited for. Several loads: one call of each in turn, so that all see the same noise. The first
answer never counts.
The request is JSON-RPC for a daemon of ours, or that of another server as it is written.
"""

from __future__ import annotations

import gc
import json
import select
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice, repeat
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

SILENCE_SECONDS = 30.0  # longer without any answer is an error
# Where `bench` is found. Not resolved: with `--beside` that is a directory with nothing but a link to it.
ROOT = Path(__file__).absolute().parent.parent


@dataclass(frozen=True, kw_only=True)
class Load:
    """What to send. It ends after `seconds`, or before that when `most` were sent."""

    socket: str
    method: str = ""
    raw: str = ""  # in place of a method: a request of another protocol, as it is written
    answer_lines: int = 1  # by which an answer is known to be whole
    params: dict[str, Any] = field(default_factory=dict)
    to: list[str] = field(default_factory=list)  # addresses to write to in turn, for a send
    connections: int = 1
    in_flight: int = 1
    seconds: float = 1.0
    warm_seconds: float = 0.2
    most: int = 1_000_000

    def requests(self) -> Iterator[bytes]:
        """Without end; all are encoded beforehand."""
        if self.raw:
            return repeat(self.raw.encode())
        return cycle(
            [self._encode({**self.params, "to": to}) for to in self.to] or [self._encode(self.params)]
        )

    def _encode(self, params: dict[str, Any]) -> bytes:
        call = {"jsonrpc": "2.0", "id": 1, "method": self.method, "params": params}
        return orjson.dumps(call) + b"\n"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of it; times in milliseconds."""

    answered: int  # all answers, those while warming up too
    rate: float  # answers a second
    p50: float
    p99: float
    most: float


def generate(*loads: Load) -> list[Outcome]:
    """Run the generator as a process and wait for it."""
    return generate_all([loads])[0]


def generate_all(groups: Sequence[Sequence[Load]]) -> list[list[Outcome]]:
    """Each group after the other, in one process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps([[asdict(load) for load in loads] for loads in groups]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=sum(max(load.seconds + load.warm_seconds for load in loads) for loads in groups)
        + 2 * SILENCE_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {done.stderr.strip()[-2000:]}")
    return [[Outcome(**outcome) for outcome in outcomes] for outcomes in json.loads(done.stdout)]


class _Times:
    """The times of the answers that count: those after warming up."""

    def __init__(self, load: Load) -> None:
        begin = perf_counter()
        self.end = begin + load.warm_seconds + load.seconds
        self._warm_until = begin + load.warm_seconds
        self._start = begin
        self._last = begin
        self._taken: list[float] = []
        self.answered = 0

    def add(self, now: float, took: list[float]) -> None:
        self.answered += len(took)
        self._last = now
        if self._warm_until:
            if now < self._warm_until:
                return
            self._warm_until = 0.0
            self._start = now  # these answers began before it: they are not counted
            return
        self._taken += took

    def outcome(self) -> Outcome:
        taken = sorted(self._taken)
        if not taken:
            raise SystemExit("not one answer after warming up")

        def quantile(share: float) -> float:
            return taken[min(len(taken) - 1, int(len(taken) * share))] * 1000

        rate = len(taken) / (self._last - self._start)
        return Outcome(
            answered=self.answered, rate=rate, p50=quantile(0.5), p99=quantile(0.99), most=taken[-1] * 1000
        )


def _check(data: bytes) -> None:
    if not data:
        raise SystemExit("the daemon hung up")
    if b'"error":' in data:
        raise SystemExit(f"the daemon answered: {data[:1000].decode(errors='replace')}")


def _in_turns(lines: list[socket.socket], loads: list[Load]) -> list[Outcome]:
    """One call of each load after the other, on one connection each."""
    turns = [(line, load.requests(), _Times(load)) for line, load in zip(lines, loads, strict=True)]
    ends = min(times.end for _, _, times in turns)
    while perf_counter() < ends and turns[0][2].answered < loads[0].most:
        for (line, requests, times), load in zip(turns, loads, strict=True):
            request = next(requests)
            before = perf_counter()
            line.sendall(request)
            data = line.recv(1 << 20)
            while data.count(b"\n") < load.answer_lines:
                more = line.recv(1 << 20)
                _check(more)
                data += more
            _check(data)
            now = perf_counter()
            times.add(now, [now - before])
    return [times.outcome() for _, _, times in turns]


def _many(lines: list[socket.socket], load: Load) -> Outcome:
    requests, times = load.requests(), _Times(load)
    poll = select.epoll()
    by_number = {line.fileno(): line for line in lines}
    asked: dict[int, deque[float]] = {}
    parts = dict.fromkeys(by_number, 0)  # lines of an answer whose others have not come yet
    for number, line in by_number.items():
        poll.register(number, select.EPOLLIN)
        asked[number] = deque([perf_counter()] * load.in_flight)
        line.sendall(b"".join(islice(requests, load.in_flight)))
    waiting = len(lines) * load.in_flight
    while waiting:
        ready = poll.poll(SILENCE_SECONDS)
        if not ready:
            raise SystemExit(f"no answer for {SILENCE_SECONDS} s")
        for number, _ in ready:
            line, began = by_number[number], asked[number]
            data = line.recv(1 << 16)
            _check(data)
            now = perf_counter()
            answers, parts[number] = divmod(parts[number] + data.count(b"\n"), load.answer_lines)
            times.add(now, [now - began.popleft() for _ in range(answers)])
            waiting -= answers
            if answers and now < times.end and times.answered + waiting + answers <= load.most:
                line.sendall(b"".join(islice(requests, answers)))
                began.extend([now] * answers)
                waiting += answers
    return times.outcome()


def run(loads: list[Load]) -> list[Outcome]:
    lines: list[socket.socket] = []
    try:
        for load in loads:
            for _ in range(load.connections):
                line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                lines.append(line)
                line.connect(load.socket)
                # Not settimeout, which costs a poll before each call: we measure the other end.
                wait = struct.pack("ll", int(SILENCE_SECONDS), 0)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
        gc.disable()
        if len(loads) == len(lines) and loads[0].in_flight == 1:
            return _in_turns(lines, loads)
        return [_many(lines, loads[0])]
    finally:
        for line in lines:
            line.close()


if __name__ == "__main__":
    asked = [[Load(**one) for one in loads] for loads in json.load(sys.stdin)]
    print(json.dumps([[asdict(outcome) for outcome in run(loads)] for loads in asked]))
