"""The HTTP door: what a send costs by WebSocket and by REST, how soon followers hear, what it weighs at rest.

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

import psutil

from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, TEXT, cpu, new_home, say
from .life import MEMORY_LIMIT, REST_SECONDS
from .load import ROOT

FOLLOWERS = 200
CONNECTIONS = 8
A_SECOND = 50  # messages that are sent while all follow: 10,000 notifications
WAYS = ("socket", "websocket", "rest")
NAMES = {"websocket": "a WebSocket", "rest": "REST"}
ON = {"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}
START_SECONDS = 30.0
QUIET_SECONDS = 2.0  # after the last message: then all were told, or never


def measure(directory: Path, rounds: int, seconds: float, messages: int) -> list[Figure]:
    daemon = new_home(directory / "web")
    try:
        without = _idle(daemon, {"HIBOSS_WEB_ENABLED": "off"})
        daemon.stop()
        weighs = _idle(daemon, ON)
        url = _url(daemon)
        sent = _sends(daemon, url, rounds, seconds)
        heard = _followed(daemon, url, messages)
        daemon.check()
    finally:
        daemon.stop()
    return [*sent, heard, *_memory(weighs, without)]


def _url(daemon: RunningDaemon) -> str:
    """Where it serves HTTP, once it does."""
    end = monotonic() + START_SECONDS
    while (found := daemon.call("daemon.status")["web"])["state"] != "listening":
        if monotonic() > end:
            raise AssertionError(f"HTTP is not served: {found}")
        sleep(0.02)
    return str(found["url"])


# --- at rest -------------------------------------------------------------------------------


def _idle(daemon: RunningDaemon, environment: dict[str, str]) -> float:
    """Start it; return its memory in MB when everything is loaded and nothing happens."""
    daemon.start(**environment)
    if environment == ON:
        _url(daemon)
    sleep(REST_SECONDS)
    return float(psutil.Process(daemon.pid).memory_info().rss / 1e6)


def _memory(weighs: float, without: float) -> list[Figure]:
    more = Ratio(
        key="to_none", value=weighs / without, of=f"× without HTTP ({without:.0f} MB)", sense=AT_MOST
    )
    return [
        Figure(
            key="idle_web",
            work="daemon idle, with HTTP, RSS",
            value=weighs,
            unit="MB",
            at_most=MEMORY_LIMIT,
            ratios=(more,),
        )
    ]


# --- sends ---------------------------------------------------------------------------------


def _sends(daemon: RunningDaemon, url: str, rounds: int, seconds: float) -> list[Figure]:
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        say(f"sends by the socket, a WebSocket and REST, round {number + 1} of {rounds}")
        for way in WAYS:
            before = cpu(daemon)
            asked = {"way": way, "connections": CONNECTIONS, "seconds": seconds}
            found[way].append(_client(_request(daemon, url, do="send", **asked)))
            spent[way].append((cpu(daemon) - before) / found[way][-1]["answered"])
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
        value=median(spent[way]),
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


def _followed(daemon: RunningDaemon, url: str, messages: int) -> Figure:
    """Send while everybody follows, not faster than they read. Times are from the answer to the receipt."""
    say(f"{messages:,} messages to {FOLLOWERS} who follow by WebSockets")
    answered: dict[str, float] = {}
    with _start_client() as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(_request(daemon, url, do="follow", followers=FOLLOWERS)) + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ready":
            raise AssertionError("the followers could not subscribe")
        before, begin = cpu(daemon), monotonic()
        for number in range(messages):
            sleep(max(0.0, begin + number / A_SECOND - monotonic()))
            made = daemon.call("envelope.send", token=daemon.token("boss"), to=f"agent:{AGENT}", text=TEXT)
            answered[made["message"]] = monotonic()
        sleep(QUIET_SECONDS)
        spent = (cpu(daemon) - before) / (messages * FOLLOWERS)
        process.stdin.write(json.dumps(answered) + "\n")
        process.stdin.close()
        line = process.stdout.readline()
    if process.returncode:
        raise AssertionError("not everybody was told of everything")
    found = json.loads(line)
    return Figure(
        key="followed_web",
        work=f"notifications by WebSocket, {FOLLOWERS} follow {messages:,} messages, {A_SECOND}/s; CPU each",
        value=spent,
        unit="µs",
        p50=found["p50"],
        p99=found["p99"],
    )
