"""Providers for single tests, which name this module in `providers.modules`."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping
from typing import Any, ClassVar

from hiboss.core.contracts.failures import LaneError
from hiboss.core.contracts.provider import Answer, OnProgress, OnStart, Reminder, TurnInput
from hiboss.core.paths import Home

HOUR_MS = 3_600_000


class Late:
    """Waits for a file `go` in its workspace; answers with one reminder in an hour for each line of it."""

    name: ClassVar[str] = "late"
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        path = os.path.join(turn.workspace, "go")
        while not os.path.exists(path):
            await asyncio.sleep(0.005)
        with open(path) as file:
            lines = [line.encode().decode("unicode_escape") for line in file.read().splitlines()]
        return Answer(later=tuple(Reminder(line, turn.now + HOUR_MS) for line in lines))


class Chatter:
    """Answers at random, and sends to others at random: rarely enough that the exchange ends by itself.

    A file `team` in its workspace contains the addresses of the others, one per line.
    """

    name: ClassVar[str] = "chatter"
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        chance = random.Random(turn.delivery)
        said = any(not one["auto"] for one in turn.envelopes)
        if chance.random() < (0.3 if said else 0.05):
            await self._write(turn, chance)
        return Answer(text=chance.choice(["NO_REPLY", "", "yes", "no", "perhaps"]))

    async def _write(self, turn: TurnInput, chance: random.Random) -> None:
        with open(os.path.join(turn.workspace, "team")) as file:
            team = [one for one in file.read().split() if one != f"agent:{turn.agent}"]
        params = {
            "token": turn.environment["HIBOSS_TOKEN"],
            "to": chance.sample(team, chance.choice([1, 1, 1, 2, 3])),
            "text": f"{turn.run} asks",
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "envelope.send", "params": params}
        home = Home(turn.environment["HIBOSS_HOME"])
        reader, writer = await asyncio.open_unix_connection(home.socket)
        writer.write(json.dumps(request).encode() + b"\n")
        assert "result" in json.loads(await reader.readline())
        writer.close()


class Limited:
    """Fails as the next line of a file `script` in its workspace says; without a line it answers.

    A line is the JSON of a LaneError's `retry_after`. Each turn adds a line to the file `turns`.
    """

    name: ClassVar[str] = "limited"
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        path = os.path.join(turn.workspace, "script")
        with open(path) as file:
            lines = file.read().splitlines()
        with open(path, "w") as file:
            file.write("".join(f"{line}\n" for line in lines[1:]))
        with open(os.path.join(turn.workspace, "turns"), "a") as file:
            file.write(f"{len(turn.envelopes)}\n")
        if lines:
            raise LaneError("usage_limit", "the account has reached its limit", json.loads(lines[0]))
        return Answer(text="at last")


PROVIDERS = (Late, Chatter, Limited)
