"""Two hundred who follow: what they cost those who send, and that each is told of all its mail.

Each follows its own agent on a connection of its own, and one more follows everything. Sends without
and with them are measured in turn, in the same daemon. The followers are a process of their own
(`python -m bench.followers`): it reads JSON from standard input and writes a line when all have
subscribed; when its input ends, it writes how many facts each was told.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, rated
from .homes import AGENT, TEXT, cpu, new_home
from .load import ROOT, Load, Outcome, generate
from .rounds import Size, rounds, say

FOLLOWERS = 200
CONNECTIONS = 32
WARM_SECONDS = 0.2
CPU_FLOOR, CPU_AIM = 1.6, 1.25  # times the CPU of a send that nobody follows; the cheaper that is, the more
QUIET_SECONDS = 0.5  # without a fact: then all were told


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    daemon.start()
    without: list[tuple[Outcome, float]] = []
    followed: list[tuple[Outcome, float]] = []
    try:
        names = [f"f{number}" for number in range(FOLLOWERS)]
        say(f"registering {FOLLOWERS} agents")
        tokens = [daemon.register(name) for name in names]
        for _ in rounds(size.rounds, f"sends without and with {FOLLOWERS} followers"):
            without.append(_send(daemon, names, size.seconds))
            with following(daemon, tokens) as told:
                followed.append(_send(daemon, names, size.seconds))
            _check(told, followed[-1][0].answered)
        daemon.check()
    finally:
        daemon.stop()
    return _figures(without, followed)


def _send(daemon: RunningDaemon, names: list[str], seconds: float) -> tuple[Outcome, float]:
    """Send to all of them in turn; return what came of it, and the daemon's microseconds for each."""
    before = cpu(daemon.pid)
    [sent] = generate(
        Load(
            socket=daemon.home.socket,
            method="envelope.send",
            params={"token": daemon.token(AGENT), "text": TEXT},
            to=[f"agent:{name}" for name in names],
            connections=CONNECTIONS,
            seconds=seconds,
            warm_seconds=WARM_SECONDS,
        )
    )
    return sent, (cpu(daemon.pid) - before) / sent.answered


def _check(told: list[int], answered: int) -> None:
    """Speed counts only if everybody was told of everything."""
    *each, all_ = told
    if sum(each) != answered or all_ != answered:
        raise AssertionError(f"of {answered} sends {sum(each)} were told to their recipients, {all_} to one")


def _figures(without: list[tuple[Outcome, float]], followed: list[tuple[Outcome, float]]) -> list[Figure]:
    alone, rates = [one.rate for one, _ in without], [one.rate for one, _ in followed]
    ratio = Ratio(
        key="to_none",
        value=middle_ratio(rates, alone),
        of=f"of sends that nobody follows ({median(alone):,.0f}/s)",
        aim=0.8,  # no floor: the followers themselves are a process that wants a core of the same machine
    )
    spent, spent_alone = [used for _, used in followed], [used for _, used in without]
    costs = Ratio(
        key="cpu",
        value=middle_ratio(spent, spent_alone),
        of=f"× the daemon's CPU a send that nobody follows ({median(spent_alone):,.0f} µs)",
        sense=AT_MOST,
        floor=CPU_FLOOR,
        aim=CPU_AIM,
    )
    work = f"{CONNECTIONS} connections, {FOLLOWERS} follow their box and one everything"
    return [
        rated("sends_followed", f"durable sends, {work}", [one for one, _ in followed], ratio),
        Figure(
            key="cpu_sends_followed",
            work=f"daemon CPU a send, {work}",
            taken=spent,
            unit="µs",
            ratios=(costs,),
        ),
    ]


@contextmanager
def following(daemon: RunningDaemon, tokens: list[str]) -> Iterator[list[int]]:
    """Let everybody follow; the list has how many facts each was told, at the end. The last is the boss."""
    told: list[int] = []
    request = {"socket": daemon.home.socket, "tokens": [*tokens, daemon.token("boss")]}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.followers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ready":
            raise AssertionError("the followers could not subscribe")
        yield told
        process.stdin.close()
        told += json.loads(process.stdout.readline())


def follow(path: str, tokens: list[str]) -> None:
    """Subscribe with each token, count what is told until standard input ends, and write the numbers."""
    poll = select.epoll()
    lines: dict[int, socket.socket] = {}
    told: dict[int, int] = {}
    for token in tokens:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.connect(path)
        params = {"token": token, "topics": ["envelope.arrived"]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "event.subscribe", "params": params}
        line.sendall(json.dumps(call).encode() + b"\n")
        if "result" not in json.loads(line.recv(1 << 16)):
            raise SystemExit("a subscription was refused")
        lines[line.fileno()], told[line.fileno()] = line, 0
        poll.register(line.fileno(), select.EPOLLIN)
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    print("ready", flush=True)
    ending = False
    while (ready := poll.poll(QUIET_SECONDS if ending else None)) or not ending:
        for number, _ in ready:
            if number in lines:
                told[number] += lines[number].recv(1 << 18).count(b"\n")
            elif not os.read(number, 1 << 16):
                ending = True
                poll.unregister(number)
    print(json.dumps(list(told.values())), flush=True)


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    follow(given["socket"], given["tokens"])
