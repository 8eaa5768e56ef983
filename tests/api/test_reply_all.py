"""Replies that name nobody: they go to all parties of the thread but their author, and to nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, agents, boss, bring, club, got, hears, stored
from tests.support.phones import Phone
from tests.support.python_agents import QUIET, Boss, PythonAgent, Team, wait_until_idle
from tests.support.scripted_channels import Place, daemon_with_channels
from tests.support.waits import wait_until


def reply(who: Party, to: str, text: str = "yes", **params: Any) -> Any:
    """Reply without naming anybody."""
    return who.send(text=text, reply_to=to, **params)


def own(who: Party, text: str) -> str:
    """Return the id of the envelope with a text in somebody's inbox."""
    (found,) = got(who, text)
    return str(found["id"])


def people_of(daemon: RunningDaemon, sent: Any) -> list[str]:
    """Return who got a message, without chats to which it was forwarded."""
    return list(boss(daemon).call("envelope.get", id=sent["ids"][0])["recipients"])


# --- to whom it goes --------------------------------------------------------------------------


def test_a_reply_goes_to_all_participants_of_the_thread_but_me_silent_ones_included(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve, silent = agents(daemon, 4)
    first = ada.send(bob, eve, silent, text="who comes?")
    answer = reply(bob, own(bob, "who comes?"), "me")
    assert people_of(daemon, answer) == [ada.address, eve.address, silent.address]
    assert answer["conversation"] == first["conversation"] and "elsewhere" not in answer
    assert answer["thread"] == first["thread"] and "skipped" not in answer
    again = reply(eve, own(eve, "me"), "me too")
    assert people_of(daemon, again) == [bob.address, ada.address, silent.address]  # who is answered first
    assert again["conversation"] == first["conversation"]


def test_to_sender_narrows_it_to_who_wrote_what_is_answered(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(bob, eve, text="who?")
    answer = reply(bob, own(bob, "who?"), "in private", to_sender=True)
    assert people_of(daemon, answer) == [ada.address] and got(eve, "in private") == []
    assert answer["conversation"] != first["conversation"] and answer["elsewhere"] is True
    assert answer["thread"] == first["thread"]


def test_between_two_a_reply_stays_in_their_conversation(ada: Party, bob: Party) -> None:
    first = ada.send(bob, text="well?")
    answer = reply(bob, first["ids"][0])
    assert answer["conversation"] == first["conversation"] and "elsewhere" not in answer
    back = reply(ada, answer["ids"][0])
    assert back["conversation"] == first["conversation"]
    assert [one["context"] for one in (bob.get(back["ids"][0]), ada.get(answer["ids"][0]))] == [False, False]


def test_other_participants_get_a_new_conversation_and_the_answer_says_so(daemon: RunningDaemon) -> None:
    ada, bob, eve, new = agents(daemon, 4)
    first = ada.send(bob, eve, text="plan?")
    wider = bob.send(ada, eve, new, text="with new", reply_to=own(bob, "plan?"))
    assert wider["conversation"] != first["conversation"]
    # Ada is in both, so a reply to the first message reaches all who came in since.
    answer = reply(ada, own(ada, "with new"), "all of you")
    assert set(people_of(daemon, answer)) == {bob.address, eve.address, new.address}
    assert answer["conversation"] == wider["conversation"] and "elsewhere" not in answer
    late = reply(eve, own(eve, "plan?"), "an old one")
    assert set(people_of(daemon, late)) == {ada.address, bob.address, new.address}
    assert late["conversation"] == wider["conversation"] and late["elsewhere"] is True


def test_a_party_of_a_side_branch_that_i_never_saw_is_neither_reached_nor_revealed(
    daemon: RunningDaemon,
) -> None:
    ada, bob, hidden = agents(daemon, 3)
    first = ada.send(bob, text="a question")
    bob.send(hidden, text="aside", reply_to=first["ids"][0])
    answer = reply(ada, first["message"], "more")
    assert people_of(daemon, answer) == [bob.address] and got(hidden, "more") == []
    assert "skipped" not in answer
    back = reply(bob, answer["ids"][0], "back")  # bob has seen both branches
    assert set(people_of(daemon, back)) == {ada.address, hidden.address} and back["elsewhere"]


def test_a_branch_that_has_not_arrived_yet_brings_nobody_in(daemon: RunningDaemon) -> None:
    ada, bob, later = agents(daemon, 3)
    first = ada.send(bob, text="a question")
    bob.send(ada, later, text="tomorrow", reply_to=first["ids"][0], deliver_at="+1h")
    assert people_of(daemon, reply(ada, first["message"], "now")) == [bob.address]


def test_a_reply_to_my_own_message_goes_to_the_same_again(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(bob, eve, text="one")
    for narrow in (False, True):
        answer = reply(ada, first["message"], "one more", to_sender=narrow)
        assert people_of(daemon, answer) == [bob.address, eve.address]
        assert answer["conversation"] == first["conversation"]
    assert [one["context"] for one in got(bob, "one more")] == [False, False]


def test_a_note_to_myself_is_answered_to_myself(daemon: RunningDaemon, ada: Party) -> None:
    assert people_of(daemon, reply(ada, ada.send(ada, text="remember")["ids"][0])) == [ada.address]


def test_people_and_the_boss_get_it_as_everybody_else(
    daemon: RunningDaemon, ada: Party, bob: Party, chief: Party
) -> None:
    ada.send(bob, chief, text="for you both")
    reply(bob, own(bob, "for you both"), "from bob")
    (found,) = got(chief, "from bob")
    assert not found["context"] and found["read_at"] is None
    mine = reply(chief, own(chief, "from bob"), "from the boss")
    assert set(people_of(daemon, mine)) == {ada.address, bob.address}


# --- those whom I may not write to ---------------------------------------------------------------


def test_a_channel_that_i_may_not_post_to_is_skipped_and_named(
    daemon: RunningDaemon, tmp_path: Path, bob: Party, eve: Party
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.owner.send(bob, eve, place.address, text="all of you")
    answer = reply(bob, own(bob, "all of you"), "from bob")
    assert answer["skipped"] == [place.address] and answer["elsewhere"] is True
    assert people_of(daemon, answer) == [place.owner.address, eve.address]
    mine = reply(place.owner, own(place.owner, "from bob"), "from its owner")
    assert place.address in people_of(daemon, mine) and "skipped" not in mine
    place.wait_for("all of you", "from its owner")


def test_a_deleted_agent_is_skipped_and_named_and_its_successor_gets_nothing(daemon: RunningDaemon) -> None:
    ada, bob, gone = agents(daemon, 3)
    ada.send(bob, gone, text="three of us")
    boss(daemon).call("agent.delete", name=gone.name)
    new = agent(daemon, gone.name)
    answer = reply(bob, own(bob, "three of us"), "two of us")
    assert people_of(daemon, answer) == [ada.address]
    assert answer["skipped"] == [gone.address] and answer["elsewhere"] is True
    assert new.list() == []


def test_when_nobody_is_left_the_reply_is_refused_and_nothing_is_stored(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    bob, gone = agents(daemon, 2)
    gone.send(bob, text="bye")
    boss(daemon).call("agent.delete", name=gone.name)
    before = stored(daemon)
    assert bob.refusal("envelope.send", text="?", reply_to=own(bob, "bye")) == "unknown_recipient"
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="hello from outside")
    place.unbind()
    received = own(place.owner, "hello from outside")
    counts = stored(daemon)
    assert place.owner.refusal("envelope.send", text="?", reply_to=received) == "not_bound"
    assert stored(daemon) == counts and before is not None


@pytest.mark.parametrize("narrow", [False, True])
def test_a_reply_to_a_deleted_or_foreign_message_is_not_found(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party, narrow: bool
) -> None:
    foreign, deleted = ada.send(eve, text="not yours"), ada.send(bob, text="taken back")
    ada.call("message.delete", id=deleted["message"])
    before = stored(daemon)
    for answered in (foreign["ids"][0], foreign["message"], deleted["ids"][0], deleted["message"], "e999999"):
        assert bob.refusal("envelope.send", text="?", reply_to=answered, to_sender=narrow) == "not_found"
    assert stored(daemon) == before


# --- who has to act on it ---------------------------------------------------------------------------


def test_an_agent_that_is_neither_answered_nor_mentioned_only_reads_it_along(
    ada: Party, bob: Party, eve: Party
) -> None:
    ada.send(bob, eve, text="who?")
    reply(bob, own(bob, "who?"), "me")
    (answered,), (beside,) = got(ada, "me"), got(eve, "me")
    assert (answered["context"], answered["status"]) == (False, "pending")
    assert (beside["context"], beside["status"]) == (True, "done")
    assert eve.call("envelope.claim")["envelopes"][0]["text"] == "who?"
    assert [one["text"] for one in eve.list(unread=True)] == ["who?"]


@pytest.mark.parametrize("how", ["@{name}", "@all", "@{role}", "hey @{NAME}, you", "`@nobody` @{name}"])
def test_an_agent_that_is_mentioned_gets_it_to_answer(
    daemon: RunningDaemon, ada: Party, bob: Party, how: str
) -> None:
    eve = agent(daemon, role=f"keeper-of-{bob.name}")
    ada.send(bob, eve, text="who?")
    words = how.format(name=eve.name, NAME=eve.name.upper(), role=f"keeper-of-{bob.name}")
    reply(bob, own(bob, "who?"), f"ask {words}")
    (found,) = got(eve, f"ask {words}")
    assert (found["context"], found["status"]) == (False, "pending")


@pytest.mark.parametrize("how", ["`@{name}`", "x@{name}.com", "@{name}x", "{name}"])
def test_a_name_in_code_or_in_an_address_calls_nobody(ada: Party, bob: Party, eve: Party, how: str) -> None:
    ada.send(bob, eve, text="who?")
    words = how.format(name=eve.name)
    reply(bob, own(bob, "who?"), f"like {words}")
    assert [one["context"] for one in got(eve, f"like {words}")] == [True]


def test_who_is_only_shown_a_reply_gets_no_turn_and_sees_it_in_the_next_one_there(
    team: Team, chief: Boss
) -> None:
    kai, max_ = team.hire(QUIET), team.hire(QUIET)
    other = agent(chief.daemon)
    chief.say(kai, max_, other, text="who?")
    wait_until(lambda: kai.turns() and max_.turns())
    wait_until_idle(chief.daemon)
    reply(other, own(other, "who?"), "not me")
    reply(other, own(other, "who?"), f"@{kai.name} perhaps")
    wait_until(lambda: len(kai.turns()) == 2)
    wait_until_idle(chief.daemon)
    assert len(max_.turns()) == 1
    shown = kai.turns()[1]
    assert shown.index("meanwhile: 1") < shown.index("not me") < shown.index(f"@{kai.name} perhaps")
    [along] = got(kai, "not me")
    assert [one["session"] for one in along["read_by"]] == [kai.runs()[1]["id"]]
    reply(other, own(other, "who?"), f"or @{kai.name}?")
    wait_until(lambda: len(kai.turns()) == 3)
    wait_until_idle(chief.daemon)
    assert "not me" not in kai.turns()[2]


# --- runs -------------------------------------------------------------------------------------------


def hire_replier(team: Team, text: str, final: str) -> PythonAgent:
    """Hire an agent that replies by hand in its run, and then says something as its final text."""
    return team.hire(f"""
number = re.search(r"(?m)^id: (e[0-9]+)", TURN)
number = number[1] if number else call("envelope.list")["envelopes"][0]["id"]
note(call("envelope.send", text={text!r}, reply_to=number))
print({final!r})
""")


def test_a_reply_in_a_run_and_the_same_final_text_reach_nobody_twice(team: Team, chief: Boss) -> None:
    other = agent(chief.daemon)
    kai = hire_replier(team, "done", "done")
    chief.say_and_wait(kai, other, text="do it")
    [run] = kai.runs()
    assert run["status"] == "completed" and "not sent" in run["note"]
    assert (
        len(got(other, "done")) == 1
        and len(
            [one for one in chief.list(page_size=100) if one["text"] == "done" and one["from"] == kai.address]
        )
        == 1
    )


def test_the_automatic_answer_stays_in_its_conversation_though_the_thread_is_elsewhere_too(
    team: Team, chief: Boss
) -> None:
    hidden = agent(chief.daemon)
    kai = team.hire('print("my answer")')
    first = chief.say_and_wait(kai, text="what now?")
    kai.send(hidden, "user:boss", text="with somebody", reply_to=first["ids"][0])
    again = reply(chief, first["message"], "and now?", **{"from": "user:boss"}, to_sender=True)
    wait_until_idle(chief.daemon)
    answers = [
        one
        for one in chief.list(page_size=100)
        if one["text"] == "my answer" and one["sender"] == kai.address
    ]
    assert {one["conversation"] for one in answers} == {first["conversation"]} and len(answers) == 2
    assert again["conversation"] == first["conversation"] and got(hidden, "my answer") == []


def test_an_automatic_answer_to_several_starts_no_turn_of_the_silent_ones(team: Team, chief: Boss) -> None:
    kai, max_ = team.hire('print("I do it")'), team.hire(QUIET)
    chief.say(kai, max_, text="who does it?")
    wait_until(lambda: kai.turns() and max_.turns())
    wait_until_idle(chief.daemon)
    assert len(max_.turns()) == 1 and len(kai.turns()) == 1
    assert [one["auto"] for one in got(max_, "I do it")] == [True]


# --- later, repeated, scheduled, after a restart ------------------------------------------------------


def test_a_deferred_reply_to_all_is_as_one_at_once_when_it_arrives(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(bob, eve, text="who?")
    answer = reply(bob, own(bob, "who?"), "me, later", deliver_at="+1h")
    assert answer["deliver_at"] and answer["conversation"] == first["conversation"]
    bring(daemon, answer)
    wait_until(lambda: got(eve, "me, later"))
    (answered,), (beside,) = got(ada, "me, later"), got(eve, "me, later")
    assert (answered["context"], answered["status"]) == (False, "pending")
    assert (beside["context"], beside["status"]) == (True, "done")
    assert [one["text"] for one in eve.list(unread=True)] == ["who?"]


def test_a_repeated_reply_to_all_sends_nothing_and_has_the_same_answer(
    daemon: RunningDaemon, tmp_path: Path, bob: Party, eve: Party
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.owner.send(bob, eve, place.address, text="all of you")
    answered = own(bob, "all of you")
    first = reply(bob, answered, "once", key="k")
    before = stored(daemon)
    second = reply(bob, answered, "once", key="k")
    assert first["elsewhere"] and first["skipped"] == [place.address]
    assert second == first | {"duplicate": True} and stored(daemon) == before
    assert len(got(eve, "once")) == 1
    assert (
        bob.refusal("envelope.send", text="once", reply_to=answered, to_sender=True, key="k") == "key_reused"
    )


@pytest.mark.slow
def test_a_reply_after_a_restart_goes_to_the_same(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path) as daemon:
        ada, bob, eve = agents(daemon, 3)
        first = ada.send(bob, eve, text="before")
        reply(eve, own(eve, "before"), "first")
        daemon.kill()
        daemon.start()
        answer = reply(bob, own(bob, "before"), "after")
        assert people_of(daemon, answer) == [ada.address, eve.address]
        assert (answer["conversation"], answer["thread"]) == (first["conversation"], first["thread"])


# --- groups and the boss's phone -----------------------------------------------------------------------


def test_a_reply_to_a_post_of_a_group_goes_to_the_group(ada: Party, bob: Party, eve: Party) -> None:
    group = club(ada, bob, eve)
    first = ada.send(group, text="to all")
    answer = reply(bob, own(bob, "to all"), "from bob")
    assert answer["conversation"] == first["conversation"] and "elsewhere" not in answer
    assert bob.get(answer["ids"][0])["to"] == group
    assert hears("from bob", ada, bob, eve) == [ada.name, eve.name]
    assert [one["context"] for one in (got(ada, "from bob")[0], got(eve, "from bob")[0])] == [False, True]


def test_a_reply_to_the_sender_alone_of_a_post_of_a_group_is_private(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(club(ada, bob, eve), text="to all")
    answer = reply(bob, own(bob, "to all"), "only you", to_sender=True)
    assert people_of(daemon, answer) == [ada.address] and answer["elsewhere"]
    back = reply(ada, answer["ids"][0], "and back")
    assert people_of(daemon, back) == [bob.address] and back["conversation"] != first["conversation"]


@pytest.mark.parametrize("narrow", [False, True])
def test_a_reply_to_my_own_post_goes_to_the_group_again(ada: Party, bob: Party, narrow: bool) -> None:
    group = club(ada, bob)
    first = ada.send(group, text="to all")
    answer = reply(ada, first["ids"][0], "once more", to_sender=narrow)
    assert answer["conversation"] == first["conversation"] and hears("once more", bob) == [bob.name]
    assert ada.get(answer["ids"][0])["to"] == group


def test_who_left_a_group_cannot_reply_there(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    group = club(ada, bob)
    ada.send(group, text="to all")
    answered = own(bob, "to all")
    ada.call("participant.remove", conversation=group, address=bob.address)
    before = stored(daemon)
    assert bob.refusal("envelope.send", text="?", reply_to=answered) == "unknown_recipient"
    assert stored(daemon) == before
    assert people_of(daemon, reply(bob, answered, "why?", to_sender=True)) == [ada.address]


def test_a_reply_of_the_boss_on_his_phone_to_a_post_of_a_group_goes_to_the_group(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = Phone(tmp_path).bound(daemon)
    phone.reached()
    ada, bob = agents(daemon, 2)
    first = ada.send(club(ada, bob, "user:boss"), text="the build is red")
    phone.comes_in("u1", text="mend it", reply_to=phone.post_of("the build is red"))
    wait_until(lambda: got(bob, "mend it"))
    (answered,), (beside,) = got(ada, "mend it"), got(bob, "mend it")
    assert {answered["conversation"], beside["conversation"]} == {first["conversation"]}
    assert (answered["sender"], answered["context"], beside["context"]) == ("user:boss", False, True)
    assert [one["text"] for one in phone.owner.list()] == []
    assert [text for text in phone.texts() if "mend it" in text] == []
    boss(daemon).call("boss.set", reach="")
