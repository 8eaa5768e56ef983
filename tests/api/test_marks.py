"""What recipient and sender do with an envelope, by its id or that of its message: read, ack, archive, trash, restore, cancel."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import answers, line, started
from tests.support.parties import Party, agents, at_once, boss, flat, person
from tests.support.python_agents import Team, wait_until_idle
from tests.support.sweeps import sweep

OWN = ["read", "ack", "archive", "trash", "restore"]


def mark(party: Party, verb: str, *ids: Any, **params: Any) -> int:
    """How many this changed."""
    return int(party.call(f"envelope.{verb}", ids=list(ids), **params)["changed"])


# --- each verb -----------------------------------------------------------------------


def test_reading_shows_and_marks_once(ada: Party, bob: Party) -> None:
    first, second = ada.tell(bob, text="one"), ada.tell(bob, text="two")
    answer = bob.call("envelope.read", ids=[second, first])
    assert answer["changed"] == 2 and [one["text"] for one in answer["envelopes"]] == ["two", "one"]
    seen = bob.get(first)
    assert seen["read_at"] and answer["envelopes"][1] == seen
    assert seen["status"] == "pending" and seen["acked_at"] is None
    assert mark(bob, "read", first) == 0 and bob.get(first) == seen


def test_acknowledging_makes_done_and_read(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    assert mark(bob, "ack", number) == 1
    got = bob.get(number)
    assert got["status"] == "done" and got["acked_at"] == got["done_at"] == got["read_at"]
    assert mark(bob, "ack", number) == 0 and bob.get(number) == got
    assert bob.ids() == [number] and bob.ids(status="pending") == []


def test_acknowledging_keeps_the_time_of_reading(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    mark(bob, "read", number)
    read_at = bob.get(number)["read_at"]
    mark(bob, "ack", number)
    assert bob.get(number)["read_at"] == read_at


@pytest.mark.parametrize(("verb", "box"), [("archive", "archived"), ("trash", "trash")])
def test_putting_a_pending_envelope_away_settles_it(ada: Party, bob: Party, verb: str, box: str) -> None:
    number = ada.tell(bob)
    assert mark(bob, verb, number) == 1
    got = bob.get(number)
    assert (got["box"], got["status"], got["acked_at"]) == (box, "done", None) and got["done_at"]
    assert mark(bob, verb, number) == 0 and bob.get(number) == got
    assert mark(bob, "restore", number) == 1
    back = bob.get(number)
    assert (back["box"], back["status"], back["done_at"]) == ("inbox", "done", got["done_at"])
    assert mark(bob, "restore", number) == 0


def test_an_envelope_moves_between_archive_and_trash(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    for verb, box in (("trash", "trash"), ("archive", "archived"), ("trash", "trash")):
        assert mark(bob, verb, number) == 1 and bob.ids(box=box) == [number]


def test_what_lies_in_a_box_can_be_read_and_acknowledged_there(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    mark(bob, "archive", number)
    assert mark(bob, "read", number) == 1 and mark(bob, "ack", number) == 1
    got = bob.get(number)
    assert got["box"] == "archived" and got["read_at"] and got["acked_at"]


def test_cancelling_takes_back_what_nobody_has_dealt_with(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    mark(bob, "read", number)
    assert mark(ada, "cancel", number) == 1 and mark(ada, "cancel", number) == 0
    got = bob.get(number)
    assert got["status"] == "cancelled" and got["done_at"] and got["seq"] == 1
    assert bob.ids(status="pending") == [] and bob.ids(status="cancelled") == [number]


def test_of_a_message_to_several_each_envelope_has_marks_of_its_own(
    ada: Party, bob: Party, eve: Party
) -> None:
    first, second = ada.send(bob, eve)["ids"]
    mark(bob, "ack", first)
    assert eve.get(second)["status"] == "pending" and eve.get(second)["read_at"] is None
    assert mark(ada, "cancel", second) == 1
    assert bob.get(first)["status"] == "done"


def test_mail_to_oneself_can_be_marked_and_cancelled(ada: Party) -> None:
    first, second = ada.tell(ada), ada.tell(ada)
    assert mark(ada, "ack", first) == 1 and mark(ada, "cancel", second) == 1


def test_the_same_id_twice_counts_once(ada: Party, bob: Party) -> None:
    for verb in ("read", "ack", "archive", "restore"):
        number = ada.tell(bob)
        if verb == "restore":
            mark(bob, "trash", number)
        assert mark(bob, verb, number, number, int(number[1:])) == 1
    number = ada.tell(bob)
    assert mark(ada, "cancel", number, number) == 1


# --- all or nothing ------------------------------------------------------------------


def test_a_foreign_id_among_own_ones_is_not_found_and_changes_nothing(
    ada: Party, bob: Party, eve: Party
) -> None:
    with sweep() as row:
        for verb in OWN:
            with row(verb):
                own, foreign = ada.tell(bob), ada.tell(eve)
                if verb == "restore":
                    mark(bob, "archive", own)
                before = bob.get(own), eve.get(foreign)
                for bad in (foreign, "e999999", int(foreign[1:])):
                    assert bob.refusal(f"envelope.{verb}", ids=[own, bad]) == "not_found"
                    assert bob.refusal(f"envelope.{verb}", ids=[bad]) == "not_found"
                assert (bob.get(own), eve.get(foreign)) == before


def test_a_sender_cannot_mark_for_its_recipient(ada: Party, bob: Party) -> None:
    with sweep() as row:
        for verb in OWN:
            with row(verb):
                assert ada.refusal(f"envelope.{verb}", ids=[ada.tell(bob)]) == "not_found"


def test_only_the_sender_can_cancel_and_all_or_nothing(ada: Party, bob: Party, eve: Party) -> None:
    own, foreign = ada.tell(bob), eve.tell(bob)
    for party, ids in ((ada, [own, foreign]), (bob, [own]), (eve, [own]), (ada, [own, "e999999"])):
        assert party.refusal("envelope.cancel", ids=ids) == "not_found"
    assert bob.get(own)["status"] == bob.get(foreign)["status"] == "pending"


def test_one_too_late_among_several_changes_nothing(ada: Party, bob: Party) -> None:
    open_, done, taken_back = (ada.tell(bob) for _ in range(3))
    mark(bob, "ack", done)
    mark(ada, "cancel", taken_back)
    assert ada.refusal("envelope.cancel", ids=[open_, done]) == "too_late"
    assert bob.refusal("envelope.ack", ids=[open_, taken_back]) == "too_late"
    assert bob.get(open_)["status"] == "pending" and bob.get(taken_back)["acked_at"] is None


def test_a_hundred_ids_go_at_once(ada: Party, bob: Party) -> None:
    assert mark(bob, "ack", *ada.flood(bob, 100)) == 100


# --- too late ------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["ack", "archive", "trash"])
def test_what_was_dealt_with_cannot_be_cancelled(ada: Party, bob: Party, verb: str) -> None:
    number = ada.tell(bob)
    mark(bob, verb, number)
    with pytest.raises(Answered, match=f"{number} can no longer be cancelled: it is done"):
        mark(ada, "cancel", number)


def test_what_was_cancelled_cannot_be_acknowledged_but_put_away(ada: Party, bob: Party) -> None:
    number = ada.tell(bob)
    mark(ada, "cancel", number)
    assert bob.refusal("envelope.ack", ids=[number]) == "too_late"
    assert mark(bob, "archive", number) == 1 and mark(bob, "restore", number) == 1
    assert bob.get(number)["status"] == "cancelled"


def test_what_failed_cannot_be_acknowledged_or_cancelled(ada: Party, bob: Party, chief: Party) -> None:
    number = ada.tell(bob)
    chief.call("agent.delete", name=bob.name)
    assert chief.refusal("envelope.ack", ids=[number], address=bob.address) == "too_late"
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert chief.get(number)["status"] == "failed"


def test_of_ack_and_cancel_at_once_one_wins(ada: Party, bob: Party) -> None:
    for number in [ada.tell(bob) for _ in range(10)]:
        results = at_once([lambda n=number: mark(bob, "ack", n), lambda n=number: mark(ada, "cancel", n)])
        assert [one.stable_code for one in results if isinstance(one, Answered)] == ["too_late"]
        winner = "cancelled" if isinstance(results[0], Answered) else "done"
        assert bob.get(number)["status"] == winner


# --- everything at once --------------------------------------------------------------


def test_ack_all_takes_what_is_due_in_the_inbox(ada: Party, bob: Party, eve: Party) -> None:
    sent = [ada.tell(bob) for _ in range(4)]
    deferred, elsewhere = ada.tell(bob, deliver_at="+2h"), ada.tell(eve)
    mark(bob, "archive", sent[0])
    mark(ada, "cancel", sent[1])
    assert bob.call("envelope.ack", all=True) == {"changed": 2}
    assert bob.call("envelope.ack", all=True) == {"changed": 0}
    assert [bool(ada.get(number)["acked_at"]) for number in sent] == [False, False, True, True]
    assert ada.get(deferred)["status"] == ada.get(elsewhere)["status"] == "pending"


def test_ack_all_up_to_one_leaves_what_came_later(ada: Party, bob: Party) -> None:
    sent = [ada.tell(bob) for _ in range(5)]
    assert bob.call("envelope.ack", all=True, up_to=sent[2]) == {"changed": 3}
    assert bob.ids(status="pending") == [sent[4], sent[3]]
    assert bob.call("envelope.ack", all=True, up_to=int(sent[3][1:])) == {"changed": 1}


def test_ack_all_up_to_a_foreign_one_is_not_found(ada: Party, bob: Party, eve: Party) -> None:
    own, foreign = ada.tell(bob), ada.tell(eve)
    assert {
        bob.refusal("envelope.ack", all=True, up_to=bad) for bad in (foreign, bob.tell(ada), "e999999")
    } == {"not_found"}
    assert bob.get(own)["status"] == "pending"


@pytest.mark.slow
def test_what_arrives_during_ack_all_is_not_acknowledged(ada: Party, bob: Party) -> None:
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


@pytest.mark.slow
def test_what_is_sent_after_ack_all_was_asked_for_is_not_acknowledged(ada: Party, bob: Party) -> None:
    before = ada.flood(bob, 1500)
    requests = [line("envelope.ack", token=bob.token, all=True)]
    requests += [line("envelope.send", token=ada.token, to=bob.address, text="later")] * 100
    with ada.daemon.connect() as connection:
        connection.sendall(b"".join(requests))
        ack, *sent = [one["result"] for one in answers(connection, len(requests))]
    assert ack == {"changed": len(before)}
    assert bob.ids(status="pending", page_size=100, oldest_first=True) == flat(one["ids"] for one in sent)


# --- for others ----------------------------------------------------------------------


def test_the_boss_acts_for_others_with_an_address_and_only_with_it(ada: Party, bob: Party) -> None:
    chief, number = boss(ada.daemon), ada.tell(bob)
    for verb in OWN:
        assert chief.refusal(f"envelope.{verb}", ids=[number]) == "other_box"
        assert chief.refusal(f"envelope.{verb}", ids=["e999999"]) == "not_found"
        assert chief.refusal(f"envelope.{verb}", ids=[number], address=ada.address) == "not_found"
    assert {
        mark(chief, verb, number, address=bob.address) for verb in ("read", "archive", "restore", "ack")
    } == {1}
    assert bob.get(number)["acked_at"]
    assert chief.call("envelope.ack", all=True, up_to=ada.tell(bob), address=bob.address) == {"changed": 1}


def test_an_agent_may_not_act_for_others(ada: Party, bob: Party) -> None:
    with sweep() as row:
        for verb in OWN:
            with row(verb):
                number = ada.tell(bob)
                assert ada.refusal(f"envelope.{verb}", ids=[number], address=bob.address) == "boss_only"
                assert bob.call(f"envelope.{verb}", ids=[number], address=bob.address)["changed"] in (0, 1)


def test_ack_all_for_an_empty_address_does_not_take_the_bosss_own(ada: Party) -> None:
    assert boss(ada.daemon).refusal("envelope.ack", all=True, address="") == "bad_address"


def test_the_bosss_mail_is_done_on_arrival_and_acknowledged_when_he_says_so(ada: Party, chief: Party) -> None:
    number = ada.tell(chief)
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert chief.call("envelope.ack", all=True) == {"changed": 0}  # nothing there is pending
    done_at = chief.get(number)["done_at"]
    assert mark(chief, "read", number) == 1 and mark(chief, "ack", number) == 1
    got = chief.get(number)
    assert got["done_at"] == done_at and got["acked_at"] and mark(chief, "trash", number) == 1


# --- by the id of the message ------------------------------------------------------


SNOOZE = {"until": "+1h"}
VERBS: list[tuple[str, dict[str, Any]]] = [
    *[(verb, {}) for verb in ("read", "ack", "archive", "trash", "restore", "unsnooze")],
    ("snooze", SNOOZE),
]


def test_each_verb_marks_the_callers_own_envelope_and_no_other(ada: Party, bob: Party, eve: Party) -> None:
    sent = ada.send(bob, eve)
    message, (own, foreign) = sent["message"], sent["ids"]
    before = eve.get(foreign)
    for verb, box, params in (
        ("read", "inbox", {}),
        ("archive", "archived", {}),
        ("trash", "trash", {}),
        ("restore", "inbox", {}),
        ("snooze", "snoozed", SNOOZE),
        ("unsnooze", "inbox", {}),
    ):
        assert mark(bob, verb, message, **params) == 1
        assert verb == "snooze" or mark(bob, verb, own) == 0
        assert bob.get(own)["box"] == box
    assert mark(bob, "ack", message) == 1 and bob.get(own)["acked_at"]
    assert eve.get(foreign) == before


def test_reading_by_message_shows_the_envelopes_in_the_order_of_the_ids(ada: Party, bob: Party) -> None:
    first, second = ada.send(bob, text="one"), ada.send(bob, text="two")
    found = bob.call("envelope.read", ids=[second["message"], first["ids"][0]])
    assert [one["id"] for one in found["envelopes"]] == [second["ids"][0], first["ids"][0]]
    assert found["changed"] == 2


def test_a_message_and_its_envelope_together_count_once(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    assert mark(bob, "ack", sent["message"], sent["ids"][0], sent["message"]) == 1


def test_a_bare_number_is_still_an_envelope(ada: Party, bob: Party) -> None:
    ada.send(bob, ada)  # so that the numbers of messages and envelopes differ
    sent = ada.send(bob)
    assert sent["ids"][0][1:] != sent["message"][1:]
    assert mark(bob, "ack", int(sent["ids"][0][1:])) == 1


def test_a_message_of_which_the_caller_has_no_envelope_is_not_found_and_nothing_changes(
    ada: Party, bob: Party, eve: Party
) -> None:
    with sweep() as row:
        for verb, params in VERBS:
            with row(verb):
                own = ada.send(bob)
                wrong = [
                    ada.send(eve)["message"],  # foreign
                    bob.send(eve)["message"],  # only sent
                    ada.send(bob, deliver_at="+2h")["message"],  # not arrived
                    "m999999",
                ]
                before = bob.get(own["ids"][0])
                assert {
                    bob.refusal(f"envelope.{verb}", ids=[own["message"], one], **params) for one in wrong
                } == {"not_found"}
                assert bob.get(own["ids"][0]) == before


def test_what_a_newcomer_of_a_group_sees_and_did_not_get_cannot_be_marked(
    ada: Party, bob: Party, eve: Party
) -> None:
    group = ada.call("conversation.create", name=f"of-{ada.name}", participants=[bob.address])
    address = f"group:of-{ada.name}"
    before = ada.send(address)["message"]
    ada.call(
        "participant.add",
        conversation=group["conversation"]["id"],
        address=eve.address,
        history=10,
    )
    after = ada.send(address)["message"]
    assert eve.call("message.get", message_id=before)["message"]["message_id"] == before
    assert eve.refusal("envelope.read", ids=[before]) == "not_found"
    assert mark(eve, "read", after) == 1 and mark(bob, "read", before, after) == 2


def test_the_boss_marks_in_the_box_that_is_named_and_by_default_in_his_own(
    ada: Party, bob: Party, chief: Party
) -> None:
    sent = ada.send(bob, chief)
    assert mark(chief, "archive", sent["message"]) == 1
    assert bob.get(sent["ids"][0])["box"] == "inbox"
    assert mark(chief, "archive", sent["message"], address=bob.address) == 1
    assert bob.get(sent["ids"][0])["box"] == "archived"
    assert chief.refusal("envelope.read", ids=[sent["message"]], address=ada.address) == "not_found"
    only = ada.send(bob)
    assert chief.refusal("envelope.read", ids=[only["message"]]) == "not_found"
    assert chief.refusal("envelope.read", ids=[only["message"], only["ids"][0]]) == "other_box"
    assert ada.refusal("envelope.read", ids=[only["message"]], address=bob.address) == "boss_only"


def test_a_person_besides_the_boss_marks_only_what_it_got(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    ann = person(daemon)
    own, foreign = ada.send(ann)["message"], ada.send(bob)["message"]
    assert mark(ann, "archive", own) == 1 and ann.refusal("envelope.archive", ids=[foreign]) == "not_found"


def test_a_run_marks_in_the_box_of_its_agent(team: Team, chief: Party) -> None:
    worker = team.hire(
        """
found = re.search(r"mark (m[0-9]+)", TURN)
note(call("envelope.read", ids=[found[1]]) if found else None)
print("NO_REPLY")
"""
    )
    waiting = chief.send(worker, text="later", deliver_at="+20h")["message"]
    first = chief.send(worker, text="hello")
    wait_until_idle(team.daemon)
    chief.send(worker, text=f"mark {first['message']}")
    wait_until_idle(team.daemon)
    chief.send(worker, text=f"mark {waiting}")
    wait_until_idle(team.daemon)
    _, shown, refused = worker.program.notes()
    assert [one["id"] for one in shown["envelopes"]] == first["ids"]
    assert refused["code"] == "not_found"


def test_mail_of_a_deleted_message_can_still_be_put_away_by_it(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    mark(bob, "read", sent["message"])
    ada.call("message.delete", id=sent["message"])
    assert mark(bob, "trash", sent["message"]) == 1


def test_a_renamed_or_later_agent_of_the_same_name_does_not_inherit_it(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    sent = ada.send(bob)
    boss(daemon).call("agent.delete", name=bob.name)
    later = Party(daemon, bob.address, boss(daemon).call("agent.register", name=bob.name)["token"])
    assert later.refusal("envelope.read", ids=[sent["message"]]) == "not_found"


def test_two_who_mark_the_same_message_at_once_count_it_once(ada: Party, bob: Party) -> None:
    sent = ada.send(bob)
    found = at_once([lambda: mark(bob, "ack", sent["message"]), lambda: mark(bob, "ack", sent["ids"][0])])
    assert sorted(found) == [0, 1]


@pytest.mark.slow
def test_marks_by_message_hold_over_a_restart(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        sent = ada.send(bob)
        assert mark(bob, "archive", sent["message"]) == 1
        daemon.kill()
        daemon.start()
        assert bob.get(sent["ids"][0])["box"] == "archived"
        assert mark(bob, "restore", sent["message"]) == 1
