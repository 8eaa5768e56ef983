"""Providers that do what nobody should: named in `providers.modules` by the tests that need them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from hiboss.contract import Hear, Reminder, Started, Task, Thought

HOUR_MS = 3_600_000


class Late:
    """Once a file `go` lies in its workspace, says nothing but reminders for in an hour: a line of `go` each."""

    name: ClassVar[str] = "late"
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def think(self, task: Task, hear: Hear, started: Started) -> Thought:
        path = os.path.join(task.workspace, "go")
        while not os.path.exists(path):
            await asyncio.sleep(0.005)
        with open(path) as file:
            lines = [line.encode().decode("unicode_escape") for line in file.read().splitlines()]
        return Thought(later=tuple(Reminder(line, task.now + HOUR_MS) for line in lines))


PROVIDERS = (Late,)
