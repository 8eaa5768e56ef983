"""What the program reports about the turn: notifications, turned into live output, and kept for its end.

Notifications of an unknown kind are ignored: newer versions have more of them. Those of other threads (of
sub-agents) count for the tokens only.
"""

from __future__ import annotations

from collections.abc import Callable

from ....core.contracts.provider import Progress
from . import items
from .answers import Answers
from .messages import Line, fields, objects, text
from .usage import TokenCount

WAITING = "waiting for network"
LOST_STREAM = "responseStreamDisconnected"
OF_MODEL = frozenset(("agentMessage", "reasoning"))  # items that a model call streams


class TurnEvents:
    """One turn of one thread, as it was reported so far."""

    def __init__(self, report: Callable[[Progress], None], thread: str, *, is_new: bool) -> None:
        self._report = report
        self.thread = thread
        self.turn = ""  # its id, when it is known
        self.tokens = TokenCount(thread, is_new=is_new)
        self.items: dict[str, Line] = {}  # those that were begun, by id
        self.error: Line = {}  # the last one that ended a try
        self.ended: Line | None = None  # the turn, when it has ended
        self.retries = 0  # since the model answered last
        self.waits = 0  # for the network, since then
        self.called = False  # the model has answered something
        self.concluded = False  # its last item is a message: if nothing else comes, that was the answer
        self._answers = Answers()
        self._streamed: set[str] = set()  # the messages of which text was shown
        self._shown = False
        self._lost_stream = False

    def take(self, method: str, params: Line) -> None:
        """Take one notification."""
        reader = READERS.get(method)
        if reader is not None and (method in OF_ALL_THREADS or params.get("threadId") == self.thread):
            reader(self, params)

    @property
    def answer(self) -> str:
        """The whole answers, one after the other; else the last message."""
        return self._answers.text or Answers(objects((self.ended or {}).get("items"))).text

    @property
    def broke_off(self) -> bool:
        """Whether a model call was cut, by words of people or by the network: nobody says its tokens."""
        return self._lost_stream or any(one.get("type") in OF_MODEL for one in self.items.values())

    def _turn_started(self, params: Line) -> None:
        self.turn = text(fields(params.get("turn")).get("id"))

    def _turn_completed(self, params: Line) -> None:
        turn = fields(params.get("turn"))
        if self.turn in ("", turn.get("id")):
            self.ended = turn

    def _item_started(self, params: Line) -> None:
        item = fields(params.get("item"))
        self.items[text(item.get("id"))] = item
        self._answers.begun(item)
        if item.get("type") != "userMessage" and item.get("type") != "contextCompaction":
            self._answered()
            self.concluded = False
        if line := items.call(item):
            self._report(Progress("tool", line))

    def _item_completed(self, params: Line) -> None:
        item = fields(params.get("item"))
        self.items.pop(text(item.get("id")), None)
        if item.get("type") == "agentMessage":
            self._message_completed(item)
        elif line := items.result(item):
            self._report(Progress("tool_result", line))

    def _message_completed(self, item: Line) -> None:
        said = text(item.get("text"))
        self._answers.said(item)
        self.concluded = True
        if text(item.get("id")) not in self._streamed:  # it came whole
            self._show(text(item.get("id")), said)

    def _message_delta(self, params: Line) -> None:
        self._answered()
        self._show(text(params.get("itemId")), text(params.get("delta")))

    def _show(self, message: str, said: str) -> None:
        if said:
            begins = self._shown and message not in self._streamed
            self._streamed.add(message)
            self._shown = True
            self._report(Progress("delta", f"\n\n{said}" if begins else said))

    def _thought(self, params: Line) -> None:
        self._answered()
        if said := text(params.get("delta")):
            self._report(Progress("thinking", said))

    def _thought_part(self, params: Line) -> None:
        if params.get("summaryIndex"):
            self._report(Progress("thinking", "\n\n"))

    def _tokens(self, params: Line) -> None:
        of_other = params.get("threadId") != self.thread
        before = not of_other and (not self.turn or params.get("turnId") != self.turn)
        usage = fields(params.get("tokenUsage"))
        counted = self.tokens.take(text(params.get("threadId")), usage, before=before, called=self.called)
        if counted:
            self._report(Progress("usage", usage=self.tokens.usage()))

    def _failed(self, params: Line) -> None:
        error = fields(params.get("error"))
        self.error = error
        if params.get("willRetry") is True:
            self.retries += 1
            waits = WAITING in text(error.get("message"))
            self.waits += waits
            self._lost_stream |= not waits and LOST_STREAM in str(error.get("codexErrorInfo"))

    def _rerouted(self, params: Line) -> None:
        if model := text(params.get("toModel")):
            self._report(Progress("model", model))

    def _answered(self) -> None:
        self.called = True
        self.retries = self.waits = 0


READERS: dict[str, Callable[[TurnEvents, Line], None]] = {
    "turn/started": TurnEvents._turn_started,
    "turn/completed": TurnEvents._turn_completed,
    "item/started": TurnEvents._item_started,
    "item/completed": TurnEvents._item_completed,
    "item/agentMessage/delta": TurnEvents._message_delta,
    "item/reasoning/summaryTextDelta": TurnEvents._thought,
    "item/reasoning/textDelta": TurnEvents._thought,
    "item/reasoning/summaryPartAdded": TurnEvents._thought_part,
    "thread/tokenUsage/updated": TurnEvents._tokens,
    "error": TurnEvents._failed,
    "model/rerouted": TurnEvents._rerouted,
}
OF_ALL_THREADS = frozenset(("thread/tokenUsage/updated",))
