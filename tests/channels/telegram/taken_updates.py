"""A `take` for tests that remembers what it was given, and fails when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from hiboss.channels.telegram.adapter import TelegramAdapter
from hiboss.core.contracts.adapter import Taken
from hiboss.core.contracts.inbound import Update
from hiboss.testing.adapter_steps import heard, started
from tests.channels.telegram.telegram_rig import TelegramRig


class Given(NamedTuple):
    """What one call of `take` was given."""

    ids: list[str]
    position: dict[str, Any]
    missed: tuple[int, int] | None


class Taker:
    """Stores updates and the position as the daemon does. It outlives an adapter."""

    def __init__(self, rig: TelegramRig) -> None:
        self._rig = rig
        self.calls: list[Given] = []
        self.updates: list[Update] = []
        self.errors: list[Exception] = []  # the next calls raise these, and store nothing
        self.answers: Mapping[str, str] = {}  # by the value of a button
        self.after: Callable[[], None] = lambda: None  # called when something was stored

    async def __call__(
        self,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Taken:
        assert position is not None
        self.calls.append(Given([one.id for one in updates], json.loads(position), missed))
        if self.errors:
            raise self.errors.pop(0)
        known = {one.id for one in self.updates}
        new = [one for one in updates if one.id not in known]
        self.updates += [replace(one, raw=json.loads(json.dumps(one.raw))) for one in new]
        self._rig.position = position
        self.after()
        acts = {one.id: one.act.button or "" for one in updates if one.act is not None}
        answers = {id_: self.answers[value] for id_, value in acts.items() if value in self.answers}
        return Taken(new=frozenset(one.id for one in new), digested={}, answers=answers)

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.updates]

    @property
    def texts(self) -> list[str]:
        return [one.about.text for one in self.updates if one.about is not None]


@asynccontextmanager
async def polling_adapter(
    rig: TelegramRig, take: Taker
) -> AsyncIterator[tuple[TelegramAdapter, asyncio.Task[None]]]:
    """Run an adapter that listens, until the end of the block."""
    async with started(rig) as adapter, heard(adapter, take) as task:
        assert isinstance(adapter, TelegramAdapter)
        yield adapter, task
