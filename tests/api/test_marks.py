"""What recipient and sender do with an envelope: read, ack, archive, trash, restore, cancel."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, line
from tests.support.parties import Party, agents, at_once, boss, flat

OWN = ["read", "ack", "archive", "trash", "restore"]


def mark(party: Party, verb: str, *ids: Any, **params: Any) -> int:
    """How many this changed."""
    return int(party.call(f"envelope.{verb}", ids=list(ids), **params)["changed"])


# --- each verb -----------------------------------------------------------------------


def test_reading_shows_and_marks_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first, second = ada.tell(bob, text="one"), ada.tell(bob, text="two")
    answer = bob.call("envelope.read", ids=[second, first])
    assert answer["changed"] == 2 and [one["text"] for one in answer["envelopes"]] == ["two", "one"]
    seen = bob.get(first)
    assert seen["read_at"] and answer["envelopes"][1] == seen
    assert seen["status"] == "pending" and seen["acked_at"] is None
    assert mark(bob, "read", first) == 0 and bob.get(first) == seen


def test_acknowledging_makes_done_and_read(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert mark(bob, "ack", number) == 1
    got = bob.get(number)
    assert got["status"] == "done" and got["acked_at"] == got["done_at"] == got["read_at"]
    assert mark(bob, "ack", number) == 0 and bob.get(number) == got
    assert bob.ids() == [number] and bob.ids(status="pending") == []


def test_acknowledging_keeps_the_time_of_reading(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    mark(bob, "read", number)
    read_at = bob.get(number)["read_at"]
    mark(bob, "ack", number)
    assert bob.get(number)["read_at"] == read_at


@pytest.mark.parametrize(("verb", "box"), [("archive", "archived"), ("trash", "trash")])
def test_putting_a_pending_envelope_away_settles_it(two: tuple[Party, Party], verb: str, box: str) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert mark(bob, verb, number) == 1
    got = bob.get(number)
    assert (got["box"], got["status"], got["acked_at"]) == (box, "done", None) and got["done_at"]
    assert mark(bob, verb, number) == 0 and bob.get(number) == got
    assert mark(bob, "restore", number) == 1
    back = bob.get(number)
    assert (back["box"], back["status"], back["done_at"]) == ("inbox", "done", got["done_at"])
    assert mark(bob, "restore", number) == 0


def test_an_envelope_moves_between_archive_and_trash(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    for verb, box in (("trash", "trash"), ("archive", "archived"), ("trash", "trash")):
        assert mark(bob, verb, number) == 1
        assert bob.ids(box=box) == [number]


def test_what_lies_in_a_box_can_be_read_and_acknowledged_there(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    mark(bob, "archive", number)
    assert mark(bob, "read", number) == 1 and mark(bob, "ack", number) == 1
    got = bob.get(number)
    assert got["box"] == "archived" and got["read_at"] and got["acked_at"]


def test_cancelling_takes_back_what_nobody_has_dealt_with(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    mark(bob, "read", number)
    assert mark(ada, "cancel", number) == 1 and mark(ada, "cancel", number) == 0
    got = bob.get(number)
    assert got["status"] == "cancelled" and got["done_at"] and got["seq"] == 1
    assert bob.ids(status="pending") == [] and bob.ids(status="cancelled") == [number]


def test_of_a_message_to_several_each_envelope_has_marks_of_its_own(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    first, second = ada.send(bob, eve)["ids"]
    mark(bob, "ack", first)
    assert eve.get(second)["status"] == "pending" and eve.get(second)["read_at"] is None
    assert mark(ada, "cancel", second) == 1
    assert bob.get(first)["status"] == "done"


def test_mail_to_oneself_can_be_marked_and_cancelled(two: tuple[Party, Party]) -> None:
    ada, _ = two
    first, second = ada.tell(ada), ada.tell(ada)
    assert mark(ada, "ack", first) == 1 and mark(ada, "cancel", second) == 1


def test_the_same_id_twice_counts_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for verb in ("read", "ack", "archive", "restore"):
        number = ada.tell(bob)
        if verb == "restore":
            mark(bob, "trash", number)
        assert mark(bob, verb, number, number, int(number[1:])) == 1
    number = ada.tell(bob)
    assert mark(ada, "cancel", number, number) == 1


# --- all or nothing ------------------------------------------------------------------


@pytest.mark.parametrize("verb", OWN)
def test_a_foreign_id_among_own_ones_is_not_found_and_changes_nothing(
    daemon: RunningDaemon, verb: str
) -> None:
    ada, bob, eve = agents(daemon, 3)
    own, foreign = ada.tell(bob), ada.tell(eve)
    if verb == "restore":
        mark(bob, "archive", own)
    before = bob.get(own), eve.get(foreign)
    for bad in (foreign, "e999999", int(foreign[1:])):
        assert bob.refusal(f"envelope.{verb}", ids=[own, bad]) == "not_found"
        assert bob.refusal(f"envelope.{verb}", ids=[bad]) == "not_found"
    assert (bob.get(own), eve.get(foreign)) == before


@pytest.mark.parametrize("verb", OWN)
def test_a_sender_cannot_mark_for_its_recipient(two: tuple[Party, Party], verb: str) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert ada.refusal(f"envelope.{verb}", ids=[number]) == "not_found"


def test_only_the_sender_can_cancel_and_all_or_nothing(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    own, foreign = ada.tell(bob), eve.tell(bob)
    for party, ids in ((ada, [own, foreign]), (bob, [own]), (eve, [own]), (ada, [own, "e999999"])):
        assert party.refusal("envelope.cancel", ids=ids) == "not_found"
    assert bob.get(own)["status"] == bob.get(foreign)["status"] == "pending"


def test_one_too_late_among_several_changes_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    open_, done, taken_back = (ada.tell(bob) for _ in range(3))
    mark(bob, "ack", done)
    mark(ada, "cancel", taken_back)
    assert ada.refusal("envelope.cancel", ids=[open_, done]) == "too_late"
    assert bob.refusal("envelope.ack", ids=[open_, taken_back]) == "too_late"
    assert bob.get(open_)["status"] == "pending" and bob.get(taken_back)["acked_at"] is None


@pytest.mark.parametrize("verb", [*OWN, "cancel"])
@pytest.mark.parametrize(
    ("ids", "code"),
    [
        ([], "invalid_params"),
        ("e1", "invalid_params"),
        ([None], "invalid_params"),
        ([1.5], "invalid_params"),
        ([True], "invalid_params"),
        (["e1"] * 101, "invalid_params"),
        (["t1"], "bad_id"),
        (["e"], "bad_id"),
        ([0], "bad_id"),
        ([-1], "bad_id"),
        (["E1"], "bad_id"),
        (["e99999999999999999999"], "bad_id"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_ids_written_wrongly_are_refused(daemon: RunningDaemon, verb: str, ids: Any, code: str) -> None:
    nex = Party(daemon, "agent:nex", daemon.token("nex"))
    assert nex.refusal(f"envelope.{verb}", ids=ids) == code


def test_a_hundred_ids_go_at_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert mark(bob, "ack", *ada.flood(bob, 100)) == 100


# --- too late ------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["ack", "archive", "trash"])
def test_what_was_dealt_with_cannot_be_cancelled(two: tuple[Party, Party], verb: str) -> None:
    ada, bob = two
    number = ada.tell(bob)
    mark(bob, verb, number)
    with pytest.raises(Answered, match=f"{number} can no longer be cancelled: it is done"):
        mark(ada, "cancel", number)


def test_what_was_cancelled_cannot_be_acknowledged_but_put_away(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    mark(ada, "cancel", number)
    assert bob.refusal("envelope.ack", ids=[number]) == "too_late"
    assert mark(bob, "archive", number) == 1 and mark(bob, "restore", number) == 1
    assert bob.get(number)["status"] == "cancelled"


def test_what_failed_cannot_be_acknowledged_or_cancelled(two: tuple[Party, Party]) -> None:
    ada, bob = two
    number = ada.tell(bob)
    chief = boss(ada.daemon)
    chief.call("agent.delete", name=bob.name)
    assert chief.refusal("envelope.ack", ids=[number], address=bob.address) == "too_late"
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert chief.get(number)["status"] == "failed"


def test_of_ack_and_cancel_at_once_one_wins(two: tuple[Party, Party]) -> None:
    ada, bob = two
    for number in [ada.tell(bob) for _ in range(10)]:
        results = at_once([lambda n=number: mark(bob, "ack", n), lambda n=number: mark(ada, "cancel", n)])
        refused = [one.stable_code for one in results if isinstance(one, Answered)]
        assert refused == ["too_late"]
        winner = "cancelled" if isinstance(results[0], Answered) else "done"
        assert bob.get(number)["status"] == winner


# --- everything at once --------------------------------------------------------------


def test_ack_all_takes_what_is_due_in_the_inbox(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    sent = [ada.tell(bob) for _ in range(4)]
    deferred, elsewhere = ada.tell(bob, deliver_at="+2h"), ada.tell(eve)
    mark(bob, "archive", sent[0])
    mark(ada, "cancel", sent[1])
    assert bob.call("envelope.ack", all=True) == {"changed": 2}
    assert bob.call("envelope.ack", all=True) == {"changed": 0}
    assert [bool(ada.get(number)["acked_at"]) for number in sent] == [False, False, True, True]
    assert ada.get(deferred)["status"] == ada.get(elsewhere)["status"] == "pending"


def test_ack_all_up_to_one_leaves_what_came_later(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.tell(bob) for _ in range(5)]
    assert bob.call("envelope.ack", all=True, up_to=sent[2]) == {"changed": 3}
    assert bob.ids(status="pending") == [sent[4], sent[3]]
    assert bob.call("envelope.ack", all=True, up_to=int(sent[3][1:])) == {"changed": 1}


def test_ack_all_up_to_a_foreign_one_is_not_found(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    own, foreign = ada.tell(bob), ada.tell(eve)
    outgoing = bob.tell(ada)
    for bad in (foreign, outgoing, "e999999"):
        assert bob.refusal("envelope.ack", all=True, up_to=bad) == "not_found"
    assert bob.get(own)["status"] == "pending"


@pytest.mark.parametrize(
    "params",
    [{}, {"all": False}, {"all": True, "ids": ["e1"]}, {"ids": ["e1"], "up_to": "e1"}, {"up_to": "e1"}],
    ids=repr,
)
def test_ack_takes_either_ids_or_all(two: tuple[Party, Party], params: dict[str, Any]) -> None:
    assert two[0].refusal("envelope.ack", **params) == "invalid_params"


def test_what_arrives_during_ack_all_is_not_acknowledged(two: tuple[Party, Party]) -> None:
    ada, bob = two
    before = ada.flood(bob, 1500)
    begun, enough = threading.Event(), threading.Event()

    def keep_sending() -> None:
        for _ in itertools.takewhile(lambda _: not enough.is_set(), range(200)):
            ada.flood(bob, 20)
            begun.set()

    sender = threading.Thread(target=keep_sending)
    sender.start()
    begun.wait(30)
    changed = bob.call("envelope.ack", all=True)["changed"]
    enough.set()
    sender.join(60)
    ada.tell(bob)
    order = flat(bob.walk(page_size=100, oldest_first=True))
    acked = set(flat(bob.walk(page_size=100, status="done")))
    assert changed == len(acked) >= len(before)
    assert [number in acked for number in order] == [True] * len(acked) + [False] * (len(order) - len(acked))


def test_what_is_sent_after_ack_all_was_asked_for_is_not_acknowledged(two: tuple[Party, Party]) -> None:
    ada, bob = two
    before = ada.flood(bob, 1500)
    requests = [line("envelope.ack", token=bob.token, all=True)]
    requests += [line("envelope.send", token=ada.token, to=bob.address, text="later")] * 100
    with ada.daemon.connect() as connection:
        connection.sendall(b"".join(requests))
        ack, *sent = [one["result"] for one in answers(connection, len(requests))]
    assert ack == {"changed": len(before)}
    assert bob.ids(status="pending", page_size=100, oldest_first=True) == flat(one["ids"] for one in sent)


# --- for others ----------------------------------------------------------------------


def test_the_boss_acts_for_others_with_an_address_and_only_with_it(two: tuple[Party, Party]) -> None:
    ada, bob = two
    chief, number = boss(ada.daemon), ada.tell(bob)
    for verb in OWN:
        assert chief.refusal(f"envelope.{verb}", ids=[number]) == "other_box"
        assert chief.refusal(f"envelope.{verb}", ids=["e999999"]) == "not_found"
        assert chief.refusal(f"envelope.{verb}", ids=[number], address=ada.address) == "not_found"
    for verb in ("read", "archive", "restore", "ack"):
        assert mark(chief, verb, number, address=bob.address) == 1
    assert bob.get(number)["acked_at"]
    last = ada.tell(bob)
    assert chief.call("envelope.ack", all=True, up_to=last, address=bob.address) == {"changed": 1}


@pytest.mark.parametrize("verb", OWN)
def test_an_agent_may_not_act_for_others(two: tuple[Party, Party], verb: str) -> None:
    ada, bob = two
    number = ada.tell(bob)
    assert ada.refusal(f"envelope.{verb}", ids=[number], address=bob.address) == "boss_only"
    assert bob.call(f"envelope.{verb}", ids=[number], address=bob.address)["changed"] in (0, 1)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("agent:nobody-here", "unknown_address"),
        ("nobody-here", "unknown_address"),
        ("x:y", "bad_address"),
        ("", "bad_address"),
    ],
)
@pytest.mark.parametrize("verb", OWN)
def test_acting_for_nobody_is_refused(two: tuple[Party, Party], verb: str, address: str, code: str) -> None:
    ada, _ = two
    chief = boss(ada.daemon)
    number = ada.tell(chief)
    assert chief.refusal(f"envelope.{verb}", ids=[number], address=address) == code


def test_ack_all_for_an_empty_address_does_not_take_the_bosss_own(two: tuple[Party, Party]) -> None:
    ada, _ = two
    assert boss(ada.daemon).refusal("envelope.ack", all=True, address="") == "bad_address"


def test_the_bosss_mail_is_done_on_arrival_and_acknowledged_when_he_says_so(two: tuple[Party, Party]) -> None:
    ada, _ = two
    chief = boss(ada.daemon)
    number = ada.tell(chief)
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert chief.call("envelope.ack", all=True) == {"changed": 0}  # nothing there is pending
    done_at = chief.get(number)["done_at"]
    assert mark(chief, "read", number) == 1 and mark(chief, "ack", number) == 1
    got = chief.get(number)
    assert got["done_at"] == done_at and got["acked_at"] and mark(chief, "trash", number) == 1
