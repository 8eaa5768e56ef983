"""Drafts: previews of a message that is being written, one in a chat or topic at a time."""

from __future__ import annotations

from dataclasses import dataclass

from .server_clock import ServerClock

DRAFT_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A preview of a message. `animated`: it grew out of the one before, which had the same id."""

    draft_id: int
    text: str
    topic: int | None
    date: float
    can_stop: bool = False
    keep_on_stop: bool = False
    rich: bool = False
    rich_source: str | None = None
    animated: bool = False


class DraftBoard:
    """The drafts of a private chat. One is gone thirty seconds after it came, or when a message comes."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._shown: dict[int | None, Draft] = {}  # by topic
        self.all: list[Draft] = []  # that were ever shown

    def show(self, draft: Draft) -> None:
        self._shown[draft.topic] = draft
        self.all.append(draft)

    def now(self, topic: int | None) -> Draft | None:
        """Return what is shown in a topic, or outside of topics."""
        shown = self._shown.get(topic)
        return shown if shown and self._clock.now() - shown.date <= DRAFT_SECONDS else None

    def latest(self) -> Draft | None:
        """Return the newest draft that is shown anywhere in the chat."""
        shown = [draft for topic in self._shown if (draft := self.now(topic))]
        return max(shown, key=lambda one: one.date, default=None)

    def end(self, topic: int | None) -> None:
        self._shown.pop(topic, None)
