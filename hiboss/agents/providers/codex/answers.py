"""The answer of a turn: which of the messages of the model belong to it.

A turn has more than one answer when somebody gave it words near its end. A message that these words cut never
ends, and is not counted. What the model says before it uses a tool is a remark; only newer models mark it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .items import SILENT
from .messages import text

COMMENTARY = "commentary"  # the phase of a message that is no answer
MESSAGE, WORDS = "agentMessage", "userMessage"
NO_WORK = SILENT | {"contextCompaction"}


class Message(NamedTuple):
    """A whole message of the model."""

    phase: str  # empty: the model marks none
    said: str


class Answers:
    """The messages of a turn so far."""

    def __init__(self, items: Iterable[Mapping[str, Any]] = ()) -> None:
        self._messages: list[Message] = []
        self._remarks: list[str] = []
        self._since = 0  # how many there were before the last words of people
        for item in items:
            self.begun(item)
            if item.get("type") == MESSAGE:
                self.said(item)

    def begun(self, item: Mapping[str, Any]) -> None:
        """Take an item that began: words of people, or work after which a message was only a remark."""
        kind = text(item.get("type"))
        if kind == WORDS:
            self._since = len(self._messages)
        elif kind not in NO_WORK:
            before = self._messages[self._since :]
            self._remarks += [one.said for one in before if not one.phase]
            self._messages[self._since :] = [one for one in before if one.phase]

    def said(self, item: Mapping[str, Any]) -> None:
        """Take a message that is whole."""
        message = Message(text(item.get("phase")), text(item.get("text")))
        if not message.said.strip():
            return
        if message.phase == COMMENTARY:
            self._remarks.append(message.said)
        else:
            self._messages.append(message)

    @property
    def text(self) -> str:
        """All answers, each once; without one the last remark."""
        found = [one.said for one in self._messages] or self._remarks[-1:]
        return "\n\n".join(dict.fromkeys(found))
