"""A whole daemon inside the test, whose clock the test moves: real scheduler, store, router, delivery.

    @frozen()
    async def test_it(daemon: InProcessDaemon) -> None:
        ...
        await daemon.move(hours=2)

No door is open: operations are called on the dispatcher. Waits are limited by the real clock; no
assertion is about it.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from freezegun import freeze_time

from hiboss.store.invariants import violations
from hiboss.testing.frozen_clock import NOON, FrozenDaemon, own_logs
from tests.support.daemons import set_up, variables
from tests.support.waits import happens

Envelope = dict[str, Any]


class InProcessDaemon(FrozenDaemon):
    """Such a daemon, with helpers to send, to read its database and to bind a channel."""

    # --- the clock -------------------------------------------------------------------

    async def ring(self, **by: float) -> None:
        """Move the clock and wake only APScheduler: the timer job alone must wake the scheduler's loop."""
        self.tick(**by)
        self.scheduler._jobs.wakeup()
        for _ in range(10):  # the job runs two iterations of the event loop later
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], Any]) -> None:
        await happens(condition)

    # --- operations ------------------------------------------------------------------

    async def ask(self, method: str, who: str = "boss", **params: Any) -> Any:
        """Call an operation with the token of a profile."""
        return await self.call(method, token=self.token(who), **params)

    async def register(self, *names: str) -> None:
        for name in names:
            await self.ask("agent.register", name=name, profile=True)

    async def send(self, *to: str, who: str = "nex", text: str = "hello", **params: Any) -> list[str]:
        """Send a message and return the ids of its envelopes."""
        sent = await self.ask("envelope.send", who, to=list(to or ["agent:nex"]), text=text, **params)
        return list(sent["ids"])

    async def flood(self, times: list[str], *to: str, **params: Any) -> list[str]:
        """Send a message for each of these times, 500 at once; return the ids in the order accepted."""
        found: list[str] = []
        for start in range(0, len(times), 500):
            some = times[start : start + 500]
            for ids in await asyncio.gather(*(self.send(*to, deliver_at=one, **params) for one in some)):
                found += ids
        return found

    async def inbox(self, who: str = "nex", **params: Any) -> list[str]:
        """Return the texts in somebody's inbox, in the order they came."""
        page = await self.ask("envelope.list", who, oldest_first=True, page_size=100, **params)
        return [one["text"] for one in page["envelopes"]]

    async def get(self, number: str) -> Envelope:
        answer: Envelope = await self.ask("envelope.get", id=number)
        return answer["envelope"]

    # --- reading and changing the database --------------------------------------------

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        with closing(self._connect()) as connection:
            return connection.execute(query, values).fetchall()

    def change(self, statement: str, *values: Any) -> int:
        """Change the database without the daemon."""
        with closing(self._connect()) as connection:
            return connection.execute(statement, values).rowcount

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.home.database, isolation_level=None, timeout=30)
        connection.row_factory = sqlite3.Row
        return connection

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the write lock of the database, as another program would."""
        with closing(self._connect()) as other:
            other.execute("BEGIN IMMEDIATE")
            yield  # closing rolls back

    def arrived(self) -> list[str]:
        """Return the ids of all envelopes that have arrived, in that order."""
        found = self.rows("SELECT id FROM envelopes WHERE arrived IS NOT NULL ORDER BY arrived")
        return [row["id"] for row in found]

    def number_arrived(self) -> int:
        (row,) = self.rows("SELECT count(*) FROM envelope WHERE arrived IS NOT NULL")
        return int(row[0])

    def warnings(self) -> list[str]:
        """Return the lines of the log above `info`, with tracebacks and lines of libraries."""
        lines = Path(self.home.log_file).read_text().splitlines()
        return [line for line in lines if line.split()[1:2] not in (["info"], ["debug"])]

    def check(self) -> None:
        """Assert that every invariant of the store holds."""
        with closing(self._connect()) as connection:
            assert violations(connection) == []

    # --- a scripted channel -----------------------------------------------------------

    async def bind(self, directory: Path, *steps: str) -> str:
        """Bind nex to a scripted channel and return its address. The steps say what happens to the posts."""
        directory.mkdir()
        (directory / "script.jsonl").write_text("".join(f"{step}\n" for step in steps))
        bound = await self.ask(
            "agent.bind", name="nex", adapter_type="scripted", settings={"path": str(directory)}
        )
        await self.until(lambda: os.path.exists(directory / "posts.jsonl"))
        return str(bound["address"])


Story = Callable[..., Awaitable[None]]


OFTEN = {"schedule_least_seconds": 1}


def frozen(
    *, at: datetime | None = NOON, quiet: bool = True, **settings: Any
) -> Callable[[Story], Callable[[Path], None]]:
    """Make a test of `async def test(daemon)`, which gets a daemon of its own.

    at=None: with the real clock. quiet=False: the log may contain warnings and errors.
    """

    def make(story: Story) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            home = set_up(tmp_path)
            frost = nullcontext() if at is None else freeze_time(at, real_asyncio=True)
            with own_logs(), frost as clock:
                asyncio.run(_run(story, InProcessDaemon(home, clock, variables(OFTEN | settings)), quiet))

        test.__name__, test.__doc__ = story.__name__, story.__doc__
        test.__qualname__, test.__module__ = story.__qualname__, story.__module__
        return test

    return make


async def _run(story: Story, daemon: InProcessDaemon, quiet: bool) -> None:
    await daemon.open()
    try:
        await story(daemon)
        daemon.check()
    finally:
        await daemon.close()
    assert daemon.warnings() == [] or not quiet, daemon.warnings()
