"""What a program prints: made into progress, an answer, and reports to the daemon.

A line that is a JSON object with the key `hiboss` is a control line; every other line is a part of the
answer. All are described in docs/providers.md.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ...core.contracts.failures import SessionLost, TurnError
from ...core.contracts.provider import Answer, LiveRun, Progress, Usage, is_session, storable_text

HELD_CHARACTERS = 8 * 1024 * 1024  # of a line that may become a control line
SLACK_BYTES = 1024  # line breaks around an answer do not count

Control = dict[str, Any]


class OutputReader:
    """Reads a program's output: reports it to the run, and makes the answer of it."""

    def __init__(
        self, run: LiveRun, answer_bytes: int, on_ask: Callable[[Control], None], on_final: Callable[[], None]
    ) -> None:
        self._run = run
        self._answer_bytes = answer_bytes
        self._kinds: dict[str, Callable[[Control, str], Awaitable[None] | None]] = {
            "delta": self._take_delta,
            "tool": self._take_tool,
            "tool_result": lambda control, text: self._run.progress(Progress("tool_result", text)),
            "thinking": lambda control, text: self._run.progress(Progress("thinking", text)),
            "alive": lambda control, text: self._run.progress(Progress("alive")),
            "usage": self._take_usage,
            "session": self._take_session,
            "ask": lambda control, text: on_ask({**control, "text": text}),
            "final": self._take_final,
            "error": self._take_error,
        }
        self._on_final = on_final
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []  # the pieces of the line that has not ended yet
        self._line_length = 0
        self._plain: list[str] = []
        self._plain_bytes = 0
        self._unshown: list[str] = []  # lines of the answer that came together, and are shown together
        self._deltas: list[str] = []
        self._delta_bytes = 0
        self._final: str | None = None
        self._usage: dict[str, Any] = {}
        self._notes: list[str] = []
        self.error: TurnError | None = None  # that the program reported

    async def read(self, part: bytes) -> None:
        """Take the next output. b"" stands for output on standard error, which is not shown."""
        if part:
            await self._take(self._decoder.decode(part))
        else:
            self._run.progress(Progress("alive"))

    async def close(self) -> None:
        """Take the last line, which may have no line break."""
        await self._take(self._decoder.decode(b"", final=True))
        if self._line:
            await self._take("\n")

    def answer(self) -> Answer:
        text = self._final
        if text is None:
            text = "".join(self._plain).strip("\n")
            if not text and self._delta_bytes > self._answer_bytes:
                raise too_long(self._answer_bytes)
            text = text or "".join(self._deltas)
        if len(text.encode()) > self._answer_bytes:
            raise too_long(self._answer_bytes)
        return Answer(text=text, note="; ".join(self._notes) or None, **self._usage)

    # --- lines -----------------------------------------------------------------------

    async def _take(self, text: str) -> None:
        *ended, open_ = text.replace("\x00", "\ufffd").split("\n")
        try:
            for piece in ended:
                await self._end_line(piece)
        finally:
            self._show()
        if open_:
            self._line.append(open_)
            self._line_length += len(open_)
        if self._line and not self._held():
            self._check_size(self._line_length)
            self._run.progress(Progress("delta", open_) if open_ else Progress("alive"))
        elif self._line_length > HELD_CHARACTERS:
            raise TurnError("too_long", f"it wrote a line of more than {HELD_CHARACTERS} characters")
        elif not ended:
            self._run.progress(Progress("alive"))

    def _held(self) -> bool:
        """Tell whether the line may still become a control line, and is not shown before its end."""
        return self._line[0].startswith("{")

    async def _end_line(self, piece: str) -> None:
        """Take a whole line, of which this is the last piece."""
        shown = bool(self._line) and not self._held()  # all but this piece
        line = "".join([*self._line, piece])
        self._line, self._line_length = [], 0
        control = None if shown else _control_line(line)
        if control is not None:
            self._show()
            done = self._kinds[control["hiboss"]](control, storable_text(str(control.get("text") or "")))
            if done is not None:
                await done
            return
        self._plain.append(f"{line}\n")
        self._plain_bytes += len(line.encode()) + 1
        self._check_size(0)
        self._unshown.append(f"{piece if shown else line}\n")

    def _show(self) -> None:
        if self._unshown:
            lines, self._unshown = self._unshown, []
            self._run.progress(Progress("delta", "".join(lines)))

    def _check_size(self, more: int) -> None:
        if self._final is None and self._plain_bytes + more > self._answer_bytes + SLACK_BYTES:
            raise too_long(self._answer_bytes)

    # --- control lines ---------------------------------------------------------------

    def _take_delta(self, control: Control, text: str) -> None:
        self._delta_bytes += len(text.encode())
        if (
            self._delta_bytes <= self._answer_bytes
        ):  # more than that can be no answer, but there may be a `final`
            self._deltas.append(text)
        self._run.progress(Progress("delta", text))

    def _take_tool(self, control: Control, text: str) -> None:
        name = storable_text(str(control.get("name") or ""))
        self._run.progress(Progress("tool", " ".join(f"{name} {text}".split())))

    def _take_final(self, control: Control, text: str) -> None:
        self._final = text
        self._run.progress(Progress("alive"))
        self._on_final()

    def _take_error(self, control: Control, text: str) -> None:
        text = text or "an error, without a text"
        lost = control.get("kind") == "session_lost"
        self.error = (
            SessionLost(f"it reported: {text}") if lost else TurnError("reported", f"it reported: {text}")
        )

    async def _take_session(self, control: Control, text: str) -> None:
        session = control.get("id")
        if not is_session(session):
            self._notes.append("its session id is not a text that can be stored and was left out")
        else:
            await self._run.session(session)

    def _take_usage(self, control: Control, text: str) -> None:
        """Take the latest numbers. A value that is not a number is left out, with a note."""
        for name in ("tokens_in", "tokens_out", "cost"):
            if name in control:
                self._take_number(name, control[name], whole=name != "cost")
        self._run.progress(Progress("usage", usage=Usage(**self._usage)))

    def _take_number(self, name: str, value: Any, *, whole: bool) -> None:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 2**53:
            self._notes.append(f"its {name} is not a number and was left out")
        else:
            self._usage[name] = value if whole else float(value)


CONTROL_LINES = frozenset(
    ("delta", "tool", "tool_result", "thinking", "alive", "usage", "session", "ask", "final", "error")
)


def too_long(limit: int) -> TurnError:
    return TurnError("too_long", f"its answer is longer than {limit} bytes")


def _control_line(line: str) -> Control | None:
    """Return a control line as an object; None when the line is part of the answer."""
    if not line.startswith("{") or '"hiboss"' not in line:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = (
        isinstance(found, dict) and isinstance(found.get("hiboss"), str) and found["hiboss"] in CONTROL_LINES
    )
    return found if known else None
