"""A plain model of mailboxes, threads and groups: what the rules promise, in lists and dictionaries.

It knows no SQL and no identifiers but those of messages. Times are minutes. Whatever is refused raises
Refused before anything changes. What recipients and authors do is in
mailbox_marks.py and mailbox_authors.py, groups in mailbox_groups.py, what is shown in mailbox_views.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


class Refused(Exception):
    """The model refuses something, with one of these codes."""

    def __init__(self, *codes: str) -> None:
        super().__init__(" or ".join(codes))
        self.codes = codes


@dataclass(eq=False)
class Party:
    """One life of an agent or a user."""

    kind: str
    name: str
    live: bool = True

    @property
    def address(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def id(self) -> str:
        """As in `author` of a message."""
        return self.name if self.kind == "agent" else self.address

    @property
    def is_boss(self) -> bool:
        return self.address == "user:boss"

    def __repr__(self) -> str:
        return self.address if self.live else f"{self.address} (deleted)"


@dataclass(eq=False)
class Talk:
    """A conversation: of exactly these parties, or a group."""

    parties: frozenset[Party] = frozenset()
    number: str = ""  # like c4; empty: nobody has said it yet
    said: list[Message] = field(default_factory=list)  # what has arrived; the number of each is its place
    archived: bool = False


@dataclass(eq=False)
class Member:
    role: str
    respond: str
    since: int


@dataclass(eq=False)
class Stay:
    who: Party
    first: int  # the first number that it sees
    last: int | None = None  # None: it is in the group


@dataclass(eq=False)
class Group(Talk):
    name: str = ""
    open: bool = False
    history: int = 0
    members: dict[Party, Member] = field(default_factory=dict)
    stays: list[Stay] = field(default_factory=list)
    deleted: bool = False


@dataclass(eq=False)
class Message:
    number: int
    sender: Party
    talk: Talk
    text: str
    answers: Message | None
    for_group: bool
    at: int | None = None  # when a deferred one is due
    waits: bool = False  # it is deferred, and will arrive
    arrived: int | None = None
    deleted_by: Party | None = None
    deleted_at: int | None = None
    by_hand: bool = True  # False: hiboss made it
    repeats: bool = False  # it has the text of what it answers: a new wording, or a notice that quotes it
    mails: dict[Party, Mail] = field(default_factory=dict)
    first_envelope: int = 0  # of a deferred one: what is due at the same time comes in this order

    @property
    def root(self) -> Message:
        return self if self.answers is None else self.answers.root

    @property
    def id(self) -> str:
        return f"m{self.number}"

    @property
    def shown(self) -> str:
        return "" if self.deleted_by else self.text

    def __repr__(self) -> str:
        return self.id


@dataclass(eq=False)
class Mail:
    """A message in somebody's box."""

    message: Message
    owner: Party
    context: bool = False  # it is only read along
    number: int = 0  # of its envelope
    status: str = "pending"
    box: str = "inbox"
    until: int | None = None  # of what is snoozed
    read: bool = False
    was_read: bool = False  # also before it was snoozed
    acked: bool = False
    arrived: int | None = None  # its place in the order of arrival
    again: int | None = None  # and where it came back to the inbox

    @property
    def id(self) -> str:
        return f"e{self.number}"

    @property
    def place(self) -> int:
        """Where it is in the order of what came: what came back came then."""
        return self.again or self.arrived or 0

    @property
    def unread(self) -> bool:
        counts = self.arrived is not None and self.status != "cancelled" and not self.context
        return counts and self.box == "inbox" and not self.read


def mentions(text: str) -> set[str]:
    return set(re.findall(r"@(\w+)", text))


class Mailboxes:
    """Everybody's boxes, and what happens to them."""

    def __init__(self, parties: Iterable[Party]) -> None:
        self.now = 0
        self.parties = list(parties)  # those who are there, and those who were
        self.system = Party("agent", "system")
        self.talks: list[Talk] = []
        self.messages: list[Message] = []
        self._arrivals = 0

    # --- finding -----------------------------------------------------------------------

    @property
    def live(self) -> list[Party]:
        return [one for one in self.parties if one.live]

    @property
    def boss(self) -> Party:
        return next(one for one in self.parties if one.is_boss)

    @property
    def groups(self) -> list[Group]:
        return [one for one in self.talks if isinstance(one, Group)]

    def mails(self, owner: Party) -> list[Mail]:
        """Return what has arrived for somebody."""
        found = [one.mails[owner] for one in self.messages if owner in one.mails]
        return [one for one in found if one.arrived is not None]

    def thread(self, root: Message) -> list[Message]:
        return [one for one in self.messages if one.root is root]

    def sees_as_party(self, who: Party, message: Message) -> bool:
        mail = message.mails.get(who)
        if message.sender is who or (mail is not None and mail.arrived is not None):
            return True
        talk = message.talk
        return isinstance(talk, Group) and message in talk.said and seen_in(talk, who, place(message))

    def sees(self, who: Party, message: Message) -> bool:
        return who.is_boss or self.sees_as_party(who, message)

    def check_sees(self, who: Party, message: Message) -> None:
        if not self.sees(who, message):
            raise Refused("not_found")

    # --- sending -----------------------------------------------------------------------

    def send(
        self, who: Party, to: Sequence[Party], text: str, answers: Message | None, delay: int
    ) -> Message:
        """Send to parties, or with `answers` a reply that names them."""
        self._check_parent(who, answers)
        if not all(one.live for one in to):
            raise Refused("unknown_recipient")
        return self._say(who, [(one, False) for one in to], text, answers, delay)

    def send_to_group(
        self, who: Party, group: Group, text: str, answers: Message | None, delay: int
    ) -> Message:
        self._check_parent(who, answers)
        if group.deleted or not (who in group.members or who.is_boss):
            raise Refused("not_member" if group.open and not group.deleted else "unknown_recipient")
        if not delay and not [one for one in group.members if one is not who]:
            raise Refused("empty_group")
        if group.archived:
            raise Refused("archived")
        return self.accept(Message(len(self.messages) + 1, who, group, text, answers, True), delay)

    def reply(self, who: Party, parent: Message, text: str, delay: int, *, to_sender: bool) -> Message:
        """Reply to all of a thread, or only to the sender."""
        self._check_parent(who, parent)
        found = self._of_sender(who, parent) if to_sender else self.others_of_thread(who, parent)
        if isinstance(found, Group):
            return self.send_to_group(who, found, text, parent, delay)
        return self._say(who, self._reading_along(who, parent, found, text), text, parent, delay)

    def others_of_thread(self, who: Party, parent: Message) -> Group | list[Party]:
        """Return who gets a reply to all: in a group the group, else all others whom one can know."""
        if isinstance(parent.talk, Group) and not parent.talk.deleted:
            return parent.talk
        return [one for one in self._known(who, parent) if one.live] or self._of_sender(who, parent)

    def skipped(self, who: Party, parent: Message) -> set[str]:
        """Return who was deleted of those whom a reply to all would reach."""
        if isinstance(parent.talk, Group) and not parent.talk.deleted:
            return set()
        others = self._known(who, parent)
        return {one.address for one in others if not one.live} if any(one.live for one in others) else set()

    def _known(self, who: Party, parent: Message) -> list[Party]:
        """Return the other parties of the conversations of a thread that somebody is in.

        Of what was said in a group that was deleted nobody but its sender need be among them.
        """
        known = [one for one in self._talks_of(parent) if who in one.parties] + [parent.talk]
        others = dict.fromkeys(one for talk in known for one in talk.parties if one is not who)
        if parent.sender is not who and parent.sender not in others:
            return []
        return [one for one in others if one is not self.system]

    def _talks_of(self, message: Message) -> list[Talk]:
        root = message.root
        return [root.talk, *(one.talk for one in self.thread(root) if one.arrived is not None)]

    def _of_sender(self, who: Party, parent: Message) -> Group | list[Party]:
        found = list(parent.mails) if parent.sender is who else [parent.sender]
        if parent.sender is who and parent.for_group:
            assert isinstance(parent.talk, Group)
            return parent.talk
        if not all(one.live and one is not self.system for one in found):
            raise Refused("unknown_recipient")
        return found

    def _reading_along(
        self, who: Party, parent: Message, found: Sequence[Party], text: str
    ) -> list[tuple[Party, bool]]:
        """Of a reply to several, agents that it neither answers nor mentions only read it along."""
        named = mentions(text)
        if len(found) == 1 or parent.sender is who or "all" in named:
            return [(one, False) for one in found]
        return [
            (one, one.kind == "agent" and one is not parent.sender and one.name not in named) for one in found
        ]

    def _check_parent(self, who: Party, parent: Message | None) -> None:
        if parent is not None:
            self.check_sees(who, parent)
            if parent.deleted_by:
                raise Refused("not_found")

    def _say(
        self,
        who: Party,
        to: Sequence[tuple[Party, bool]],
        text: str,
        answers: Message | None,
        delay: int,
        talk: Talk | None = None,
    ) -> Message:
        talk = talk or self.talk_of({who, *(one for one, _ in to)})
        if talk.archived:
            raise Refused("archived")
        message = Message(len(self.messages) + 1, who, talk, text, answers, False)
        message.mails = {one: Mail(message, one, context) for one, context in to}
        return self.accept(message, delay)

    def talk_of(self, parties: set[Party]) -> Talk:
        """Return the conversation of exactly these."""
        for one in self.talks:
            if one.parties == parties:
                return one
        self.talks.append(Talk(frozenset(parties)))
        return self.talks[-1]

    def accept(self, message: Message, delay: int) -> Message:
        self.messages.append(message)
        if delay:
            message.at, message.waits = self.now + delay, True
        else:
            self._arrive(message)
        return message

    def _arrive(self, message: Message) -> None:
        message.waits = False
        if message.for_group and not can_arrive(message):
            told = message.sender if message.sender.live else self.boss
            self.notify(told, f"{message.id} failed", message, repeats=told is not message.sender)
            return
        message.arrived = self.next_arrival()
        if message.for_group:
            assert isinstance(message.talk, Group)
            message.mails = {
                one: Mail(message, one, not is_to_answer(message, one, member))
                for one, member in message.talk.members.items()
                if one is not message.sender
            }
        for mail in message.mails.values():
            if mail.status == "pending":
                mail.arrived = message.arrived
                mail.status = "done" if mail.owner.kind == "user" or mail.context else "pending"
        message.talk.said.append(message)

    def notify(self, who: Party, text: str, about: Message, *, repeats: bool) -> None:
        """Let hiboss itself tell somebody something."""
        number, talk = len(self.messages) + 1, self.talk_of({self.system, who})
        notice = Message(number, self.system, talk, text, about, False, by_hand=False, repeats=repeats)
        notice.mails = {who: Mail(notice, who)}
        self.accept(notice, 0)

    def next_arrival(self) -> int:
        self._arrivals += 1
        return self._arrivals

    # --- time --------------------------------------------------------------------------

    def move(self, minutes: int) -> None:
        """Let time pass: what was deferred arrives, and what was snoozed comes back, in the order of times."""
        self.now += minutes
        late = [(one.at, one.first_envelope, one) for one in self.messages if one.waits]
        asleep = [mail for one in self.messages for mail in one.mails.values() if mail.until is not None]
        due = [*late, *((one.until, one.number, one) for one in asleep)]
        for at, _, one in sorted(due, key=lambda entry: (entry[0] or 0, entry[1])):
            if at is None or at > self.now:
                continue
            if isinstance(one, Message):
                self._arrive(one)
            else:
                self.wake(one)

    def wake(self, mail: Mail) -> None:
        mail.box, mail.until, mail.read, mail.again = "inbox", None, False, None
        mail.arrived = self.next_arrival()


# --- small rules -------------------------------------------------------------------------


def place(message: Message) -> int:
    """Return the number that a message has in its conversation."""
    return message.talk.said.index(message) + 1


def can_arrive(message: Message) -> bool:
    """Tell whether a deferred message of a group can: its sender may still write there, and others are in it."""
    assert isinstance(message.talk, Group)
    members = message.talk.members
    is_in_it = message.sender in members or message.sender.is_boss
    return is_in_it and any(one is not message.sender for one in members)


def seen_in(group: Group, who: Party, number: int) -> bool:
    """Tell whether somebody was in a group when something was said, or may see it as a newcomer."""
    own = [one for one in group.stays if one.who is who]
    return any(one.first <= number and (one.last is None or number <= one.last) for one in own)


def is_to_answer(message: Message, who: Party, member: Member) -> bool:
    """Tell whether a message of a group is for a member to deal with, and not only to read along."""
    if who.kind == "user":
        return True
    named = {who.name, "all"} & mentions(message.text)
    if named or (message.answers is not None and message.answers.sender is who):
        return member.respond != "never"
    return member.respond == "all" or (member.respond == "people" and message.sender.kind == "user")
