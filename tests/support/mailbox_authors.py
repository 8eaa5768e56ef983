"""The model of what authors do with their messages: edit, delete, restore."""

from __future__ import annotations

from tests.support.mailbox_model import Group, Mail, Mailboxes, Message, Party, Refused


def edit(boxes: Mailboxes, who: Party, message: Message, text: str) -> bool:
    """Give a message another text, and tell the agents that have it already."""
    _check_edit(boxes, who, message)
    if message.text == text:
        return False
    message.text = text
    if not _reword(boxes, message, text):
        agents = [one.owner for one in _having(message) if not (who.is_boss and one.context)]
        _tell(boxes, who, message, [one for one in agents if one is not who and _is_present(one, message)])
    return True


def _check_edit(boxes: Mailboxes, who: Party, message: Message) -> None:
    boxes.check_sees(who, message)
    talk = message.talk
    if message.sender is not who or not message.by_hand:
        raise Refused("not_author")
    if message.deleted_by or (isinstance(talk, Group) and talk.deleted):
        raise Refused("too_late")
    if not (_is_present(who, message) or who.is_boss):
        raise Refused("not_member")
    if talk.archived:
        raise Refused("archived")


def _reword(boxes: Mailboxes, message: Message, text: str) -> bool:
    """Change the last new wording, if no agent has begun with that; False: there is none to change."""
    wordings = [one for one in repeating(boxes, message) if one.sender.is_boss and not one.deleted_by]
    if not wordings or _having(wordings[-1]):
        return False
    pending = [one for one in wordings[-1].mails.values() if one.status == "pending"]
    for mail in pending:
        if not _is_present(mail.owner, message):
            mail.status = "cancelled"
            mail.until, mail.box = None, "inbox" if mail.until is not None else mail.box
    if pending:
        wordings[-1].text = text
    return bool(pending)


def _tell(boxes: Mailboxes, who: Party, message: Message, agents: list[Party]) -> None:
    """The boss says it anew. Of what others edited agents get a notice, or the one before it says it."""
    if who.is_boss and agents:
        made = Message(len(boxes.messages) + 1, who, message.talk, message.text, message, False)
        made.by_hand, made.repeats = False, True
        made.mails = {one: Mail(made, one) for one in agents}
        boxes.accept(made, 0)
    for agent in agents if not who.is_boss else []:
        before = [one.mails.get(agent) for one in repeating(boxes, message) if not one.deleted_by]
        unread = [one for one in before if one and one.unread and one.status == "pending"]
        if unread:  # it says the new text, and counts as new
            unread[-1].again = boxes.next_arrival()
        else:
            boxes.notify(agent, f"{message.id} was edited", message, repeats=True)


def delete(boxes: Mailboxes, who: Party, message: Message) -> tuple[bool, int]:
    """Delete a message for everybody, with what repeats it; return whether that is new, and what is cancelled."""
    boxes.check_sees(who, message)
    if not who.is_boss and message.sender is not who:
        raise Refused("not_author")
    if message.deleted_by:
        return False, 0
    every = [message, *(one for one in repeating(boxes, message) if not one.deleted_by)]
    return True, sum(_delete(boxes, who, one) for one in every)


def _delete(boxes: Mailboxes, who: Party, message: Message) -> int:
    message.deleted_by, message.deleted_at = who, boxes.now
    pending = [one for one in message.mails.values() if one.status == "pending"]
    cancelled = len(pending) + (message.waits and message.for_group)
    message.waits = False
    for mail in message.mails.values():
        if mail.until is not None:
            mail.until, mail.box = None, "inbox"
    for mail in pending:
        mail.status = "cancelled"
    return cancelled


def restore(boxes: Mailboxes, who: Party, message: Message) -> bool:
    """Undo that. What is unread then counts as new again; what was cancelled stays so."""
    boxes.check_sees(who, message)
    by_other = message.deleted_by is not None and message.deleted_by is not message.sender
    if not who.is_boss and (message.sender is not who or by_other):
        raise Refused("not_author")
    if not message.deleted_by:
        return False
    when = message.deleted_by, message.deleted_at
    for one in [message, *repeating(boxes, message)]:
        if (one.deleted_by, one.deleted_at) == when:
            one.deleted_by = one.deleted_at = None
            for mail in one.mails.values():
                mail.again = boxes.next_arrival() if mail.unread else mail.again
    return True


# --- small rules -------------------------------------------------------------------------


def repeating(boxes: Mailboxes, message: Message) -> list[Message]:
    """Return what hiboss made of the edits of a message."""
    return [one for one in boxes.messages if one.answers is message and one.repeats]


def _having(message: Message) -> list[Mail]:
    """Return the mail of the agents that have a message already, in the order in which they got it."""
    found = [one for one in message.mails.values() if one.owner.kind == "agent" and one.owner.live]
    return sorted((one for one in found if one.status == "done"), key=lambda one: one.number)


def _is_present(who: Party, message: Message) -> bool:
    return who in message.talk.members if isinstance(message.talk, Group) else True
