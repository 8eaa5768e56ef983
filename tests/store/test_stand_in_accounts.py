"""By which account somebody writes in the place of an agent, to whom, and what happens if there is none."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.core.address import BOSS, Address
from hiboss.core.contracts.adapter import Chat
from hiboss.core.envelope import Lane
from hiboss.core.errors import NotBound
from hiboss.store import bindings, envelope_marks, envelopes, forwarding
from hiboss.store.bindings import NewBinding
from tests.store.chat_scene import BOSS_ID, HIS, NEX, PRIVATE, Scene
from tests.store.route_cast import BOB, Cast

EVE = Address("channel", "folder:8")


class TwoBots(Cast):
    """The cast, with an account of max of its own, in which Bob has a chat too: the same address."""

    def __init__(self, chat: Any) -> None:
        super().__init__(chat)
        self.first = self.binding
        self.second = self.bind()

    def bind(self) -> int:
        new = NewBinding("folder", "second", {}, chats=[Chat("7")], groups="mentioned")
        return self.write(lambda tx: bindings.add(tx, new, self.max, self.now)).binding

    def unbind(self) -> None:
        self.write(lambda tx: bindings.remove(tx, "folder", "second", self.max, self.now))

    def bob_to_max(self, text: str) -> int:
        self.binding = self.second
        try:
            return self.bob(text)
        finally:
            self.binding = self.first

    def account(self, message: int) -> int | None:
        """Return by which account a message is posted to Bob."""
        rows = self.execute(
            """
            SELECT e.binding FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? AND a.name = 'folder:7'
            """,
            message,
        )
        return rows[0]["binding"] if rows else None

    def phone(self) -> int:
        """Let mail for the boss be posted to his chat; return its address id."""
        his = int(self.execute("SELECT id FROM address WHERE name = 'folder:777'")[0]["id"])
        self.write(lambda tx: forwarding.set_reach(tx, Lane(his, self.first), self.now))
        return his


@pytest.fixture
def chat(scene: Scene) -> TwoBots:
    return TwoBots(scene)


# --- to whom -----------------------------------------------------------------------------


def test_who_got_one_routed_envelope_answers_who_wrote_it_and_writes_to_no_other_chat(chat: TwoBots) -> None:
    asked = chat.bob("one")
    chat.comes_in(chat="8", author=PRIVATE["author"], text="from Eve", message="e1")
    chat.order("route", chat.max, envelope=chat.envelope(asked, NEX))
    for other in (EVE, Address("channel", "folder:777")):
        with pytest.raises(NotBound):
            chat.send(chat.max, other, reply_to=("message", asked))
        with pytest.raises(NotBound):
            chat.send(chat.max, BOB, other, reply_to=("message", asked))
    assert chat.account(chat.send(chat.max, reply_to=("message", asked))) == chat.first


def test_what_was_got_before_a_conversation_was_given_back_is_answered_in_that_chat_only(
    chat: TwoBots,
) -> None:
    number = chat.conversation(chat.bob("one"))
    chat.order("handoff", chat.ann, conversation=number)
    asked = chat.bob("two")
    got = chat.envelope(asked, chat.ann)
    chat.write(lambda tx: envelope_marks.mark_read(tx, [got], chat.ann, chat.now))  # so it stays with her
    chat.order("handoff", NEX, conversation=number)
    with pytest.raises(NotBound):
        chat.send(chat.ann, EVE, reply_to=("message", asked))
    assert chat.conversation(chat.send(chat.ann, reply_to=("message", asked))) == number


# --- by which account --------------------------------------------------------------------


def test_who_has_the_chats_of_two_agents_with_one_person_writes_by_the_account_of_each(chat: TwoBots) -> None:
    to_nex, to_max = chat.bob("to nex"), chat.bob_to_max("to max")
    of_nex, of_max = chat.conversation(to_nex), chat.conversation(to_max)
    chat.order("handoff", chat.ann, conversation=of_max)
    unasked = chat.send(chat.ann, BOB)
    assert (chat.conversation(unasked), chat.account(unasked)) == (of_max, chat.second)
    chat.order("handoff", chat.ann, conversation=of_nex)
    for asked, number, account in ((to_nex, of_nex, chat.first), (to_max, of_max, chat.second)):
        sent = chat.send(chat.ann, reply_to=("message", asked))
        again = chat.send(chat.ann, BOB, reply_to=("message", sent))
        for one in (sent, again):
            assert (chat.conversation(one), chat.account(one)) == (number, account)
    free = chat.send(chat.ann, BOB)
    assert chat.account(free) == {of_nex: chat.first, of_max: chat.second}[chat.conversation(free)]


def test_an_agent_that_has_the_chat_of_another_one_still_answers_in_its_own_by_its_own_account(
    chat: TwoBots,
) -> None:
    own = chat.bob_to_max("to max")
    number = chat.conversation(chat.bob("to nex"))
    chat.order("handoff", chat.max, conversation=number)
    answer = chat.send(chat.max, reply_to=("message", own))
    assert (chat.conversation(answer), chat.account(answer)) == (chat.conversation(own), chat.second)
    other = chat.send(chat.max, reply_to=("message", chat.bob("more for nex")))
    assert (chat.conversation(other), chat.account(other)) == (number, chat.first)


@pytest.mark.parametrize("blocked", [False, True])
def test_without_the_account_of_the_agent_nobody_answers_by_the_account_of_another_one(
    chat: TwoBots, *, blocked: bool
) -> None:
    chat.bob("to nex")
    asked = chat.bob_to_max("to max")
    chat.order("handoff", chat.ann, conversation=chat.conversation(asked))
    if blocked:
        chat.execute("UPDATE contact SET state = 'blocked' WHERE binding = ?", chat.second)
    else:
        chat.unbind()
    ways: list[Any] = [{}, {"sees_all": True}]  # the second: the boss, in her name
    for how in ways:
        with pytest.raises(NotBound):
            chat.send(chat.ann, BOB, reply_to=("message", asked), **how)
        with pytest.raises(NotBound):
            chat.send(chat.ann, BOB, **how)


# --- the boss, on his phone --------------------------------------------------------------


def test_a_reply_on_the_phone_that_cannot_be_posted_is_told_there_and_holds_up_nothing(chat: TwoBots) -> None:
    his = chat.phone()
    chat.bob("to nex")
    number = chat.conversation(chat.bob_to_max("one"))
    chat.order("handoff", BOSS_ID, conversation=number)
    asked = chat.bob_to_max("two")
    chat.posted(asked, his, "f1")
    chat.unbind()
    accepted = chat.comes_in(**HIS, text="at noon", reply_to="f1", message="h1").accepted
    assert accepted is not None and chat.outcome() == "accepted"
    assert chat.conversation(accepted.message) == number
    assert chat.who_got(accepted.message) == {"folder:7": "failed"}
    [failed] = accepted.failed
    told = chat.told(BOSS_ID)[-1]
    assert f"No account may post to {BOB} now: your reply e{failed} was not posted." in told
    assert told.endswith('You wrote: "at noon"')
    notice = chat.execute("SELECT max(id) AS id FROM message")[0]["id"]
    assert chat.who_got(notice) == {str(BOSS.name): "done", "folder:777": "pending"}
    after = chat.comes_in(**HIS, text="for nex", message="h2").accepted
    assert after is not None and chat.who_got(after.message) == {"nex": "pending"}
    second = chat.bind()
    chat.write(lambda tx: envelopes.retry(tx, [failed], None, chat.now))
    assert chat.who_got(accepted.message) == {"folder:7": "pending"}
    assert chat.account(accepted.message) == second
