"""Who and where, as the platform writes it: accounts of people and bots, and chats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True, eq=False)
class Account:
    """A person or a bot."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    is_bot: bool = False
    language_code: str | None = None

    def as_json(self) -> dict[str, Any]:
        facts = {
            "id": self.id,
            "is_bot": self.is_bot,
            "first_name": self.first_name,
            "last_name": self.last_name,
            "username": self.username,
            "language_code": self.language_code,
        }
        return {name: value for name, value in facts.items() if value is not None}


@dataclass(kw_only=True, eq=False)
class ChatIdentity:
    """A chat as it stands in a message."""

    id: int
    kind: str  # private, group, supergroup, channel
    title: str | None = None
    username: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    is_forum: bool = False

    def as_json(self) -> dict[str, Any]:
        facts = {
            "id": self.id,
            "type": self.kind,
            "title": self.title,
            "username": self.username,
            "first_name": self.first_name,
            "last_name": self.last_name,
        }
        if self.is_forum:
            facts["is_forum"] = True
        return {name: value for name, value in facts.items() if value is not None}


# The accounts in whose name the platform shows what no person sent.
GROUP_ANONYMOUS_BOT = Account(id=1087968824, first_name="Group", username="GroupAnonymousBot", is_bot=True)
CHANNEL_BOT = Account(id=136817688, first_name="Channel", username="Channel_Bot", is_bot=True)
TELEGRAM = Account(id=777000, first_name="Telegram")
