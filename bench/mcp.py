"""MCP: what a call of a tool costs beside the SDK itself and our operation, and the start of `hiboss mcp`.

The SDK's share is measured with a server of the same SDK whose tool does nothing (`bench.empty_mcp`), the
operation by the unix socket. The clients are one process, which calls in turns (`bench.mcp_clients`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, perf_counter, sleep
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from . import programs
from .figures import AT_MOST, Figure, Ratio
from .homes import AGENT, new_home, say
from .load import ROOT
from .web import ON, _url

TOOL, OPERATION = "chat_read_since", "chat.read"
PROGRAM = os.fspath(Path(sys.executable).with_name("hiboss"))


def measure(directory: Path, calls: int, runs: int) -> list[Figure]:
    daemon = new_home(directory / "mcp")
    daemon.start(**ON)
    try:
        token = daemon.token(AGENT)
        environment = {**os.environ, "HIBOSS_HOME": daemon.home.path, "HIBOSS_TOKEN": token}
        started = _start(environment, runs)
        calling = _calls(daemon, token, environment, calls)
        daemon.check()
    finally:
        daemon.stop()
    return [*calling, started]


def _start(environment: dict[str, str], runs: int) -> Figure:
    """From the start of the process to its end, when its input ends at once; the worker runs already."""
    say(f"hiboss mcp and python -c pass, {runs} runs each")
    mcp = programs.Program(command=[PROGRAM, "mcp"], environment=environment, is_right=programs.is_silent)
    return programs.measure("mcp_start", "hiboss mcp, start and end", mcp, runs, floor=3.0)


def _calls(daemon: RunningDaemon, token: str, environment: dict[str, str], calls: int) -> list[Figure]:
    say(f"{calls} calls of a tool by stdio and by HTTP, of hiboss and of an empty server")
    port = _free_port()
    empty = subprocess.Popen([sys.executable, "-m", "bench.empty_mcp", str(port)], cwd=ROOT)
    try:
        _wait_for(port)
        own = {"tool": TOOL, "arguments": {}}
        plain = dict(os.environ, PYTHONPATH=os.fspath(ROOT))
        nothing: dict[str, Any] = {"tool": "nothing"}
        ways = {
            "stdio": {**own, "command": [PROGRAM, "mcp"], "environment": environment},
            "empty_stdio": {
                **nothing,
                "command": [sys.executable, "-m", "bench.empty_mcp"],
                "environment": plain,
            },
            "http": {**own, "url": f"{_url(daemon)}/mcp", "headers": {"Authorization": f"Bearer {token}"}},
            "empty_http": {**nothing, "url": f"http://127.0.0.1:{port}/mcp", "headers": {}},
        }
        took = _measured(ways, calls)
    finally:
        empty.terminate()
        empty.wait()
    operation = _operation(daemon, token, calls)
    return [_figure(way, took[way], took[f"empty_{way}"], operation) for way in ("stdio", "http")]


def _measured(ways: dict[str, Any], calls: int) -> dict[str, list[float]]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.mcp_clients"],
        cwd=ROOT,
        input=json.dumps({"ways": ways, "calls": calls}).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def _operation(daemon: RunningDaemon, token: str, calls: int) -> list[float]:
    """Milliseconds of the operation itself, on a connection that stays open."""
    took = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(daemon.home.socket)
        lines = connection.makefile("rb")
        request = {"jsonrpc": "2.0", "id": 1, "method": OPERATION, "params": {"token": token}}
        line = json.dumps(request).encode() + b"\n"
        for _ in range(calls):
            begin = perf_counter()
            connection.sendall(line)
            answer = lines.readline()
            took.append((perf_counter() - begin) * 1000)
            assert b'"result"' in answer, answer
    return took


def _figure(way: str, took: list[float], empty: list[float], operation: list[float]) -> Figure:
    def tail(numbers: list[float]) -> float:
        return quantiles(numbers, n=100)[98]

    ratios = []
    for key, of, floor in (("p50", median, 2.0), ("p99", tail, None)):
        base = of(empty) + of(operation)
        ratios.append(
            Ratio(
                key=key,
                value=of(took) / base,
                of=f"× an empty tool and our operation, {key} ({base:.2f} ms)",
                sense=AT_MOST,
                floor=floor,
                aim=2.0,
            )
        )
    return Figure(
        key=f"mcp_{way}",
        work=f"a tool by {way.upper() if way == 'http' else way}",
        value=median(took),
        unit="ms",
        p50=median(took),
        p99=tail(took),
        ratios=tuple(ratios),
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    end = monotonic() + 30
    while monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.05)
    raise AssertionError("the empty server does not listen")
