"""What the agent does during a prompt: its text, its thoughts, its tools, its tokens and cost.

An agent speaks in messages; between two of them it uses tools. People see all of them while they come. The
answer is the last one. An id tells which message a piece is of. Without ids a message goes on until a tool
begins: a tool that has begun before may go on beside it.
"""

from __future__ import annotations

from typing import Any

from ....core.contracts.failures import LaneError, TurnError
from ....core.contracts.provider import LiveRun, Progress, Usage
from ....core.quoting import LONGEST_SECRET, shortened
from ...json_lines import Line
from .tool_calls import ToolCalls

LINE_CHARACTERS = 300  # of what is shown of a tool
PRINTED_CHARACTERS = 2_000
MOST_RETRIES = 3  # that codex announces, before nothing more is expected of it
MOST_COST = 2**53  # above, it can be no amount of dollars, and perhaps no float
TOKENS_IN = ("inputTokens", "cachedReadTokens", "cachedWriteTokens")


class Output:
    """Takes the updates of one session. Nothing counts as output before `begin` and after `end`."""

    def __init__(self, run: LiveRun, answer_bytes: int) -> None:
        self._run = run
        self._answer_bytes = answer_bytes
        self._open = False
        self._message: list[str] = []  # the pieces of the last message
        self._message_id: Any = None
        self._length = 0
        self._separate = False  # the next piece without an id begins a new message
        self._unsigned: list[str] = []  # what came without an id, at the end of the last message
        self._shown = False  # some text was shown
        self._tools: dict[str, tuple[str, str]] = {}  # the title that was shown, and the last one
        self._printed: dict[str, str] = {}  # the beginning of what a tool has printed so far
        self._retries = 0
        self._cost_before: Any = 0.0  # what the session had cost before this turn; None: unknown
        self._cost: Any = None
        self._context: Any = None
        self._model = ""
        self.calls = ToolCalls()
        self.failed = False  # it said that something went wrong, which is in its text

    def resumed(self, cost_before: float | None) -> None:
        """Note that a session goes on, and what its turns have cost so far; None: that is unknown."""
        self._cost_before = cost_before

    def begin(self) -> None:
        """Begin to show what it does: the prompt is given. What came before was a replay."""
        self._open = True
        if self._cost is not None:
            self._cost_before, self._cost = self._cost, None

    def model(self, name: str) -> None:
        """Report which model answers, unless that is said or says nothing."""
        if name not in ("", "default", self._model):
            self._model = name
            self._run.progress(Progress("model", name))

    def separate(self) -> None:
        """Begin a new message: another prompt is given."""
        self._separate = True

    def end(self) -> None:
        self._open = False

    @property
    def text(self) -> str:
        """The last message."""
        return "".join(self._message).strip("\n")

    @property
    def worked(self) -> bool:
        """Whether it has said or done something."""
        return self._shown or bool(self._tools)

    @property
    def unsigned(self) -> str:
        """What it said last without an id: what is not of the model has none."""
        return "".join(self._unsigned).strip("\n")

    def update(self, given: Line) -> None:
        """Take one `session/update`."""
        kind = given.get("sessionUpdate")
        if kind == "usage_update":
            self._usage_so_far(given)
        elif kind == "session_info_update":
            self._status(given)
        elif not self._open:
            return
        elif kind == "agent_message_chunk":
            self._text(given)
        elif kind == "agent_thought_chunk":
            self._run.progress(Progress("thinking", _text_of(given.get("content"))))
        elif kind in ("tool_call", "tool_call_update"):
            self.calls.take(given)
            self._tool(given)

    def _text(self, given: Line) -> None:
        piece = _text_of(given.get("content"))
        if not piece:
            return
        message = given.get("messageId")
        if self._separate if message is None else message != self._message_id:
            self._message, self._length, self._unsigned = [], 0, []
            self._message_id = message
            if self._shown:
                self._run.progress(Progress("delta", "\n\n"))
        self._separate, self._shown = False, True
        if message is None:
            self._unsigned.append(piece)
        else:
            self._unsigned = []
        self._message.append(piece)
        self._length += len(piece)
        if self._length > self._answer_bytes:
            raise TurnError("too_long", f"its answer has more than {self._answer_bytes} bytes")
        self._run.progress(Progress("delta", piece))

    def _tool(self, given: Line) -> None:
        """Show a tool when it is under way, and what came of it.

        The title of one that is pending may be of its kind only, until its input is known.
        """
        number, title = str(given.get("toolCallId")), given.get("title")
        ended = given.get("status") in ("completed", "failed")
        is_new = number not in self._tools
        if is_new and given.get("sessionUpdate") == "tool_call":
            self._separate = True
        shown, known = self._tools.get(number, ("", ""))
        title = title if isinstance(title, str) and title.strip() else known
        if title != shown and not (ended and shown) and not (is_new and given.get("status") == "pending"):
            shown = title
            self._run.progress(Progress("tool", _line(title)))
        self._tools[number] = (shown, title)
        printed = (self._printed.get(number, "") + _terminal_of(given))[: PRINTED_CHARACTERS + LONGEST_SECRET]
        self._printed[number] = printed
        if ended:
            said = _line(_result_of(given) or printed)
            failed = "failed" if given.get("status") == "failed" else ""
            self._run.progress(Progress("tool_result", ": ".join(filter(None, (failed, said))) or "done"))

    # --- tokens and cost -------------------------------------------------------------

    def _usage_so_far(self, given: Line) -> None:
        if given.get("used") is not None:
            self._context = given["used"]
        cost = given.get("cost")
        if isinstance(cost, dict) and cost.get("currency", "USD") == "USD":
            self._cost = cost.get("amount")
        if self._open:
            self._run.progress(Progress("usage", usage=Usage(cost=self.cost, context=self._context)))

    @property
    def cost(self) -> Any:
        """What this turn has cost: a session's cost is a sum over all its turns. None: unknown."""
        if self._cost is not None and not _is_amount(self._cost):
            return self._cost  # nonsense, which the run leaves out with a note
        if self._cost is None or not _is_amount(self._cost_before):
            return None
        # An agent that begins to count anew has spent no less than nothing.
        least = self._cost if self._cost < self._cost_before else self._cost - self._cost_before
        return round(least, 9) if self._cost_before else self._cost

    def finished(self, result: Line, *, whole: bool = True) -> Usage:
        """Report and return the usage of the turn, from the answer to its prompt.

        `whole` False: there was a prompt before it, of which nothing is known.
        """
        given = result.get("usage")
        if isinstance(given, dict):
            read = [given[name] for name in TOKENS_IN if given.get(name) is not None]
            written = given.get("outputTokens")
        else:
            counted = _counted(result)
            read, written = (
                [counted["input_tokens"]] if "input_tokens" in counted else [],
                counted.get("output_tokens"),
            )
        if result.get("stopReason") == "cancelled":  # claude-agent-acp says 0 then
            read, written = [], None
        exact = bool(read) and whole
        usage = Usage(_sum(read), written, self.cost, self._context, exact)
        if any(one is not None for one in usage[:4]):
            self._run.progress(Progress("usage", usage=usage))
        for name in _models(result)[-1:]:
            self.model(name)
        return usage

    # --- what codex-acp adds -----------------------------------------------------------

    def _status(self, given: Line) -> None:
        """Take what codex-acp says beside the protocol: that it tries again, or that the turn has failed."""
        meta = given.get("_meta")
        codex = meta.get("codex") if isinstance(meta, dict) else None
        if not isinstance(codex, dict) or not self._open:
            return
        status, error = codex.get("threadStatus"), codex.get("error")
        if isinstance(status, dict) and status.get("type") == "systemError":
            self.failed = True
        if isinstance(error, dict) and error.get("willRetry") is True:
            self._retries += 1
            said = str(error.get("additionalDetails") or error.get("message") or "")
            if "waiting for network" in str(error.get("message")) and self._retries >= MOST_RETRIES:
                raise LaneError("unreachable", f"its model cannot be reached: {shortened(said, 300)}")


def _text_of(content: Any) -> str:
    """Return the text of a content block; empty for an image."""
    if not isinstance(content, dict) or content.get("type") != "text":
        return ""
    text = content.get("text")
    return text if isinstance(text, str) else ""


def _result_of(given: Line) -> str:
    """Return the text that a tool produced."""
    content = given.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    texts = [_text_of(one.get("content")) for one in blocks if one.get("type") == "content"]
    texts += [f"changed {one.get('path')}" for one in blocks if one.get("type") == "diff"]
    raw = given.get("rawOutput")
    return "\n".join(filter(None, texts)) or (raw if isinstance(raw, str) else "")


def _terminal_of(given: Line) -> str:
    """Return what a command of codex-acp has printed now: it shows that as the output of a terminal."""
    meta = given.get("_meta")
    output = meta.get("terminal_output_delta") if isinstance(meta, dict) else None
    data = output.get("data") if isinstance(output, dict) else None
    return data if isinstance(data, str) else ""


def _line(text: str) -> str:
    """Return a text as one line of a limited length."""
    lines = [one.strip() for one in text.splitlines() if not one.startswith("```")]
    return shortened(" ".join(filter(None, lines)), LINE_CHARACTERS)


def _quota(result: Line) -> Line:
    """Return what gemini, claude-agent-acp and codex-acp add to the answer of a prompt."""
    meta = result.get("_meta")
    quota = meta.get("quota") if isinstance(meta, dict) else None
    return quota if isinstance(quota, dict) else {}


def _counted(result: Line) -> Line:
    counted = _quota(result).get("token_count")
    return counted if isinstance(counted, dict) else {}


def _models(result: Line) -> list[str]:
    used = _quota(result).get("model_usage")
    names = [one.get("model") for one in used if isinstance(one, dict)] if isinstance(used, list) else []
    return [one for one in names if isinstance(one, str) and one]


def _sum(numbers: list[Any]) -> Any:
    """Return the sum; None for no numbers. What is no number is returned as it is: the run leaves it out."""
    for one in numbers:
        if not isinstance(one, int) or isinstance(one, bool) or one < 0:
            return one
    return sum(numbers) if numbers else None


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST_COST
