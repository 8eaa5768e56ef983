"""Whether people are here: online, away or offline. Kept in memory, and told as facts when it changes.

A person is online while something of theirs is open that follows (a chat, a page) and they do something, and
for some minutes after they wrote in a channel. Who has something open and does nothing for as long is away.
Who has nothing open is offline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ..core import clock
from ..core.events import Fact, UserChanged
from .deadlines import Deadlines

AWAY_SECONDS = 300.0  # without a sign of a person
ONLINE, AWAY, OFFLINE = "online", "away", "offline"


class UserPresence:
    """Notes what people do, by address id. Use it on the event loop's thread only."""

    def __init__(self, deadlines: Deadlines, tell: Callable[[Fact], None]) -> None:
        self._deadlines = deadlines
        self._tell = tell  # publishes a fact
        self._open: Counter[int] = Counter()  # what each has open
        self._told: dict[int, str] = {}  # who is not offline, as it was told last

    def opened(self, person: int) -> None:
        """They opened something that follows what happens: they are here."""
        self._open[person] += 1
        self.acts(person)

    def closed(self, person: int) -> None:
        self._open[person] -= 1
        if self._open[person] <= 0:
            del self._open[person]
            self._deadlines.forget(("acts", person))
        self._look(person)

    def acts(self, person: int) -> None:
        """They did something: a call that a program does not make by itself, or they type."""
        if person in self._open:  # a single command does not make anybody online
            self._note("acts", person)

    def wrote_in_channel(self, person: int) -> None:
        self._note("wrote", person)
        self.acts(person)

    def state(self, person: int) -> str:
        """Return online, away or offline."""
        if ("wrote", person) in self._deadlines:
            return ONLINE
        if person not in self._open:
            return OFFLINE
        return ONLINE if ("acts", person) in self._deadlines else AWAY

    def _note(self, what: str, person: int) -> None:
        if self._deadlines.note((what, person), AWAY_SECONDS, partial(self._look, person)):
            self._look(person)

    def _look(self, person: int) -> None:
        """Tell those who follow if it has changed."""
        state = self.state(person)
        if state != self._told.get(person, OFFLINE):
            if state == OFFLINE:
                del self._told[person]
            else:
                self._told[person] = state
            self._tell(UserChanged(clock.now(), person, state))
