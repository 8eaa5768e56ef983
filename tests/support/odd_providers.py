"""Providers that do what nobody should: named in `providers.modules` by the tests that need them."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping
from typing import Any, ClassVar

from hiboss.core.contracts.provider import Answer, OnProgress, OnStart, Reminder, TurnInput
from hiboss.core.paths import Home

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

    async def take_turn(self, task: TurnInput, hear: OnProgress, started: OnStart) -> Answer:
        path = os.path.join(task.workspace, "go")
        while not os.path.exists(path):
            await asyncio.sleep(0.005)
        with open(path) as file:
            lines = [line.encode().decode("unicode_escape") for line in file.read().splitlines()]
        return Answer(later=tuple(Reminder(line, task.now + HOUR_MS) for line in lines))


class Chatter:
    """Answers by chance, and by chance writes to others: seldom enough that it ends of itself.

    A file `team` in its workspace has the addresses of the others, a line each.
    """

    name: ClassVar[str] = "chatter"
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def take_turn(self, task: TurnInput, hear: OnProgress, started: OnStart) -> Answer:
        chance = random.Random(task.delivery)
        said = any(not one["auto"] for one in task.envelopes)
        if chance.random() < (0.3 if said else 0.05):
            await self._write(task, chance)
        return Answer(text=chance.choice(["NO_REPLY", "", "yes", "no", "perhaps"]))

    async def _write(self, task: TurnInput, chance: random.Random) -> None:
        with open(os.path.join(task.workspace, "team")) as file:
            team = [one for one in file.read().split() if one != f"agent:{task.agent}"]
        params = {
            "token": task.environment["HIBOSS_TOKEN"],
            "to": chance.sample(team, chance.choice([1, 1, 1, 2, 3])),
            "text": f"{task.run} asks",
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "envelope.send", "params": params}
        home = Home(task.environment["HIBOSS_HOME"])
        reader, writer = await asyncio.open_unix_connection(home.socket)
        writer.write(json.dumps(request).encode() + b"\n")
        assert "result" in json.loads(await reader.readline())
        writer.close()


PROVIDERS = (Late, Chatter)
