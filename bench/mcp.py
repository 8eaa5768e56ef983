"""MCP: what a call of a tool costs beside the SDK itself and our operation, and the start of `hiboss mcp`.

The SDK's share is measured with a server of the same SDK whose tool does nothing (`bench.empty_mcp`), the
operation by the unix socket. The clients are one process, which calls in turns (`bench.mcp_clients`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio, quantile
from .homes import AGENT, ENVIRONMENT, new_home
from .load import ROOT
from .programs import HIBOSS, Program
from .rests import WEB_ON, web_url
from .rounds import Size, rounds

TOOL, OPERATION = "chat_read_since", "chat.read"
CALLS = 25  # of each kind in a round


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    daemon.start(**WEB_ON)
    try:
        token = daemon.token(AGENT)
        environment = {**os.environ, "HIBOSS_HOME": daemon.home.path, "HIBOSS_TOKEN": token}
        own = {"tool": TOOL, "arguments": {}}
        server = [sys.executable, "-m", "bench.empty_mcp"]
        plain = dict(os.environ, PYTHONPATH=ENVIRONMENT["PYTHONPATH"])
        empty = subprocess.Popen([*server, "port"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        with empty:
            try:
                assert empty.stdout is not None
                url = f"http://127.0.0.1:{empty.stdout.readline().strip()}/mcp"
                by_http = {"url": f"{web_url(daemon)}/mcp", "headers": {"Authorization": f"Bearer {token}"}}
                ways = {
                    "stdio": {**own, "command": [HIBOSS, "mcp"], "environment": environment},
                    "empty_stdio": {"tool": "nothing", "command": server, "environment": plain},
                    "http": {**own, **by_http},
                    "empty_http": {"tool": "nothing", "url": url, "headers": {}},
                }
                figures = _calls(daemon, token, ways, size)
            finally:
                empty.terminate()
        start = Program(
            key="mcp_start",
            work="hiboss mcp, start and end",  # when its input ends at once; the worker runs already
            command=[HIBOSS, "mcp"],
            environment=environment,
            floor=3.0,
        )
        for _ in rounds(size.rounds, "starts of hiboss mcp"):
            start.run()
        daemon.check()
    finally:
        daemon.stop()
    return [*figures, start.figure()]


def _calls(daemon: RunningDaemon, token: str, ways: dict[str, Any], size: Size) -> list[Figure]:
    taken: dict[str, list[list[float]]] = {name: [] for name in (*ways, "operation")}
    clients = subprocess.Popen(
        [sys.executable, "-m", "bench.mcp_clients"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with clients:
        assert clients.stdin is not None and clients.stdout is not None
        try:
            _ask(clients, json.dumps(ways))
            for _ in rounds(size.rounds, "calls of a tool, of hiboss and of an empty server"):
                for name, took in _ask(clients, str(CALLS)).items():
                    taken[name].append(took)
                taken["operation"].append(_operation(daemon, token, CALLS))
        finally:
            clients.stdin.close()
    return [_figure(way, taken[way], taken[f"empty_{way}"], taken["operation"]) for way in ("stdio", "http")]


def _ask(clients: subprocess.Popen[str], line: str) -> dict[str, list[float]]:
    assert clients.stdin is not None and clients.stdout is not None
    clients.stdin.write(line + "\n")
    clients.stdin.flush()
    answer = clients.stdout.readline()
    if not answer:
        raise RuntimeError("the MCP clients have ended")
    found: dict[str, list[float]] = json.loads(answer)
    return found


def _operation(daemon: RunningDaemon, token: str, calls: int) -> list[float]:
    """Milliseconds of the operation itself, on a connection that stays open."""
    took = []
    with daemon.connect() as connection:
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


def _figure(
    way: str, took: list[list[float]], empty: list[list[float]], operation: list[list[float]]
) -> Figure:
    taken = [median(some) for some in took]
    base = [median(some) + median(more) for some, more in zip(empty, operation, strict=True)]
    ratio = Ratio(
        key="p50",
        value=middle_ratio(taken, base),
        of=f"× an empty tool and our operation ({median(base):.2f} ms)",
        sense=AT_MOST,
        floor=2.0,
        aim=2.0,
    )
    return Figure(
        key=f"mcp_{way}",
        work=f"a tool by {way.upper() if way == 'http' else way}",
        taken=taken,
        unit="ms",
        p50=median(taken),
        p99=quantile([time for some in took for time in some], 0.99),
        ratios=(ratio,),
    )
