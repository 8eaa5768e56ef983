"""Mail that is moved by routes and handoffs: it is neither lost nor doubled, and keeps its id."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from hiboss.core.address import Address
from hiboss.core.envelope import Lane
from hiboss.core.errors import TooLate
from hiboss.store import agents, envelopes, forwarding, leases, overdue, run_cancels, run_settlement, users
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import violations
from hiboss.store.run_start import Turn
from tests.store.chat_scene import BOSS_ID, NEX, Scene
from tests.store.route_cast import Cast


class Walk(Cast):
    """The cast of routes, with what may happen to a turn and to the mail of a person."""

    def ends(self, turn: Turn, ends_as: str) -> None:
        """Let a run be told to end, and end so."""

        def write(tx: Tx) -> None:
            assert run_cancels.note(tx, turn.run, "somebody did it", BOSS_ID, ends_as)
            run_settlement.cancel(tx, turn, "cancelled", "somebody did it", self.now)

        self.write(write)

    def deletes_ann(self) -> None:
        row = users.get(self.connection, "ann")
        self.write(lambda tx: users.delete(tx, row, self.now))

    def retry(self, number: int) -> None:
        self.write(lambda tx: envelopes.retry(tx, [number], None, self.now))

    def real(self, message: int) -> list[tuple[int, str]]:
        """Return the envelopes of a message that are no copies: id and recipient."""
        rows = self.execute(
            """
            SELECT e.id, a.name FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? AND e.forwards IS NULL AND e.routed_from IS NOT e.recipient
            """,
            message,
        )
        return [(row["id"], row["name"]) for row in rows]


@pytest.fixture
def chat(scene: Scene) -> Walk:
    return Walk(scene)


# --- the envelope stays ------------------------------------------------------------------


@pytest.mark.parametrize("events", [("route", "handoff"), ("handoff", "route")])
def test_mail_stays_with_who_has_it_when_a_route_becomes_a_handoff_or_the_other_way(
    chat: Walk, events: tuple[str, str]
) -> None:
    asked = chat.bob("one")
    number, envelope = chat.conversation(asked), chat.envelope(asked, NEX)
    assert {chat.order(event, chat.max, conversation=number).outcome for event in events} == {"applied"}
    assert chat.who_got(asked) == {"max": "pending", "nex": "copy"}
    assert chat.real(asked) == [(envelope, "max")]
    assert chat.begin(chat.max).envelopes == (envelope,)


def test_a_conversation_that_goes_there_and_back_keeps_its_envelopes(chat: Walk) -> None:
    asked = chat.bob("one")
    number, envelope = chat.conversation(asked), chat.envelope(asked, NEX)
    for to, name in ((chat.max, "max"), (NEX, "nex"), (chat.max, "max"), (NEX, "nex")):
        assert chat.order("handoff", to, conversation=number).outcome == "applied"
        assert chat.real(asked) == [(envelope, name)]
        with pytest.raises(TooLate):  # it waits: a retry would double it
            chat.retry(envelope)
    assert chat.who_got(asked) == {"nex": "pending", "max": "copy"}
    assert chat.begin(NEX).envelopes == (envelope,)


def test_one_who_stands_in_for_two_agents_deals_with_a_message_once(chat: Walk) -> None:
    nex, kai = Address("agent", "nex"), Address("agent", "kai")
    asked = chat.send(BOSS_ID, nex, kai)
    number = chat.conversation(asked)
    assert {
        chat.order("handoff", chat.max, conversation=number, agent=agent).outcome for agent in (NEX, 3)
    } == {"applied"}
    assert chat.who_got(asked) == {"max": "pending", "kai": "copy", "nex": "copy"}
    for kai_copy in chat.execute(
        "SELECT id FROM envelope WHERE message = ? AND routed_from = recipient", asked
    ):
        with pytest.raises(TooLate):
            chat.retry(kai_copy["id"])


def test_mail_that_its_stand_in_gave_up_for_another_agent_stays_where_it_is(chat: Walk) -> None:
    asked = chat.send(BOSS_ID, Address("agent", "nex"), Address("agent", "kai"))
    number = chat.conversation(asked)
    chat.order("route", chat.max, conversation=number, agent=NEX)
    chat.ends(chat.begin(chat.max), run_cancels.CANCELLED)
    chat.order("route", chat.max, conversation=number, agent=3)
    assert chat.who_got(asked) == {"max": "cancelled", "kai": "pending"} and chat.begins(3) is not None


def test_a_forward_to_the_boss_belongs_to_what_is_in_his_box(chat: Walk) -> None:
    his = chat.execute("SELECT id FROM address WHERE name = 'folder:777'")[0]["id"]
    chat.write(lambda tx: forwarding.set_reach(tx, Lane(his, chat.binding), chat.now))
    asked = chat.bob("one")
    number = chat.conversation(asked)
    for to in (BOSS_ID, NEX, BOSS_ID, chat.max):
        assert chat.order("handoff", to, conversation=number).outcome == "applied"
        assert violations(chat.connection) == []
    assert chat.who_got(asked) == {"max": "pending", "nex": "copy", "boss": "copy", "folder:777": "pending"}


# --- what a person has neither read nor answered -----------------------------------------


def _of_ann(chat: Walk) -> dict[str, int]:
    first = chat.bob("waited")
    chat.order("handoff", chat.ann, conversation=chat.conversation(first))
    asked = {"waited": first, **{text: chat.bob(text) for text in ("read", "answered", "unseen")}}
    chat.reads(chat.ann, asked["read"])
    chat.send(chat.ann, reply_to=("message", asked["answered"]), text="yes")
    return asked


@pytest.mark.parametrize("way", ["handoff", "route", "deleted"])
def test_what_a_person_has_neither_read_nor_answered_gets_a_turn_of_the_agent(chat: Walk, way: str) -> None:
    asked = _of_ann(chat)
    if way == "deleted":
        chat.deletes_ann()
    else:
        assert chat.order(way, NEX, conversation=chat.conversation(asked["read"])).outcome == "applied"
    for text, number in asked.items():
        back = {"nex": "pending", "ann": "copy"} if text in ("waited", "unseen") else None
        assert chat.who_got(number) == (back or {"ann": "done", "nex": "copy"}), text
    assert len([text for text in chat.told(BOSS_ID) if "neither read nor answered 2 envelopes" in text]) == 1
    turn = chat.begin(NEX)
    assert set(turn.envelopes) == {chat.envelope(asked[text], NEX) for text in ("waited", "unseen")}


def test_what_a_person_has_not_read_goes_on_with_the_conversation(chat: Walk) -> None:
    asked = _of_ann(chat)
    chat.order("handoff", chat.max, conversation=chat.conversation(asked["read"]))
    assert chat.who_got(asked["unseen"]) == {"max": "pending", "nex": "copy", "ann": "copy"}
    assert chat.who_got(asked["read"]) == {"ann": "done", "nex": "copy"}


# --- what is not finished when a conversation is given back ------------------------------


def test_what_the_destination_does_not_finish_follows_the_conversation_back(chat: Walk) -> None:
    asked = chat.bob("one")
    number, envelope = chat.conversation(asked), chat.envelope(asked, NEX)
    for ends_as in (run_cancels.REQUEUED, run_cancels.CANCELLED):
        chat.order("handoff", chat.max, conversation=number)
        turn = chat.begin(chat.max)
        chat.order("handoff", NEX, conversation=number)
        chat.ends(turn, ends_as)
        if ends_as == run_cancels.CANCELLED:
            chat.retry(envelope)
        assert chat.begins(chat.max) is None and chat.real(asked) == [(envelope, "nex")]
    assert chat.begin(NEX).envelopes == (envelope,)


def test_what_was_claimed_follows_the_conversation_back_when_its_lease_ends(chat: Walk) -> None:
    asked = chat.bob("one")
    number = chat.conversation(asked)
    chat.order("route", chat.max, conversation=number)
    chat.write(lambda tx: leases.claim(tx, chat.max, 1, chat.now + 5_000, chat.now))
    chat.order("route", NEX, conversation=number)
    assert NEX in chat.write(lambda tx: overdue.wake(tx, chat.now + 60_000)).recipients
    assert chat.who_got(asked) == {"nex": "pending"}


def test_what_was_routed_alone_stays_with_its_recipient_when_it_is_due_again(chat: Walk) -> None:
    one, two = chat.bob("one"), chat.bob("two")
    number = chat.conversation(one)
    chat.order("route", chat.max, conversation=number)
    chat.order("route", NEX, conversation=number)
    chat.order("route", chat.max, envelope=chat.envelope(one, NEX))
    chat.order("route", chat.max, agent=NEX)
    chat.ends(chat.begin(chat.max), run_cancels.REQUEUED)
    assert chat.begins(chat.max) is not None and chat.who_got(one) == chat.who_got(two) == {"max": "pending"}


# --- whatever happens --------------------------------------------------------------------

STEPS = 30


class Random:
    """A walk by the dice: somebody writes, orders, works, retries. Every message is followed."""

    def __init__(self, chat: Walk, seed: int) -> None:
        self.chat, self.dice = chat, random.Random(seed)
        zoe = chat.write(lambda tx: agents.register(tx, "zoe", {}, chat.now))
        chat.execute("UPDATE agent SET mode = 'run', provider = 'demo' WHERE address = ?", zoe)
        self.agents = (NEX, chat.max, zoe)
        first = chat.bob("0")
        self.conversation, self.envelope_of = chat.conversation(first), {first: chat.envelope(first, NEX)}
        self.working: dict[int, Turn] = {}
        self.completed: list[int] = []

    def step(self) -> None:
        steps = [self.sends, self.moves, self.moves, self.moves_some, self.works, self.works, self.retries]
        self.dice.choice(steps)()

    def sends(self) -> None:
        message = self.chat.bob(f"{len(self.envelope_of)}")
        self.envelope_of[message] = self.chat.real(message)[0][0]

    def moves(self) -> None:
        event = self.dice.choice(["route", "handoff"])
        to = self.dice.choice(self.agents if event == "route" else (*self.agents, self.chat.ann))
        self.chat.order(event, to, conversation=self.conversation, agent=NEX)

    def moves_some(self) -> None:
        envelope, one, to = (
            self.dice.choice([*of]) for of in (self.envelope_of.values(), *[self.agents] * 2)
        )
        which = {"agent": one} if self.dice.random() < 0.5 else {"envelope": envelope}
        self.chat.order("route", to, **which)

    def works(self) -> None:
        agent = self.dice.choice(self.agents)
        if agent in self.working:
            self.ends(agent, self.dice.choice(["done", run_cancels.CANCELLED, run_cancels.REQUEUED]))
        else:
            self.begins(agent)

    def begins(self, agent: int) -> None:
        turn = self.chat.begins(agent)
        if turn is not None:
            self.working[agent] = turn

    def ends(self, agent: int, how: str) -> None:
        turn = self.working.pop(agent)
        if how == "done":
            self.completed.extend(turn.envelopes)
            self.chat.complete(turn, "here is an answer")
        else:
            self.chat.ends(turn, how)

    def retries(self) -> None:
        for number in self.envelope_of.values():
            with suppress(TooLate):
                self.chat.retry(number)

    def comes_to_its_end(self) -> None:
        """Give the conversation back, and let the agents do all that is left."""
        for agent in [*self.working]:
            self.ends(agent, run_cancels.REQUEUED)
        self.chat.order("handoff", NEX, conversation=self.conversation)
        self.retries()
        for _ in range(2 * len(self.envelope_of)):  # each message may go home first, and then have its turn
            for agent in self.agents:
                self.begins(agent)
            for agent in [*self.working]:
                self.ends(agent, "done")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_message_is_settled_once_whatever_way_it_takes(chat: Walk, seed: int) -> None:
    walk = Random(chat, seed)
    for _ in range(STEPS):
        walk.step()
        assert violations(chat.connection) == []
        for message, envelope in walk.envelope_of.items():
            assert [one for one, _ in chat.real(message)] == [envelope]
    walk.comes_to_its_end()
    for message, envelope in walk.envelope_of.items():
        assert walk.completed.count(envelope) == 1, message
        assert chat.execute("SELECT status FROM envelope WHERE id = ?", envelope) == [{"status": 1}]
