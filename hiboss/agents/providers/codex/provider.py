"""The codex provider: `codex app-server` takes the turn."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import ClassVar

from ....core.contracts.failures import SessionLost
from ....core.contracts.provider import (
    ASK,
    INTERRUPT,
    SESSION,
    STEER,
    Answer,
    Finding,
    LiveRun,
    Provider,
    TurnInput,
)
from ...json_lines import JsonLines, no_workspace
from .. import programs
from . import arguments, failures, program
from .conversation import Conversation
from .settings import CodexSettings


class Codex(Provider):
    """Runs one app-server for each turn, and speaks with it on its standard input and output."""

    name: ClassVar[str] = "codex"
    summary: ClassVar[str] = "Codex, of OpenAI"
    Settings = CodexSettings
    # It names no costs. Its sessions stay usable whatever is set: with each turn it is told all anew.
    capabilities = frozenset({SESSION, STEER, INTERRUPT, ASK})
    takes_instructions = True
    starts_program = True

    settings: CodexSettings

    def __init__(self, settings: CodexSettings) -> None:
        super().__init__(settings)
        self._conversation: Conversation | None = None
        self._interrupted = False

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        _check_session(turn.session)
        if not os.path.isdir(turn.workspace):
            raise no_workspace(turn.workspace)
        environment = arguments.environment(turn.environment)
        path = programs.locate(self.settings.program, environment)
        if path is None:
            raise failures.no_program(self.settings.program)
        version = await programs.version(path, environment)
        if programs.older(version, program.LEAST):
            raise failures.outdated(version, program.LEAST_TEXT)
        called = arguments.arguments(path, self.settings)
        lines = JsonLines(called, turn, programs.with_program(environment, path))
        await lines.start(run)
        self._conversation = Conversation(self.settings, turn, run, lines)
        if self._interrupted:
            self._conversation.interrupt()
        return await self._conversation.hold()

    async def find(self, environment: Mapping[str, str], workspace: str) -> Finding | None:
        return await program.find(self.settings, environment)

    async def steer(self, text: str) -> bool:
        return self._conversation is not None and await self._conversation.steer(text)

    async def interrupt(self) -> None:
        self._interrupted = True
        if self._conversation is not None:
            self._conversation.interrupt()


def _check_session(session: str | None) -> None:
    """Raise SessionLost for what is no id of a thread: codex could begin a new one without a word."""
    try:
        if session is not None:
            uuid.UUID(session)
    except ValueError:
        raise SessionLost(f"{session} is no session of codex") from None
