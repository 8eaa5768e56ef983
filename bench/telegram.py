"""A Telegram bot: how soon a message there begins a turn.

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

from hiboss.core import clock
from hiboss.testing.bot_api import BotApi
from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, new_home
from .rounds import Size, rounds

MESSAGES = 4  # of each kind in a round


def measure(directory: Path, size: Size) -> list[Figure]:
    by_chat: list[float] = []
    by_socket: list[float] = []
    with BotApi() as api:
        bot, ada = api.add_bot("nexbot"), api.add_person("Ada")
        daemon = new_home(directory)
        daemon.start(HIBOSS_TELEGRAM_BASE_URL=api.url)
        try:
            boss = daemon.token("boss")
            daemon.call("agent.set", token=boss, name=AGENT, provider="command", settings={"command": "true"})
            daemon.call("boss.set", token=boss, ids={"telegram": str(ada.id)})
            settings = {"adapter_token": bot.token}
            daemon.call("agent.bind", token=boss, name=AGENT, adapter_type="telegram", settings=settings)
            chat = ada.starts(bot)
            chat.wait_for_text("/help")
            send = partial(daemon.call, "envelope.send", token=boss, to=f"agent:{AGENT}", text="socket")
            for _ in rounds(size.rounds, "messages from a chat and over the socket, until their turns begin"):
                for act, taken in ((partial(ada.says, chat, "chat"), by_chat), (send, by_socket)):
                    taken.append(median(_until_begun(daemon, act) for _ in range(MESSAGES)))
            daemon.check()
        finally:
            daemon.stop()
    against = Ratio(
        key="socket",
        value=middle_ratio(by_chat, by_socket),
        of=f"× a send over the socket ({median(by_socket):.1f} ms)",
        sense=AT_MOST,
    )
    return [
        Figure(
            key="telegram_turn",
            work="Telegram: update until its turn begins",
            taken=by_chat,
            unit="ms",
            p50=median(by_chat),
            ratios=(against,),
        )
    ]


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
            return max(0.1, clock.to_ms(datetime.fromisoformat(new[0]["started_at"])) - begun)
        sleep(0.005)
