"""The queue of updates of one bot, with the rules of getUpdates.

An offset far ahead of the queue is not believed, and the queue is served from its head: so the real
server behaves (TQueue: "Specified from_id is in the future"), and so a bot gets on after a quiet week.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import Any

from .refusals import other_poller
from .server_clock import ServerClock

DAY = 24 * 3600
WEEK = 7 * DAY
BELIEVED_AHEAD = 10  # ids; an offset further ahead is taken for a mistake
# What a bot gets only if it names it.
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})


@dataclass(frozen=True)
class _Entry:
    id: int
    born: float
    update: dict[str, Any]


class UpdateQueue:
    """Updates that are not confirmed. All methods take the lock of the server."""

    def __init__(self, clock: ServerClock, changed: threading.Condition) -> None:
        self._clock = clock
        self._changed = changed
        self._entries: list[_Entry] = []
        self._poll = 0  # the latest getUpdates; earlier ones end with a conflict
        self._interrupts = 0
        self._last_born = clock.now()
        self.next_id = _random_id()
        self.allowed: list[str] = []  # empty: the default
        self.confirmed = 0

    def allows(self, kind: str) -> bool:
        return kind in self.allowed if self.allowed else kind not in NOT_BY_DEFAULT

    def put(self, kind: str, content: dict[str, Any]) -> int | None:
        """Add an update and return its id; None if the bot did not ask for this kind."""
        with self._changed:
            return self.inject({kind: content}) if self.allows(kind) else None

    def inject(self, update: dict[str, Any]) -> int:
        """Add whatever is given, with an id if it has none."""
        with self._changed:
            now = self._clock.now()
            if now - self._last_born >= WEEK:
                self.next_id = _random_id()
            update_id = update.get("update_id")
            number = update_id if isinstance(update_id, int) else self.next_id
            self._entries.append(_Entry(number, now, {"update_id": number, **update}))
            self.next_id = number + 1
            self._last_born = now
            self._changed.notify_all()
            return number

    def fetch(self, offset: int, limit: int, timeout: float) -> list[dict[str, Any]]:
        """Answer a getUpdates: confirm what is below the offset, and wait if there is nothing."""
        with self._changed:
            self._poll += 1
            mine = self._poll
            self._changed.notify_all()  # a poll that waits ends
            self._confirm(offset)
            interrupts = self._interrupts
            if timeout > 0:
                self._changed.wait_for(
                    lambda: bool(self._fresh()) or (self._poll, self._interrupts) != (mine, interrupts),
                    timeout,
                )
            if self._poll != mine:
                raise other_poller()
            return [entry.update for entry in self._fresh()[:limit]]

    def pending(self) -> list[dict[str, Any]]:
        with self._changed:
            return [entry.update for entry in self._fresh()]

    def clear(self) -> None:
        with self._changed:
            self._entries.clear()
            self._changed.notify_all()

    def interrupt(self) -> None:
        """Let a waiting poll end now, with what there is."""
        with self._changed:
            self._interrupts += 1
            self._changed.notify_all()

    def _fresh(self) -> list[_Entry]:
        oldest = self._clock.now() - DAY
        if self._entries and self._entries[0].born < oldest:
            self._entries = [entry for entry in self._entries if entry.born >= oldest]
        return self._entries

    def _confirm(self, offset: int) -> None:
        before = self._fresh()
        if offset > self.next_id + BELIEVED_AHEAD:
            return
        if offset > 0:
            self._entries = [entry for entry in before if entry.id >= offset]
        elif offset < 0:
            self._entries = before[offset:]
        self.confirmed += len(before) - len(self._entries)
        self._changed.notify_all()


def _random_id() -> int:
    return secrets.randbelow(900_000_000) + 1_000
