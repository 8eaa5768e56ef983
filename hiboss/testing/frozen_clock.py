"""For tests that depend on time: a whole daemon inside the test, whose clock the test moves.

async with frozen_daemon(tmp_path) as daemon:
    await daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text="!", deliver_at="+2h")
    await daemon.move(hours=2)

Scheduler, store, router, delivery and adapters are the real ones. Only the doors stay closed: `call`
calls the dispatcher directly. The timers of asyncio use the real clock, so wait with `until` for what
an adapter does after a wake (posting). Needs freezegun.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory

from ..core import clock
from ..core.paths import Home
from ..core.settings import Configuration
from ..daemon.lifecycle import Daemon
from ..routing.scheduler import Scheduler
from .running_daemon import set_up_home

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
REAL_SECONDS = 60.0  # a limit for every wait, by the real clock


class FrozenDaemon:
    """A daemon in this process, opened and closed by the test. `clock` is freezegun's; None: the real one."""

    def __init__(self, home: Home, frozen: FrozenDateTimeFactory | None, env: dict[str, str]) -> None:
        self.home = home
        self.clock = frozen
        self._env = env
        self._set_by = timedelta()  # the sum of all changes of the clock by hand
        self._own_clock = patch.multiple(clock, elapsed=self._elapsed, machine_boot=lambda: "frozen")
        self.daemon: Daemon

    async def open(self) -> None:
        if self.clock is not None:
            self._own_clock.start()
        self.daemon = Daemon(self.home, Configuration(self.home.config, self._env))
        await self.daemon.build()
        await self.daemon.begin()

    async def close(self) -> None:
        try:
            await self.daemon.close()
        finally:
            _close_logs()
            if self.clock is not None:
                self._own_clock.stop()

    async def restart(self, **closed_for: float) -> None:
        """Close, let time pass, and open again; what is overdue then has arrived when this returns."""
        await self.close()
        if closed_for:
            self.tick(**closed_for)
        await self.open()
        await self.settle()

    async def call(self, method: str, *, token: str | None = None, **params: Any) -> Any:
        """Call an operation and return its result as a door writes it; raises HibossError.

        Write `from_` for `from`.
        """
        if "from_" in params:
            params["from"] = params.pop("from_")
        return orjson.loads(orjson.dumps(await self.daemon.dispatcher.call(method, params, token)))

    def token(self, name: str) -> str:
        """Return the token of a profile: boss, nex, or an agent registered with profile=True."""
        return Path(self.home.profile(name.lower())).read_text().strip()

    @property
    def scheduler(self) -> Scheduler:
        return self.daemon.wiring.scheduler

    def tick(self, **by: float) -> None:
        """Let time pass (`hours=2`), or set the clock back (`days=-1`). The daemon is not told."""
        assert self.clock is not None
        step = timedelta(**by)
        self.clock.tick(step)
        if step < timedelta():
            self._set_by += step

    def set_clock(self, **by: float) -> None:
        """Set the clock forwards or back, while no time passes. The daemon is not told."""
        assert self.clock is not None
        self.clock.tick(timedelta(**by))
        self._set_by += timedelta(**by)

    def _elapsed(self) -> int:
        """Stands in for `clock.elapsed`: the time that has passed, without what the clock was set by."""
        return clock.wall() - self._set_by // timedelta(milliseconds=1)

    async def move(self, **by: float) -> None:
        """Move the clock, wake the scheduler, and wait until all that is overdue was woken."""
        self.tick(**by)
        self.scheduler.wakeup()
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is overdue."""
        async with asyncio.timeout(REAL_SECONDS):
            await self.scheduler.settle()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Poll until a condition is true; raises TimeoutError when it does not become true."""
        async with asyncio.timeout(REAL_SECONDS):
            while not condition():  # noqa: ASYNC110 - anything may be the condition
                await asyncio.sleep(0.002)


@asynccontextmanager
async def frozen_daemon(
    directory: str | os.PathLike[str], *, at: datetime = NOON, set_up: bool = True, **env: str
) -> AsyncIterator[FrozenDaemon]:
    """Open a daemon in `directory`/home, set up with boss and agent nex; its clock stands still at `at`."""
    home = Home(os.path.join(os.fspath(directory), "home"))
    if set_up:
        await asyncio.to_thread(set_up_home, home)
    with own_logs(), freeze_time(at, real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        daemon = FrozenDaemon(home, frozen, env)
        await daemon.open()
        try:
            yield daemon
        finally:
            await daemon.close()


@contextmanager
def own_logs() -> Iterator[None]:
    """Restore logging afterwards: a daemon replaces the root handlers with its own file."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _close_logs() -> None:
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
