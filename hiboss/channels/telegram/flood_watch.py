"""Whose a flood wait is: Telegram answers 429 for one chat and for the whole bot in the same words.

So this remembers which chats wait. If a second chat is told to wait meanwhile, it is the bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from .api_errors import ApiRefusal, CallFailed, as_failure


class FloodWatch:
    """The flood waits of one bot, in memory. Signs are limited apart from posts: they do not count here."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # by chat

    def is_account_wide(self, chat: str, seconds: float) -> bool:
        """Note that a chat was told to wait; tell whether the whole account must."""
        now = asyncio.get_running_loop().time()
        self._until = {one: end for one, end in self._until.items() if end > now}
        others = any(one != chat for one in self._until)
        self._until[chat] = now + seconds
        return others

    @contextmanager
    def failures(self, chat: str) -> Iterator[None]:
        """Raise the errors of `Adapter.post` for calls that fail inside, about this chat."""
        try:
            yield
        except CallFailed as error:
            everywhere = (
                isinstance(error, ApiRefusal)
                and error.code == 429
                and self.is_account_wide(chat, error.retry_after or 0)
            )
            failure = as_failure(error, everywhere=everywhere)
        else:
            return
        raise failure
