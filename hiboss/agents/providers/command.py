"""The command provider: a program gets the turn on standard input and prints its answer.

What it prints is the answer, and is shown live. A line that is a JSON object with the key
`hiboss` is not part of the answer: it is a control line, and reports a piece of the answer
(`delta`), a tool in use (`tool`), tokens and cost (`usage`), the whole answer (`final`) or a failure
(`error`). Starting and ending the program is in hiboss/agents/child_process.py.
"""

from __future__ import annotations

import codecs
import json
import os
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.contracts.failures import LaneError, Refused, TurnError
from ...core.contracts.provider import Answer, OnProgress, OnStart, Progress, TurnInput, Usage
from ..child_process import Process, ProcessResult

LONGEST_COMMAND = 4_000
CONTROL_LINES = ("delta", "tool", "usage", "final", "error")


class Command:
    """Runs one program for each turn, without a shell."""

    name: ClassVar[str] = "command"
    options: ClassVar[tuple[str, ...]] = ("command",)

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        command = str(given.get("command") or "").strip()
        if not command:
            raise Refused('the command provider needs a program (--command "python3 agent.py")')
        if len(command) > LONGEST_COMMAND or "\x00" in command:
            raise Refused(f"the command is longer than {LONGEST_COMMAND} characters, or contains a NUL")
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise Refused(f"the command cannot be split into words: {error}") from None
        if not arguments or not arguments[0]:
            raise Refused('the command provider needs a program (--command "python3 agent.py")')
        return {"command": command}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._arguments = shlex.split(settings["command"])

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        process = Process(self._arguments, turn.workspace, turn.environment, turn.output_bytes)
        try:
            pid = await process.start()
        except OSError as error:
            raise _cannot_start(self._arguments[0], turn.workspace, error) from None
        output = OutputReader(on_progress)
        try:
            await on_start(pid)
        except BaseException:  # its pid was not stored: a crash would leave it running, so end it now
            await process.end()
            raise
        result = await process.run_to_end(turn.text.encode() + b"\n", output.read)
        if result.too_much_output:
            raise TurnError("too_long", f"it wrote more than {turn.output_bytes} bytes and was ended")
        output.close()
        _check(result, output)
        return output.answer()


def _cannot_start(program: str, workspace: str, error: OSError) -> LaneError:
    if not os.path.isdir(workspace):
        return LaneError("no_workspace", f"its workspace {workspace} does not exist")
    if isinstance(error, FileNotFoundError):
        return LaneError("no_program", f"the program {program} was not found (started in {workspace})")
    return LaneError("no_program", f"the program {program} cannot be run: {error.strerror or error}")


def _check(result: ProcessResult, output: OutputReader) -> None:
    """Raise a TurnError if the program failed."""
    if output.error is not None:
        raise TurnError("reported", f"it reported: {output.error}")
    if result.status == 0:
        return
    how = f"exit status {result.status}" if result.status > 0 else f"signal {-result.status}"
    last_line = result.stderr_tail.splitlines()[-1:]
    text = f"it ended with {how}" + (f": {last_line[0][:500]}" if last_line else "")
    raise TurnError("exit_status" if result.status > 0 else "signal", text)


class OutputReader:
    """Reads a program's output: reports it as progress, and makes the answer of it."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""  # the line that has not ended yet
        self._shown = 0  # characters of that line that were reported
        self._plain: list[str] = []
        self._deltas: list[str] = []
        self._final: str | None = None
        self._usage: dict[str, Any] = {}
        self._notes: list[str] = []
        self.error: str | None = None

    def read(self, part: bytes) -> None:
        """Take the next output. b"" stands for output on standard error, which is not shown."""
        if not part:
            self._on_progress(Progress("alive"))
            return
        self._take(self._decoder.decode(part))

    def close(self) -> None:
        """Take the last line, which may have no line break."""
        self._take(self._decoder.decode(b"", final=True))
        if self._line:
            self._take("\n")

    def answer(self) -> Answer:
        text = self._final
        if text is None:
            text = "".join(self._plain).strip("\n") or "".join(self._deltas)
        if "\ufffd" in text:
            self._notes.append("some characters of its output cannot be stored and were replaced")
        return Answer(text=text, note="; ".join(self._notes) or None, **self._usage)

    def _take(self, text: str) -> None:
        self._line += text.replace("\x00", "\ufffd")
        *whole, self._line = self._line.split("\n")
        for line in whole:
            self._take_line(line)
        if self._line and not self._line.startswith("{"):  # so it cannot become a control line
            self._show(self._line)
        elif not whole:
            self._on_progress(Progress("alive"))

    def _show(self, line: str) -> None:
        """Report the part of a line of the answer that was not reported yet."""
        part, self._shown = line[self._shown :], len(line)
        self._on_progress(Progress("delta", part) if part else Progress("alive"))

    def _take_line(self, line: str) -> None:
        control = _control_line(line)
        if control is None:
            self._plain.append(f"{line}\n")
            self._show(f"{line}\n")
            self._shown = 0
            return
        kind, text = control["hiboss"], _clean(str(control.get("text") or ""))
        if kind == "delta":
            self._deltas.append(text)
            self._on_progress(Progress("delta", text))
        elif kind == "tool":
            self._on_progress(Progress("tool", " ".join(f"{control.get('name') or ''} {text}".split())))
        elif kind == "final":
            self._final = text
            self._on_progress(Progress("alive"))
        elif kind == "error":
            self.error = text or "an error, without a text"
        else:
            self._take_usage(control)

    def _take_usage(self, control: dict[str, Any]) -> None:
        """Take the latest numbers. A value that is not a number is left out, with a note."""
        for name in ("tokens_in", "tokens_out"):
            if name in control:
                self._take_number(name, control[name], whole=True)
        if "cost" in control:
            self._take_number("cost", control["cost"], whole=False)
        self._on_progress(Progress("usage", usage=Usage(**self._usage)))

    def _take_number(self, name: str, value: Any, *, whole: bool) -> None:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 2**53:
            self._notes.append(f"its {name} is not a number and was left out")
        else:
            self._usage[name] = value if whole else float(value)


def _clean(text: str) -> str:
    """Replace what cannot be stored but can come from JSON escapes: NUL and half surrogate pairs."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")


def _control_line(line: str) -> dict[str, Any] | None:
    """Return a control line as an object; None when the line is part of the answer."""
    if not line.startswith("{") or '"hiboss"' not in line:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("hiboss") in CONTROL_LINES else None
