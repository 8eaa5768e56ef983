"""A message in a chat, as a person sees it and as the platform writes it for a bot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .files import StoredFile
from .identities import Account, ChatIdentity
from .text_entities import Entity

# Media whose text is a caption. A sticker, a place or a contact has none.
CAPTIONED = ("photo", "document", "audio", "voice", "video", "animation")


@dataclass(frozen=True, kw_only=True)
class Button:
    """A button under a message."""

    text: str
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Version:
    """What a message said for a while, from its date on."""

    text: str
    entities: tuple[Entity, ...]
    rich_source: str | None
    date: float


@dataclass(kw_only=True, eq=False)
class Message:
    """One message. `text` is also the caption of a photo or a file, and what people see of a rich message."""

    id: int
    chat: ChatIdentity
    sender: Account | None
    date: int
    text: str = ""
    entities: list[Entity] = field(default_factory=list)
    media: dict[str, Any] = field(default_factory=dict)  # {"photo": […]}, {"document": {…}}
    files: list[StoredFile] = field(default_factory=list)
    service: dict[str, Any] = field(default_factory=dict)  # {"new_chat_members": […]}
    more: dict[str, Any] = field(default_factory=dict)  # forward_origin, quote, media_group_id …
    sender_chat: ChatIdentity | None = None
    reply_to: Message | None = None
    thread_start: Message | None = None  # in a forum, what is no reply is written as one to this
    reply_markup: dict[str, Any] | None = None
    topic: int | None = None
    edit_date: int | None = None
    silent: bool = False
    deleted: bool = False
    reactions: dict[int, list[str]] = field(default_factory=dict)  # by the id of the account
    revision: int = 0  # counts the edits
    rich_source: str | None = None  # the HTML, Markdown or JSON of a rich message
    versions: list[Version] = field(default_factory=list)  # all that it ever said, the last one now

    @property
    def edited(self) -> bool:
        return self.revision > 0

    @property
    def buttons(self) -> list[Button]:
        """Return the inline buttons, row after row."""
        rows = (self.reply_markup or {}).get("inline_keyboard", [])
        return [
            Button(text=one["text"], data=one.get("callback_data"), url=one.get("url"))
            for row in rows
            for one in row
        ]

    @property
    def texts(self) -> list[str]:
        """Return all texts this message ever showed, in order."""
        return [version.text for version in self.versions]

    def reactions_of(self, account: Account) -> list[str]:
        return self.reactions.get(account.id, [])

    def note_version(self, date: float) -> None:
        """Keep what the message says now. Whoever changes its text calls this."""
        self.versions.append(
            Version(text=self.text, entities=tuple(self.entities), rich_source=self.rich_source, date=date)
        )

    @property
    def has_caption(self) -> bool:
        return any(kind in self.media for kind in CAPTIONED)

    def as_json(self, *, with_reply: bool = True) -> dict[str, Any]:
        """Return the message for a bot. A message that is replied to comes without its own reply."""
        answer: dict[str, Any] = {"message_id": self.id, "chat": self.chat.as_json(), "date": self.date}
        if self.sender is not None:
            answer["from"] = self.sender.as_json()
        if self.sender_chat is not None:
            answer["sender_chat"] = self.sender_chat.as_json()
        if self.topic is not None:
            answer |= {"message_thread_id": self.topic, "is_topic_message": True}
        if self.edit_date is not None:
            answer["edit_date"] = self.edit_date
        answer |= self._text_json() | self.media | self.service | self.more
        replied = self.reply_to or self.thread_start
        if with_reply and replied is not None and not replied.deleted:
            answer["reply_to_message"] = replied.as_json(with_reply=False)
        if self.reply_markup and "inline_keyboard" in self.reply_markup:
            answer["reply_markup"] = self.reply_markup
        return answer

    def _text_json(self) -> dict[str, Any]:
        if not self.text or "rich_message" in self.more:
            return {}
        names = ("caption", "caption_entities") if self.has_caption else ("text", "entities")
        answer: dict[str, Any] = {names[0]: self.text}
        if self.entities:
            answer[names[1]] = self.entities
        return answer

    def facts(self) -> dict[str, Any]:
        """Return all that a test may ask of a message, as JSON."""
        return {
            "id": self.id,
            "from": self.sender.first_name if self.sender else None,
            "text": self.text,
            "entities": self.entities,
            "rich_source": self.rich_source,
            "buttons": [{"text": one.text, "data": one.data} for one in self.buttons],
            "reply_to": self.reply_to.id if self.reply_to else None,
            "topic": self.topic,
            "files": [file.name for file in self.files],
            "album": self.more.get("media_group_id"),
            "edited": self.edited,
            "revision": self.revision,
            "texts": self.texts,
            "deleted": self.deleted,
            "reactions": [emoji for emojis in self.reactions.values() for emoji in emojis],
        }

    def __repr__(self) -> str:
        sender = self.sender.first_name if self.sender else "-"
        what = ", ".join([*self.media, *self.service])
        return f"<{self.id} {sender}: {self.text!r}{f' [{what}]' if what else ''}>"
