"""The rules of the stories about groups, and about agents that are deleted, beside those of mailboxes."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis.stateful import initialize

from tests.support import mailbox_groups as groups
from tests.support.mailbox_model import Group, Party
from tests.support.mailbox_story import EITHER, NUMBERS, SOME, MailboxStory, Several, pick, step, strategy

NAMES = ("red", "green", "blue")
HISTORY = (0, 0, 1, 2, 9)


class GroupStory(MailboxStory):
    """Also groups are made, joined, left, managed and closed, and agents come and go."""

    opening: ClassVar = [("there_is_a_group", {"who": 1, "others": [2, 4], "is_open": True})]

    @initialize(who=strategy(NUMBERS), others=strategy(SOME), is_open=strategy(EITHER))
    def there_is_a_group(self, who: int, others: list[int], is_open: bool) -> None:
        self.begin_group(self.who(who), 0, others, is_open, 0)

    def manager(self, group: Group, number: int) -> Party:
        """Return mostly somebody who manages a group, or else anybody."""
        found = [one for one, member in group.members.items() if member.role != "member"]
        return pick(found, number) if found and number % 4 else self.who(number)

    def in_group(self, me: Party, group: Group, method: str, model: Any, **params: Any) -> None:
        self.scene.changed(me, method, model, conversation=f"group:{group.name}", **params)
        self.scene.check_groups()
        self.look(me)

    @step(
        1,
        who=NUMBERS,
        name=NUMBERS,
        others=Several(0, 3),
        is_open=EITHER,
        history=HISTORY,
    )
    def create_group(self, who: int, name: int, others: list[int], is_open: bool, history: int) -> None:
        me = self.who(who)
        self.begin_group(me, name, others, is_open, history)
        self.look(me)

    def begin_group(self, me: Party, name: int, others: list[int], is_open: bool, history: int) -> None:
        called = pick(NAMES, name)
        members = [self.anybody(one) for one in others]
        taken = self.scene.both(
            me,
            "conversation.create",
            lambda: groups.create(self.boxes, me, called, members, is_open=is_open, history=history),
            name=called,
            participants=[one.address for one in members],
            open=is_open,
            history=history,
        )
        if taken is not None:
            taken[0].number = taken[1]["conversation"]["id"]

    @step(
        4,
        who=NUMBERS,
        group=NUMBERS,
        whom=NUMBERS,
        role=("member", "member", "admin"),
        respond=(None, None, "all", "people", "never"),
        history=(None, *HISTORY),
    )
    def add(self, who: int, group: int, whom: int, role: str, respond: str, history: int | None) -> None:
        to = self.group(group)
        if to is None:
            return
        me, new = self.manager(to, who), self.anybody(whom)
        given = {"respond": respond, "history": history}
        self.in_group(
            me,
            to,
            "participant.add",
            lambda: groups.add(self.boxes, me, to, new, role=role, respond=respond, history=history),
            address=new.address,
            role=role,
            **{key: value for key, value in given.items() if value is not None},
        )

    @step(3, who=NUMBERS, group=NUMBERS, joins=EITHER)
    def join_or_leave(self, who: int, group: int, joins: bool) -> None:
        me, to = self.who(who), self.group(group)
        if to is not None:
            word, model = ("join", groups.join) if joins else ("leave", groups.leave)
            self.in_group(me, to, f"participant.{word}", lambda: model(self.boxes, me, to))

    @step(4, who=NUMBERS, group=NUMBERS, whom=NUMBERS, what=("remove", "transfer"))
    def remove_or_transfer(self, who: int, group: int, whom: int, what: str) -> None:
        to = self.group(group)
        if to is None:
            return
        me, other = self.manager(to, who), self.anybody(whom)
        if whom % 8 and (mere := [one for one, member in to.members.items() if member.role != "owner"]):
            other = pick(mere, whom)
        model = {"remove": groups.remove, "transfer": groups.transfer}[what]
        self.in_group(
            me, to, f"participant.{what}", lambda: model(self.boxes, me, to, other), address=other.address
        )

    @step(who=NUMBERS, group=NUMBERS, whom=NUMBERS, role=("admin", "admin", "member"))
    def set_role(self, who: int, group: int, whom: int, role: str) -> None:
        to = self.group(group)
        if to is not None:
            me, other, model = self.manager(to, who), self.anybody(whom), groups.set_role
            about = {"address": other.address, "role": role}
            self.in_group(me, to, "participant.role", lambda: model(self.boxes, me, to, other, role), **about)

    @step(who=NUMBERS, group=NUMBERS, is_open=EITHER, history=HISTORY)
    def change_group(self, who: int, group: int, is_open: bool, history: int) -> None:
        to = self.group(group)
        if to is None:
            return
        me = self.manager(to, who)
        self.scene.both(
            me,
            "conversation.set",
            lambda: groups.change(self.boxes, me, to, is_open=is_open, history=history),
            conversation=f"group:{to.name}",
            open=is_open,
            history=history,
        )
        self.look(me)

    @step(1, who=NUMBERS, talk=NUMBERS, archived=EITHER)
    def archive_conversation(self, who: int, talk: int, archived: bool) -> None:
        chosen = self.talk(talk)
        if chosen is None or (isinstance(chosen, Group) and chosen.deleted):
            return
        me = self.manager(chosen, who) if isinstance(chosen, Group) else self.who(3 * who)
        self.scene.changed(
            me,
            "conversation.archive",
            lambda: groups.archive(self.boxes, me, chosen, archived),
            conversation=chosen.number,
            archived=archived,
        )
        self.look(me)

    @step(1, who=NUMBERS, group=NUMBERS)
    def delete_group(self, who: int, group: int) -> None:
        to = self.group(group)
        if to is None:
            return
        me = self.manager(to, who)
        taken = self.scene.both(
            me,
            "conversation.delete",
            lambda: groups.delete(self.boxes, me, to),
            conversation=f"group:{to.name}",
        )
        assert taken is None or taken[1]["failed_envelopes"] == taken[0]
        self.look(me)

    @step(1, which=NUMBERS)
    def an_agent_is_deleted_or_registered(self, which: int) -> None:
        """Delete an agent, or register another one with the name of one that was."""
        boss = self.boxes.boss
        names = {one.name for one in self.boxes.live}
        gone = [one for one in self.boxes.parties if one.name not in names]
        agents = [one for one in self.boxes.live if one.kind == "agent"]
        if gone and (which % 2 or len(agents) < 2):
            new = Party("agent", pick(gone, which).name)
            self.scene.ask(boss, "agent.register", name=new.name, profile=True)
            self.boxes.parties.append(new)
            self.look(new)
        else:
            agent = pick(agents, which)
            groups.delete_agent(self.boxes, agent)
            self.scene.ask(boss, "agent.delete", name=agent.name)
            self.scene.check_groups()
            self.look(boss)
