"""A program of yours: it gets its turn on standard input and answers on standard output.

What it prints is the answer. A line that is a JSON object with the key `hiboss` is no part of
it, but says something: a piece of the answer so far, a tool it uses, what it has used up, the
answer itself, or that it failed.
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
from ..child_process import Ended, Process

LONGEST_COMMAND = 4_000
SAID = ("delta", "tool", "usage", "final", "error")


class Command:
    name: ClassVar[str] = "command"
    options: ClassVar[tuple[str, ...]] = ("command",)

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        command = str(given.get("command") or "").strip()
        if not command:
            raise Refused('the command provider needs a program (--command "python agent.py")')
        if len(command) > LONGEST_COMMAND or "\x00" in command:
            raise Refused(f"the command is longer than {LONGEST_COMMAND} characters, or has a NUL in it")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise Refused(f"the command cannot be split into words: {error}") from None
        if not words or not words[0]:
            raise Refused('the command provider needs a program (--command "python agent.py")')
        return {"command": command}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._words = shlex.split(settings["command"])

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        process = Process(self._words, turn.workspace, turn.environment, turn.output_bytes)
        try:
            pid = await process.start()
        except OSError as error:
            raise _cannot_start(self._words[0], turn.workspace, error) from None
        listener = Listener(on_progress)
        try:
            await on_start(pid)
        except BaseException:  # whatever kept it from being noted: what nobody knows of must not go on
            await process.end()
            raise
        ended = await process.see_through(turn.text.encode() + b"\n", listener.heard)
        if ended.flooded:
            raise TurnError("too_long", f"it wrote more than {turn.output_bytes} bytes and was ended")
        listener.close()
        _check(ended, listener)
        return listener.answer()


def _cannot_start(program: str, workspace: str, error: OSError) -> LaneError:
    if not os.path.isdir(workspace):
        return LaneError("no_workspace", f"its workspace {workspace} is not there")
    if isinstance(error, FileNotFoundError):
        return LaneError("no_program", f"the program {program} is not there (looked for from {workspace})")
    return LaneError("no_program", f"the program {program} cannot be run: {error.strerror or error}")


def _check(ended: Ended, listener: Listener) -> None:
    """Raise if it did not go well."""
    if listener.error is not None:
        raise TurnError("reported", f"it reported: {listener.error}")
    if ended.status == 0:
        return
    how = f"exit status {ended.status}" if ended.status > 0 else f"signal {-ended.status}"
    last = ended.complaint.splitlines()[-1:]
    text = f"it ended with {how}" + (f": {last[0][:500]}" if last else "")
    raise TurnError("exit_status" if ended.status > 0 else "signal", text)


class Listener:
    """Makes of a program's output an answer, and of what it says meanwhile, signs of life."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._plain: list[str] = []
        self._deltas: list[str] = []
        self._final: str | None = None
        self._usage: dict[str, Any] = {}
        self._notes: list[str] = []
        self.error: str | None = None

    def heard(self, part: bytes) -> None:
        if not part:
            self._on_progress(Progress("alive"))
            return
        self._take(self._decoder.decode(part))

    def close(self) -> None:
        self._take(self._decoder.decode(b"", final=True))
        if self._line:
            self._take("\n")

    def answer(self) -> Answer:
        text = self._final
        if text is None:
            text = "".join(self._plain).strip("\n") or "".join(self._deltas)
        if "\ufffd" in text:
            self._notes.append("parts of its output could not be kept as they are and were replaced")
        return Answer(text=text, note="; ".join(self._notes) or None, **self._usage)

    def _take(self, text: str) -> None:
        self._line += text.replace("\x00", "\ufffd")
        *whole, self._line = self._line.split("\n")
        for line in whole:
            self._take_line(line)
        if not whole:
            self._on_progress(Progress("alive"))

    def _take_line(self, line: str) -> None:
        said = _said(line)
        if said is None:
            self._plain.append(f"{line}\n")
            self._on_progress(Progress("delta", f"{line}\n"))
            return
        kind, text = said["hiboss"], _clean(str(said.get("text") or ""))
        if kind == "delta":
            self._deltas.append(text)
            self._on_progress(Progress("delta", text))
        elif kind == "tool":
            self._on_progress(Progress("tool", " ".join(f"{said.get('name') or ''} {text}".split())))
        elif kind == "final":
            self._final = text
            self._on_progress(Progress("alive"))
        elif kind == "error":
            self.error = text or "an error, without a word about it"
        else:
            self._take_usage(said)

    def _take_usage(self, said: dict[str, Any]) -> None:
        """The last word counts. What is no number of the kind is not believed."""
        for name in ("tokens_in", "tokens_out"):
            if name in said:
                self._believe(name, said[name], whole=True)
        if "cost" in said:
            self._believe("cost", said["cost"], whole=False)
        self._on_progress(Progress("usage", usage=Usage(**self._usage)))

    def _believe(self, name: str, value: Any, *, whole: bool) -> None:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 2**53:
            self._notes.append(f"its {name} is no number and was left out")
        else:
            self._usage[name] = value if whole else float(value)


def _clean(text: str) -> str:
    """Escapes in JSON can bring in what no text may have: NUL, and halves of characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")


def _said(line: str) -> dict[str, Any] | None:
    """The line as one of ours; None when it is part of the answer."""
    if not line.startswith("{") or '"hiboss"' not in line:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("hiboss") in SAID else None
