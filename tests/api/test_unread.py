"""`envelope.unread`: how much is unread in an inbox, and who may ask for whose."""

from __future__ import annotations

from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, started
from tests.support.parties import Party, agents, at_once, boss
from tests.support.python_agents import Team, wait_until_idle


def unread(party: Party, **params: str) -> int:
    found = party.call("envelope.unread", **params)
    assert found["unread_capped"] is False
    return int(found["unread"])


def test_it_counts_what_is_unread_in_the_inbox_and_marks_nothing(two: tuple[Party, Party]) -> None:
    ada, bob = two
    sent = [ada.send(bob)["ids"][0] for _ in range(5)]
    ada.send(bob, deliver_at="+2h")
    assert unread(bob) == unread(bob) == bob.call("message.list")["unread"] == 5
    bob.call("envelope.read", ids=sent[:1])
    bob.call("envelope.archive", ids=sent[1:2])
    bob.call("envelope.snooze", ids=sent[2:3], until="+1h")
    ada.call("envelope.cancel", ids=sent[3:4])
    assert unread(bob) == 1
    bob.call("envelope.unsnooze", ids=sent[2:3])
    assert unread(bob) == 2 and unread(ada) == 0


def test_only_the_boss_may_ask_for_that_of_others(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    ada.send(bob)
    chief = boss(daemon)
    assert unread(chief, address=bob.address) == unread(chief, address=bob.name) == 1
    assert unread(chief) == chief.call("message.list")["unread"]
    assert unread(bob, address=bob.address) == 1
    assert ada.refusal("envelope.unread", address=bob.address) == "boss_only"
    assert chief.refusal("envelope.unread", address="agent:nobody") == "unknown_address"


def test_a_person_and_a_deleted_agent_have_a_number_too(daemon: RunningDaemon) -> None:
    ada, bob = agents(daemon, 2)
    chief = boss(daemon)
    token = chief.call("user.register", name=f"of-{ada.name}")["token"]
    person = Party(daemon, f"user:of-{ada.name}", token)
    ada.send(person, bob)
    assert unread(person) == 1
    chief.call("agent.delete", name=bob.name)
    assert unread(chief, address=bob.address) == 1
    later = Party(daemon, bob.address, chief.call("agent.register", name=bob.name)["token"])
    assert unread(later) == 0


def test_a_run_asks_for_that_of_its_agent(team: Team) -> None:
    worker = team.hire('note(call("envelope.unread"))\nprint("NO_REPLY")')
    boss(team.daemon).send(worker)
    wait_until_idle(team.daemon)
    [found] = worker.program.notes()
    assert set(found) == {"unread", "unread_capped"}


def test_it_is_counted_up_to_a_limit(tmp_path: Path) -> None:
    with daemon_with(tmp_path, count_exact_to=3) as running:
        ada, bob = agents(running, 2)
        for number in range(1, 6):
            ada.send(bob)
            capped = {"unread": min(number, 3), "unread_capped": number > 3}
            assert bob.call("envelope.unread") == capped


def test_it_holds_over_a_restart_and_while_others_write(tmp_path: Path) -> None:
    with started(tmp_path) as running:
        ada, bob = agents(running, 2)
        found = at_once([lambda: ada.send(bob), lambda: unread(bob)] * 5)
        assert all(0 <= one <= 5 for one in found[1::2])
        running.kill()
        running.start()
        assert unread(bob) == 5
