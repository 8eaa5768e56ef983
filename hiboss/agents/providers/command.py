"""The command provider: a program gets the turn on standard input and prints its answer.

What it prints is in command_output.py; starting and ending the program is in hiboss/agents/child_process.py.
With `input = open`, standard input stays open and both sides speak JSON lines: the program gets the
turn, the words of people during it (`steer`) and answers to its questions.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from ...core.contracts.failures import TurnError
from ...core.contracts.provider import (
    ASK,
    COST,
    INTERRUPT,
    SESSION,
    STEER,
    Answer,
    LiveRun,
    Provider,
    Question,
    TurnInput,
)
from ...core.option_models import Options
from ...core.quoting import shortened
from ..child_process import Process, ProcessResult
from ..json_lines import cannot_start
from .command_output import Control, OutputReader

LONGEST_COMMAND = 4_000
RESUME_VARIABLE = "HIBOSS_RESUME"


class CommandSettings(Options):
    command: str = Field(
        description='the program that answers, like "python3 agent.py"; split into words, run without a shell'
    )
    input: Literal["turn", "open"] = Field(
        "turn",
        description="turn: standard input is the text of the turn; open: it stays open, for lines of JSON",
    )

    @field_validator("command")
    @classmethod
    def _can_be_split(cls, given: str) -> str:
        command = given.strip()
        if len(command) > LONGEST_COMMAND or "\x00" in command:
            raise ValueError(f"the command is longer than {LONGEST_COMMAND} characters, or contains a NUL")
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"the command cannot be split into words: {error}") from None
        if not arguments or not arguments[0]:
            raise ValueError('give a program, like --command "python3 agent.py"')
        return command


class Command(Provider):
    """Runs one program for each turn, without a shell."""

    name: ClassVar[str] = "command"
    summary: ClassVar[str] = "a program of yours"
    Settings = CommandSettings
    session_settings = frozenset({"command"})
    capabilities = frozenset({SESSION, STEER, INTERRUPT, ASK, COST})
    starts_program = True

    def __init__(self, settings: CommandSettings) -> None:
        super().__init__(settings)
        self._arguments = shlex.split(settings.command)
        self._open = settings.input == "open"
        if not self._open:
            self.capabilities = frozenset({SESSION, COST})
        self._process: Process | None = None
        self._run: LiveRun | None = None
        self._takes_lines = False  # it has its turn, and has not said `final`
        self._asking: set[asyncio.Task[None]] = set()

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        session = {} if turn.session is None else {RESUME_VARIABLE: turn.session}
        environment = {**turn.environment, **session}
        process = Process(self._arguments, turn.workspace, environment, turn.output_bytes)
        try:
            await process.start()
        except OSError as error:
            raise cannot_start(self._arguments[0], turn.workspace, error) from None
        await process.report(run.started)
        self._process, self._run, self._takes_lines = process, run, self._open
        output = OutputReader(run, turn.answer_bytes, self._ask, self._close_input)
        given = _turn_line(turn) if self._open else turn.text.encode() + b"\n"
        try:
            result = await process.run_to_end(given, output.read, keep_input=self._open)
        finally:
            self._takes_lines = False
            for task in self._asking:
                task.cancel()
        if result.too_much_output:
            raise TurnError("too_long", f"it wrote more than {turn.output_bytes} bytes and was ended")
        await output.close()
        _check(result, output)
        return output.answer()

    async def steer(self, text: str) -> bool:
        return self._write({"hiboss": "steer", "text": text})

    async def interrupt(self) -> None:
        self._write({"hiboss": "interrupt"})

    def _write(self, line: dict[str, Any]) -> bool:
        """Give the program a line. Return False when it takes none any more."""
        return self._takes_lines and self._process is not None and self._process.write(_line(line))

    def _close_input(self) -> None:
        """Close standard input after `final`: a program that reads to its end then ends."""
        self._takes_lines = False
        if self._open and self._process is not None:
            self._process.close_input()

    def _ask(self, control: Control) -> None:
        """Pass on a question of the program; its answer is given when it comes."""
        if not self._open:
            raise TurnError(
                "no_input", "it asked a question, but its standard input is closed; set --input open"
            )
        options = control.get("options", ["allow", "deny"])
        about = (control.get(name) or "" for name in ("default", "tool", "detail", "subject"))
        question = Question(control["text"], tuple(options) if isinstance(options, list) else (), *about)
        if mistake := question.mistake():
            raise TurnError("bad_question", f"its question cannot be asked: {mistake}")
        task = asyncio.create_task(self._answer(control.get("id"), question))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _answer(self, number: Any, question: Question) -> None:
        assert self._run is not None
        choice = await self._run.ask(question)
        self._write({"hiboss": "answer", "id": number, **choice._asdict()})


def _turn_line(turn: TurnInput) -> bytes:
    """Return the first line of an open standard input."""
    return _line(
        {
            "hiboss": "turn",
            "run": turn.run,
            "agent": turn.agent,
            "session": turn.session,
            "text": turn.text,
            "envelopes": [dict(one) for one in turn.envelopes],
        }
    )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _check(result: ProcessResult, output: OutputReader) -> None:
    """Raise a TurnError if the program failed."""
    if output.error is not None:
        raise output.error
    if result.status == 0:
        return
    how = f"exit status {result.status}" if result.status > 0 else f"signal {-result.status}"
    last_line = result.stderr_tail.splitlines()[-1:]
    text = f"it ended with {how}" + (f": {shortened(last_line[0], 500)}" if last_line else "")
    raise TurnError("exit_status" if result.status > 0 else "signal", text)
