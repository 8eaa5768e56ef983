"""A Telegram bot: the memory it costs a daemon at rest, and how soon a message there begins a turn.

The platform is the test server (hiboss/testing/bot_api), in this process. Messages from the chat are
measured in turn with messages over the socket: both until the run has begun, by the daemon's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from time import sleep, time
from typing import Any

import psutil

from hiboss.core import clock
from hiboss.testing.bot_api import BotApi
from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio
from .homes import AGENT, new_home, say

REST_SECONDS = 0.5
WITHOUT_LIMIT, WITH_LIMIT = 80.0, 100.0  # MB


def measure(directory: Path, messages: int) -> list[Figure]:
    with BotApi() as api:
        bot, ada = api.add_bot("nexbot"), api.add_person("Ada")
        daemon = new_home(directory / "telegram")
        daemon.start(HIBOSS_TELEGRAM_BASE_URL=api.url)
        try:
            without = _memory(daemon)
            boss = daemon.token("boss")
            daemon.call("agent.set", token=boss, name=AGENT, provider="command", settings={"command": "true"})
            daemon.call("boss.set", token=boss, ids={"telegram": str(ada.id)})
            settings = {"adapter_token": bot.token}
            daemon.call("agent.bind", token=boss, name=AGENT, adapter_type="telegram", settings=settings)
            chat = ada.starts(bot)
            chat.wait_for_text("/help")
            with_bot = _memory(daemon)
            say(f"{messages} messages from the chat and {messages} over the socket, until their turns begin")
            by_chat, by_socket = [], []
            send = partial(daemon.call, "envelope.send", token=boss, to=f"agent:{AGENT}")
            for number in range(messages):
                by_chat.append(_until_begun(daemon, partial(ada.says, chat, f"chat {number}")))
                by_socket.append(_until_begun(daemon, partial(send, text=f"socket {number}")))
            daemon.check()
        finally:
            daemon.stop()
    return [*_rests(without, with_bot), _begins(by_chat, by_socket)]


def _memory(daemon: RunningDaemon) -> float:
    daemon.call("daemon.ping")
    sleep(REST_SECONDS)
    return float(psutil.Process(daemon.pid).memory_info().rss / 1e6)


def _until_begun(daemon: RunningDaemon, act: Callable[[], Any]) -> float:
    """Return how many milliseconds pass between an act and the beginning of the run that it causes."""
    boss = daemon.token("boss")
    before = {one["id"] for one in daemon.call("run.list", token=boss, page_size=5)["runs"]}
    begun = time() * 1000
    act()
    while True:
        runs = daemon.call("run.list", token=boss, page_size=5)["runs"]
        new = [one for one in runs if one["id"] not in before]
        if new and new[0]["ended_at"] is not None:
            return clock.to_ms(datetime.fromisoformat(new[0]["started_at"])) - begun
        sleep(0.005)


def _rests(without: float, with_bot: float) -> list[Figure]:
    grown = Ratio(key="bot", value=with_bot / without, of="× the same without a bot", sense=AT_MOST, aim=1.4)
    return [
        Figure(
            key="idle_no_bot",
            work="daemon idle, no bot, RSS",
            value=without,
            unit="MB",
            goal="70 MB",
            at_most=WITHOUT_LIMIT,
        ),
        Figure(
            key="idle_bot",
            work="daemon idle, one Telegram bot, RSS",
            value=with_bot,
            unit="MB",
            goal="100 MB",
            at_most=WITH_LIMIT,
            ratios=(grown,),
        ),
    ]


def _begins(by_chat: list[float], by_socket: list[float]) -> Figure:
    against = Ratio(
        key="socket",
        value=median(by_chat) / max(median(by_socket), 0.1),
        of=f"× a send over the socket ({median(by_socket):.1f} ms)",
        sense=AT_MOST,
    )
    return Figure(
        key="telegram_turn",
        work="Telegram: update until its turn begins",
        value=median(by_chat),
        unit="ms",
        p50=median(by_chat),
        p99=sorted(by_chat)[int(len(by_chat) * 0.99)],
        ratios=(against,),
    )
