"""Providers for single tests, which name this module in `providers.modules`."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, SecretStr

from hiboss.core.contracts.failures import LaneError
from hiboss.core.contracts.provider import Answer, LiveRun, Provider, Reminder, TurnInput
from hiboss.core.option_models import Options
from hiboss.core.paths import Home

HOUR_MS = 3_600_000


class Late(Provider):
    """Waits for a file `go` in its workspace; answers with one reminder in an hour for each line of it."""

    name: ClassVar[str] = "late"

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        path = os.path.join(turn.workspace, "go")
        while not os.path.exists(path):
            await asyncio.sleep(0.005)
        with open(path) as file:
            lines = [line.encode().decode("unicode_escape") for line in file.read().splitlines()]
        return Answer(later=tuple(Reminder(line, turn.now + HOUR_MS) for line in lines))


class Chatter(Provider):
    """Answers at random, and sends to others at random: rarely enough that the exchange ends by itself.

    A file `team` in its workspace contains the addresses of the others, one per line.
    """

    name: ClassVar[str] = "chatter"

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        chance = random.Random(f"{turn.agent} {[one['id'] for one in turn.envelopes]}")
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
        reader, writer = await asyncio.open_unix_connection(Home(turn.environment["HIBOSS_HOME"]).socket)
        writer.write(json.dumps(request).encode() + b"\n")
        assert "result" in json.loads(await reader.readline())
        writer.close()


class Limited(Provider):
    """Fails as the next line of a file `script` in its workspace says; without a line it answers.

    A line is the JSON of a LaneError's `retry_after`. Each turn adds a line to the file `turns`.
    """

    name: ClassVar[str] = "limited"

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
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


class ChoosySettings(Options):
    """Options of every type."""

    key: SecretStr = Field(description="the key of an account")
    where: Path | None = Field(None, description="a directory")
    size: int = Field(3, ge=1, description="how much")
    loud: bool = Field(False, description="with sound")
    words: tuple[str, ...] = Field((), description="what to say")
    speed: Literal["slow", "fast"] = Field("slow", description="how fast")


class Choosy(Provider):
    """Answers with its settings."""

    name: ClassVar[str] = "choosy"
    summary: ClassVar[str] = "its own settings"
    Settings = ChoosySettings

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        known = self.settings.model_dump(mode="json") | {"key": self.settings.key.get_secret_value()}
        return Answer(text=json.dumps(known))


PROVIDERS = (Late, Chatter, Limited, Choosy)
