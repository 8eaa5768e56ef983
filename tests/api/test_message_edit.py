"""A message that its author edits: what is stored, and what those see and hear who have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.daemons import wait_until
from tests.support.followers import following
from tests.support.parties import agent, boss, checked_daemon
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.scripted_channels import notices


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


def wordings(daemon: RunningDaemon, message: str) -> list[str]:
    """Return all wordings of a message, the oldest first."""
    with daemon.database() as database:
        old = database.execute(
            "SELECT text FROM revision WHERE message = ? ORDER BY number", (int(message[1:]),)
        ).fetchall()
        now = database.execute("SELECT text FROM message WHERE id = ?", (int(message[1:]),)).fetchone()
    return [row["text"] for row in (*old, now)]


def test_everybody_sees_the_new_text_and_the_old_ones_are_kept(daemon: RunningDaemon) -> None:
    ada, bob, eve = agent(daemon), agent(daemon), agent(daemon)
    sent = ada.send(bob, eve, text="at four")
    for given, text in ((sent["ids"][1], "at five"), (sent["message"], "at six")):
        assert ada.call("message.edit", id=given, text=text) == {"message": sent["message"], "changed": True}
    assert not ada.call("message.edit", id=sent["message"], text="at six")["changed"]
    for party, number in ((bob, sent["ids"][0]), (eve, sent["ids"][1])):
        found = party.get(number)
        assert found["text"] == "at six" and found["edited_at"] is not None and not found["deleted"]
    assert wordings(daemon, sent["message"]) == ["at four", "at five", "at six"]


def test_who_follows_hears_of_it_once(daemon: RunningDaemon) -> None:
    ada, bob = agent(daemon), agent(daemon)
    sent = ada.send(bob, text="at four")
    with following(daemon) as follower:
        follower.subscribe(bob.token, topics=["message.edited"])
        ada.call("message.edit", id=sent["message"], text="at five")
        ada.call("message.edit", id=sent["message"], text="at five")
        ada.call("message.edit", id=sent["message"], text="at six")
        told = [follower.next("message.edited") for _ in range(2)]
    assert [(one["message"], one["from"]) for one in told] == [(sent["message"], ada.address)] * 2
    assert wordings(daemon, sent["message"]) == ["at four", "at five", "at six"]


def test_files_stay_and_a_message_with_files_needs_no_text(daemon: RunningDaemon, tmp_path: Path) -> None:
    ada, bob = agent(daemon), agent(daemon)
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    number = ada.tell(bob, text="the plan", attachments=[str(file)])
    ada.call("message.edit", id=number, text="")
    assert [one["name"] for one in bob.get(number)["attachments"]] == ["plan.txt"]
    plain = ada.tell(bob, text="words")
    assert ada.refusal("message.edit", id=plain, text=" ") == "empty_message"


def test_only_the_author_edits_also_not_the_boss(daemon: RunningDaemon) -> None:
    ada, bob, other = agent(daemon), agent(daemon), agent(daemon)
    number = ada.tell(bob, text="mine")
    assert bob.refusal("message.edit", id=number, text="x") == "not_author"
    assert other.refusal("message.edit", id=number, text="x") == "not_found"
    with pytest.raises(Answered, match=f"was written by {ada.address}; only its author can edit it"):
        boss(daemon).call("message.edit", id=number, text="x")
    assert bob.get(number)["text"] == "mine"


def test_an_agent_that_has_read_it_gets_a_note_and_one_that_has_not_gets_none(daemon: RunningDaemon) -> None:
    ada, bob, eve = agent(daemon), agent(daemon), agent(daemon)
    sent = ada.send(bob, eve, ada, text="at four")
    bob.call("envelope.ack", ids=[sent["ids"][0]])
    ada.call("envelope.ack", ids=[sent["ids"][2]])
    ada.call("message.edit", id=sent["message"], text="at five")
    [told] = notices(bob)
    assert told["text"] == f'{ada.address} edited {sent["message"]}. It now reads: "at five"'
    assert not notices(eve) and not notices(ada)


def test_what_the_boss_edits_is_a_new_turn_for_an_agent_that_has_answered(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire('print("you said:", TEXTS[-1])')
    sent = chief.say(worker, text="at four")
    wait_until_idle(daemon)
    chief.call("message.edit", id=sent["message"], text="at five")
    wait_until_idle(daemon)
    assert [one["text"] for one in chief.heard(worker)] == ["you said: at four", "you said: at five"]
    assert f'note: "a new wording of {sent["message"]}"' in worker.program.turns()[-1]


def test_edits_of_the_boss_before_the_next_turn_are_one_new_wording(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire('note(TEXTS); wait_for("go"); print("fine")')
    sent = chief.say(worker, text="at four")
    wait_until(lambda: len(worker.program.notes()) == 1)
    for text in ("at five", "at six", "at seven"):
        chief.call("message.edit", id=sent["message"], text=text)
    team.place("go").touch()
    wait_until_idle(daemon)
    assert worker.program.notes() == [["at four"], ["at seven"]]


def test_what_is_deferred_arrives_with_the_new_text(daemon: RunningDaemon) -> None:
    ada, bob = agent(daemon), agent(daemon)
    number = ada.tell(bob, text="happy new year", deliver_at="+2h")
    ada.call("message.edit", id=number, text="a happy new year")
    assert ada.get(number)["text"] == "a happy new year" and not notices(bob)
    assert bob.refusal("message.edit", id=number, text="x") == "not_found"


def test_a_run_edits_what_it_sent(daemon: RunningDaemon, tmp_path: Path) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire(
        'sent = send("user:boss", "half done"); call("message.edit", id=sent["message"], text="done"); '
        'print("NO_REPLY")'
    )
    chief.say(worker, text="work")
    wait_until_idle(daemon)
    assert [one["text"] for one in chief.heard(worker)] == ["done"]
