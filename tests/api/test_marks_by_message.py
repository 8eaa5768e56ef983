"""Marks of recipients by the id of a message: it means the caller's own envelope of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import started
from tests.support.parties import Party, agents, at_once, boss
from tests.support.python_agents import Team, wait_until_idle

SNOOZE = {"until": "+1h"}
VERBS: list[tuple[str, dict[str, Any]]] = [
    *[(verb, {}) for verb in ("read", "ack", "archive", "trash", "restore", "unsnooze")],
    ("snooze", SNOOZE),
]


def mark(party: Party, verb: str, *ids: Any, **params: Any) -> int:
    """Return how many this changed."""
    return int(party.call(f"envelope.{verb}", ids=list(ids), **params)["changed"])


def test_each_verb_marks_the_callers_own_envelope_and_no_other(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
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


def test_reading_by_message_shows_the_envelopes_in_the_order_of_the_ids(two: tuple[Party, Party]) -> None:
    ada, bob = two
    first, second = ada.send(bob, text="one"), ada.send(bob, text="two")
    found = bob.call("envelope.read", ids=[second["message"], first["ids"][0]])
    assert [one["id"] for one in found["envelopes"]] == [second["ids"][0], first["ids"][0]]
    assert found["changed"] == 2


def test_a_message_and_its_envelope_together_count_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    assert mark(bob, "ack", sent["message"], sent["ids"][0], sent["message"]) == 1


def test_a_bare_number_is_still_an_envelope(two: tuple[Party, Party]) -> None:
    ada, bob = two
    ada.send(bob, ada)  # so that the numbers of messages and envelopes differ
    sent = ada.send(bob)
    assert sent["ids"][0][1:] != sent["message"][1:]
    assert mark(bob, "ack", int(sent["ids"][0][1:])) == 1


@pytest.mark.parametrize(("verb", "params"), VERBS, ids=[verb for verb, _ in VERBS])
def test_a_message_of_which_the_caller_has_no_envelope_is_not_found_and_nothing_changes(
    daemon: RunningDaemon, verb: str, params: dict[str, Any]
) -> None:
    ada, bob, eve = agents(daemon, 3)
    own = ada.send(bob)
    wrong = [
        ada.send(eve)["message"],  # foreign
        bob.send(eve)["message"],  # only sent
        ada.send(bob, deliver_at="+2h")["message"],  # not arrived
        "m999999",
    ]
    before = bob.get(own["ids"][0])
    for one in wrong:
        assert bob.refusal(f"envelope.{verb}", ids=[own["message"], one], **params) == "not_found"
    assert bob.get(own["ids"][0]) == before


def test_what_a_newcomer_of_a_group_sees_and_did_not_get_cannot_be_marked(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
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


def test_the_boss_marks_in_the_box_that_is_named_and_by_default_in_his_own(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief = boss(daemon)
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


def test_a_person_besides_the_boss_marks_only_what_it_got(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    token = boss(daemon).call("user.register", name=f"of-{bob.name}")["token"]
    person = Party(daemon, f"user:of-{bob.name}", token)
    own, foreign = ada.send(person)["message"], ada.send(bob)["message"]
    assert mark(person, "archive", own) == 1
    assert person.refusal("envelope.archive", ids=[foreign]) == "not_found"


def test_a_run_marks_in_the_box_of_its_agent(team: Team) -> None:
    worker = team.hire(
        """
found = re.search(r"mark (m[0-9]+)", TURN)
note(call("envelope.read", ids=[found[1]]) if found else None)
print("NO_REPLY")
"""
    )
    chief = boss(team.daemon)
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


def test_mail_of_a_deleted_message_can_still_be_put_away_by_it(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    mark(bob, "read", sent["message"])
    ada.call("message.delete", id=sent["message"])
    assert mark(bob, "trash", sent["message"]) == 1


def test_a_renamed_or_later_agent_of_the_same_name_does_not_inherit_it(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    sent = ada.send(bob)
    boss(daemon).call("agent.delete", name=bob.name)
    token = boss(daemon).call("agent.register", name=bob.name)["token"]
    later = Party(daemon, bob.address, token)
    assert later.refusal("envelope.read", ids=[sent["message"]]) == "not_found"


def test_two_who_mark_the_same_message_at_once_count_it_once(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = ada.send(bob)
    found = at_once([lambda: mark(bob, "ack", sent["message"]), lambda: mark(bob, "ack", sent["ids"][0])])
    assert sorted(found) == [0, 1]


def test_marks_by_message_hold_over_a_restart(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        ada, bob = agents(daemon, 2)
        sent = ada.send(bob)
        assert mark(bob, "archive", sent["message"]) == 1
        daemon.kill()
        daemon.start()
        assert bob.get(sent["ids"][0])["box"] == "archived"
        assert mark(bob, "restore", sent["message"]) == 1
