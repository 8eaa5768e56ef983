"""What the program prints: lines of JSON, turned into live output, and kept until the turn is judged.

Lines of an unknown kind are ignored: newer versions have more of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....core.contracts.provider import Progress
from ....core.quoting import shortened
from .usage import Meter

SHOWN_INPUT = 200  # characters of what a tool is given
SHOWN_RESULT = 400
# What says most about a tool call, if its input has it.
TELLING = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "skill")
CUT_SHORT = "aborted"  # the terminal_reason of such a result begins so

Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A line `result`, and the API error that was printed before it."""

    line: Line
    api_error: str = ""  # like rate_limit; empty: none

    @property
    def text(self) -> str:
        return _text(self.line.get("result"))

    @property
    def is_error(self) -> bool:
        return self.line.get("is_error") is True or self.subtype.startswith("error")

    @property
    def subtype(self) -> str:
        return _text(self.line.get("subtype"))

    @property
    def status(self) -> int | None:
        """The HTTP status of an API error."""
        status = self.line.get("api_error_status")
        return status if isinstance(status, int) else None

    @property
    def cut_short(self) -> bool:
        """Whether the model, or a tool, was stopped: by an interrupt, or by words that came with priority."""
        return _text(self.line.get("terminal_reason")).startswith(CUT_SHORT)

    @property
    def about(self) -> set[str] | None:
        """The user messages that this result is about; None if the version does not say that."""
        found = self.line.get("user_message_uuids")
        return {one for one in found if isinstance(one, str)} if isinstance(found, list) else None

    @property
    def words(self) -> str:
        """All that it says about itself, for a look at what went wrong."""
        errors = self.line.get("errors")
        said = [self.text, *map(_text, errors if isinstance(errors, list) else [])]
        return "\n".join(filter(None, said))


@dataclass(slots=True)
class Output:
    """All that a process has printed so far."""

    report: Callable[[Progress], None]
    meter: Meter = field(default_factory=Meter)
    session: str = ""  # as the program says
    model: str = ""
    capabilities: frozenset[str] = frozenset()  # that this version declares
    results: list[Result] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)  # the tool calls under way
    background: int = 0  # tasks that work beside the turn, and report to it later
    read: set[str] = field(default_factory=set)  # the user messages that a model call has
    answered: set[str] = field(default_factory=set)  # the user messages that a result is about
    unfinished: bool = False  # a model call has begun, and no result came since
    limit_resets_at: float | None = None  # when a usage limit of the account ends, if it was said
    heard_model: bool = False  # a model call has begun
    streaming: bool = False  # a model call is under way
    _api_error: str = ""
    _message: str = ""  # the model call that is streamed now
    _streamed: set[str] = field(default_factory=set)  # the messages of which text was shown
    _shown: bool = False  # some text was shown: what comes in another block begins a paragraph
    _break: bool = False

    @property
    def answer(self) -> str:
        """The texts of all results, without those of errors and those that were cut before another one."""
        last = len(self.results) - 1
        texts = [
            one.text
            for number, one in enumerate(self.results)
            if one.text.strip() and not one.is_error and (number == last or not one.cut_short)
        ]
        return "\n\n".join(dict.fromkeys(texts))

    def take(self, line: Line) -> None:
        """Take one line."""
        readers: dict[str, Callable[[Line], None]] = {
            "system": self._take_system,
            "stream_event": self._take_event,
            "assistant": self._take_assistant,
            "user": self._take_user,
            "rate_limit_event": self._take_limit,
            "result": self._take_result,
        }
        reader = readers.get(_text(line.get("type")))
        if reader is not None:
            reader(line)

    def _take_system(self, line: Line) -> None:
        subtype = line.get("subtype")
        if subtype == "init":
            self.session = _text(line.get("session_id"))
            capabilities = line.get("capabilities")
            self.capabilities = frozenset(map(str, capabilities if isinstance(capabilities, list) else ()))
            self._model(line.get("model"))
        elif subtype == "api_retry" and line.get("error_status") is None:
            self.meter.call_broke()  # nobody says what it had read and written
        elif subtype == "background_tasks_changed" and isinstance(line.get("tasks"), list):
            self.background = len(line["tasks"])

    def _take_event(self, line: Line) -> None:
        event = _object(line.get("event"))
        of_main = line.get("parent_tool_use_id") is None
        kind = event.get("type")
        if kind == "message_start":
            message = _object(event.get("message"))
            self.heard_model = self.streaming = True
            if of_main:
                self.unfinished = True
                self._message = _text(message.get("id"))
                self._model(message.get("model"))
            self.meter.call_began(_text(message.get("id")), _object(message.get("usage")), of_main=of_main)
            self._usage()
        elif kind == "message_delta":
            message_id = _text(line.get("api_message_id")) or self._message
            self.meter.call_wrote(message_id, _object(event.get("usage")))
            self._usage()
        elif kind == "message_stop":
            self.streaming = False
        elif of_main and kind == "content_block_start":
            self._break = self._shown
        elif of_main and kind == "content_block_delta":
            self._take_delta(_object(event.get("delta")))

    def _take_delta(self, delta: Line) -> None:
        if delta.get("type") == "text_delta":
            self._streamed.add(self._message)
            self._show(_text(delta.get("text")))
        elif delta.get("type") == "thinking_delta" and delta.get("thinking"):
            self.report(Progress("thinking", _text(delta["thinking"])))

    def _show(self, text: str) -> None:
        if text:
            self.report(Progress("delta", f"\n\n{text}" if self._break else text))
            self._shown, self._break = True, False

    def _take_assistant(self, line: Line) -> None:
        message = _object(line.get("message"))
        if error := line.get("error"):  # not of the model: claude says what the API answered
            self._api_error = _text(error) or "unknown"
            return
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            self._take_block(_object(block), line, _text(message.get("id")))

    def _take_block(self, block: Line, line: Line, message: str) -> None:
        of_main = line.get("parent_tool_use_id") is None
        if block.get("type") == "tool_use":
            self.tools.add(_text(block.get("id")))
            self.report(Progress("tool", short_call(_text(block.get("name")), _object(block.get("input")))))
        elif block.get("type") == "text" and of_main and message not in self._streamed:
            self._break = self._shown  # it came whole, as after a stream that broke
            self._show(_text(block.get("text")))

    def _take_user(self, line: Line) -> None:
        if line.get("isReplay") is True:
            self.read.add(_text(line.get("uuid")))
            return
        content = _object(line.get("message")).get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self.tools.discard(_text(block.get("tool_use_id")))
                self.report(Progress("tool_result", shortened(_said(block.get("content")), SHOWN_RESULT)))

    def _take_limit(self, line: Line) -> None:
        about = _object(line.get("rate_limit_info"))
        resets_at = about.get("resetsAt")
        if about.get("status") == "rejected" and isinstance(resets_at, (int, float)):
            self.limit_resets_at = float(resets_at)

    def _take_result(self, line: Line) -> None:
        result = Result(line=line, api_error=self._api_error)
        self.results.append(result)
        # A version that does not say it: of all that the model has got until now.
        self.answered |= self.read if result.about is None else result.about
        self.meter.result(line, cut_short=result.cut_short)
        self.session = _text(line.get("session_id")) or self.session
        self.tools.clear()
        self.streaming = self.unfinished = False
        self._api_error, self._break = "", self._shown
        self._usage()

    def _model(self, name: Any) -> None:
        if isinstance(name, str) and name and not name.startswith("<") and name != self.model:
            self.model = name
            self.report(Progress("model", name))

    def _usage(self) -> None:
        self.report(Progress("usage", usage=self.meter.now()))


def short_call(tool: str, given: Line) -> str:
    """Return a tool call in a line, like: Bash git status."""
    telling = [given[one] for one in TELLING if isinstance(given.get(one), str) and given[one].strip()]
    what = telling[0] if telling else json.dumps(given, ensure_ascii=False) if given else ""
    return shortened(" ".join(f"{tool} {what}".split()), SHOWN_INPUT)


def _said(content: Any) -> str:
    """Return the text of a tool result: it is a text, or a list of blocks."""
    if isinstance(content, list):
        texts = [_text(one.get("text")) or f"[{_text(one.get('type'))}]" for one in map(_object, content)]
        return "\n".join(texts)
    return _text(content)


def _object(given: Any) -> Line:
    return given if isinstance(given, dict) else {}


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""
