"""Who types: a fact for the others in the conversation, and a sign in the chats of its channels.

It ends some seconds after it was said last. How an agent that runs shows that it works is in `live_posts`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ..core import clock
from ..core.errors import HibossError
from ..core.events import Fact, TypingChanged
from ..store import typing_places
from ..store.store import Store
from .deadlines import Deadlines
from .signs import Signs

log = logging.getLogger(__name__)
TYPING_SECONDS = 6.0  # after it was said last
SIGN_SECONDS = 2.5  # between two signs in a chat, however often it is said
MOST = 10_000  # who type at the same time; more are not noted


class TypingSigns:
    """Notes who types where. Use it on the event loop's thread only."""

    def __init__(
        self, store: Store, deadlines: Deadlines, tell: Callable[[Fact], None], signs: Signs
    ) -> None:
        self._store = store
        self._deadlines = deadlines
        self._tell = tell  # publishes a fact
        self._signs = signs
        self._typing: set[tuple[int, int]] = set()

    def types(self, who: int, conversation: int, on: bool) -> bool:
        """Note that somebody types in a conversation, or stopped; return whether that is new."""
        one = (who, conversation)
        if not on:
            known = self._deadlines.forget(("types", *one))
            if known:
                self._ended(one)
            return known
        if len(self._typing) >= MOST and one not in self._typing:
            return False
        new = self._deadlines.note(("types", *one), TYPING_SECONDS, partial(self._ended, one))
        if new:
            self._typing.add(one)
            self._tell(TypingChanged(clock.now(), who, conversation, on=True))
        if self._deadlines.note(("shown", *one), SIGN_SECONDS, lambda: None):
            self._show(who, conversation)
        return new

    def _ended(self, one: tuple[int, int]) -> None:
        self._typing.discard(one)
        self._tell(TypingChanged(clock.now(), *one, on=False))

    def _show(self, who: int, conversation: int) -> None:
        """Show it in the chats where a message of theirs would be posted now. A sign may be dropped."""
        try:
            found = self._store.read(lambda c: typing_places.targets(c, who, conversation))
        except HibossError as error:
            log.warning("A sign was dropped: %s", error, extra={"action": "sign"})
            return
        for target in found:
            self._signs.show(target, "typing")
