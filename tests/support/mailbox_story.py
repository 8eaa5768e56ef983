"""The rules of the stories about mailboxes: what agents, users and the boss may do next.

Numbers choose who does it, and with what: so hypothesis finds short stories.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support import mailbox_authors as authors
from tests.support import mailbox_marks as marks
from tests.support.mailbox_model import Group, Mail, Message, Party, Talk
from tests.support.mailbox_scene import Scene

T = TypeVar("T")


class Several(NamedTuple):
    """So many numbers."""

    least: int
    most: int


# What a parameter of a step can be: a number, numbers, or one of these; None and a range: one of them or none.
Choice = range | Several | tuple[Any, ...]
NUMBERS, SOME = range(200), Several(1, 3)
DELAYS = (0, 0, 0, 10, 30)
MINUTES = (5, 10, 30, 60)
MENTIONS = ("", "", "", " @ada", " @bob", " @all")
EITHER = (False, True)


def strategy(choice: Choice) -> st.SearchStrategy[Any]:
    """Return how hypothesis draws a parameter."""
    if isinstance(choice, range):
        return st.integers(choice.start, choice.stop - 1)
    if isinstance(choice, Several):
        return st.lists(strategy(NUMBERS), min_size=choice.least, max_size=choice.most)
    return st.one_of([strategy(one) if isinstance(one, range) else st.just(one) for one in choice])


def pick(found: Sequence[T], number: int) -> T:
    return found[number % len(found)]


class Walked(NamedTuple):
    """How a random walk takes a step (mailbox_walks.py)."""

    weight: int
    choices: dict[str, Choice]


def step(weight: int = 2, **choices: Choice) -> Callable[[Callable[..., None]], Any]:
    """Make a rule of a step. If it fails, nothing is compared at the end: the first failure is the one."""

    def make(take: Callable[..., None]) -> Any:
        @functools.wraps(take)
        def taking(self: MailboxStory, **given: Any) -> None:
            self.failed = True
            take(self, **given)
            self.failed = False

        made: Any = rule(**{name: strategy(one) for name, one in choices.items()})(taking)
        made.walked = Walked(weight, choices)
        return made

    return make


class MailboxStory(RuleBasedStateMachine):
    """Anybody does anything; after each step the actor and another one look at all they have."""

    steps = 0  # of all stories
    opening: ClassVar[list[tuple[str, dict[str, Any]]]] = []  # the first steps of a walk

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene()
        self.boxes = self.scene.boxes
        self.failed = False
        self._looks = 0

    def teardown(self) -> None:
        try:
            if not self.failed:
                self.scene.check_all()
        finally:
            self.scene.close()

    @classmethod
    def walked(cls) -> dict[str, Walked]:
        """Return the steps of this story by their names."""
        found = {name: getattr(getattr(cls, name), "walked", None) for name in sorted(dir(cls))}
        return {name: one for name, one in found.items() if isinstance(one, Walked)}

    # --- choosing ------------------------------------------------------------------------

    def who(self, number: int) -> Party:
        return pick(self.boxes.live, number)

    def anybody(self, number: int) -> Party:
        """Return somebody who is there, or sometimes one who was deleted and has no successor."""
        names = {one.address for one in self.boxes.live}
        gone = [one for one in self.boxes.parties if not one.live and one.address not in names]
        return pick(gone, number) if gone and number % 9 == 8 else self.who(number)

    def message(self, who: Party, number: int) -> Message | None:
        """Return a message that somebody may see, or sometimes any."""
        seen = [one for one in self.boxes.messages if number % 9 == 8 or self.boxes.sees(who, one)]
        return pick(seen[::-1], number) if seen else None

    def mails(self, who: Party, numbers: Sequence[int]) -> list[Mail]:
        """Return mail of somebody, sometimes also of others, or that has not arrived."""
        every = [one for message in self.boxes.messages for one in message.mails.values()]
        own = self.boxes.mails(who)
        chosen = [pick(every if number % 11 == 10 else own, number) for number in numbers if own]
        return list(dict.fromkeys(chosen))

    def group(self, number: int) -> Group | None:
        living = [one for one in self.boxes.groups if not one.deleted]
        return pick(living, number) if living else None

    def text(self, mention: str) -> str:
        return f"text {len(self.boxes.messages) + 1}.{MailboxStory.steps}{mention}"

    def look(self, who: Party) -> None:
        """Compare what the actor, and another one, are shown."""
        MailboxStory.steps += 1
        self._looks += 1
        for one in dict.fromkeys([who, self.who(self._looks)]):
            if one.live:
                self.scene.check(one)

    def sent(self, taken: tuple[Message, Any] | None) -> None:
        """Compare the answer to a message that was sent."""
        if taken is not None:
            message, answer = taken
            found = answer["message"], answer["thread"], answer["conversation"]
            assert found == (message.id, f"t{message.root.number}", message.talk.number), (message, answer)
            assert (answer["deliver_at"] is not None) == (message.at is not None)

    # --- sending -------------------------------------------------------------------------

    @step(6, who=NUMBERS, to=SOME, mention=MENTIONS, delay=DELAYS, answers=NUMBERS)
    def send(self, who: int, to: list[int], mention: str, delay: int, answers: int) -> None:
        me, text = self.who(who), self.text(mention)
        others = list(dict.fromkeys(self.anybody(one) for one in to))
        parent = self.message(me, answers) if answers % 5 == 4 else None
        params = _timed(delay) | ({} if parent is None else {"reply_to": parent.id})
        self.sent(
            self.scene.both(
                me,
                "envelope.send",
                lambda: self.boxes.send(me, others, text, parent, delay),
                to=[one.address for one in others],
                text=text,
                **params,
            )
        )
        self.look(me)

    @step(8, who=NUMBERS, group=NUMBERS, mention=MENTIONS, delay=DELAYS)
    def send_to_group(self, who: int, group: int, mention: str, delay: int) -> None:
        me, text, to = self.who(who), self.text(mention), self.group(group)
        if to is None:
            return
        if who % 4 and to.members:  # mostly somebody who is in it
            me = pick(list(to.members), who)
        self.sent(
            self.scene.both(
                me,
                "envelope.send",
                lambda: self.boxes.send_to_group(me, to, text, None, delay),
                to=[f"group:{to.name}"],
                text=text,
                **_timed(delay),
            )
        )
        self.look(me)

    @step(8, who=NUMBERS, parent=NUMBERS, mention=MENTIONS, delay=DELAYS, to_sender=EITHER)
    def reply(self, who: int, parent: int, mention: str, delay: int, to_sender: bool) -> None:
        me, text = self.who(who), self.text(mention)
        answers = self.message(me, parent)
        if answers is None:
            return
        skipped = self.boxes.skipped(me, answers)
        taken = self.scene.both(
            me,
            "envelope.send",
            lambda: self.boxes.reply(me, answers, text, delay, to_sender=to_sender),
            reply_to=answers.id,
            to_sender=to_sender,
            text=text,
            **_timed(delay),
        )
        self.sent(taken)
        if taken is not None:
            message, answer = taken
            assert answer.get("elsewhere", False) == (message.talk is not answers.talk), answer
            assert to_sender or set(answer.get("skipped", [])) == skipped, (answer, skipped)
        self.look(me)

    @step(4, minutes=MINUTES)
    def time_passes(self, minutes: int) -> None:
        self.scene.move(minutes)
        self.look(self.who(minutes))

    @step(1, minutes=(0, 0, 15, 60))
    def the_daemon_stops_and_starts(self, minutes: int) -> None:
        self.scene.restart(minutes)
        self.look(self.who(minutes))

    @step(1)
    def the_daemon_is_killed_and_starts(self) -> None:
        self.scene.crash()
        self.look(self.boxes.boss)

    # --- what recipients do ----------------------------------------------------------------

    @step(who=NUMBERS, which=SOME, how=("read", "ack", "unsnooze"))
    def read_or_ack(self, who: int, which: list[int], how: str) -> None:
        me = self.who(who)
        if mails := self.mails(me, which):
            step = {"read": marks.read, "ack": marks.ack, "unsnooze": marks.unsnooze}[how]
            self.mark(me, mails, how, lambda: step(self.boxes, me, mails))

    @step(3, who=NUMBERS, which=SOME, minutes=MINUTES)
    def snooze(self, who: int, which: list[int], minutes: int) -> None:
        me = self.who(who)
        if mails := self.mails(me, which):
            step = marks.snooze
            self.mark(me, mails, "snooze", lambda: step(self.boxes, me, mails, minutes), until=f"+{minutes}m")

    @step(who=NUMBERS, which=SOME, box=("archived", "trash", "inbox"))
    def put_into_a_box(self, who: int, which: list[int], box: str) -> None:
        me = self.who(who)
        if mails := self.mails(me, which):
            word = {"archived": "archive", "trash": "trash", "inbox": "restore"}[box]
            self.mark(me, mails, word, lambda: marks.put_into(self.boxes, me, mails, box))

    def mark(self, me: Party, mails: list[Mail], word: str, model: Any, **params: Any) -> None:
        self.scene.changed(me, f"envelope.{word}", model, ids=[one.id for one in mails], **params)
        self.look(me)

    @step(who=NUMBERS, upto=(None, NUMBERS), how=("read", "ack"))
    def mark_all(self, who: int, upto: int | None, how: str) -> None:
        me = self.who(who)
        last = None if upto is None else next(iter(self.mails(me, [upto])), None)
        step = marks.read_all if how == "read" else marks.ack_all
        params = {} if last is None else {"up_to": last.id}
        self.scene.changed(me, f"envelope.{how}", lambda: step(self.boxes, me, last), all=True, **params)
        self.look(me)

    @step(who=NUMBERS, which=SOME)
    def mark_messages(self, who: int, which: list[int]) -> None:
        me = self.who(who)
        chosen = list(dict.fromkeys(filter(None, [self.message(me, one) for one in which])))
        if not chosen:
            return
        taken = self.scene.both(
            me,
            "message.markRead",
            lambda: marks.mark_messages(self.boxes, me, chosen),
            message_ids=[one.id for one in chosen],
        )
        if taken is not None:
            found = {number: set(names) for number, names in taken[1].get("also_read_by", {}).items()}
            assert (taken[1]["marked_count"], found) == taken[0], taken
        self.look(me)

    @step(who=NUMBERS, talk=NUMBERS, upto=(None, range(7)))
    def mark_conversation(self, who: int, talk: int, upto: int | None) -> None:
        me, chosen = self.who(who), self.talk(talk)
        if chosen is None:
            return
        taken = self.scene.both(
            me,
            "conversation.markRead",
            lambda: marks.mark_talk(self.boxes, me, chosen, upto),
            conversation=chosen.number,
            **({} if upto is None else {"up_to_seq": upto}),
        )
        assert taken is None or (taken[1]["changed"], taken[1]["unread"]) == taken[0], taken
        self.look(me)

    def talk(self, number: int) -> Talk | None:
        known = [one for one in self.boxes.talks if one.number]
        return pick(known[::-1], number) if known else None

    # --- what authors do -------------------------------------------------------------------

    @step(who=NUMBERS, which=NUMBERS, again=range(5), mention=MENTIONS)
    def edit(self, who: int, which: int, again: int, mention: str) -> None:
        me = self.who(who)
        message = self.message(me, which)
        if message is None:
            return
        me = message.sender if message.sender in self.boxes.live and who % 4 else me
        text = message.text if again == 4 else self.text(mention)
        self.scene.changed(
            me, "message.edit", lambda: authors.edit(self.boxes, me, message, text), id=message.id, text=text
        )
        self.look(me)

    @step(who=NUMBERS, which=NUMBERS, restores=EITHER)
    def delete_or_restore(self, who: int, which: int, restores: bool) -> None:
        me = self.who(who)
        message = self.message(me, which)
        if message is None:
            return
        me = message.sender if message.sender in self.boxes.live and who % 4 else me
        if restores:
            step = authors.restore
            self.scene.changed(me, "message.restore", lambda: step(self.boxes, me, message), id=message.id)
        else:
            taken = self.scene.both(
                me, "message.delete", lambda: authors.delete(self.boxes, me, message), id=message.id
            )
            assert taken is None or (taken[1]["changed"], taken[1]["cancelled"]) == taken[0], taken
        self.look(me)


def _timed(delay: int) -> dict[str, str]:
    return {"deliver_at": f"+{delay}m"} if delay else {}
