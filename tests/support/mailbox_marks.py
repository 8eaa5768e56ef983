"""The model of what recipients do with their mail: read, acknowledge, snooze, move to another box."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.mailbox_model import Group, Mail, Mailboxes, Message, Party, Refused, Talk, place


def read(boxes: Mailboxes, who: Party, mails: Sequence[Mail]) -> int:
    _check_own(who, mails)
    return _mark(mails)


def read_all(boxes: Mailboxes, who: Party, upto: Mail | None) -> int:
    """Mark what is unread, or that up to an envelope."""
    return _mark([one for one in _upto(boxes, who, upto) if one.unread])


def mark_messages(
    boxes: Mailboxes, who: Party, messages: Sequence[Message]
) -> tuple[int, dict[str, set[str]]]:
    """Mark messages; return how many were not read, and who else has read each."""
    for one in messages:
        boxes.check_sees(who, one)
    others = {
        one.id: {mail.owner.id for mail in one.mails.values() if mail.was_read and mail.owner is not who}
        for one in messages
    }
    own = [one.mails[who] for one in messages if who in one.mails]
    marked = _mark([one for one in own if one.arrived is not None])
    return marked, {number: names for number, names in others.items() if names}


def mark_talk(boxes: Mailboxes, who: Party, talk: Talk, upto: int | None) -> tuple[int, int]:
    """Mark a conversation up to a number; return how many were unread, and how many still are."""
    if not may_open(who, talk):
        raise Refused("not_found")
    unread = [one for one in boxes.mails(who) if one.unread and one.message.talk is talk]
    chosen = [one for one in unread if upto is None or place(one.message) <= upto]
    return _mark(chosen), len(unread) - len(chosen)


def may_open(who: Party, talk: Talk) -> bool:
    """Tell whether somebody may ask for a conversation by its number."""
    if isinstance(talk, Group):
        return (talk.open and not talk.deleted) or any(one.who is who for one in talk.stays)
    return who in talk.parties


def ack(boxes: Mailboxes, who: Party, mails: Sequence[Mail]) -> int:
    _check_own(who, mails)
    _check_alive(mails)
    return sum(_ack(one) for one in mails)


def ack_all(boxes: Mailboxes, who: Party, upto: Mail | None) -> int:
    """Acknowledge what waits in the inbox."""
    found = _upto(boxes, who, upto)
    return sum(_ack(one) for one in found if one.status == "pending" and one.box == "inbox")


def snooze(boxes: Mailboxes, who: Party, mails: Sequence[Mail], minutes: int) -> int:
    _check_own(who, mails)
    _check_alive(mails)
    until = boxes.now + minutes
    changed = sum(one.until != until for one in mails)
    for one in mails:
        one.until, one.box = until, "snoozed"
    return changed


def unsnooze(boxes: Mailboxes, who: Party, mails: Sequence[Mail]) -> int:
    _check_own(who, mails)
    asleep = [one for one in mails if one.until is not None]
    for one in asleep:
        boxes.wake(one)
    return len(asleep)


def put_into(boxes: Mailboxes, who: Party, mails: Sequence[Mail], box: str) -> int:
    """Move mail to a box. What leaves the inbox is done; what comes back is new again, where it was."""
    _check_own(who, mails)
    changed = 0
    for one in mails:
        if box == "inbox" and one.until is not None:
            boxes.wake(one)
            changed += 1
            continue
        changed += one.box != box
        if box == "inbox" and one.box != box:
            one.again = boxes.next_arrival()
        if box != "inbox" and one.status == "pending":
            one.status = "done"
        one.box, one.until = box, None
    return changed


# --- small rules -------------------------------------------------------------------------


def _check_own(who: Party, mails: Sequence[Mail]) -> None:
    """All of them must be the caller's, else none is changed. The boss is told in whose box one is."""
    wrong = [one for one in mails if one.owner is not who or one.arrived is None]
    if wrong and who.is_boss and any(one.owner is not who for one in mails):
        raise Refused("other_box")
    if wrong:
        raise Refused("not_found")


def _check_alive(mails: Sequence[Mail]) -> None:
    if any(one.status in ("failed", "cancelled") for one in mails):
        raise Refused("too_late")


def _upto(boxes: Mailboxes, who: Party, upto: Mail | None) -> list[Mail]:
    if upto is None:
        return boxes.mails(who)
    if upto.owner is not who or upto.arrived is None:
        raise Refused("not_found")
    return [one for one in boxes.mails(who) if one.place <= upto.place]


def _mark(mails: Sequence[Mail]) -> int:
    changed = sum(not one.read for one in mails)
    for one in mails:
        one.read = one.was_read = True
    return changed


def _ack(mail: Mail) -> bool:
    if mail.acked:
        return False
    mail.acked = mail.read = mail.was_read = True
    mail.status = "done"
    if mail.until is not None:
        mail.until, mail.box = None, "inbox"
    return True
