"""Tell the other side that a person types in the prompt, every few seconds while they do. Nothing here prints."""

from __future__ import annotations

import queue
import threading
import time

from ...core.errors import HibossError
from .conversation import ConversationClient

EVERY = 3.0  # seconds; the daemon lets it end after 6
TIMEOUT = 5.0  # for one call: nobody waits for it


class TypingReports:
    """`typed` is called with the text of the prompt at each key, and returns at once."""

    def __init__(self, client: ConversationClient) -> None:
        self._client = client
        self._told_at = 0.0
        self._on = False
        self._calls: queue.Queue[bool] = queue.Queue(maxsize=2)  # a daemon that is away must not fill it

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def typed(self, text: str) -> None:
        """Note what is in the prompt now; a command for this program is no message."""
        types = bool(text.strip()) and (not text.startswith("/") or text.startswith("//"))
        now = time.monotonic()
        if (types and now - self._told_at >= EVERY) or (self._on and not types):
            self._on, self._told_at = types, now if types else 0.0
            try:
                self._calls.put_nowait(types)
            except queue.Full:
                pass  # it is only a sign

    def _work(self) -> None:
        while True:
            on = self._calls.get()
            if self._client.conversation is None:  # nothing was written yet
                continue
            try:
                self._client.call(
                    "presence.typing", timeout=TIMEOUT, conversation=self._client.conversation, on=on
                )
            except HibossError:
                pass  # what matters says that the daemon is away
