"""Routes in the store: what moves, who gets what is sent while they hold, and what is refused."""

from __future__ import annotations

from hiboss.core.address import BOSS, Address
from hiboss.core.events import EnvelopeRouted
from hiboss.store import agents, leases, overdue
from tests.store.chat_scene import BOSS_ID, KAI, NEX
from tests.store.route_cast import Cast

# --- one envelope ------------------------------------------------------------------------


def test_a_routed_envelope_is_answered_by_the_other_agent_where_it_was_asked(chat: Cast) -> None:
    asked = chat.bob("when is lunch")
    assert chat.order("route", chat.max, envelope=chat.envelope(asked, NEX)).outcome == "applied"
    assert chat.who_got(asked) == {"max": "pending"} and chat.begins(NEX) is None
    answer = chat.complete(chat.begin(chat.max), "at noon")
    assert answer is not None and chat.who_got(answer) == {"folder:7": "pending"}
    assert chat.conversation(answer) == chat.conversation(asked)
    assert chat.execute("SELECT binding FROM envelope WHERE message = ?", answer) == [
        {"binding": chat.binding}
    ]


def test_only_that_envelope_is_routed_and_later_mail_is_not(chat: Cast) -> None:
    chat.order("route", chat.max, envelope=chat.envelope(chat.bob("first"), NEX))
    assert chat.who_got(chat.bob("second")) == {"nex": "pending"}


def test_an_envelope_that_comes_home_is_routed_no_more(chat: Cast) -> None:
    number = chat.envelope(chat.bob("hello"), NEX)
    chat.order("route", chat.max, envelope=number)
    chat.order("route", KAI, envelope=number)
    assert chat.execute("SELECT recipient, routed_from FROM envelope WHERE id = ?", number) == [
        {"recipient": KAI, "routed_from": NEX}
    ]
    chat.facts()
    chat.order("route", NEX, envelope=number)
    assert chat.execute("SELECT recipient, routed_from FROM envelope WHERE id = ?", number) == [
        {"recipient": NEX, "routed_from": None}
    ]
    routed = [one for one in chat.facts() if isinstance(one, EnvelopeRouted)]
    assert [(one.envelope, one.routed_from) for one in routed] == [(number, KAI)]


def test_what_failed_for_one_agent_has_not_failed_for_the_other(chat: Cast) -> None:
    asked = chat.bob("hello")
    for _ in range(4):
        chat.fail(chat.begin(NEX))
    chat.order("route", chat.max, envelope=chat.envelope(asked, NEX))
    for _ in range(4):
        chat.fail(chat.begin(chat.max))
    assert chat.who_got(asked) == {"max": "pending"}
    chat.fail(chat.begin(chat.max))
    assert chat.who_got(asked) == {"max": "failed"}


def test_what_is_settled_or_in_hand_is_too_late_to_be_routed(chat: Cast) -> None:
    number = chat.envelope(chat.bob("hello"), NEX)
    turn = chat.begin(NEX)
    held = chat.order("route", chat.max, envelope=number)
    assert held.outcome == "too-late"
    assert held.why == (
        f"e{number} is in hand: r{turn.run} works on it. To have it back: hiboss control cancel --run "
        f"r{turn.run} --requeue; or preempt it for another envelope"
    )
    chat.complete(turn, "yes")
    assert chat.order("route", chat.max, envelope=number)[:2] == ("too-late", f"e{number} is done")
    later = chat.envelope(chat.bob("more"), NEX)
    chat.write(lambda tx: leases.claim(tx, NEX, 1, chat.now + 60_000, chat.now))
    claimed = chat.order("route", chat.max, envelope=later)
    assert claimed[:2] == ("too-late", f"a session of agent:nex has claimed e{later}")


def test_mail_is_not_routed_to_who_has_it_wrote_it_or_cannot_get_it(chat: Cast) -> None:
    number = chat.envelope(chat.send(chat.max, Address("agent", "nex"), Address("agent", "kai")), NEX)
    refused = {
        NEX: f"agent:nex has e{number} already",
        chat.max: f"agent:max wrote e{number} itself",
        KAI: "agent:kai has got the same message itself",
        BOSS_ID: "route gives mail to an agent; to give a conversation to user:boss: handoff",
    }
    assert {to: chat.order("route", to, envelope=number)[:2] for to in refused} == {
        to: ("refused", why) for to, why in refused.items()
    }
    chat.write(lambda tx: agents.delete(tx, "max", chat.now))
    assert chat.order("route", chat.max, envelope=number)[:2] == ("refused", "agent:max was deleted")
    mine = chat.envelope(chat.send(NEX, BOSS), BOSS_ID)
    assert chat.order("route", KAI, envelope=mine)[:2] == (
        "refused",
        f"e{mine} is for user:boss; only mail for an agent can be routed",
    )


# --- all of an agent ---------------------------------------------------------------------


def test_all_that_waits_for_an_agent_moves_in_its_order_also_what_is_deferred(chat: Cast) -> None:
    begun = chat.bob("begun")
    turn = chat.begin(NEX)
    waits = [chat.bob("one"), chat.send(KAI, Address("agent", "nex"))]
    late = chat.send(KAI, Address("agent", "nex"), deliver_at=chat.now + 60_000)
    own = chat.send(chat.max, Address("agent", "nex"))
    assert chat.order("route", chat.max, agent=NEX)[:2] == (
        "applied",
        f"moved: 3; 1 stay: agent:max wrote them, or has got them itself; r{turn.run} keeps what it has in hand",
    )
    assert [chat.who_got(one) for one in (begun, *waits, late, own)] == [
        {"nex": "pending"},
        *[{"max": "pending"}] * 3,
        {"nex": "pending"},
    ]
    assert chat.due(chat.max) == [chat.envelope(one, chat.max) for one in waits]
    chat.write(lambda tx: overdue.wake(tx, chat.now + 120_000))
    assert chat.due(chat.max)[-1] == chat.envelope(late, chat.max)


def test_an_agent_for_which_nothing_waits_has_nothing_to_route(chat: Cast) -> None:
    assert chat.order("route", chat.max, agent=NEX)[:2] == ("too-late", "nothing waits there that can move")
    assert chat.order("route", NEX, agent=NEX)[:2] == ("refused", "agent:nex has its mail already")


def test_thousands_move_in_one_transaction(chat: Cast) -> None:
    chat.execute("BEGIN")
    for number in range(2_000):
        chat.send(KAI, Address("agent", "nex"), text=str(number))
    assert chat.order("route", chat.max, agent=NEX).why == "moved: 2000"
    assert len(chat.due(chat.max)) == 100 and chat.due(NEX) == []


# --- a conversation ----------------------------------------------------------------------


def test_only_that_conversation_is_routed(chat: Cast) -> None:
    chat.order("route", chat.max, conversation=chat.conversation(chat.bob("one")))
    assert chat.who_got(chat.send(KAI, Address("agent", "nex"))) == {"nex": "pending"}
    assert chat.who_got(chat.send(chat.max, Address("agent", "nex"))) == {"nex": "pending"}


def test_the_replaced_agent_gets_neither_the_answer_nor_a_copy_of_a_route(chat: Cast) -> None:
    chat.order("route", chat.max, conversation=chat.conversation(chat.bob("one")))
    answer = chat.complete(chat.begin(chat.max), "hello Bob")
    assert answer is not None and chat.who_got(answer) == {"folder:7": "pending"}


def test_routes_that_would_make_a_chain_or_a_circle_are_refused(chat: Cast) -> None:
    number = chat.conversation(chat.bob("one"))
    chat.order("route", chat.max, conversation=number)
    for event in ("route", "handoff"):
        chained = chat.order(event, KAI, conversation=number, agent=chat.max)
        assert chained.why == f"the agent that was named is no party of c{number}, so no mail there is for it"
    both = chat.conversation(chat.send(BOSS_ID, Address("agent", "nex"), Address("agent", "kai")))
    circle = chat.order("route", KAI, conversation=both, agent=NEX)
    assert circle[:2] == ("refused", f"agent:kai is a party of c{both} itself")
    unnamed = chat.order("route", chat.max, conversation=both)
    assert unnamed.why == f"c{both} has several agents (agent:nex, agent:kai): name the one with --agent"
    mine = chat.conversation(chat.send(BOSS_ID, Address("agent", "nex")))
    assert chat.order("handoff", BOSS_ID, conversation=mine).why == f"user:boss is a party of c{mine} itself"
    again = chat.order("route", chat.max, conversation=number)
    assert again.why == f"agent:max gets the mail of agent:nex in c{number} already"
    assert chat.order("route", NEX, conversation=mine).why == f"agent:nex gets its mail of c{mine} itself"


def test_of_several_agents_of_a_conversation_one_is_replaced_and_the_others_are_not(chat: Cast) -> None:
    nex, kai = Address("agent", "nex"), Address("agent", "kai")
    number = chat.conversation(chat.send(BOSS_ID, nex, kai))
    assert chat.order("handoff", chat.max, conversation=number, agent=NEX).outcome == "applied"
    assert chat.who_got(chat.send(BOSS_ID, nex, kai)) == {"kai": "pending", "max": "pending", "nex": "copy"}
    answer = chat.complete(chat.begin(chat.max), "here I am")
    assert answer is not None and chat.who_got(answer) == {"boss": "done", "kai": "done", "nex": "copy"}
    of_kai = chat.complete(chat.begin(KAI), "me too")
    assert of_kai is not None and chat.who_got(of_kai) == {"boss": "done", "max": "done", "nex": "copy"}
    assert chat.order("handoff", chat.max, conversation=number, agent=KAI).outcome == "applied"
    assert chat.who_got(chat.send(BOSS_ID, nex, kai)) == {"max": "pending", "nex": "copy", "kai": "copy"}


def test_of_two_routes_at_once_the_last_one_holds_with_what_waits(chat: Cast) -> None:
    asked = chat.bob("one")
    number = chat.conversation(asked)
    chat.order("route", chat.max, conversation=number)
    chat.order("route", KAI, conversation=number)
    assert chat.who_got(asked) == {"kai": "pending"}
    chat.order("handoff", chat.ann, conversation=number)
    assert chat.who_got(asked) == {"ann": "done", "nex": "copy"}
    assert chat.told(KAI) == [
        f"conversation c{number} (channel:folder:7 Bob) is not with you any more: user:ann has it."
    ]


def test_what_is_in_hand_when_a_conversation_goes_is_answered_and_what_it_did_not_end_follows(
    chat: Cast,
) -> None:
    number = chat.conversation(chat.bob("one"))
    turn = chat.begin(NEX)
    given = chat.order("handoff", chat.max, conversation=number)
    assert given.why == f"r{turn.run} may end what it works on there; its answer still goes out"
    answer = chat.complete(turn, "nex was quick")
    assert answer is not None and chat.who_got(answer) == {"folder:7": "pending", "max": "copy"}
    chat.order("handoff", NEX, conversation=number)
    again = chat.bob("two")
    failing = chat.begin(NEX)
    chat.order("handoff", chat.max, conversation=number)
    chat.fail(failing)
    assert chat.who_got(again) == {"nex": "pending"}
    turn = chat.begin(NEX)
    assert "Write a short summary for agent:max" in chat.shown(turn)
    assert chat.who_got(again) == {"max": "pending", "nex": "copy"}


def test_deferred_mail_follows_the_route_that_holds_when_it_arrives(chat: Cast) -> None:
    nex = Address("agent", "nex")
    number = chat.conversation(chat.send(KAI, nex))
    before = chat.send(KAI, nex, deliver_at=chat.now + 60_000)
    chat.order("handoff", chat.max, conversation=number, agent=NEX)
    during = chat.send(KAI, nex, deliver_at=chat.now + 60_000)
    own = chat.send(NEX, Address("agent", "kai"), deliver_at=chat.now + 60_000)
    assert chat.who_got(before) == chat.who_got(during) == {"nex": "pending"}
    chat.write(lambda tx: overdue.wake(tx, chat.now + 120_000))
    assert chat.who_got(before) == chat.who_got(during) == {"max": "pending", "nex": "copy"}
    assert chat.who_got(own) == {"kai": "pending", "max": "copy"}
    later = chat.send(KAI, nex, deliver_at=chat.now + 240_000)
    chat.order("handoff", NEX, conversation=number, agent=NEX)
    chat.write(lambda tx: overdue.wake(tx, chat.now + 500_000))
    assert chat.who_got(later) == {"nex": "pending"}


def test_what_was_claimed_when_its_conversation_went_follows_when_it_is_released(chat: Cast) -> None:
    asked = chat.bob("one")
    number = chat.conversation(asked)
    [taken], _ = chat.write(lambda tx: leases.claim(tx, NEX, 1, chat.now + 60_000, chat.now))
    chat.order("handoff", chat.max, conversation=number)
    assert chat.who_got(asked) == {"nex": "pending"}
    chat.write(lambda tx: leases.release(tx, leases.Releasing([taken], NEX, chat.now)))
    found, claim = chat.write(lambda tx: leases.claim(tx, NEX, 10, chat.now + 60_000, chat.now))
    texts = [
        chat.text_of(row["message"])
        for row in chat.execute("SELECT message FROM envelope WHERE claim = ?", claim)
    ]
    assert taken not in found and "one" not in texts
    assert chat.who_got(asked) == {"max": "pending", "nex": "copy"}
