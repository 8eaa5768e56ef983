"""What happened in a chat, in order: every message, every edit, every deletion, with what was seen then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .messages import Message

SENT, EDITED, DELETED = "sent", "edited", "deleted"


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that happened to a message. `text` is what it says since then, or said until it went."""

    kind: str  # sent, edited, deleted
    message: Message
    text: str
    date: float


class ChatLog(list[Happening]):
    """All happenings of a chat."""

    def note(self, kind: str, message: Message, date: float) -> None:
        """Write down what happened; a new text is also kept with its message."""
        if kind != DELETED:
            message.note_version(date)
        self.append(Happening(kind=kind, message=message, text=message.text, date=date))

    def of(self, kind: str) -> list[Happening]:
        return [one for one in self if one.kind == kind]
