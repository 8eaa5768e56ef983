"""A bot: its account, its token, its switches and its updates."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .identities import Account
from .server_clock import ServerClock
from .update_queue import UpdateQueue

QUERY_SECONDS = 15  # a press must be answered by then


@dataclass(kw_only=True, eq=False)
class Press:
    """A button somebody pressed. `answer` is what the bot said to it, None until then."""

    id: str
    data: str
    date: float
    changed: threading.Condition
    answer: dict[str, Any] | None = None

    def wait(self, seconds: float = 30) -> dict[str, Any]:
        """Wait for the answer and return it."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.answer is not None, seconds):
                raise AssertionError(f"the press of {self.data!r} was not answered after {seconds} s")
            assert self.answer is not None
            return self.answer


@dataclass(kw_only=True, eq=False)
class Webhook:
    """What setWebhook said; without a URL there is none."""

    url: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class Bot(Account):
    """A bot account. `pending` are its updates that are not confirmed."""

    def __init__(
        self,
        account: Account,
        token: str,
        clock: ServerClock,
        changed: threading.Condition,
        *,
        privacy: bool,
        topics: bool,
    ) -> None:
        super().__init__(id=account.id, first_name=account.first_name, username=account.username, is_bot=True)
        self.token = token
        self.privacy = privacy
        self.topics = topics
        self.can_join_groups = True
        self.people_create_topics = True
        self.updates = UpdateQueue(clock, changed)
        self.webhook = Webhook()
        self.commands: dict[str, list[dict[str, str]]] = {}  # by scope and language
        self.presses: dict[str, Press] = {}

    @property
    def name(self) -> str:
        return self.username or ""

    @property
    def pending(self) -> list[dict[str, Any]]:
        return self.updates.pending()

    @property
    def confirmed(self) -> int:
        """Return how many updates were confirmed with an offset."""
        return self.updates.confirmed

    def inject(self, update: dict[str, Any]) -> int:
        """Put a raw update into the queue, also one no library can read; return its id."""
        return self.updates.inject(update)

    def me(self) -> dict[str, Any]:
        """Return the answer of getMe."""
        return self.as_json() | {
            "can_join_groups": self.can_join_groups,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.topics,
            "allows_users_to_create_topics": self.topics and self.people_create_topics,
        }

    def __repr__(self) -> str:
        return f"<bot @{self.username}>"  # never its token
