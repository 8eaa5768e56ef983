"""A thousand who wait: what they cost while nothing comes, and how soon the right ones wake.

Each waits on a connection of its own. Woken is when its answer is there to be read, counted from
before the send; nobody else may wake, and all who do are counted.
"""

from __future__ import annotations

import json
import resource
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, quantile
from .homes import AGENT, TEXT, cpu, new_home
from .rounds import Size, rounds, say

WAITERS = 1_000
SENDS = 15  # to one of them each, in a round
IDLE_SECONDS = 0.5
PATIENCE = "1h"
QUIET_SECONDS = 0.01  # after the last answer that was due: who else wakes
WAKE_SECONDS = 30.0
IDLE_LIMIT = 2.0  # per cent of a core
DESCRIPTORS = 4_096


@dataclass
class Woken:
    """What the rounds gave; times in milliseconds, those of one round in a list."""

    idle: list[float] = field(default_factory=list)  # per cent of a core
    one: list[list[float]] = field(default_factory=list)  # until the one who waits for a box is answered
    sends: list[list[float]] = field(default_factory=list)  # until the send itself is, at the same time
    each: list[list[float]] = field(default_factory=list)  # of many who wait for one box
    others: list[float] = field(default_factory=list)  # who woke with nothing for them


class Crowd:
    """Those who wait: for each a token, a connection, and how far it was told."""

    def __init__(self, tokens: list[str], lines: list[socket.socket], sender: socket.socket) -> None:
        self._tokens = tokens
        self._sender = sender
        self._lines = lines
        self._queue = {line.fileno(): place for place, line in enumerate(lines)}
        self._poll = select.epoll()
        self._poll.register(sender.fileno(), select.EPOLLIN)
        for place, line in enumerate(lines):
            self._poll.register(line.fileno(), select.EPOLLIN)
            self._wait(place)

    def _wait(self, place: int, after: str | None = None) -> None:
        """Ask, and make sure that it waits: a ping asked behind it is answered first."""
        line = self._lines[place]
        params = {"token": self._tokens[place], "timeout": PATIENCE, **({"after": after} if after else {})}
        line.sendall(_request("envelope.wait", params) + _request("daemon.ping", {}))
        if "pong" not in _answer(line):
            raise AssertionError("a wait was answered before anything came")

    def send(self, params: dict[str, Any], number: int) -> tuple[float, dict[int, float]]:
        """When it was answered, and who woke when: so many, then any more that wake without reason."""
        found: dict[int, float] = {}
        sent = 0.0
        begin = perf_counter()
        self._sender.sendall(_request("envelope.send", params))
        while ready := self._poll.poll(QUIET_SECONDS if sent and len(found) >= number else WAKE_SECONDS):
            now = (perf_counter() - begin) * 1000
            for descriptor, _ in ready:
                if descriptor == self._sender.fileno():
                    _answer(self._sender)
                    sent = now
                else:
                    found[self._queue[descriptor]] = now
                    self._poll.modify(descriptor, 0)  # its answer is read later: others wait for the clock
        if len(found) < number:
            raise AssertionError(f"of {number} who should have woken {len(found)} did")
        return sent, found

    def wait_again(self, places: Any) -> None:
        for place in places:
            answer = _answer(self._lines[place])
            self._wait(place, after=answer["next"])
            self._poll.modify(self._lines[place].fileno(), select.EPOLLIN)


@contextmanager
def waiting(daemon: RunningDaemon, tokens: list[str]) -> Iterator[Crowd]:
    with ExitStack() as stack:
        sender, *lines = (stack.enter_context(daemon.connect()) for _ in range(len(tokens) + 1))
        yield Crowd(tokens, lines, sender)


def measure(directory: Path, size: Size) -> list[Figure]:
    _allow_many_files()
    daemon = new_home(directory)
    daemon.start()
    woken = Woken()
    try:
        names = [f"w{number}" for number in range(WAITERS)]
        say(f"registering {WAITERS:,} agents")
        tokens = [daemon.register(name) for name in names]
        alone = _idle(daemon)
        with waiting(daemon, tokens) as crowd:
            for number in rounds(size.rounds, f"{WAITERS:,} wait, idle and woken one by one"):
                woken.idle.append(_idle(daemon))
                places = [(number * SENDS + one) * 7 % WAITERS for one in range(SENDS)]
                found = [_wake(daemon, crowd, names[place], {place}) for place in places]
                woken.one.append([times[0] for _, times, _ in found])
                woken.sends.append([sent for sent, _, _ in found])
                woken.others.append(sum(others for _, _, others in found))
        with waiting(daemon, [daemon.token(AGENT)] * WAITERS) as crowd:
            for _ in rounds(size.rounds, f"{WAITERS:,} wait for one box"):
                woken.each.append(_wake(daemon, crowd, AGENT, set(range(WAITERS)))[1])
        daemon.check()
    finally:
        daemon.stop()
    return _figures(alone, woken)


def _wake(daemon: RunningDaemon, crowd: Crowd, name: str, places: set[int]) -> tuple[float, list[float], int]:
    """One send, to a box for which these wait: when it was answered, when they woke, how many others did."""
    params = {"token": daemon.token("boss"), "from": "user:boss", "to": f"agent:{name}", "text": TEXT}
    sent, found = crowd.send(params, len(places))
    times = [took for place, took in found.items() if place in places]
    crowd.wait_again(found)
    return sent, times, len(found) - len(times)


def _idle(daemon: RunningDaemon) -> float:
    """Per cent of a core that the daemon takes while nothing is asked of it."""
    before, begin = cpu(daemon.pid), perf_counter()
    sleep(IDLE_SECONDS)
    return (cpu(daemon.pid) - before) / 1e4 / (perf_counter() - begin)


def _request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def _answer(line: socket.socket) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        part = line.recv(1 << 16)
        if not part:
            raise AssertionError("the daemon hung up")
        data += part
    result: dict[str, Any] = json.loads(data)["result"]
    return result


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _figures(alone: float, woken: Woken) -> list[Figure]:
    one, calls = ([median(times) for times in some] for some in (woken.one, woken.sends))
    to_send = Ratio(
        key="to_send",
        value=middle_ratio(one, calls),
        of=f"× the send itself ({median(calls):.2f} ms)",
        sense=AT_MOST,
        aim=1.2,
    )
    per_waiter = Ratio(
        key="to_one",
        value=median(map(max, woken.each)) / WAITERS / median(one),
        of=f"× one wake ({median(one):.2f} ms), for each until the last",
        sense=AT_MOST,
        aim=0.2,
    )
    return [
        Figure(
            key="idle_waiters",
            work=f"the daemon's CPU, idle, {WAITERS:,} wait ({alone:.2f} % when nobody does)",
            taken=woken.idle,
            unit="%",
            goal="near zero",
            at_most=IDLE_LIMIT,
            grain=1.0,
        ),
        _woken("wake_one", f"send to wake, one of {WAITERS:,} who wait", woken.one, to_send),
        _woken("wake_all", f"send to wake, {WAITERS:,} who wait for one box", woken.each, per_waiter),
        Figure(
            key="woken_for_nothing",
            work=f"woken by the mail of others, in {SENDS} sends",
            taken=woken.others,
            unit="in all",
            goal="none",
            at_most=0.0,
            longest=True,
            grain=1.0,
        ),
    ]


def _woken(key: str, work: str, times: list[list[float]], ratio: Ratio) -> Figure:
    taken = [median(some) for some in times]
    return Figure(
        key=key,
        work=work,
        taken=taken,
        unit="ms",
        goal="5 ms" if key == "wake_one" else "",
        p50=median(taken),
        p99=quantile([time for some in times for time in some], 0.99),
        ratios=(ratio,),
    )
