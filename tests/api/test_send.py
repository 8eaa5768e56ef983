"""Sending: who gets it, in which conversation and thread it lies, and in whose name it is said."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import code
from tests.support.parties import Party, agent, agents, at_once, boss, stored


def request(method: str, id_: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "id": id_, "params": params}


# --- recipients ----------------------------------------------------------------------


def test_a_message_reaches_its_recipient_and_nobody_else(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob, text="are you there?")
    (got,) = bob.list()
    assert [got["id"]] == sent["ids"] and got["message"] == sent["message"]
    assert (got["from"], got["to"], got["text"]) == (ada.address, bob.address, "are you there?")
    assert got["status"] == "pending" and got["box"] == "inbox" and got["read_at"] is None
    assert sent["duplicate"] is False and sent["deliver_at"] is None
    assert eve.list() == [] and ada.list() == []
    assert eve.refusal("envelope.get", id=got["id"]) == "not_found"


def test_several_recipients_get_one_message_and_an_envelope_each_in_the_order_given(
    daemon: RunningDaemon,
) -> None:
    ada, *others = agents(daemon, 6)
    sent = ada.send(*reversed(others), text="all of you")
    numbers = [int(number[1:]) for number in sent["ids"]]
    assert numbers == sorted(numbers) and len(set(numbers)) == 5
    got = [ada.get(number) for number in sent["ids"]]
    assert [one["to"] for one in got] == [one.address for one in reversed(others)]
    assert {one["message"] for one in got} == {sent["message"]} and len({one["seq"] for one in got}) == 1
    assert ada.call("envelope.get", id=sent["ids"][0])["recipients"] == [
        one.address for one in reversed(others)
    ]
    for other in others:
        assert len(other.list()) == 1


def test_to_may_be_one_address_or_a_list(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.call("envelope.send", to=bob.address, text="one")
    ada.call("envelope.send", to=[bob.address], text="listed")
    assert [one["text"] for one in bob.list()] == ["listed", "one"]


def test_a_recipient_named_twice_gets_one_envelope(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob, eve, bob, bob.address.upper().replace("AGENT:", "agent:"))
    assert [ada.get(number)["to"] for number in sent["ids"]] == [bob.address, eve.address]
    assert len(bob.list()) == 1


def test_one_can_write_to_oneself(daemon: RunningDaemon) -> None:
    (ada,) = agents(daemon, 1)
    sent = ada.send(ada, text="note to self")
    again = ada.send(ada, text="another")
    assert ada.ids() == [*again["ids"], *sent["ids"]] == ada.ids(box="outbox")
    assert again["conversation"] == sent["conversation"]
    assert [one["seq"] for one in ada.list()] == [2, 1]


@pytest.mark.parametrize(
    ("stranger", "expected"),
    [
        ("agent:nobody-here", "unknown_recipient"),
        ("user:somebody", "unknown_recipient"),
        ("group:core-team", "invalid_params"),  # a group, or others: not both
        ("channel:telegram:12345", "not_bound"),
        ("nobody-here", "unknown_recipient"),
        ("two words", "bad_address"),
        ("agent:", "bad_address"),
        ("", "bad_address"),
        ("agent:two words", "bad_address"),
        ("robot:nex", "bad_address"),
    ],
)
def test_one_bad_recipient_among_good_ones_stores_nothing(
    daemon: RunningDaemon, stranger: str, expected: str
) -> None:
    ada, bob, eve = agents(daemon, 3)
    before = stored(daemon)
    assert (
        ada.refusal("envelope.send", to=[bob.address, stranger, eve.address], text="x", key="k") == expected
    )
    assert stored(daemon) == before
    assert bob.list() == []


def test_an_unknown_recipient_is_told_with_the_nearest_name(daemon: RunningDaemon) -> None:
    ada, _ = agents(daemon, 1)[0], agent(daemon, "code-review")
    with pytest.raises(Answered, match=r"did you mean agent:code-review\?"):
        ada.send("agent:code-reveiw")


def test_nobody_to_send_to_is_refused(daemon: RunningDaemon) -> None:
    (ada,) = agents(daemon, 1)
    assert ada.refusal("envelope.send", text="x") == "no_recipient"
    assert ada.refusal("envelope.send", text="x", to=[]) == "no_recipient"


# --- conversations -------------------------------------------------------------------


def test_two_share_one_conversation_whoever_writes_and_its_sequence_has_no_gap(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = [ada.send(bob), bob.send(ada), ada.send(bob)]
    assert len({one["conversation"] for one in sent}) == 1
    other = ada.send(eve)
    assert other["conversation"] != sent[0]["conversation"]
    assert [ada.get(one["ids"][0])["seq"] for one in [*sent, other]] == [1, 2, 3, 1]


def test_the_same_set_of_three_shares_a_conversation_and_any_other_set_has_another(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve, dan = agents(daemon, 4)
    first, turned, by_another = ada.send(bob, eve), ada.send(eve, bob), eve.send(ada, bob)
    assert first["conversation"] == turned["conversation"] == by_another["conversation"]
    others = [ada.send(bob), ada.send(bob, eve, dan), ada.send(bob, dan)]
    assert len({first["conversation"], *(one["conversation"] for one in others)}) == 4
    assert [ada.get(first["ids"][0])["seq"], eve.get(by_another["ids"][0])["seq"]] == [1, 3]
    with daemon.database() as database:
        kinds = dict(database.execute("SELECT id, kind FROM conversations").fetchall())
    assert kinds[first["conversation"]] == "adhoc" and kinds[others[0]["conversation"]] == "private"


def test_a_copy_to_oneself_does_not_make_a_private_conversation_another(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    assert ada.send(bob)["conversation"] == ada.send(bob, ada)["conversation"]
    assert len(ada.list()) == 1


def test_a_refused_send_leaves_no_gap_in_the_sequence(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.send(bob)
    assert (
        ada.refusal("envelope.send", to=[bob.address, "agent:nobody-here"], text="x") == "unknown_recipient"
    )
    assert ada.refusal("envelope.send", to=bob.address, text="x", reply_to="m999999") == "not_found"
    assert ada.get(ada.tell(bob))["seq"] == 2


def test_sequences_stay_gapless_when_many_write_at_once(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    at_once([lambda: ada.send(bob), lambda: bob.send(ada)] * 16)
    seqs = [one["seq"] for me in (ada, bob) for one in me.list(page_size=100)]
    assert sorted(seqs) == list(range(1, 33))


def test_refused_sends_leave_no_trace_in_those_written_together_with_them(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    place = f"channel:telegram:{ada.name}"
    boss(daemon).send(ada, from_=place)
    before = stored(daemon)
    to = {
        0: [bob.address, "agent:nobody-here"],  # refused before anything is written
        1: [bob.address, place],  # refused when half of it is written
    }
    requests = [
        request("envelope.send", n, token=ada.token, to=to.get(n % 5, [bob.address]), text=f"{n}")
        for n in range(40)
    ]
    found = daemon.exchange(*requests, answers=40)
    codes = [code(one) for one in found]
    assert codes == ["unknown_recipient", "not_bound", "ok", "ok", "ok"] * 8
    assert [one["seq"] for one in bob.list(page_size=100, oldest_first=True)] == list(range(1, 25))
    grown = [now - then for now, then in zip(stored(daemon), before, strict=True)]
    assert grown == [24, 24, 1, 2, 0, 0]  # messages, envelopes, a conversation of two


# --- threads -------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["envelope", "message", "bare number"])
def test_a_reply_lies_in_the_thread_and_goes_to_who_wrote(daemon: RunningDaemon, by: str) -> None:
    ada, bob = agents(daemon, 2)
    sent = ada.send(bob, text="question")
    target = {"envelope": sent["ids"][0], "message": sent["message"], "bare number": int(sent["ids"][0][1:])}[
        by
    ]
    answer = bob.send(text="answer", reply_to=target)
    (got,) = ada.list()
    assert (got["text"], got["from"], got["reply_to"]) == ("answer", bob.address, sent["message"])
    assert got["thread"] == answer["thread"] == sent["thread"] == "t" + sent["message"][1:]
    assert got["conversation"] == sent["conversation"] and got["seq"] == 2


def test_a_reply_to_a_reply_stays_in_the_first_thread(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    first = ada.send(bob)
    second = bob.send(reply_to=first["ids"][0])
    third = ada.send(reply_to=second["message"], text="third")
    assert third["thread"] == first["thread"]
    got = bob.get(third["ids"][0])
    assert got["reply_to"] == second["message"] and got["to"] == bob.address


def test_a_reply_may_go_to_others_than_the_writer(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    first = ada.send(bob)
    sent = bob.send(eve, reply_to=first["ids"][0])
    assert sent["thread"] == first["thread"] and sent["conversation"] != first["conversation"]
    assert eve.ids() == sent["ids"] and ada.list() == []


@pytest.mark.parametrize("with_to", [True, False])
def test_a_reply_to_a_foreign_message_is_refused(daemon: RunningDaemon, with_to: bool) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = ada.send(bob)
    to = {"to": ada.address} if with_to else {}
    before = stored(daemon)
    for foreign in (sent["ids"][0], sent["message"], "e999999", "m999999"):
        assert eve.refusal("envelope.send", text="x", reply_to=foreign, **to) == "not_found"
    assert stored(daemon) == before


def test_what_has_not_arrived_cannot_be_replied_to_by_its_recipient(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    sent = ada.send(bob, deliver_at="+2h")
    assert bob.refusal("envelope.send", text="x", reply_to=sent["ids"][0]) == "not_found"
    assert ada.send(bob, reply_to=sent["ids"][0])["thread"] == sent["thread"]


@pytest.mark.parametrize(
    "id_", ["t1", "c1", "x1", "e", "", "e0", "e-1", -1, 0, "e99999999999999999999", "e1 e2", "1.5"]
)
def test_a_reply_to_something_that_is_no_id_is_refused(daemon: RunningDaemon, id_: Any) -> None:
    (ada,) = agents(daemon, 1)
    assert ada.refusal("envelope.send", text="x", reply_to=id_) == "bad_id"


def test_a_reply_never_reaches_a_namesake_who_came_later(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    number = ada.tell(bob)
    boss(daemon).call("agent.delete", name=ada.name)
    assert bob.refusal("envelope.send", text="x", reply_to=number) == "unknown_recipient"
    namesake = agent(daemon, ada.name)
    assert bob.refusal("envelope.send", text="x", reply_to=number) == "unknown_recipient"
    assert namesake.list() == []


def test_a_namesake_cannot_reply_to_its_predecessors_mail(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    received, written = ada.tell(bob), bob.tell(ada)
    boss(daemon).call("agent.delete", name=bob.name)
    namesake = agent(daemon, bob.name)
    for number in (received, written):
        assert namesake.refusal("envelope.send", to=ada.address, text="x", reply_to=number) == "not_found"
        assert namesake.refusal("envelope.get", id=number) == "not_found"


# --- in whose name -------------------------------------------------------------------


def test_the_boss_sends_for_others_and_without_a_name_as_user_boss(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief = boss(daemon)
    chief.send(bob)
    chief.send(bob, from_="user:boss")
    chief.send(bob, from_=ada.address, from_boss=True, from_name="Ada Lovelace")
    assert [(one["from"], one["from_boss"], one["from_name"]) for one in bob.list()] == [
        (ada.address, True, "Ada Lovelace"),
        ("user:boss", True, "Ada"),
        ("user:boss", True, "Ada"),
    ]
    assert len(ada.ids(box="outbox")) == 1


@pytest.mark.parametrize(
    "claim",
    [{"from_": "agent:nex"}, {"from_boss": True}, {"from_name": "The Boss"}],
    ids=lambda one: next(iter(one)),
)
def test_an_agent_may_speak_in_its_own_name_only(daemon: RunningDaemon, claim: dict[str, Any]) -> None:
    ada, bob = agents(daemon, 2)
    assert ada.refusal("envelope.send", to=bob.address, text="x", **claim) == "boss_only"
    assert bob.list() == []


def test_an_agent_may_name_itself(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.send(bob, from_=ada.address)
    assert [(one["from"], one["from_boss"]) for one in bob.list()] == [(ada.address, False)]


def test_an_agent_may_not_even_claim_an_empty_name(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    assert ada.refusal("envelope.send", to=bob.address, text="x", from_name="") == "boss_only"
    assert ada.refusal("envelope.send", to=bob.address, text="x", from_="") == "bad_address"


def test_the_boss_may_speak_for_a_channel(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief, place = boss(daemon), "channel:telegram:-100/7"
    first = chief.send(ada, from_=place, from_name="Grace")
    again = chief.send(ada, from_=place)
    assert first["conversation"] == again["conversation"]
    assert [one["from"] for one in ada.list()] == [place, place]
    assert ada.refusal("envelope.send", text="x", reply_to=first["ids"][0]) == "not_bound"
    assert bob.refusal("envelope.send", text="x", to=place) == "not_bound"


@pytest.mark.parametrize("sender", ["agent:nobody-here", "user:somebody", "group:core-team"])
def test_nothing_can_be_sent_in_the_name_of_nobody(daemon: RunningDaemon, sender: str) -> None:
    (bob,) = agents(daemon, 1)
    assert boss(daemon).refusal("envelope.send", from_=sender, to=bob.address, text="x") == "unknown_sender"


def test_the_boss_may_reply_to_anything(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    sent = ada.send(bob)
    answer = boss(daemon).send(from_="user:boss", reply_to=sent["ids"][0], text="from above")
    assert answer["thread"] == sent["thread"] and [one["text"] for one in ada.list()] == ["from above"]


def test_a_deleted_agents_last_words_are_not_put_into_its_namesakes_mouth(daemon: RunningDaemon) -> None:
    chief = boss(daemon)
    ada, bob = agents(daemon, 2)
    ada.call("agent.self")  # its token is known to the daemon
    (answers,) = daemon.exchange(
        [
            request("agent.delete", 1, token=chief.token, name=ada.name),
            request("agent.register", 2, token=chief.token, name=ada.name),
            request("envelope.send", 3, token=ada.token, to=bob.address, text="ghost"),
        ],
        answers=1,
    )
    namesake = Party(daemon, ada.address, answers[1]["result"]["token"])
    assert namesake.list(box="outbox") == []


def test_mail_to_the_boss_is_done_on_arrival(daemon: RunningDaemon) -> None:
    (ada,) = agents(daemon, 1)
    number = ada.tell(boss(daemon), text="report")
    got = boss(daemon).get(number)
    assert got["status"] == "done" and got["done_at"] and got["read_at"] is None and got["acked_at"] is None
    assert number in boss(daemon).ids(unread=True)


def test_a_reply_to_ones_own_message_goes_on_to_those_it_went_to(daemon: RunningDaemon) -> None:
    nex = daemon.token("nex")
    names = [f"own-{n}" for n in "ab"]
    for name in names:
        daemon.register(name)
    first = daemon.call("envelope.send", token=nex, to=[f"agent:{n}" for n in names], text="one")
    more = daemon.call("envelope.send", token=nex, reply_to=first["ids"][0], text="and another thing")
    assert more["conversation"] == first["conversation"]
    got = daemon.call("envelope.get", token=nex, id=more["ids"][0])
    assert got["recipients"] == [f"agent:{n}" for n in names]
