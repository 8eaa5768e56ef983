"""The HTTP door: what a send costs by WebSocket and by REST, and how soon followers hear.

The clients are a process of their own (`bench.web_clients`). Sends by the socket, by WebSocket and by REST
are measured in turn, in the same daemon, on connections that stay open.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, TEXT, cpu, new_home
from .load import ROOT
from .rests import WEB_ON, web_url
from .rounds import Size, rounds

FOLLOWERS = 200
CONNECTIONS = 8
A_SECOND = 50  # messages that are sent while all follow: 10,000 notifications
WAYS = ("socket", "websocket", "rest")
NAMES = {"websocket": "a WebSocket", "rest": "REST"}
MESSAGES = 25  # in a round


def measure(directory: Path, size: Size) -> list[Figure]:
    daemon = new_home(directory)
    daemon.start(**WEB_ON)
    try:
        url = web_url(daemon)
        figures = [*_sends(daemon, url, size), _followed(daemon, url, size)]
        daemon.check()
    finally:
        daemon.stop()
    return figures


# --- sends ---------------------------------------------------------------------------------


def _sends(daemon: RunningDaemon, url: str, size: Size) -> list[Figure]:
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in rounds(size.rounds, "sends by the socket, a WebSocket and REST"):
        for way in WAYS:
            before = cpu(daemon.pid)
            asked = {"way": way, "connections": CONNECTIONS, "seconds": size.seconds}
            found[way].append(_client(_request(daemon, url, do="send", **asked)))
            spent[way].append((cpu(daemon.pid) - before) / found[way][-1]["answered"])
    return [_send_figure(way, spent, found[way]) for way in WAYS[1:]]


def _send_figure(way: str, spent: dict[str, list[float]], found: list[dict[str, Any]]) -> Figure:
    by_socket = median(spent["socket"])
    ratio = Ratio(
        key="to_socket",
        value=middle_ratio(spent[way], spent["socket"]),
        of=f"× that of the socket ({by_socket:,.0f} µs)",
        sense=AT_MOST,
    )
    return Figure(
        key=f"sends_{way}",
        work=f"the daemon's CPU for a send by {NAMES[way]}, {CONNECTIONS} connections",
        taken=spent[way],
        unit="µs",
        p50=median(one["p50"] for one in found),
        p99=median(one["p99"] for one in found),
        ratios=(ratio,),
    )


def _request(daemon: RunningDaemon, url: str, **more: Any) -> dict[str, Any]:
    own = {"socket": daemon.home.socket, "url": url, "token": daemon.token("boss")}
    return {**own, "to": f"agent:{AGENT}", "text": TEXT, **more}


def _start_client() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.web_clients"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )


def _client(request: dict[str, Any]) -> dict[str, Any]:
    with _start_client() as process:
        written, _ = process.communicate(json.dumps(request) + "\n")
    if process.returncode:
        raise AssertionError(f"the clients failed ({request['way']})")
    found: dict[str, Any] = json.loads(written)
    return found


# --- followers -----------------------------------------------------------------------------


def _followed(daemon: RunningDaemon, url: str, size: Size) -> Figure:
    """Send while everybody follows, not faster than they read. Times are from the answer to the receipt."""
    spent: list[float] = []
    heard: list[dict[str, float]] = []
    for _ in rounds(size.rounds, f"{MESSAGES} messages to {FOLLOWERS} who follow by WebSockets"):
        answered: dict[str, float] = {}
        with _start_client() as process:
            assert process.stdin is not None and process.stdout is not None
            request = _request(daemon, url, do="follow", followers=FOLLOWERS, messages=MESSAGES)
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if process.stdout.readline().strip() != "ready":
                raise AssertionError("the followers could not subscribe")
            before, begin = cpu(daemon.pid), monotonic()
            for number in range(MESSAGES):
                sleep(max(0.0, begin + number / A_SECOND - monotonic()))
                boss = daemon.token("boss")
                made = daemon.call("envelope.send", token=boss, to=f"agent:{AGENT}", text=TEXT)
                answered[made["message"]] = monotonic()
            if process.stdout.readline().strip() != "told":
                raise AssertionError("not everybody was told of everything")
            spent.append((cpu(daemon.pid) - before) / (MESSAGES * FOLLOWERS))
            process.stdin.write(json.dumps(answered) + "\n")
            process.stdin.close()
            line = process.stdout.readline()
        if process.returncode:
            raise AssertionError("somebody was told of something else")
        heard.append(json.loads(line))
    return Figure(
        key="followed_web",
        work=f"notifications by WebSocket, {FOLLOWERS} follow {MESSAGES} messages, {A_SECOND}/s; CPU each",
        taken=spent,
        unit="µs",
        p50=median(one["p50"] for one in heard),
        p99=median(one["p99"] for one in heard),
    )
