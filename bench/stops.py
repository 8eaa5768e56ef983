"""Stops in Telegram: how soon one is acknowledged in the chat, and how soon every process of the run is gone.

The platform is the test server (hiboss/testing/bot_api), in this process: a new one, with drafts and their
Stop button, and an old one, where answers grow by edits. Each run is three processes that INT and TERM do
not end, one of them in a session of its own and without an environment; half of the programs also leave
their order to end unread (`--input open`). Several runs are stopped at the same time. A stop counts as
acknowledged when the platform was asked to show it: the 👌 on /stop, or the answer to the button.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import monotonic, sleep, time

from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.people import Person
from hiboss.testing.bot_api.world import Call
from hiboss.testing.running_daemon import RunningDaemon

from .figures import Figure
from .homes import is_alive, new_home
from .rounds import Size, rounds

TEAM = 4  # agents at work at the same time, as many as runs go on by default
VERSIONS = ("10.3", "9.0")
INPUTS = ("turn", "open")
HEARD_LIMIT, GONE_LIMIT = 1_000.0, 5_000.0  # milliseconds
WAIT_SECONDS = 60.0
WORDS = "still at it"
PROGRAM = f"""
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
def note():
    with open(sys.argv[1], "a") as file:
        print(os.getpid(), file=file)
if os.fork() == 0 and os.fork() == 0:
    os.setsid()
    note()
    os.execve("/bin/sleep", ["sleep", "1000"], {{}})
note()
while True:
    print({WORDS!r}, flush=True)
    time.sleep(0.2)
"""


class Desk:
    """An agent with a bot of its own, and the boss's chat with it."""

    def __init__(self, daemon: RunningDaemon, api: BotApi, ada: Person, name: str, given: str) -> None:
        directory = Path(daemon.home.path).parent
        self.api = api
        self.ada = ada
        self.pids = directory / f"{name}.pids"
        program = directory / "stubborn.py"
        program.write_text(PROGRAM)
        command = shlex.join([sys.executable, "-I", "-S", str(program), str(self.pids)])
        boss = daemon.token("boss")
        settings = {"command": command, "input": given}
        daemon.call("agent.register", token=boss, name=name, provider="command", settings=settings)
        self.bot = api.add_bot(f"{name}bot")
        bound = {"name": name, "adapter_type": "telegram", "settings": {"adapter_token": self.bot.token}}
        daemon.call("agent.bind", token=boss, **bound)
        self.chat = ada.starts(self.bot)
        self.chat.wait_for_text("/help")

    def begin(self) -> list[int]:
        """Let a run begin; return its processes as soon as its answer grows."""
        self.pids.unlink(missing_ok=True)
        drafts = len(self.chat.drafts)
        asked = self.ada.says(self.chat, "do something long")

        def grows() -> bool:
            texts = [one.text for one in self.chat.drafts[drafts:]]
            texts += [one.text for one in self.chat.messages if one.id > asked.id]
            return any(WORDS in text for text in texts)

        self.api.wait_for(grows)
        return [int(line) for line in self.pids.read_text().split()]

    def press(self) -> None:
        self.ada.stops_generation(self.chat)

    def command(self) -> None:
        self.ada.says(self.chat, "/stop")

    def heard_at(self, begun: float) -> float:
        """Return when a stop was acknowledged."""

        def tells(call: Call) -> bool:
            told = call.method == "setMessageReaction" and "\\ud83d\\udc4c" in call.params["reaction"]
            told = told or "Stopped r" in str(call.params.get("text"))
            return told and call.bot is self.bot and call.at >= begun

        self.api.wait_for(lambda: any(map(tells, self.api.calls)))
        return next(call.at for call in self.api.calls if tells(call))


def measure(directory: Path, size: Size) -> list[Figure]:
    """Stop the runs of a team in each round, on the two servers in turns."""
    heard: list[list[float]] = []
    gone: list[list[float]] = []
    with ExitStack() as stack:
        teams = [_team(stack, directory / version, version) for version in VERSIONS]
        for number in rounds(size.rounds, f"{TEAM} stops of stubborn programs in Telegram"):
            daemon, desks = teams[number % 2]
            heard.append([])
            gone.append([])
            _round(desks, heard[-1], gone[-1], by_button=number % 4 == 0)
            daemon.check()
    return [
        _figure("stop_heard", "Telegram: a stop until it is acknowledged, longest", heard, HEARD_LIMIT),
        _figure("stop_gone", "Telegram: a stop until every process is gone, longest", gone, GONE_LIMIT),
    ]


def _team(stack: ExitStack, directory: Path, version: str) -> tuple[RunningDaemon, list[Desk]]:
    api = stack.enter_context(BotApi(version))
    ada = api.add_person("Ada")
    daemon = new_home(directory)
    daemon.start(HIBOSS_TELEGRAM_BASE_URL=api.url)
    stack.callback(daemon.stop)
    daemon.call("boss.set", token=daemon.token("boss"), ids={"telegram": str(ada.id)})
    desks = [Desk(daemon, api, ada, f"agent-{number}", INPUTS[number % 2]) for number in range(TEAM)]
    return daemon, desks


def _round(desks: Sequence[Desk], heard: list[float], gone: list[float], *, by_button: bool) -> None:
    """Let all agents work, stop them all, and note how long it took, in milliseconds."""
    trees = [desk.begin() for desk in desks]
    begun = []
    for desk in desks:
        begun.append(time())
        (desk.press if by_button else desk.command)()
    left = dict(enumerate(trees))
    end = monotonic() + WAIT_SECONDS
    while left:
        if monotonic() > end:
            raise AssertionError(f"processes that are left: {left}")
        for number in [number for number, tree in left.items() if not any(map(is_alive, tree))]:
            del left[number]
            gone.append((time() - begun[number]) * 1000)
        sleep(0.005)
    heard += [(desk.heard_at(at) - at) * 1000 for desk, at in zip(desks, begun, strict=True)]


def _figure(key: str, work: str, times: list[list[float]], limit: float) -> Figure:
    every = [time for some in times for time in some]
    return Figure(
        key=key,
        work=work,
        taken=[max(some) for some in times],
        unit="ms",
        p50=median(every),
        at_most=limit,
        longest=True,
    )
