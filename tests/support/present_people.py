"""Who is here, in a daemon inside the test: pages that people have open, a run that is silent, and the clock of their deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hiboss.agents.run_execution import Execution
from hiboss.routing.subscriptions import Subscription
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon
from tests.support.python_agents import Program, hire, status_of


class Page:
    """What a person or an agent has open: a connection that follows. It keeps the notifications."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self._daemon = daemon
        self.subscriptions: list[Subscription] = []
        self.ready = True
        self.heard: list[bytes] = []

    def notify(self, lines: bytes) -> None:
        self.heard += lines.splitlines()

    async def open(self, who: str = "boss", **params: Any) -> None:
        given = {"token": self._daemon.token(who), **params}
        await self._daemon.daemon.dispatcher.call("event.subscribe", given, reader=self)

    def close(self) -> None:
        for one in list(self.subscriptions):
            one.end()


async def opened(daemon: InProcessDaemon, who: str = "boss", **params: Any) -> Page:
    page = Page(daemon)
    await page.open(who, **params)
    return page


class EventClock:
    """The clock of the daemon's deadlines, moved by the test. No timer is waited for: `move` looks itself."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self._deadlines = daemon.daemon.wiring.deadlines
        self._real = self._deadlines.time
        self._passed = 0.0
        self.readings = 0  # how often anybody looked at this clock
        self._deadlines.time = self._now

    def _now(self) -> float:
        self.readings += 1
        return self._real() + self._passed

    def times(self, execution: Execution) -> None:
        """Let the silence of a run be counted on this clock too."""
        execution._clock = self._now

    def move(self, **by: float) -> None:
        """Let minutes or seconds pass, and look what is over with that."""
        self._passed += by.get("minutes", 0.0) * 60 + by.get("seconds", 0.0)
        self._deadlines.look()


@contextmanager
def hearing(daemon: InProcessDaemon, *topics: str) -> Iterator[Listener]:
    """Hear these facts; whoever hears them so is nobody's presence."""
    listener = Listener(daemon.daemon.wiring.facts, *topics)
    try:
        yield listener
    finally:
        listener.subscription.end()


async def presence(daemon: InProcessDaemon, who: str) -> str:
    return str((await daemon.ask("presence.get", address=who))["presence"])


# --- a run that says nothing until the test lets it -----------------------------------

HOLDS_ON = (
    'note(os.environ["HIBOSS_TOKEN"]); wait_for("first"); print("alive", flush=True); wait_for("second")'
)


class SilentRun:
    """A run of kai. What the program would call by itself is called with the token of the run."""

    def __init__(self, daemon: InProcessDaemon, program: Program, execution: Execution) -> None:
        self.daemon, self.program, self.execution = daemon, program, execution
        self.clock = EventClock(daemon)
        self.clock.times(execution)
        self.id = f"r{execution.turn.run}"
        self._token = str(program.notes()[0])

    @classmethod
    async def begin(cls, daemon: InProcessDaemon) -> SilentRun:
        program = await hire(daemon, "kai", HOLDS_ON)
        await daemon.send("agent:kai", who="boss")
        await daemon.until(program.notes)
        [row] = daemon.rows("SELECT id FROM run")
        execution = daemon.daemon.wiring.runner.execution(row["id"])
        assert execution is not None
        return cls(daemon, program, execution)

    async def call(self, method: str, **params: Any) -> Any:
        return await self.daemon.call(method, token=self._token, **params)

    async def asks(self) -> tuple[str, asyncio.Task[Any]]:
        """Let it ask, and wait for the answer; return the id of the ask, and the call that waits."""
        ask = (await self.call("ask.create", question="Deploy?"))["ask"]["id"]
        waits = asyncio.create_task(self.call("ask.wait", id=ask))
        await self.daemon.until(lambda: self.execution.silent_seconds is None)
        return ask, waits

    async def is_answered(self, ask: str, waits: asyncio.Task[Any]) -> None:
        await self.daemon.ask("ask.answer", id=ask, choice="yes")
        assert (await waits)["ask"]["answer"] == "yes"
        await self.call("ask.wait", id=ask, received=True)

    async def told(self) -> list[str]:
        """Return what the boss was told of it, when all that is told by now was stored."""
        await self.daemon.daemon.wiring.stuck_runs.close()
        return [text for text in await self.daemon.inbox("boss") if "agent:kai seems to be stuck" in text]

    async def presence(self) -> str:
        return str((await status_of(self.daemon, "kai"))["presence"])

    async def ended(self) -> str:
        """Wait until it has ended; return how."""
        query = "SELECT status FROM run WHERE status <> 'running'"
        await self.daemon.until(lambda: self.daemon.rows(query))
        return str(self.daemon.rows(query)[0]["status"])

    async def end(self) -> str:
        for name in ("first", "second"):
            self.program.path.with_name(name).touch()
        return await self.ended()
