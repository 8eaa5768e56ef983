"""Steps of the contract test of adapters: start one, let it listen, digest as the daemon does."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.contracts.adapter import Adapter, Checked, Letter, Posted, Take, Taken
from ..core.contracts.inbound import Digested, Inbound, NotYet, Update
from ..core.option_models import load, validate
from .adapter_rig import Rig


@asynccontextmanager
async def started(rig: Rig) -> AsyncIterator[Adapter]:
    adapter = rig.make()
    await adapter.start()
    try:
        yield adapter
    finally:
        await adapter.stop()


@asynccontextmanager
async def listening(rig: Rig, take: Take) -> AsyncIterator[asyncio.Task[None]]:
    """Start an adapter and let it listen until the end of the block."""
    async with started(rig) as adapter, heard(adapter, take) as task:
        yield task


@asynccontextmanager
async def heard(adapter: Adapter, take: Take) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(adapter.listen(take))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=30)
        assert task.done()


async def posted(adapter: Adapter, letter: Letter, chunk: str, number: int = 0) -> str:
    """Post a chunk and return the platform's id of it: the first, if it became several posts."""
    answer = await adapter.post(letter, number, chunk)
    return answer.ids[0] if isinstance(answer, Posted) else answer


def capabilities(adapter: Adapter) -> frozenset[str]:
    """Return what it declares: nothing, if it says nothing."""
    declared: frozenset[str] = getattr(type(adapter), "capabilities", frozenset())
    return declared


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a platform has no event for it
            await asyncio.sleep(0.002)


async def some_polls() -> None:
    """Wait long enough for an adapter that wrongly hands over twice."""
    for _ in range(20):
        await asyncio.sleep(0.005)


class Store:
    """Takes updates as the daemon does: each once, and it knows which were digested."""

    def __init__(self, rig: Rig, *errors: Exception) -> None:
        self._rig = rig
        self.taken: list[Update] = []
        self.given: list[str] = []  # the ids of all that were handed over, also again
        self.acts: list[Inbound] = []  # of updates that act at once
        self.digested: dict[str, str | None] = {}
        self.missed: list[tuple[int, int]] = []  # times in which updates may have been lost
        self._errors = list(errors)

    async def __call__(
        self,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Taken:
        self.given += [one.id for one in updates]
        if self._errors:
            raise self._errors.pop(0)
        self._rig.position = position or self._rig.position
        self.missed += [missed] if missed is not None else []
        known = {one.id for one in self.taken}
        new = [one for one in updates if one.id not in known]
        # As they come out of the database.
        self.taken += [replace(one, raw=json.loads(json.dumps(one.raw)), act=None) for one in new]
        self.acts += [one.act for one in new if one.act is not None]
        again = {one.id: self.digested[one.id] for one in updates if one.id in self.digested}
        return Taken(new=frozenset(one.id for one in new), digested=again)

    async def end(self, adapter: Adapter, update: Update, problem: str | None) -> None:
        """Let an update be digested, or given up, and tell the adapter if it wants to know."""
        self.digested[update.id] = problem
        if (digested := getattr(adapter, "digested", None)) is not None:
            await digested(update, problem)

    def waiting(self) -> list[Update]:
        return [one for one in self.taken if one.id not in self.digested]

    async def digest(self, adapter: Adapter, downloads: Path) -> list[Inbound]:
        """Digest all that waits, as the daemon does; return what it means."""
        found: list[Inbound] = []
        downloads.mkdir(exist_ok=True)
        while updates := self.waiting():
            directory = tempfile.mkdtemp(dir=downloads)  # new for each call
            answer = await adapter.digest(updates, directory, waited=False, last_try=False)
            if isinstance(answer, NotYet):
                answer.counts_from(updates)
                answer = await adapter.digest(updates, directory, waited=True, last_try=False)
            assert isinstance(answer, Digested)
            found.append(answer.inbound)
            for update in answer.used(updates):
                await self.end(adapter, update, None)
        return found


async def digest_all(rig: Rig, store: Store, downloads: Path, number: int) -> list[Inbound]:
    """Let an adapter hand over so many updates, and digest them."""
    async with started(rig) as adapter, heard(adapter, store):
        await until(lambda: len(store.taken) == number)
        found = await store.digest(adapter, downloads)
        await until(lambda: rig.originals() == 0)
        await some_polls()
    return found


def check(rig: Rig, given: dict[str, Any], home: Path) -> Checked:
    """Check settings as agent.bind does."""
    kind = type(rig.make())
    validated = validate(kind.Settings, given, kind.type)
    return asyncio.run(kind.check(load(kind.Settings, validated.settings, validated.secrets), str(home)))


def digested(rig: Rig, directory: Path, number: int) -> list[Inbound]:
    return asyncio.run(digest_all(rig, Store(rig), directory / "downloads", number))
