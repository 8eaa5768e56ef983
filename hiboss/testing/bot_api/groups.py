"""Groups, supergroups, forums and channels: who is in, topics, and a group that becomes a supergroup."""

from __future__ import annotations

from typing import Any

from .chats import Chat, Topic
from .delivery import publish, tell_membership
from .identities import TELEGRAM, Account, ChatIdentity
from .messages import Message
from .text_entities import found_entities
from .world import World


class Group(Chat):
    """A chat of several. Whoever does something in it is `by`; without it, its creator."""

    def __init__(self, world: World, identity: ChatIdentity) -> None:
        super().__init__(identity, world.changed, world.clock)
        self.world = world

    @property
    def creator(self) -> Account:
        for number, status in self.statuses.items():
            if status == "creator":
                return self.accounts[number]
        return TELEGRAM

    def add(self, account: Account, *, by: Account | None = None, admin: bool = False) -> None:
        """Add a person or a bot. In a channel a bot is always an admin."""
        admin = admin or (self.kind == "channel" and account.is_bot)
        self._change(account, "administrator" if admin else "member", by)
        self._service(by, {"new_chat_members": [account.as_json()]})

    def remove(self, account: Account, *, by: Account | None = None, left: bool = False) -> None:
        """Remove a member; `left`: they went themselves."""
        by = account if left else by
        self._service(by, {"left_chat_member": account.as_json()})
        self._change(account, "left" if left else "kicked", by)

    def promote(self, account: Account, *, by: Account | None = None) -> None:
        self._change(account, "administrator", by)

    def demote(self, account: Account, *, by: Account | None = None) -> None:
        self._change(account, "member", by)

    def create_topic(self, name: str, *, by: Account | None = None) -> Topic:
        return create_topic(self.world, self, name, by=by or self.creator)

    def migrate(self) -> Group:
        """Become a supergroup. Return it; this one is only left behind, with its old id."""
        if self.kind != "group":
            raise AssertionError(f"{self} is no basic group")
        world = self.world
        with world.changed:
            identity = ChatIdentity(
                id=-1_000_000_000_000 - world.new_account_id(), kind="supergroup", title=self.identity.title
            )
            new = Group(world, identity)
            new.statuses, new.accounts = dict(self.statuses), dict(self.accounts)
            world.groups[new.id] = new
            self._service(None, {"migrate_to_chat_id": new.id})
            new._service(None, {"migrate_from_chat_id": self.id})
            self.migrated_to = new.id
            world.changed.notify_all()
        return new

    def dissolve(self) -> None:
        """Delete the group for everybody."""
        with self.world.changed:
            self.dissolved = True

    def posts(self, text: str) -> Message:
        """Publish a post in a channel."""
        return publish(self.world, self, self._message(None, text, sender_chat=self.identity))

    def shows_post_of(self, channel: Group, text: str) -> Message:
        """Show a post of the linked channel in this discussion group, as the platform does by itself."""
        post = channel.posts(text)
        origin = {"type": "channel", "date": post.date, "chat": channel.identity.as_json()}
        more = {"is_automatic_forward": True, "forward_origin": {**origin, "message_id": post.id}}
        message = self._message(TELEGRAM, text, sender_chat=channel.identity, more=more)
        return publish(self.world, self, message)

    def _change(self, account: Account, status: str, by: Account | None) -> None:
        with self.world.changed:
            before = self.statuses.get(account.id)
            self.accounts[account.id] = account
            self.statuses[account.id] = status
            tell_membership(self.world, self, by or self.creator, account, before, status)
            self.world.changed.notify_all()

    def _service(self, by: Account | None, service: dict[str, Any]) -> None:
        if self.kind != "channel":
            publish(self.world, self, self._message(by or self.creator, "", service=service))

    def _message(self, sender: Account | None, text: str, **facts: Any) -> Message:
        return Message(
            id=self.world.new_message_id(self),
            chat=self.identity,
            sender=sender,
            date=self.world.clock.date(),
            text=text,
            entities=found_entities(text),
            **facts,
        )


def create_topic(world: World, chat: Chat, name: str, *, by: Account, icon_color: int = 7322096) -> Topic:
    """Create a topic; the message about it gives it its id."""
    with world.changed:
        number = world.new_message_id(chat)
        topic = Topic(id=number, name=name, icon_color=icon_color)
        created = {"name": name, "icon_color": icon_color}
        message = Message(
            id=number,
            chat=chat.identity,
            sender=by,
            date=world.clock.date(),
            service={"forum_topic_created": created},
            topic=number,
        )
        chat.topics[number] = topic
        publish(world, chat, message)
        return topic
