"""People, and what they do: write, edit, react, press, forward, delete, block."""

from __future__ import annotations

import secrets
from typing import Any, Unpack

from .bots import Bot, Press
from .chats import Chat, Topic
from .delivery import announce, tell_membership
from .groups import Group, create_topic
from .media_sending import MediaSender
from .messages import Message
from .posting import How
from .text_entities import found_entities


class Person(MediaSender):
    """A person with an account. What they do reaches the bots that may see it."""

    def starts(self, bot: Bot, payload: str = "") -> Chat:
        """Press Start in the chat with a bot."""
        chat = self.world.private_chat(self, bot)
        if (self.id, bot.id) in self.world.blocked:
            self.unblocks(bot)
        self.says(chat, f"/start {payload}".strip())
        return chat

    def says(self, chat: Chat, text: str, **how: Unpack[How]) -> Message:
        """Write a text. Commands, @names and links in it become entities by themselves."""
        return self.post(chat, text, **how)

    def edits(self, message: Message, text: str | None = None) -> Message:
        """Change a text or caption. Without a text nothing visible changes; bots are told all the same."""
        with self.world.changed:
            if text is not None:
                message.text = text
                message.entities = found_entities(text)
            chat = self.world.chat_of(message)
            chat.note_edit(message)
            kind = "edited_channel_post" if chat.kind == "channel" else "edited_message"
            announce(self.world, chat, message, kind)
            self.world.changed.notify_all()
        return message

    def deletes(self, message: Message) -> None:
        """Delete a message. No bot is told, as in reality."""
        with self.world.changed:
            self.world.chat_of(message).delete(message)
            self.world.changed.notify_all()

    def reacts(self, message: Message, emoji: str | None) -> None:
        """Put a reaction on a message, in place of the last; None takes it back."""
        with self.world.changed:
            chat = self.world.chat_of(message)
            before = message.reactions.pop(self.id, [])
            after = [emoji] if emoji else []
            if after:
                message.reactions[self.id] = after
            change = {
                "chat": chat.identity.as_json(),
                "message_id": message.id,
                "user": self.as_json(),
                "date": self.world.clock.date(),
                "old_reaction": [{"type": "emoji", "emoji": one} for one in before],
                "new_reaction": [{"type": "emoji", "emoji": one} for one in after],
            }
            for bot in self.world.bots_in(chat):
                if chat.kind == "private" or chat.is_admin(bot):
                    bot.updates.put("message_reaction", change)
            self.world.changed.notify_all()

    def presses(self, message: Message, data: str, *, inaccessible: bool = False) -> Press:
        """Press the button with this data. Of a message that is gone, or very old, a bot gets little."""
        if data not in [button.data for button in message.buttons]:
            raise AssertionError(f"there is no button {data!r}; there are {message.buttons}")
        with self.world.changed:
            bot = next(bot for bot in self.world.bots.values() if bot is message.sender)
            press = Press(
                id=str(secrets.randbelow(10**18)),
                data=data,
                date=self.world.clock.now(),
                changed=self.world.changed,
            )
            bot.presses[press.id] = press
            shown: dict[str, Any] = message.as_json()
            if inaccessible or message.deleted:
                shown = {"chat": message.chat.as_json(), "message_id": message.id, "date": 0}
            query = {
                "id": press.id,
                "from": self.as_json(),
                "message": shown,
                "chat_instance": str(message.chat.id),
                "data": data,
            }
            bot.updates.put("callback_query", query)
        return press

    def forwards(self, message: Message, chat: Chat, *, hidden: bool = False, **how: Unpack[How]) -> Message:
        """Forward a message to a chat. `hidden`: its sender does not let forwards name them."""
        more = {**(how.get("more") or {}), "forward_origin": _origin(message, hidden)}
        forwarded: How = {**how, "more": more}
        return self.post(chat, message.text, media=message.media, files=message.files, **forwarded)

    def blocks(self, bot: Bot) -> None:
        """Stop the bot: it can no longer write to this person."""
        self._set_blocked(bot, "member", "kicked")

    def unblocks(self, bot: Bot) -> None:
        self._set_blocked(bot, "kicked", "member")

    def joins(self, group: Group) -> None:
        group.add(self)

    def leaves(self, group: Group) -> None:
        group.remove(self, left=True)

    def creates_topic(self, chat: Chat, name: str) -> Topic:
        """Create a topic in a forum, or in the chat with a bot that has topics."""
        return create_topic(self.world, chat, name, by=self)

    def stops_generation(self, chat: Chat) -> None:
        """Press Stop on the draft of a bot (Bot API 10.3). It goes away, unless the bot wants it kept."""
        with self.world.changed:
            draft = chat.draft
            if draft is None or not draft.can_stop:
                raise AssertionError("there is no draft with a Stop button")
            stopped: dict[str, Any] = {"chat": chat.identity.as_json(), "draft_id": draft.draft_id}
            if draft.topic is not None:
                stopped["message_thread_id"] = draft.topic
            if not draft.keep_on_stop:
                chat.draft_board.end(draft.topic)
            for bot in self.world.bots_in(chat):
                bot.updates.put("stopped_message_generation", stopped)

    def deletes_account(self) -> None:
        """Leave the platform for good: bots can no longer write to this person."""
        with self.world.changed:
            self.world.deactivated.add(self.id)

    def _set_blocked(self, bot: Bot, before: str, after: str) -> None:
        with self.world.changed:
            key = (self.id, bot.id)
            chat = self.world.private_chat(self, bot)
            (self.world.blocked.add if after == "kicked" else self.world.blocked.discard)(key)
            tell_membership(self.world, chat, self, bot, before, after)
            self.world.changed.notify_all()


def _origin(message: Message, hidden: bool) -> dict[str, Any]:
    """Return where a forwarded message comes from, as far as the bot may know."""
    if "forward_origin" in message.more:
        origin: dict[str, Any] = message.more["forward_origin"]
        return origin
    if message.chat.kind == "channel":
        chat = {"chat": message.chat.as_json(), "message_id": message.id}
        return {"type": "channel", "date": message.date, **chat}
    if message.sender_chat is not None:
        return {"type": "chat", "date": message.date, "sender_chat": message.sender_chat.as_json()}
    assert message.sender is not None
    if hidden:
        return {"type": "hidden_user", "date": message.date, "sender_user_name": message.sender.first_name}
    return {"type": "user", "date": message.date, "sender_user": message.sender.as_json()}
