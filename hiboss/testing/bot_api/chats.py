"""A chat: its members, its topics and its messages, and waiting for what a person will see there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .chat_log import DELETED, EDITED, SENT, ChatLog
from .drafts import Draft, DraftBoard
from .identities import Account, ChatIdentity
from .messages import Message
from .server_clock import ServerClock

MEMBER = ("creator", "administrator", "member", "restricted")


@dataclass(kw_only=True, eq=False)
class Topic:
    """A topic of a forum, or of a private chat. Its id is that of the message that created it."""

    id: int
    name: str
    icon_color: int = 7322096
    icon_custom_emoji_id: str | None = None
    closed: bool = False

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "message_thread_id": self.id,
            "name": self.name,
            "icon_color": self.icon_color,
        }
        if self.icon_custom_emoji_id:
            answer["icon_custom_emoji_id"] = self.icon_custom_emoji_id
        return answer


class Chat:
    """A chat of any kind. `messages` is what its members see now."""

    def __init__(self, identity: ChatIdentity, changed: threading.Condition, clock: ServerClock) -> None:
        self.identity = identity
        self._clock = clock
        self.changed = changed
        self.statuses: dict[int, str] = {}  # by account: creator, administrator, member, left, kicked
        self.accounts: dict[int, Account] = {}
        self.topics: dict[int, Topic] = {}
        self.history: dict[int, Message] = {}
        self.log = ChatLog()  # every message, edit and deletion
        self.draft_board = DraftBoard(clock)
        self.actions: list[str] = []  # typing, upload_document …
        self.migrated_to: int | None = None
        self.dissolved = False  # the group was deleted
        self.last_id = 0  # where message ids are counted per chat

    @property
    def id(self) -> int:
        return self.identity.id

    @property
    def kind(self) -> str:
        return self.identity.kind

    @property
    def counts_its_own_ids(self) -> bool:
        return self.kind in ("supergroup", "channel")

    @property
    def messages(self) -> list[Message]:
        with self.changed:
            return [message for message in self.history.values() if not message.deleted]

    @property
    def texts(self) -> list[str]:
        """Return the texts of the messages, without service messages."""
        return [message.text for message in self.messages if not message.service]

    def visible(self) -> list[str]:
        """Return the texts that people see now, in order; of a file its caption, maybe empty."""
        return self.texts

    @property
    def drafts(self) -> list[Draft]:
        """Return all drafts that were ever shown, in order."""
        return self.draft_board.all

    @property
    def draft(self) -> Draft | None:
        """Return the preview that is shown now: a message of the bot ends it, or thirty seconds."""
        return self.draft_board.latest()

    def put(self, message: Message) -> None:
        """Put a new message into the chat."""
        self.history[message.id] = message
        self.log.note(SENT, message, self._clock.now())

    def note_edit(self, message: Message) -> None:
        """Count an edit that was made, and keep what the message says now."""
        message.revision += 1
        message.edit_date = self._clock.date()
        self.log.note(EDITED, message, self._clock.now())

    def delete(self, message: Message) -> None:
        message.deleted = True
        self.log.note(DELETED, message, self._clock.now())

    def find(self, message_id: int | None) -> Message | None:
        """Return a message that is still there."""
        message = self.history.get(message_id or 0)
        return None if message is None or message.deleted else message

    def status(self, account: Account) -> str | None:
        """Return what an account is here; None if it never was here."""
        return self.statuses.get(account.id)

    def holds(self, account: Account) -> bool:
        return self.status(account) in MEMBER

    def is_admin(self, account: Account) -> bool:
        return self.status(account) in ("creator", "administrator")

    def wait_for(self, condition: Callable[[list[Message]], bool], seconds: float = 30) -> list[Message]:
        """Wait until the messages of this chat are as wanted, and return them."""
        with self.changed:
            if not self.changed.wait_for(lambda: condition(self.messages), seconds):
                raise AssertionError(f"not seen after {seconds} s; the chat has {self.messages}")
            return self.messages

    def wait_for_text(self, text: str, seconds: float = 30) -> Message:
        """Wait for a message with this in its text, and return it."""
        found = self.wait_for(lambda messages: any(text in one.text for one in messages), seconds)
        return next(one for one in found if text in one.text)

    def wait_for_draft(self, text: str, seconds: float = 30) -> Draft:
        """Wait until a draft with this text was shown, and return it."""
        with self.changed:
            if not self.changed.wait_for(lambda: any(text in one.text for one in self.drafts), seconds):
                raise AssertionError(f"not seen after {seconds} s; the drafts were {self.drafts}")
            return next(one for one in self.drafts if text in one.text)

    def __repr__(self) -> str:
        return f"<{self.kind} chat {self.id}>"
