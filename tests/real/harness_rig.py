"""A rig: it brings a harness, a real program behind a provider, into the situations of harness_contract.py."""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import psutil

from hiboss.core.contracts.provider import Answer, Choice, Provider, Question, TurnInput
from hiboss.testing.model_server import ModelServer, UseTool
from hiboss.testing.recorded_run import RecordedRun, sample_turn
from tests.real.processes import processes_with
from tests.real.programs import Programs

SECONDS = 90.0  # a limit for every wait: a defect, not a measure


class AnsweredRun(RecordedRun):
    """A run whose questions get these choices; after the last one nobody answers, and the default counts.

    With `waits` they wait for an answer, without end.
    """

    def __init__(self, *choices: Choice | str, waits: bool = False) -> None:
        super().__init__()
        self._waits = waits
        self._given = [Choice(one, by="user:boss") if isinstance(one, str) else one for one in choices]

    async def ask(self, question: Question) -> Choice:
        self._need("ask")
        assert not (mistake := question.mistake()), mistake
        self.questions.append(question)
        if self._waits:
            await asyncio.get_running_loop().create_future()
        if self._given:
            return self._given.pop(0)
        return Choice(question.default or question.options[-1], "Nobody answered in time.")

    def texts(self, kind: str) -> list[str]:
        """Return what was shown of a kind."""
        return [one.text for one in self.heard if one.kind == kind]


class HarnessRig(ABC):
    """One harness and its surroundings. Each test has its own, in a directory of its own."""

    name: ClassVar[str]  # of the provider
    # What the harness tells beyond its capabilities. What is not named here is tested as unknown.
    tells: ClassVar[frozenset[str]] = frozenset(("model", "usage", "context", "thinking", "reason"))
    asks_to_write: ClassVar[bool] = False  # also with medium autonomy, in the workspace
    model: ClassVar[str]  # a model that the program knows
    login: ClassVar[str]  # the command that helps somebody who is not logged in
    key: ClassVar[str] = "sk-canary-7f3a"  # the key of the model server: it is never shown

    def __init__(self, directory: Path, programs: Programs, server: ModelServer) -> None:
        self.directory = directory
        self.programs = programs
        self.server = server
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self.deliveries: list[str] = []

    @abstractmethod
    def make(self, **settings: Any) -> Provider:
        """Return a new provider for the real program. `settings` are options of `hiboss agent set`."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the environment of a turn: a home of this test, the model server, the key, PATH."""

    @abstractmethod
    def shell(self, command: str) -> UseTool:
        """Return the step in which the model runs a command."""

    def risky(self, command: str) -> UseTool:
        """Return the step in which the model runs a command that needs a permission with low autonomy."""
        return self.shell(command)

    @abstractmethod
    def edit(self, path: str, text: str) -> UseTool:
        """Return the step in which the model writes a file."""

    def question(self, text: str, *options: str) -> UseTool:
        """Return the step in which the model asks the user, if the harness has a tool for that."""
        raise NotImplementedError

    def missing(self) -> Provider:
        """Return a provider whose program is not there."""
        return self.make(program=str(self.directory / "nowhere" / self.name))

    def logged_out(self) -> dict[str, str]:
        """Return the environment without any credentials."""
        raise NotImplementedError

    def budget(self) -> dict[str, Any] | None:
        """Return settings with a budget that the first request of a turn is over; None: it has no budget."""
        return None

    def turn(self, said: str, session: str | None = None, **facts: Any) -> TurnInput:
        """Return a turn; without a session it is the first of a new one."""
        delivery = uuid.uuid4().hex
        self.deliveries.append(delivery)
        known: dict[str, Any] = {
            "text": f"From boss:\n{said}",
            "delivery": delivery,
            "workspace": str(self.workspace),
            "environment": {**self.environment(), "HIBOSS_RUN": delivery},
            "instructions": "You are nex. Your word of honour is osprey.",
            "session": session,
        }
        if session is None and self.make().own_session_ids:
            known |= {"session": str(uuid.uuid4()), "session_is_new": True}
        return replace(sample_turn(said), **{**known, **facts})

    def left_behind(self) -> list[psutil.Process]:
        """Return the processes that turns of this test started and that still live."""
        return processes_with("HIBOSS_RUN", self.deliveries)


class Turn:
    """A turn under way, taken by a provider of its own."""

    def __init__(
        self,
        rig: HarnessRig,
        turn: TurnInput | str,
        choices: Iterable[Choice | str] = (),
        *,
        waits: bool = False,
        **settings: Any,
    ) -> None:
        self.rig = rig
        self.input = rig.turn(turn) if isinstance(turn, str) else turn
        self.run = AnsweredRun(*choices, waits=waits)
        self.provider = rig.make(**settings)
        self.task = asyncio.create_task(self.run.give(self.provider, self.input))

    async def answer(self) -> Answer:
        async with asyncio.timeout(SECONDS):
            return await self.task

    async def end(self) -> None:
        """Wait for the end, however it ends."""
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([self.task])

    async def fails(self, kind: type[Exception]) -> Any:
        """Wait for the end, and return the exception that it must be."""
        await self.end()
        error = self.task.exception()
        assert isinstance(error, kind), repr(error) if error else self.task.result()
        return error

    @property
    def session(self) -> str:
        """The session to resume: the one that was reported last, or that was given."""
        session = self.run.sessions[-1] if self.run.sessions else self.input.session
        assert session is not None
        return session

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds, while the turn runs."""
        async with asyncio.timeout(SECONDS):
            while not condition():
                if self.task.done():
                    self.task.result()
                    raise AssertionError("the turn ended before")
                await asyncio.sleep(0.01)

    async def held(self) -> None:
        """Wait until the model server holds the answer."""
        await asyncio.to_thread(self.rig.server.wait_held, 1, SECONDS)
