"""The provider `claude`: each turn is one process of Claude Code, which resumes its session."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ....core.contracts.provider import (
    ASK,
    COST,
    INTERRUPT,
    SESSION,
    STEER,
    Answer,
    Finding,
    LiveRun,
    Provider,
    TurnInput,
)
from ...child_process import ProcessResult
from ...json_lines import JsonLines
from .. import programs
from . import arguments, failures, program, saved_sessions
from .conversation import Conversation
from .failures import Circumstances
from .settings import ClaudeSettings

TOKEN_FILE = "HIBOSS_TOKEN_FILE"
AS_ROOT = (
    "claude does not run without permissions as root, so its requests were allowed by hiboss; "
    "in a sandbox set IS_SANDBOX=1 for the daemon"
)


class Claude(Provider):
    """Runs `claude -p` for each turn."""

    name: ClassVar[str] = "claude"
    summary: ClassVar[str] = "Claude Code"
    Settings = ClaudeSettings
    capabilities = frozenset({SESSION, STEER, INTERRUPT, ASK, COST})
    takes_instructions = True
    own_session_ids = True
    starts_program = True

    def __init__(self, settings: ClaudeSettings) -> None:
        super().__init__(settings)
        self._conversation: Conversation | None = None
        self._notes: list[str] = []

    async def find(self, environment: Mapping[str, str], workspace: str) -> Finding | None:
        return await program.find(self.settings, environment)

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        path = await asyncio.to_thread(program.located, self.settings, turn.environment)
        environment = programs.with_program(arguments.environment(self.settings, turn.environment), path)
        attempt = _Attempt(self, turn, run, path, environment)
        with _instructions(turn) as file:
            if turn.session is None or turn.session_is_new:
                begun = [] if turn.session is None else ["--session-id", turn.session]
                ended = await attempt.take(begun, turn.session, file)
                if turn.session is None or not attempt.is_in_use(ended):
                    return attempt.answer(ended, resumed=False)
            assert turn.session is not None
            resumed, session = await self._resuming(environment, turn.session)
            return attempt.answer(await attempt.take(resumed, session, file), resumed=True)

    async def _resuming(self, environment: Mapping[str, str], session: str) -> tuple[list[str], str]:
        """Return the arguments that continue a session, and its id: of a copy if somebody has it open."""
        holder = await asyncio.to_thread(saved_sessions.holder, environment, session)
        if not holder:
            return ["--resume", session], session
        copy = str(uuid.uuid4())
        self.note(f"its session {session} is open in {holder}, so it went on in a copy of it, {copy}")
        return ["--resume", session, "--fork-session", "--session-id", copy], copy

    def note(self, text: str) -> None:
        """Keep a remark for the answer."""
        if text not in self._notes:
            self._notes.append(text)

    @property
    def notes(self) -> str | None:
        return "; ".join(self._notes) or None

    def holds(self, conversation: Conversation) -> None:
        """Words of people go to this conversation from now on."""
        self._conversation = conversation

    async def steer(self, text: str) -> bool:
        return self._conversation is not None and self._conversation.steer(text)

    async def interrupt(self) -> None:
        if self._conversation is not None:
            self._conversation.interrupt()


class _Attempt:
    """A turn, and the process that takes it. A second process is needed when the session exists already."""

    def __init__(
        self, provider: Claude, turn: TurnInput, run: LiveRun, path: str, environment: dict[str, str]
    ) -> None:
        self._provider = provider
        self._settings: ClaudeSettings = provider.settings
        self._turn = turn
        self._run = run
        self._path = path
        self._environment = environment
        self._conversation: Conversation | None = None
        self._session: str | None = None
        self._saved_before: int | None = None
        self._told = False  # the session was reported

    async def take(
        self, about_session: list[str], session: str | None, file: str | None
    ) -> ProcessResult | None:
        """Run the program once, to its end."""
        bypass = arguments.may_bypass(self._environment)
        words = arguments.arguments(
            self._path, self._settings, session=about_session, instructions=file, bypass=bypass
        )
        allow_all = self._settings.autonomy == "high" and not bypass
        self._session = session
        self._saved_before = await self._saved()
        process = JsonLines(words, self._turn, self._environment)
        await process.start(self._run)
        conversation = Conversation(
            process, self._run, self._turn.workspace, allow_all=allow_all, on_model=self._tell_session
        )
        self._conversation = conversation
        self._provider.holds(conversation)
        ended = await conversation.hold(self._turn.text)
        if conversation.output.results:
            await self._tell_session(at_end=True)
        if allow_all:
            self._provider.note(AS_ROOT)
        return ended

    async def _saved(self) -> int | None:
        if self._session is None:
            return None
        return await asyncio.to_thread(saved_sessions.saved_bytes, self._environment, self._session)

    async def _tell_session(self, *, at_end: bool = False) -> None:
        """Report the session, once it is known that the program saves it."""
        assert self._conversation is not None
        self._session = self._session or self._conversation.output.session or None
        size = await self._saved()
        if self._session is not None and size is not None and not self._told:
            self._told = True
            await self._run.session(self._session)
        heard = self._conversation.output.heard_model
        if at_end and heard and self._session is not None and (size or 0) <= (self._saved_before or 0):
            where = saved_sessions.directory(self._environment)
            self._provider.note(
                f"claude does not save its sessions: {where} is not writable, or it is set so"
            )

    def is_in_use(self, ended: ProcessResult | None) -> bool:
        """Tell whether the session exists already, and nothing has happened."""
        assert self._conversation is not None
        nothing = not self._conversation.output.results
        return nothing and ended is not None and failures.is_in_use(ended)

    def answer(self, ended: ProcessResult | None, *, resumed: bool) -> Answer:
        """Return the answer of the turn, or raise what went wrong."""
        assert self._conversation is not None
        output = self._conversation.output
        about = Circumstances(
            agent=self._turn.agent,
            settings=self._settings,
            environment=self._environment,
            resumed=resumed,
            limit_resets_at=output.limit_resets_at,
        )
        if self._conversation.interrupted:
            return Answer(note=self._provider.notes)
        if not output.results:
            assert ended is not None  # it is ended early only after a result
            raise failures.without_result(ended, about, had_begun=bool(output.session))
        if output.results[-1].is_error:
            raise failures.of_result(output.results[-1], about)
        if self._conversation.unanswered and ended is not None:
            raise failures.before_last_result(ended)
        if self._conversation.lingered:
            self._provider.note("claude did not end after its answer, and was ended")
        usage = output.meter.now()
        return Answer(
            text=output.answer,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            cost=usage.cost,
            context=usage.context,
            note=self._provider.notes,
        )


@contextlib.contextmanager
def _instructions(turn: TurnInput) -> Iterator[str | None]:
    """Write the instructions to a file for the program: one argument has at most 128 kB.

    It lies beside the token of the run, where the next daemon cleans up after a crash.
    """
    if not turn.instructions:
        yield None
        return
    token_file = turn.environment.get(TOKEN_FILE)
    place = os.path.dirname(token_file) if token_file and os.path.exists(token_file) else None
    number, path = tempfile.mkstemp(prefix="instructions-", dir=place)
    try:
        with open(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(turn.instructions)
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
