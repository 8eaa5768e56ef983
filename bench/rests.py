"""The daemon at rest: how long it takes to start, what that costs, and how much memory it holds then.

In a small store and in a large one; with HTTP; with a Telegram bot, of which the platform is the test server
(hiboss/testing/bot_api) in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep

from hiboss.testing.bot_api import BotApi
from hiboss.testing.running_daemon import RunningDaemon

from .figures import AT_MOST, Figure, Ratio, middle_ratio
from .homes import AGENT, SMALL, cpu, full_home, memory, new_home
from .rounds import Size, rounds

MEMORY_LIMIT, BOT_LIMIT = 80.0, 100.0  # MB
WEB_ON = {"HIBOSS_WEB_ENABLED": "on", "HIBOSS_WEB_PORT": "0"}
START_SECONDS = 60.0


class Taken:
    """What the starts of one daemon gave."""

    def __init__(
        self, daemon: RunningDaemon, is_ready: Callable[[], object] = lambda: None, **environment: str
    ) -> None:
        self._daemon = daemon
        self._is_ready = is_ready
        self._environment = environment
        self.starts: list[float] = []  # milliseconds
        self.cpu: list[float] = []  # milliseconds
        self.memory: list[float] = []  # MB

    def start(self) -> None:
        begin = perf_counter()
        self._daemon.start(**self._environment)
        self.starts.append((perf_counter() - begin) * 1000)
        self.cpu.append(cpu(self._daemon.pid) / 1000)
        try:
            self._is_ready()
            self.memory.append(memory(self._daemon))
        finally:
            self._daemon.stop()


def measure(directory: Path, size: Size) -> list[Figure]:
    large, small = (
        full_home(directory.parent / "large", size.rows),
        full_home(directory.parent / "small", SMALL),
    )
    with BotApi() as api:
        bound, is_answered = _with_bot(directory, api)
        many, few = Taken(large), Taken(small)
        web = Taken(small, lambda: web_url(small), **WEB_ON)
        bot = Taken(bound, is_answered, HIBOSS_TELEGRAM_BASE_URL=api.url)
        for _ in rounds(size.rounds, "starts of the daemon"):
            for one in (many, few, web, bot):
                one.start()
    flat = Ratio(
        key="flat",
        value=middle_ratio(many.starts, few.starts),
        of=f"× the same with {SMALL:,}",
        sense=AT_MOST,
        aim=2.0,
    )
    return [
        _start("start_large", f"daemon start, {size.rows:,} pending", many.starts, flat),
        _start("start", f"daemon start, {SMALL:,} pending", few.starts),
        _start("start_cpu", f"CPU of a daemon start, {SMALL:,} pending", few.cpu),
        _memory("idle", f"{SMALL:,} pending", few.memory, MEMORY_LIMIT),
        _memory("idle_large", f"{size.rows:,} pending", many.memory, MEMORY_LIMIT),
        _memory("idle_web", "with HTTP", web.memory, MEMORY_LIMIT, few.memory),
        _memory("idle_bot", "one Telegram bot", bot.memory, BOT_LIMIT, few.memory),
    ]


def _with_bot(directory: Path, api: BotApi) -> tuple[RunningDaemon, Callable[[], object]]:
    """A daemon with a bot, and what lets it answer the boss there: then everything is loaded."""
    daemon, bot, ada = new_home(directory / "bot"), api.add_bot("nexbot"), api.add_person("Ada")
    daemon.start(HIBOSS_TELEGRAM_BASE_URL=api.url)
    boss, settings = daemon.token("boss"), {"adapter_token": bot.token}
    daemon.call("boss.set", token=boss, ids={"telegram": str(ada.id)})
    daemon.call("agent.bind", token=boss, name=AGENT, adapter_type="telegram", settings=settings)
    chat = ada.starts(bot)
    chat.wait_for_text("/help")
    daemon.stop()

    def is_answered() -> None:
        before = len(chat.messages)
        ada.says(chat, "/help")
        api.wait_for(lambda: len(chat.messages) > before + 1)

    return daemon, is_answered


def _start(key: str, work: str, taken: list[float], *ratios: Ratio) -> Figure:
    return Figure(key=key, work=work, taken=taken, unit="ms", goal="500 ms", ratios=ratios)


def _memory(key: str, what: str, taken: list[float], limit: float, to: list[float] | None = None) -> Figure:
    of = f"× plain ({median(to):.0f} MB)" if to else ""
    more = [Ratio(key="to_plain", value=middle_ratio(taken, to), of=of, sense=AT_MOST)] if to else []
    return Figure(
        key=key,
        work=f"daemon idle, {what}, RSS",
        taken=taken,
        unit="MB",
        goal="70 MB",
        at_most=limit,
        ratios=tuple(more),
    )


def web_url(daemon: RunningDaemon) -> str:
    """Where it serves HTTP, once it does."""
    end = monotonic() + START_SECONDS
    while (found := daemon.call("daemon.status")["web"])["state"] != "listening":
        if monotonic() > end:
            raise AssertionError(f"HTTP is not served: {found}")
        sleep(0.02)
    return str(found["url"])
