"""A house whose changes go through the real writer, so that its cache and its groups are those of a daemon."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hiboss.core.address import Address
from hiboss.core.envelope import Accepted, Draft
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.store import messages
from hiboss.store.connection import connect
from hiboss.store.destinations import Destination
from hiboss.store.group_commit import Tx, Writer
from hiboss.store.invariants import violations
from tests.store.chat_scene import BOSS_ID, GROUP, NOW, scene
from tests.store.group_house import House

T = TypeVar("T")
Operation = Callable[[Tx], Any]


class Template(NamedTuple):
    """A database to be copied, and what is known of it."""

    database: Path
    max: int
    ann: int
    binding: int


def template(directory: Path) -> Template:
    """Make a house in which nobody has said anything, and close it."""
    with scene(directory) as made:
        house = House(made)
        house.bob("hello")  # a chat with Bob, and one of several
        house.says("hello", **GROUP)
        found = Template(Path(house.home.database), house.max, house.ann, house.binding)
    return found


class WrittenHouse(House):
    """Everything it does is written by a writer with its own thread, on a loop that runs meanwhile."""

    def __init__(self, home: Home, of: Template) -> None:
        self.home, self.now, self._numbers = home, NOW + 1_000_000, itertools.count(100)
        self.max, self.ann, self.binding = of.max, of.ann, of.binding
        self.connection = connect(home, wait_seconds=5)
        self.connection.execute("PRAGMA synchronous = OFF")
        self.loop = asyncio.new_event_loop()
        self.writer = self.loop.run_until_complete(self._begin())
        self._tx = self.writer._tx

    async def _begin(self) -> Writer:
        return Writer(self.connection, self.home, DEFAULTS)

    def close(self) -> None:
        self.loop.run_until_complete(self.writer.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        assert violations(self.connection) == []
        self.connection.close()

    def write(self, operation: Callable[[Tx], T]) -> T:
        async def run() -> T:
            return await asyncio.wait_for(self.writer.submit(operation), 30)

        return self.loop.run_until_complete(run())

    def group(self, *operations: Operation) -> list[Any]:
        """Return the answers or errors of operations that are written in one transaction."""
        return self.loop.run_until_complete(self._group(operations))

    async def _group(self, operations: tuple[Operation, ...]) -> list[Any]:
        begun, opened = threading.Event(), threading.Event()

        def gate(tx: Tx) -> bool:
            begun.set()
            return opened.wait(30)

        passed = self.writer.submit(gate)
        assert await asyncio.to_thread(begun.wait, 30)  # a group of its own; what comes now is the next one
        waiting = [self.writer.submit(operation) for operation in operations]
        opened.set()
        assert await passed
        async with asyncio.timeout(30):
            return list(await asyncio.gather(*waiting, return_exceptions=True))

    def kept(self) -> list[Destination]:
        """Return the destinations that the writer keeps now."""
        return list(self._tx.cache.destinations.values())

    def sending(self, sender: int, *to: Address, text: str = "hello", **facts: Any) -> Operation:
        """Return an operation that sends a draft; the sender is called as it is now."""
        draft = Draft(self.address(sender), sender, to, text, sender == BOSS_ID)._replace(**facts)
        self.now += 1_000
        now = self.now
        return lambda tx: messages.insert(tx, draft, now)

    def sends(self, sender: int, *to: Address, text: str = "hello", **facts: Any) -> Accepted:
        accepted: Accepted = self.write(self.sending(sender, *to, text=text, **facts))
        return accepted


@contextmanager
def written_house(of: Template, directory: Path) -> Iterator[WrittenHouse]:
    """Copy a house, and check its invariants at the end."""
    home = Home(str(directory))
    home.create()
    shutil.copy(of.database, home.database)
    house = WrittenHouse(home, of)
    try:
        yield house
    finally:
        house.close()
