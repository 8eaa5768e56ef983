"""What the model says that each party is shown: boxes, lists of messages, conversations, threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.mailbox_marks import may_open
from tests.support.mailbox_model import Group, Mail, Mailboxes, Message, Party, Talk, place, seen_in

NOTICE = "a notice of hiboss"
Row = tuple[Any, ...]


class Thread(NamedTuple):
    id: str
    messages: int
    unread: int
    created_by: str
    title: str
    last_sender: str | None  # None: the model does not say


def text_of(message: Message) -> str:
    return NOTICE if message.sender.address == "agent:system" else message.shown


def name_of(party: Party) -> str:
    """Return how lists of messages call an author."""
    return party.name if party.kind == "agent" else party.address


# --- boxes -------------------------------------------------------------------------------


def box(boxes: Mailboxes, who: Party, name: str) -> list[Row]:
    """Return what lies in a box, in the order of arrival."""
    found = [one for one in boxes.mails(who) if one.box == name]
    return [_row(one) for one in sorted(found, key=lambda one: one.arrived or 0)]


def _row(mail: Mail) -> Row:
    message = mail.message
    return mail.id, message.id, text_of(message), mail.status, mail.read, mail.acked, mail.until is not None


def unread(boxes: Mailboxes, who: Party) -> list[str]:
    """Return what is unread; what came back to the inbox counts as new."""
    found = [one for one in boxes.mails(who) if one.unread]
    return [one.id for one in sorted(found, key=lambda one: one.place)]


def listed(boxes: Mailboxes, who: Party, *, only_unread: bool = False, snoozed: bool = False) -> list[Row]:
    """Return the messages of the inbox, or of what is put off, the newest first."""
    wanted = "snoozed" if snoozed else "inbox"
    found = [one for one in boxes.mails(who) if one.box == wanted and (one.unread or not only_unread)]
    found.sort(key=lambda one: one.place if only_unread else one.arrived or 0, reverse=True)
    return [message(boxes, who, one.message) for one in found]


def message(boxes: Mailboxes, who: Party, one: Message) -> Row:
    """Return what somebody is shown of one message."""
    number = place(one) if one.arrived is not None else None
    return one.id, text_of(one), one.deleted_by is not None, number, is_read(who, one)


def is_read(who: Party, message: Message) -> bool:
    mail = message.mails.get(who)
    if mail is None or mail.arrived is None or mail.context or mail.status == "cancelled":
        return True
    return mail.read


# --- conversations -----------------------------------------------------------------------


def said(boxes: Mailboxes, who: Party, talk: Talk) -> list[Row] | None:
    """Return what somebody is shown of a conversation, with the numbers; None: it is not there for it."""
    if not (who.is_boss or may_open(who, talk)):
        return None
    whole = who.is_boss or not isinstance(talk, Group)
    return [
        (number, one.id, text_of(one))
        for number, one in enumerate(talk.said, 1)
        if whole or (isinstance(talk, Group) and seen_in(talk, who, number))
    ]


def messages_of(boxes: Mailboxes, who: Party, talk: Talk) -> list[Row] | None:
    """Return the list of messages of a conversation, the newest first; None: it is not there."""
    party = who in talk.parties or (isinstance(talk, Group) and any(one.who is who for one in talk.stays))
    if not (who.is_boss or party):
        return None
    found = [one for one in talk.said if boxes.sees(who, one)]
    return [message(boxes, who, one) for one in reversed(found)]


def own_talks(boxes: Mailboxes, who: Party, *, past: bool = False) -> dict[str, int]:
    """Return the conversations that somebody is in, or was in, with how much is unread in each."""
    return {
        one.number: sum(mail.unread for mail in boxes.mails(who) if mail.message.talk is one)
        for one in boxes.talks
        if one.number and (is_present(who, one) or (past and may_list(who, one)))
    }


def is_present(who: Party, talk: Talk) -> bool:
    return who in (talk.members if isinstance(talk, Group) else talk.parties)


def may_list(who: Party, talk: Talk) -> bool:
    return isinstance(talk, Group) and any(one.who is who for one in talk.stays)


def roles(group: Group) -> dict[str, str]:
    return {one.address: member.role for one, member in group.members.items()}


# --- threads -----------------------------------------------------------------------------


def threads(boxes: Mailboxes, who: Party) -> list[Thread]:
    """Return the threads with a reply in the conversations of somebody, the last active first."""
    found: list[tuple[int, Thread]] = []
    for root in [one for one in boxes.messages if one.answers is None]:
        whole = boxes.thread(root)
        here = [one for one in whole if one.arrived is not None and is_present(who, one.talk)]
        replies = [one for one in here if one is not root]
        seen = [one for one in whole if boxes.sees_as_party(who, one)]
        if replies and seen:
            last = max(replies, key=lambda one: one.arrived or 0)
            found.append((last.arrived or 0, _thread(boxes, who, root, here, last)))
    return [one for _, one in sorted(found, key=lambda entry: entry[0], reverse=True)]


def _thread(boxes: Mailboxes, who: Party, root: Message, here: list[Message], last: Message) -> Thread:
    seen = [one for one in boxes.thread(root) if boxes.sees_as_party(who, one)]
    first = root if root in seen else seen[0]
    alone = root not in here and root in seen and root.arrived is not None
    return Thread(
        f"t{root.number}",
        # Of a conversation that is no group a list shows all, also what hiboss says anew to some of it.
        sum(one in seen or not isinstance(one.talk, Group) for one in here) + alone,
        sum(one.unread for one in boxes.mails(who) if one.message.root is root),
        name_of(first.sender),
        text_of(first),
        name_of(last.sender) if last in seen else None,
    )


def thread_messages(boxes: Mailboxes, who: Party, root: Message) -> list[Row] | None:
    """Return what somebody is shown of a thread, the newest first by acceptance; None: nothing."""
    found = [one for one in boxes.thread(root) if boxes.sees(who, one)]
    return [message(boxes, who, one) for one in reversed(found)] or None


def own_messages(boxes: Mailboxes, who: Party) -> list[Row]:
    found = [one for one in boxes.messages if one.sender is who]
    return [message(boxes, who, one) for one in reversed(found)]
