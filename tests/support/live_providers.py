"""Providers for tests of what comes during a turn and what is shown of it, named in `providers.modules`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SecretStr

from hiboss.core.contracts.failures import SessionLost, TurnError
from hiboss.core.contracts.provider import (
    COST,
    SESSION,
    STEER,
    Answer,
    Finding,
    LiveRun,
    Progress,
    Provider,
    TurnInput,
    Usage,
)
from hiboss.core.option_models import Options


class LastingSettings(Options):
    takes: bool = Field(True, description="whether it takes the words that it is offered")


class Lasting(Provider):
    """Is offered words at the very end of its turn: it answers to that only when its turn has ended."""

    name: ClassVar[str] = "lasting"
    Settings = LastingSettings
    capabilities = frozenset({STEER})

    def __init__(self, settings: LastingSettings) -> None:
        super().__init__(settings)
        self._turn: TurnInput | None = None
        self._offered = asyncio.Event()

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        self._turn = turn
        before = os.path.exists(os.path.join(turn.workspace, "turn.1"))
        self._note("turn.1")
        if not before:
            await self._offered.wait()
        return Answer(text="done")

    async def steer(self, text: str) -> bool:
        self._note("offered")
        self._offered.set()
        await asyncio.sleep(0.5)  # its outcome is stored meanwhile
        return bool(self.settings.takes)

    def _note(self, name: str) -> None:
        assert self._turn is not None
        with open(os.path.join(self._turn.workspace, name), "w"):
            pass


class SeekerSettings(Options):
    program: str = Field("seeker", description="the program that it needs")
    model: str = Field("", description="a model")
    loud: bool = Field(False, description="with sound")
    key: SecretStr | None = Field(None, description="a key")


class Seeker(Provider):
    """Looks for a program: `none` is missing, `slow` is never found, `broken` and `exit` are defects."""

    name: ClassVar[str] = "seeker"
    Settings = SeekerSettings
    capabilities = frozenset({COST})

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        return Answer(text="found", cost=0.25)

    async def find(self, environment: Mapping[str, str], workspace: str) -> Finding | None:
        program = self.settings.program
        if program == "none":
            return Finding(problem="there is no program none", help="npm install -g none")
        if program == "slow":
            await asyncio.Event().wait()
        if program == "broken":
            raise RuntimeError("a defect")
        if program == "exit":
            sys.exit(3)
        known = sorted(name for name in environment if name.startswith("HIBOSS_"))
        return Finding(found=f"{program} 1.2 in {workspace}, {' '.join(known)}")


class Counter(Provider):
    """Takes any number."""

    name: ClassVar[str] = "counter"

    class Settings(Options):
        most: int = Field(5, description="a number")
        share: float = Field(0.5, description="a part")
        more: dict[str, Any] = Field(default_factory=dict, description="anything else")

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        return Answer(text="counted")


class Finder(Provider):
    """Takes the same options as the seeker, one of them of another type; and needs one more."""

    name: ClassVar[str] = "finder"

    class Settings(Options):
        model: str = Field("", description="a model of the finder")
        loud: str = Field("", description="how loud")
        where: str = Field(description="where to look")

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        return Answer(text="found")


class Talker(Finder):
    """Takes options of the seeker and of the command provider."""

    name: ClassVar[str] = "talker"
    capabilities = frozenset({STEER})

    class Settings(Options):
        model: str = Field("", description="a model of the talker")
        command: str = Field("", description="what it says")

    async def steer(self, text: str) -> bool:
        return True


class Staged(Provider):
    """Does what the file `script` in its workspace says, a JSON list of steps.

    ["delta", "text"] and the other kinds of progress; ["usage", {…}]; ["wait", "file"]: until it is there;
    ["fail", kind, text, repeat]; ["session", id]; ["lose"]: its session, if it has one; ["final", text, {…}].
    """

    name: ClassVar[str] = "staged"
    capabilities = frozenset({SESSION, COST, STEER})

    def __init__(self, settings: object) -> None:
        super().__init__(settings)
        self._words: list[str] = []

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        with open(os.path.join(turn.workspace, "turns"), "a") as file:
            file.write(json.dumps({"session": turn.session, "text": turn.text}) + "\n")
        with open(os.path.join(turn.workspace, "script")) as file:
            steps = json.load(file)
        for kind, *given in steps:
            if kind == "wait":
                while not os.path.exists(os.path.join(turn.workspace, given[0])):
                    await asyncio.sleep(0.005)
            elif kind == "lose" and turn.session is not None:
                raise SessionLost("it is gone")
            elif kind == "session":
                await run.session(given[0])
            elif kind == "fail":
                raise TurnError(given[0], given[1], repeat=given[2])
            elif kind == "usage":
                run.progress(Progress("usage", usage=Usage(**given[0])))
            elif kind == "final":
                return Answer(text=given[0], **(given[1] if given[1:] else {}))
            elif kind != "lose":
                run.progress(Progress(kind, given[0]))
        return Answer(text=" ".join(self._words))

    async def steer(self, text: str) -> bool:
        self._words.append(text)
        return True


def staged(directory: Path, *steps: Any) -> None:
    """Let the agent with this workspace do these steps in each of its next turns."""
    fresh = directory / "script.new"
    fresh.write_text(json.dumps(steps))
    fresh.rename(directory / "script")


PROVIDERS = (Lasting, Seeker, Counter, Finder, Talker, Staged)
