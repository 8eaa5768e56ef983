"""Messages that are edited, or deleted: what everybody sees then, and who may do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.cli import Shell
from tests.support.followers import following
from tests.support.parties import Party, agent, boss
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.scripted_channels import notices
from tests.support.waits import wait_until


@pytest.fixture
def team(daemon: RunningDaemon, tmp_path: Path) -> Team:
    """One for each test: programs wait for files."""
    return Team(daemon, tmp_path)


def wordings(daemon: RunningDaemon, message: str) -> list[str]:
    """Return all wordings of a message, the oldest first."""
    with daemon.database() as database:
        old = database.execute(
            "SELECT text FROM revision WHERE message = ? ORDER BY number", (int(message[1:]),)
        ).fetchall()
        now = database.execute("SELECT text FROM message WHERE id = ?", (int(message[1:]),)).fetchone()
    return [row["text"] for row in (*old, now)]


def test_everybody_sees_the_new_text_and_the_old_ones_are_kept(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    sent = ada.send(bob, eve, text="at four")
    for given, text in ((sent["ids"][1], "at five"), (sent["message"], "at six")):
        assert ada.call("message.edit", id=given, text=text) == {"message": sent["message"], "changed": True}
    assert not ada.call("message.edit", id=sent["message"], text="at six")["changed"]
    for party, number in ((bob, sent["ids"][0]), (eve, sent["ids"][1])):
        found = party.get(number)
        assert found["text"] == "at six" and found["edited_at"] is not None and not found["deleted"]
    assert wordings(daemon, sent["message"]) == ["at four", "at five", "at six"]


def test_who_follows_hears_of_it_once(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    sent = ada.send(bob, text="at four")
    with following(daemon) as follower:
        follower.subscribe(bob.token, topics=["message.edited"])
        ada.call("message.edit", id=sent["message"], text="at five")
        ada.call("message.edit", id=sent["message"], text="at five")
        ada.call("message.edit", id=sent["message"], text="at six")
        told = [follower.next("message.edited") for _ in range(2)]
    assert [(one["message"], one["from"]) for one in told] == [(sent["message"], ada.address)] * 2
    assert wordings(daemon, sent["message"]) == ["at four", "at five", "at six"]


def test_files_stay_and_a_message_with_files_needs_no_text(tmp_path: Path, ada: Party, bob: Party) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    number = ada.tell(bob, text="the plan", attachments=[str(file)])
    ada.call("message.edit", id=number, text="")
    assert [one["name"] for one in bob.get(number)["attachments"]] == ["plan.txt"]
    assert ada.refusal("message.edit", id=ada.tell(bob, text="words"), text=" ") == "empty_message"


def test_only_the_author_edits_also_not_the_boss(daemon: RunningDaemon) -> None:
    ada, bob, other = agent(daemon), agent(daemon), agent(daemon)
    number = ada.tell(bob, text="mine")
    assert bob.refusal("message.edit", id=number, text="x") == "not_author"
    assert other.refusal("message.edit", id=number, text="x") == "not_found"
    with pytest.raises(Answered, match=f"was written by {ada.address}; only its author can edit it"):
        boss(daemon).call("message.edit", id=number, text="x")
    assert bob.get(number)["text"] == "mine"


def test_an_agent_that_has_read_it_gets_a_note_and_one_that_has_not_gets_none(
    ada: Party, bob: Party, eve: Party
) -> None:
    sent = ada.send(bob, eve, ada, text="at four")
    bob.call("envelope.ack", ids=[sent["ids"][0]])
    ada.call("envelope.ack", ids=[sent["ids"][2]])
    ada.call("message.edit", id=sent["message"], text="at five")
    [told] = notices(bob)
    assert told["text"] == f'{ada.address} edited {sent["message"]}. It now reads: "at five"'
    assert not notices(eve) and not notices(ada)


def test_what_the_boss_edits_is_a_new_turn_for_an_agent_that_has_answered(team: Team, chief: Boss) -> None:
    worker = team.hire('print("you said:", TEXTS[-1])')
    sent = chief.say_and_wait(worker, text="at four")
    chief.call_and_wait("message.edit", id=sent["message"], text="at five")
    assert [one["text"] for one in chief.heard(worker)] == ["you said: at four", "you said: at five"]
    assert f'note: "a new wording of {sent["message"]}"' in worker.program.turns()[-1]


def test_edits_of_the_boss_before_the_next_turn_are_one_new_wording(
    daemon: RunningDaemon, team: Team, chief: Boss
) -> None:
    worker = team.hire('note(TEXTS); wait_for("go"); print("fine")')
    sent = chief.say(worker, text="at four")
    wait_until(lambda: len(worker.program.notes()) == 1)
    for text in ("at five", "at six", "at seven"):
        chief.call("message.edit", id=sent["message"], text=text)
    team.place("go").touch()
    wait_until_idle(daemon)
    assert worker.program.notes() == [["at four"], ["at seven"]]


def test_what_is_deferred_arrives_with_the_new_text(ada: Party, bob: Party) -> None:
    number = ada.tell(bob, text="happy new year", deliver_at="+2h")
    ada.call("message.edit", id=number, text="a happy new year")
    assert ada.get(number)["text"] == "a happy new year" and not notices(bob)
    assert bob.refusal("message.edit", id=number, text="x") == "not_found"


def test_a_run_edits_what_it_sent(team: Team, chief: Boss) -> None:
    worker = team.hire(
        'sent = send("user:boss", "half done"); call("message.edit", id=sent["message"], text="done"); '
        'print("NO_REPLY")'
    )
    chief.say_and_wait(worker, text="work")
    assert [one["text"] for one in chief.heard(worker)] == ["done"]


# --- deleting ----------------------------------------------------------------------


WORDS = "the secret words"


def deleted(party: Party, given: str, **params: Any) -> tuple[bool, int, int, int]:
    answer = party.call("message.delete", id=given, **params)
    return answer["changed"], answer["cancelled"], answer["in_hand"], answer["posts"]


def test_nobody_is_shown_the_content_any_more_in_any_view(
    daemon: RunningDaemon, tmp_path: Path, ada: Party, bob: Party
) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    facts = {"subject": f"S {WORDS}", "attachments": [str(file)], "metadata": {"note": WORDS}}
    sent = ada.send(bob, boss(daemon), text=WORDS, **facts)
    reply = bob.send(reply_to=sent["ids"][0], text="I see")["ids"][0]
    assert ada.get(reply)["quote"] == WORDS
    assert deleted(ada, sent["message"], reason="a mistake") == (True, 1, 0, 0)
    views = [
        ada.list(box="outbox"),
        bob.list(),
        boss(daemon).list(thread=sent["thread"]),
        [boss(daemon).get(sent["ids"][1])],
        boss(daemon).list(box="all", page_size=100),
        boss(daemon).call("envelope.read", ids=[sent["ids"][1]])["envelopes"],
    ]
    for view in views:
        gone = [one for one in view if one["message"] == sent["message"]]
        assert gone
        for one in gone:
            assert one["deleted"] and one["deleted_why"] == "a mistake"
            assert (one["text"], one["subject"], one["attachments"], one["metadata"]) == ("", None, [], {})
    assert ada.get(reply)["quote"] is None
    assert WORDS not in str(views)
    with daemon.database() as database:
        for view in ("messages", "envelopes"):
            assert all(
                WORDS not in str(tuple(row)) for row in database.execute(f"SELECT text, subject FROM {view}")
            )
    assert ada.get(reply)["deleted"] is False


def test_the_command_line_says_that_it_was_deleted_and_why(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    shell = Shell(daemon.home.path)
    number = ada.tell(bob, text=WORDS)
    env = {"HIBOSS_TOKEN": ada.token}
    assert shell("message", "delete", number, "--reason", "said twice", env=env).record == {
        "message": ada.get(number)["message"],
        "changed": "true",
        "cancelled": "1",
        "in-hand": "0",
        "posts": "0",
    }
    shown = shell("envelope", "get", number, env=env).stdout
    assert "deleted: true\n" in shown and 'deleted-why: "said twice"\n' in shown and WORDS not in shown
    other = ada.tell(bob, text="old")
    assert shell("message", "edit", other, "new", env=env).record["changed"] == "true"
    assert shell("message", "edit", other, "-", env=env, stdin="from a pipe\n").record["changed"] == "true"
    assert bob.get(other)["text"] == "from a pipe\n"
    assert shell("reaction", "set", other, "👍", env=env).record["emoji"] == "👍"
    assert shell("reaction", "remove", other, env=env).record["changed"] == "true"


def test_who_follows_hears_of_it_and_of_the_envelopes_that_end_with_it(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    sent = ada.send(bob, text=WORDS)
    with following(daemon) as follower:
        follower.subscribe(bob.token, topics=["message.deleted", "envelope.cancelled"])
        assert deleted(ada, sent["message"])[0]
        assert not deleted(ada, sent["message"])[0]
        told = [follower.next() for _ in range(2)]
    assert [one["topic"] for one in told] == ["message.deleted", "envelope.cancelled"]
    assert {one["message"] for one in told} == {sent["message"]}


def test_what_waits_is_cancelled_and_what_was_read_stays_done(daemon: RunningDaemon) -> None:
    ada, bob, eve, low = agent(daemon), agent(daemon), agent(daemon), agent(daemon)
    sent = ada.send(bob, eve, low, boss(daemon), text=WORDS)
    bob.call("envelope.ack", ids=[sent["ids"][0]])
    assert eve.call("envelope.claim")["envelopes"][0]["id"] == sent["ids"][1]
    assert deleted(ada, sent["ids"][0]) == (True, 1, 1, 0)
    states = [boss(daemon).get(number)["status"] for number in sent["ids"]]
    assert states == ["done", "pending", "cancelled", "done"]
    assert low.list(unread=True) == [] and low.call("envelope.claim")["envelopes"] == []
    assert [(one["text"], one["deleted"]) for one in eve.list(status="pending")] == [("", True)]


def test_what_is_deferred_never_arrives(ada: Party, bob: Party) -> None:
    number = ada.tell(bob, text=WORDS, deliver_at="+2h")
    assert deleted(ada, number) == (True, 1, 0, 0)
    assert ada.get(number)["status"] == "cancelled" and bob.list() == []


def test_a_claim_that_is_released_does_not_give_it_to_the_next_one(ada: Party, bob: Party) -> None:
    number, other = ada.tell(bob, text=WORDS), ada.tell(bob, text="fine")
    bob.call("envelope.claim", limit=1)
    deleted(ada, number)
    bob.call("envelope.release", ids=[number])
    assert [one["id"] for one in bob.call("envelope.claim", limit=1)["envelopes"]] == [other]
    assert bob.get(number)["status"] == "cancelled"


def test_the_author_and_the_boss_delete_and_nobody_else(daemon: RunningDaemon) -> None:
    ada, bob, other = agent(daemon), agent(daemon), agent(daemon)
    number = ada.tell(bob, text=WORDS)
    assert bob.refusal("message.delete", id=number) == "not_author"
    assert other.refusal("message.delete", id=number) == "not_found"
    assert deleted(boss(daemon), number)[0]
    with daemon.database() as database:
        [row] = database.execute(
            "SELECT deleted_by FROM messages WHERE id = ?", (ada.get(number)["message"],)
        ).fetchall()
    assert row["deleted_by"] == "user:boss"


def test_it_can_be_neither_edited_nor_answered_nor_reacted_to(ada: Party, bob: Party) -> None:
    number = ada.tell(bob, text=WORDS)
    bob.call("reaction.set", id=number, emoji="👍")
    deleted(ada, number)
    assert ada.refusal("message.edit", id=number, text="x") == "too_late"
    assert bob.refusal("reaction.set", id=number, emoji="🎉") == "too_late"
    assert bob.refusal("envelope.send", reply_to=number, text="x") == "not_found"


# --- agents that are given turns -----------------------------------------------------------


def test_an_agent_whose_turn_has_not_begun_is_not_given_it(team: Team, chief: Boss) -> None:
    worker = team.hire('note(TEXTS); print("fine")')
    chief.call("agent.pause", name=worker.name)
    first = chief.say(worker, text=WORDS)
    chief.say(worker, text="the other")
    assert deleted(chief, first["message"]) == (True, 1, 0, 0)
    chief.call_and_wait("agent.resume", name=worker.name)
    assert worker.program.notes() == [["the other"]]


def test_a_running_turn_keeps_it_and_a_failed_one_does_not_give_it_again(
    daemon: RunningDaemon, team: Team, chief: Boss
) -> None:
    worker = team.hire('note(TEXTS); wait_for("go"); sys.exit(1)')
    sent = chief.say(worker, text=WORDS)
    wait_until(lambda: len(worker.program.notes()) == 1)
    assert deleted(chief, sent["message"]) == (True, 0, 1, 0)
    chief.say(worker, text="the other")
    worker.program.write('note(TEXTS); print("fine")', daemon.home.socket)
    team.place("go").touch()
    wait_until(lambda: len(worker.program.notes()) == 2)
    wait_until_idle(daemon)
    assert worker.program.notes() == [[WORDS], ["the other"]]
    wait_until(lambda: chief.get(sent["ids"][0])["status"] == "cancelled")  # when it would be given again


def test_a_completed_turn_with_it_is_done(team: Team, chief: Boss) -> None:
    worker = team.hire('note("here"); wait_for("go"); print("done")')
    sent = chief.say(worker, text=WORDS)
    wait_until(lambda: bool(worker.program.notes()))
    deleted(chief, sent["message"])
    team.place("go").touch()
    wait_until(lambda: [one["text"] for one in chief.heard(worker)] == ["done"])
    assert chief.get(sent["ids"][0])["status"] == "done"


def test_the_final_text_of_a_run_that_deleted_the_same_text_is_sent(team: Team, chief: Boss) -> None:
    worker = team.hire(
        'sent = send("user:boss", "all done"); call("message.delete", id=sent["message"]); print("all done")'
    )
    chief.say_and_wait(worker, text="work")
    assert [one["text"] for one in chief.heard(worker)] == ["", "all done"]
