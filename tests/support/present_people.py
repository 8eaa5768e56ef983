"""Who is here, in a daemon inside the test: pages that people have open, and the clock of their deadlines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hiboss.agents.run_execution import Execution
from hiboss.routing.subscriptions import Subscription
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon


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
    found = await daemon.ask("presence.get", address=who)
    return str(found["presence"])
