"""How a message of a person comes into a chat: who it is shown as, what it replies to, in which topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from .bots import Bot
from .chats import Chat, Topic
from .delivery import publish
from .files import StoredFile
from .identities import CHANNEL_BOT, GROUP_ANONYMOUS_BOT, Account, ChatIdentity
from .messages import Message
from .text_entities import Entity, found_entities, units
from .world import World


class How(TypedDict, total=False):
    """What can be said about any message a person sends."""

    reply_to: Message | None
    quote: str | None  # a part of the message that is replied to
    external_reply: dict[str, Any] | None  # a reply to a message of another chat
    topic: Topic | int | None
    anonymous: bool  # as an admin who is shown as the group
    as_channel: Chat | None  # as a channel
    entities: list[Entity] | None  # more than those found in the text
    mentions: dict[str, Account] | None  # words that name somebody without a username
    more: dict[str, Any] | None  # other fields of the message


class Speaker(Account):
    """An account that can write into chats."""

    def __init__(self, world: World, account: Account) -> None:
        super().__init__(
            id=account.id,
            first_name=account.first_name,
            last_name=account.last_name,
            username=account.username,
            language_code=account.language_code,
        )
        self.world = world

    def post(
        self,
        chat: Chat,
        text: str = "",
        *,
        media: dict[str, Any] | None = None,
        files: Sequence[StoredFile] = (),
        **how: Unpack[How],
    ) -> Message:
        """Put a message of any kind into a chat."""
        with self.world.changed:
            self._enter(chat)
            message = self._compose(chat, text, how)
            message.media = dict(media or {})
            message.files = list(files)
            return publish(self.world, chat, message)

    def _enter(self, chat: Chat) -> None:
        """Check that this account may write here. Whoever writes to a bot has started it."""
        if not chat.holds(self):
            raise AssertionError(f"{self.first_name} is not in {chat}")
        if chat.kind == "private":
            for bot in self.world.bots_in(chat):
                if (self.id, bot.id) in self.world.blocked:
                    raise AssertionError(f"{self.first_name} has blocked {bot}")
                self.world.started.add((self.id, bot.id))

    def _compose(self, chat: Chat, text: str, how: How) -> Message:
        reply_to = how.get("reply_to")
        topic = topic_of(how.get("topic"), reply_to)
        if topic is not None and topic not in chat.topics:
            raise AssertionError(f"{chat} has no topic {topic}")
        sender, sender_chat = self._shown_as(chat, how)
        more = dict(how.get("more") or {})
        if quote := how.get("quote"):
            more["quote"] = _quote_of(reply_to, quote)
        if external := how.get("external_reply"):
            more["external_reply"] = external
        given = [*(how.get("entities") or []), *_text_mentions(text, how.get("mentions") or {})]
        return Message(
            id=self.world.new_message_id(chat),
            chat=chat.identity,
            sender=sender,
            sender_chat=sender_chat,
            date=self.world.clock.date(),
            text=text,
            entities=found_entities(text, given),
            more=more,
            reply_to=reply_to,
            topic=topic,
            thread_start=thread_start(chat, topic),
        )

    def _shown_as(self, chat: Chat, how: How) -> tuple[Account, ChatIdentity | None]:
        channel = how.get("as_channel")
        if channel is not None:
            return CHANNEL_BOT, channel.identity
        if how.get("anonymous"):
            return GROUP_ANONYMOUS_BOT, chat.identity
        return self, None


def topic_of(topic: Topic | int | None, reply_to: Message | None) -> int | None:
    """Return the topic of a new message; a reply goes where the other message is."""
    if isinstance(topic, Topic):
        return topic.id
    if topic is None and reply_to is not None:
        return reply_to.topic
    return topic


def thread_start(chat: Chat, topic: int | None) -> Message | None:
    """Return the message that created a topic: in forums every message there is written as a reply to it."""
    return chat.history.get(topic) if topic is not None and chat.kind == "supergroup" else None


def bot_message(world: World, bot: Bot, chat: Chat, **facts: Any) -> Message:
    """Return a new message of a bot, not yet in the chat."""
    channel = chat.kind == "channel"
    return Message(
        id=world.new_message_id(chat),
        chat=chat.identity,
        sender=None if channel else bot,
        sender_chat=chat.identity if channel else None,
        date=world.clock.date(),
        thread_start=thread_start(chat, facts.get("topic")),
        **facts,
    )


def _quote_of(reply_to: Message | None, quote: str) -> dict[str, Any]:
    if reply_to is None or quote not in reply_to.text:
        raise AssertionError(f"{quote!r} is not in the message that is replied to")
    return {"text": quote, "position": units(reply_to.text.partition(quote)[0]), "is_manual": True}


def _text_mentions(text: str, mentions: dict[str, Account]) -> list[Entity]:
    return [
        {
            "type": "text_mention",
            "offset": units(text.partition(words)[0]),
            "length": units(words),
            "user": account.as_json(),
        }
        for words, account in mentions.items()
    ]
