"""The provider `acp`: it starts the agent for a turn, talks with it, and ends it."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, TypeVar

from ....core.contracts.failures import LaneError, TurnError
from ....core.contracts.provider import (
    ASK,
    COST,
    INTERRUPT,
    SESSION,
    Answer,
    Choice,
    Finding,
    LiveRun,
    Progress,
    Provider,
    Question,
    TurnInput,
)
from ...json_lines import JsonLines
from . import known_agents
from .connection import Connection, Requests
from .conversation import Conversation
from .failures import Agent
from .opening import say_hello
from .settings import AcpSettings

END_SECONDS = 0.5  # for an agent whose input was closed; codex-acp takes 2 s to notice: then it is ended
FIND_SECONDS = 7.0  # of the 8 that hiboss waits
FIND_BYTES = 1_000_000

Result = TypeVar("Result")


class Acp(Provider):
    """Runs one agent for each turn, and speaks the Agent Client Protocol with it."""

    name: ClassVar[str] = "acp"
    summary: ClassVar[str] = "any agent that speaks the Agent Client Protocol"
    Settings = AcpSettings
    session_settings = frozenset({"command"})
    capabilities = frozenset({SESSION, INTERRUPT, ASK, COST})
    takes_instructions = True
    starts_program = True

    def __init__(self, settings: AcpSettings) -> None:
        super().__init__(settings)
        self._words = shlex.split(settings.command)
        self._known = known_agents.known(self._words)
        if self._known is not None and not self._known.cost:
            self.capabilities = self.capabilities - {COST}
        self._conversation: Conversation | None = None

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        self._conversation = Conversation(self.settings, Agent(self._words, turn.agent), turn, run)
        return await self._with_agent(turn, run, self._conversation, self._conversation.talk)

    async def interrupt(self) -> None:
        if self._conversation is not None:
            self._conversation.interrupt()

    async def find(self, environment: Mapping[str, str], workspace: str) -> Finding | None:
        """Start the agent and say hello."""
        directory = workspace if os.path.isdir(workspace) else os.path.expanduser("~")
        path = known_agents.locate(self._words[0], environment, directory)
        if path is None:
            return Finding(problem=f"the program {self._words[0]} was not found", help=self._install())
        turn = _no_turn(environment, directory)
        try:
            async with asyncio.timeout(FIND_SECONDS):
                agent = await self._hello(turn)
        except TimeoutError:
            why = f"{self._words[0]} does not answer within {FIND_SECONDS:.0f} seconds"
            return Finding(found=path, problem=why, help=self.settings.command)
        except (LaneError, TurnError) as error:
            return Finding(found=path, problem=error.text, help=self.settings.command)
        own = known_agents.locate(known_agents.own_program(self._words), environment, directory)
        return Finding(found=f"{agent.name or self._words[0]} ({own or path})")

    async def _hello(self, turn: TurnInput) -> Agent:
        """Start the agent only to ask who it is."""
        run = _NoRun()
        nothing = Conversation(self.settings, Agent(self._words), turn, run)

        async def ask(connection: Connection) -> Agent:
            return (await say_hello(connection, Agent(self._words))).agent

        return await self._with_agent(turn, run, nothing, ask)

    async def _with_agent(
        self,
        turn: TurnInput,
        run: LiveRun,
        requests: Requests,
        talk: Callable[[Connection], Awaitable[Result]],
    ) -> Result:
        """Start the agent, talk with it, and end it. However that ends, nothing of it is left."""
        lines = self._program(turn)
        await lines.start(run)
        try:
            async with asyncio.TaskGroup() as group:
                connection = Connection(lines.write, requests, group.create_task)
                reading = group.create_task(_read(lines, connection))
                result = await talk(connection)
                await _close(lines, reading)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return result

    def _program(self, turn: TurnInput) -> JsonLines:
        path = known_agents.locate(self._words[0], turn.environment, turn.workspace)
        if path is None and os.path.isdir(turn.workspace):
            why = f"the program {self._words[0]} was not found; {self._install()}"
            raise LaneError("no_program", why)
        words = [path or self._words[0], *self._words[1:]]
        environment = known_agents.environment(turn.environment, words, self.settings.autonomy)
        return JsonLines(words, turn, environment)

    def _install(self) -> str:
        if self._known is not None:
            return self._known.install
        return 'give another agent: --command "/path/to/agent --acp"'


async def _read(lines: JsonLines, connection: Connection) -> None:
    """Read the program to its end."""
    connection.ended(await lines.converse((), connection.take))


async def _close(lines: JsonLines, reading: asyncio.Task[None]) -> None:
    """Let the program end: it has nothing more to do. End it if it does not."""
    lines.close()
    await asyncio.wait([reading], timeout=END_SECONDS)
    reading.cancel()


class _NoRun:
    """Where an agent reports that is only asked who it is."""

    def progress(self, part: Progress) -> None:
        return None

    async def started(self, pid: int) -> None:
        return None

    async def session(self, session: str) -> None:
        return None

    async def ask(self, question: Question) -> Choice:
        raise TurnError("no_turn", "it asked a question before it had a turn")


def _no_turn(environment: Mapping[str, str], workspace: str) -> TurnInput:
    """Return what a program needs that gets no turn."""
    return TurnInput(
        run="",
        delivery="",
        agent="",
        text="",
        envelopes=(),
        due=0,
        now=0,
        timezone="UTC",
        workspace=workspace,
        environment=environment,
        answer_bytes=FIND_BYTES,
        output_bytes=FIND_BYTES,
    )
