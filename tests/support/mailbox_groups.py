"""The model of groups: who is in one, who manages it, and what becomes of it when somebody is deleted."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.mailbox_marks import may_open
from tests.support.mailbox_model import Group, Mailboxes, Member, Party, Refused, Stay, Talk, seen_in


def create(
    boxes: Mailboxes, who: Party, name: str, others: Sequence[Party], *, is_open: bool, history: int
) -> Group:
    taken = {one.name for one in boxes.groups if not one.deleted} | {one.name for one in boxes.live}
    if name in taken:
        raise Refused("name_taken")
    if not all(one.live for one in others):
        raise Refused("unknown_address")
    group = Group(name=name, open=is_open, history=history)
    boxes.talks.append(group)
    _enter(boxes, group, who, "owner", "mentioned", 0)
    for one in others:
        if one not in group.members:
            _enter(boxes, group, one, "member", "mentioned", 0)
    return group


def add(
    boxes: Mailboxes,
    who: Party,
    group: Group,
    target: Party,
    *,
    role: str,
    respond: str | None,
    history: int | None,
) -> bool:
    _check_manages(who, group, by_owner=role == "admin")
    _check_live(target)
    if respond is not None and target.kind != "agent":
        raise Refused("invalid_params")
    if target in group.members:
        member = group.members[target]
        changed = respond not in (None, member.respond)
        member.respond = respond or member.respond
        return changed
    wanted = group.history if history is None else history
    _enter(boxes, group, target, role, respond or "mentioned", min(wanted, _in_view(group, who)))
    return True


def _in_view(group: Group, who: Party) -> int:
    """Return how many of the last messages somebody sees: nobody shows a newcomer more."""
    last = len(group.said)
    unseen = [number for number in range(1, last + 1) if not (who.is_boss or seen_in(group, who, number))]
    return last - max(unseen, default=0)


def join(boxes: Mailboxes, who: Party, group: Group) -> bool:
    _check_sees(who, group)
    if who in group.members:
        return False
    if not group.open and not who.is_boss:
        raise Refused("group_closed")
    _enter(boxes, group, who, "member", "mentioned", group.history)
    return True


def leave(boxes: Mailboxes, who: Party, group: Group) -> bool:
    _check_sees(who, group)
    _check_can_go(group, who)
    _end(group, who)
    return True


def remove(boxes: Mailboxes, who: Party, group: Group, target: Party) -> bool:
    if target is who:
        return leave(boxes, who, group)
    _check_manages(who, group)
    _check_live(target)
    if target in group.members and group.members[target].role == "admin":
        _check_manages(who, group, by_owner=True)
    _check_can_go(group, target)
    _end(group, target)
    return True


def set_role(boxes: Mailboxes, who: Party, group: Group, target: Party, role: str) -> bool:
    _check_manages(who, group, by_owner=True)
    _check_live(target)
    _check_can_go(group, target)  # nor can an owner become less
    changed = group.members[target].role != role
    group.members[target].role = role
    return changed


def transfer(boxes: Mailboxes, who: Party, group: Group, target: Party) -> bool:
    _check_manages(who, group, by_owner=True)
    _check_live(target)
    if target not in group.members:
        raise Refused("not_member")
    changed = group.members[target].role != "owner"
    for member in group.members.values():
        if changed and member.role == "owner":
            member.role = "admin"
    group.members[target].role = "owner"
    return changed


def change(boxes: Mailboxes, who: Party, group: Group, *, is_open: bool, history: int) -> None:
    _check_manages(who, group)
    group.open, group.history = is_open, history


def archive(boxes: Mailboxes, who: Party, talk: Talk, archived: bool) -> bool:
    """A group is archived by those who manage it, any other conversation by the boss."""
    if isinstance(talk, Group):
        if not (who.is_boss or may_open(who, talk)):
            raise Refused("not_found")
        _check_manages(who, talk)
    elif not who.is_boss:
        raise Refused("boss_only" if may_open(who, talk) else "not_found")
    changed, talk.archived = talk.archived != archived, archived
    return changed


def delete(boxes: Mailboxes, who: Party, group: Group) -> int:
    """Delete a group: return how much mail waited for it."""
    _check_manages(who, group, by_owner=True)
    for one in list(group.members):
        _end(group, one)
    waiting = [one for one in boxes.messages if one.waits and one.talk is group]
    for one in waiting:
        one.waits = False
    group.deleted = True
    return len(waiting)


def delete_agent(boxes: Mailboxes, agent: Party) -> None:
    """Delete an agent: its mail fails, and its groups get another owner."""
    agent.live = False
    for message in boxes.messages:
        mail = message.mails.get(agent)
        if mail is not None and mail.status == "pending":
            mail.status, mail.until = "failed", None
            message.waits = message.waits and any(one.status == "pending" for one in message.mails.values())
    for group in boxes.groups:
        if agent in group.members:
            owned = group.members[agent].role == "owner"
            _end(group, agent)
            if owned and group.members:
                group.members[_heir(boxes, group)].role = "owner"


def _heir(boxes: Mailboxes, group: Group) -> Party:
    """The oldest admin, else the oldest member, people before agents."""

    def order(one: Party) -> tuple[bool, bool, int, int]:
        member = group.members[one]
        admin = member.role == "admin"
        return not admin, not admin and one.kind != "user", member.since, boxes.parties.index(one)

    return min(group.members, key=order)


# --- small rules -------------------------------------------------------------------------


def _check_sees(who: Party, group: Group) -> None:
    if group.deleted or not (who.is_boss or may_open(who, group)):
        raise Refused("unknown_group")


def _check_manages(who: Party, group: Group, *, by_owner: bool = False) -> None:
    _check_sees(who, group)
    if who.is_boss:
        return
    if who not in group.members:
        raise Refused("not_member")
    if group.members[who].role not in (("owner",) if by_owner else ("owner", "admin")):
        raise Refused("not_manager")


def _check_live(target: Party) -> None:
    if not target.live:
        raise Refused("unknown_address")


def _check_can_go(group: Group, who: Party) -> None:
    if who not in group.members:
        raise Refused("not_member")
    if group.members[who].role == "owner":
        raise Refused("owner_stays")


def _enter(boxes: Mailboxes, group: Group, who: Party, role: str, respond: str, history: int) -> None:
    group.members[who] = Member(role, respond, boxes.now)
    group.stays.append(Stay(who, max(1, len(group.said) + 1 - history)))


def _end(group: Group, who: Party) -> None:
    del group.members[who]
    for one in group.stays:
        if one.who is who and one.last is None:
            one.last = len(group.said)
