"""`envelope.send` with a conversation instead of recipients: who gets it, who may, and where it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.daemons import started
from tests.support.parties import Party, agent, agents, at_once, boss, person, stored
from tests.support.python_agents import Team, wait_until_idle
from tests.support.scripted_channels import Place, row
from tests.support.waits import wait_until


def say(who: Party, conversation: str, text: str = "here", **params: Any) -> Any:
    return who.call("envelope.send", conversation=conversation, text=text, **params)


def refusal(who: Party, conversation: Any, **params: Any) -> str:
    """Return why it is refused; nothing is stored then."""
    before = stored(who.daemon)
    code = who.refusal("envelope.send", conversation=conversation, text="here", **params)
    assert stored(who.daemon) == before
    return code


def recipients(daemon: RunningDaemon, sent: Any) -> list[str]:
    """Return to whom a message went, in the order of its envelopes."""
    with daemon.database() as database:
        query = """
            SELECT a.kind || ':' || a.name FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? AND e.forwards IS NULL ORDER BY e.id
        """
        return [found[0] for found in database.execute(query, (int(sent["message"][1:]),))]


def club(owner: Party, *members: Party, **fields: Any) -> tuple[str, str]:
    """Create a group; return its conversation and its address."""
    name = f"club-of-{owner.name}"
    given = [one.address for one in members]
    made = owner.call("conversation.create", name=name, participants=given, **fields)
    return made["conversation"]["id"], f"group:{name}"


# --- who gets it ---------------------------------------------------------------------


@pytest.mark.parametrize("named", ["{}", "group:{}", " {} "])
def test_a_conversation_that_is_a_group_may_be_given_by_its_name(ada: Party, bob: Party, named: str) -> None:
    number, address = club(ada, bob)
    sent = say(bob, named.format(address.removeprefix("group:")), key="once")
    assert sent["conversation"] == number
    assert recipients(ada.daemon, sent) == [address, ada.address]
    assert refusal(ada, "no-such-club") == "unknown_recipient"
    assert refusal(ada, address, to=[bob.address]) == "invalid_params"


def test_in_a_private_conversation_it_goes_to_the_other_one(ada: Party, bob: Party) -> None:
    first = ada.send(bob)
    answer = say(bob, first["conversation"])
    assert answer["conversation"] == first["conversation"] and answer["thread"] != first["thread"]
    assert recipients(ada.daemon, answer) == [ada.address] and ada.get(answer["ids"][0])["seq"] == 2


def test_in_an_adhoc_conversation_it_goes_to_all_others(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    first = ada.send(bob, eve)
    answer = say(eve, first["conversation"])
    assert recipients(daemon, answer) == [ada.address, bob.address]
    assert answer["conversation"] == first["conversation"] and "skipped" not in answer
    assert [one["context"] for one in (ada.get(answer["ids"][0]), bob.get(answer["ids"][1]))] == [False] * 2


def test_in_a_group_it_goes_to_the_group(daemon: RunningDaemon, ada: Party, bob: Party, eve: Party) -> None:
    number, address = club(ada, bob, eve)
    sent = say(bob, number)
    assert recipients(daemon, sent) == [address, ada.address, eve.address]
    assert sent["conversation"] == number and len(sent["ids"]) == 1  # of the group, as with its address


def test_in_the_conversation_with_oneself_it_goes_to_oneself(ada: Party) -> None:
    assert recipients(ada.daemon, say(ada, ada.send(ada)["conversation"])) == [ada.address]


def test_with_the_boss_it_is_in_his_box_and_his_answer_comes_back(ada: Party, chief: Party) -> None:
    number = ada.send(chief)["conversation"]
    assert recipients(ada.daemon, say(ada, number)) == [chief.address]
    assert recipients(ada.daemon, say(chief, number)) == [ada.address]


def test_a_deleted_agent_is_left_out_and_named_and_it_stays_in_the_conversation(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.send(bob, eve)["conversation"]
    boss(daemon).call("agent.delete", name=eve.name)
    sent = say(ada, number)
    assert (sent["conversation"], sent["skipped"]) == (number, [eve.address])
    assert recipients(daemon, sent) == [bob.address]
    boss(daemon).call("agent.delete", name=bob.name)
    assert refusal(ada, number) == "unknown_recipient"


def test_who_has_the_name_of_a_deleted_agent_later_does_not_get_it(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.send(bob)["conversation"]
    boss(daemon).call("agent.delete", name=bob.name)
    later = agent(daemon, bob.name)
    assert refusal(ada, number) == "unknown_recipient" and refusal(later, number) == "not_found"


def test_agent_system_reads_nothing(ada: Party, bob: Party) -> None:
    ada.call("agent.notify", name=bob.name, when="idle")
    wait_until(lambda: any(one["from"] == "agent:system" for one in ada.list()))
    [notice] = [one for one in ada.list() if one["from"] == "agent:system"]
    assert refusal(ada, notice["conversation"]) == "unknown_recipient"


# --- who may -------------------------------------------------------------------------


def test_who_is_not_in_it_does_not_find_it(daemon: RunningDaemon, ada: Party, bob: Party, eve: Party) -> None:
    private, (group, _) = ada.send(bob)["conversation"], club(ada, bob)
    assert {refusal(eve, number) for number in (private, group, "c999999")} == {"not_found"}
    assert refusal(boss(daemon), private) == "not_found"  # he is none of the two


def test_who_left_a_group_does_not_find_it_any_more(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number, address = club(ada, bob, eve)
    bob.call("participant.leave", conversation=number)
    assert refusal(bob, number) == "not_found"
    assert recipients(daemon, say(ada, number)) == [address, eve.address]
    ada.call("participant.add", conversation=number, address=bob.address)
    assert recipients(daemon, say(bob, number)) == [address, ada.address, eve.address]


def test_the_boss_may_speak_in_any_group_and_as_anybody_in_theirs(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    chief, (group, address) = boss(daemon), club(ada, bob)
    private = ada.send(bob)["conversation"]
    assert recipients(daemon, say(chief, group)) == [address, ada.address, bob.address]
    assert recipients(daemon, say(chief, private, **{"from": ada.address})) == [bob.address]
    assert refusal(ada, private, **{"from": bob.address}) == "boss_only"


def test_a_person_besides_the_boss_speaks_in_its_own_conversations_only(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    ann = person(daemon)
    own, foreign = ada.send(ann)["conversation"], ada.send(bob)["conversation"]
    assert recipients(daemon, say(ann, own)) == [ada.address]
    assert refusal(ann, foreign) == "not_found"


def test_a_restricted_agent_may_not_send_there_either(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    number = bob.send(ada)["conversation"]
    boss(daemon).call("agent.permission.set", name=ada.name, level="restricted")
    assert refusal(ada, number) == "forbidden"


def test_an_archived_conversation_takes_nothing_and_a_deleted_group_is_not_found(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.send(bob)["conversation"]
    boss(daemon).call("conversation.archive", conversation=number)
    assert refusal(ada, number) == "archived" and refusal(eve, number) == "not_found"
    boss(daemon).call("conversation.archive", conversation=number, archived=False)
    assert say(ada, number)["conversation"] == number
    group, _ = club(ada, bob)
    ada.call("conversation.archive", conversation=group)
    assert refusal(bob, group) == "archived" and refusal(eve, group) == "not_found"
    ada.call("conversation.delete", conversation=group)
    assert refusal(ada, group) == refusal(boss(daemon), group) == "not_found"


def test_in_the_group_of_all_agents_the_right_to_broadcast_is_needed(
    daemon: RunningDaemon, ada: Party
) -> None:
    number = boss(daemon).send("group:all")["conversation"]
    assert refusal(ada, number) == "forbidden"
    assert say(boss(daemon), number)["conversation"] == number


# --- replies, keys, deferral ---------------------------------------------------------


def test_with_reply_to_it_is_in_that_thread_and_in_that_conversation(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    all_of_them, first = ada.send(bob, eve), ada.send(bob)
    sent = say(bob, all_of_them["conversation"], reply_to=first["ids"][0])
    assert (sent["conversation"], sent["thread"]) == (all_of_them["conversation"], first["thread"])
    assert recipients(daemon, sent) == [ada.address, eve.address] and "elsewhere" not in sent
    along = [boss(daemon).get(number)["context"] for number in sent["ids"]]
    assert along == [False, True]  # it answers ada; eve reads it along
    assert refusal(bob, all_of_them["conversation"], reply_to=ada.send(eve)["ids"][0]) == "not_found"


def test_a_repeated_send_with_the_same_key_answers_the_first_answer(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.send(bob, eve)["conversation"]
    first = say(ada, number, key="once")
    again = say(ada, number[1:], key="once")  # type: ignore[arg-type]
    assert again == {**first, "duplicate": True}
    assert ada.refusal("envelope.send", to=bob.address, text="here", key="once") == "key_reused"
    other = ada.send(bob)["conversation"]
    assert ada.refusal("envelope.send", conversation=other, text="here", key="once") == "key_reused"
    boss(daemon).call("agent.delete", name=eve.name)
    assert say(ada, number, key="once")["ids"] == first["ids"]  # also when it would be refused now


def test_two_with_the_same_key_at_once_send_it_once(ada: Party, bob: Party) -> None:
    number = ada.send(bob)["conversation"]
    found = at_once([lambda: say(ada, number, key="same")] * 2)
    assert found[0]["ids"] == found[1]["ids"] and sorted(one["duplicate"] for one in found) == [False, True]


def test_deferred_for_a_group_it_waits_with_the_group(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    number, address = club(ada, bob)
    sent = say(ada, number, deliver_at="+1h")
    assert recipients(daemon, sent) == [address] and sent["deliver_at"]
    private = ada.send(bob)["conversation"]
    later = say(bob, private, deliver_at="+1h")
    assert recipients(daemon, later) == [ada.address] and later["conversation"] == private


def test_attachments_and_deadlines_go_with_it(ada: Party, bob: Party, tmp_path: Path) -> None:
    number = ada.send(bob)["conversation"]
    file = tmp_path / "plan.txt"
    file.write_text("1. read")
    got = bob.get(say(ada, number, attachments=[str(file)], ack_by="30m")["ids"][0])
    assert [one["name"] for one in got["attachments"]] == ["plan.txt"] and got["ack_by"]


# --- runs, channels, restarts --------------------------------------------------------


def test_what_a_run_says_there_belongs_to_the_run(daemon: RunningDaemon, tmp_path: Path) -> None:
    body = """
found = re.search(r"say in (c[0-9]+)", TURN)
note(call("envelope.send", conversation=found[1], text="from the run"))
print("NO_REPLY")
"""
    worker, (eve,) = Team(daemon, tmp_path).hire(body), agents(daemon, 1)
    own, foreign = eve.send(worker, deliver_at="+9h")["conversation"], eve.send(eve)["conversation"]
    for number in (own, foreign):
        boss(daemon).send(worker, text=f"say in {number}")
        wait_until_idle(daemon)
    sent, refused = worker.program.notes()
    assert eve.get(sent["ids"][0])["run"] == worker.runs()[0]["id"]
    assert refused["code"] == "not_found"


def test_a_chat_gets_it_by_the_account_that_it_last_wrote_by(daemon: RunningDaemon, tmp_path: Path) -> None:
    owner = agent(daemon)
    places = [Place(tmp_path).settings(places=["lobby"]).bound(daemon, owner) for _ in range(2)]
    chat = "channel:scripted:lobby"
    conversations = set()
    for turn, place in enumerate([*places, places[0], places[1]]):
        place.comes_in(f"u{turn}", text=f"hello {turn}", place="lobby")
        came = next(one for one in owner.list(page_size=100) if one["text"] == f"hello {turn}")
        conversations.add(came["conversation"])
        sent = say(owner, came["conversation"], text=f"answer {turn}")
        assert recipients(daemon, sent) == [chat] and row(daemon, sent["ids"][0])["binding"] == place.binding
    assert len(conversations) == 1


def test_a_chat_that_is_not_bound_any_more_is_refused(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    number = place.owner.send(place.address)["conversation"]
    assert recipients(daemon, say(place.owner, number)) == [place.address]
    place.unbind()
    assert refusal(place.owner, number) == "not_bound"


def test_who_got_the_conversation_of_an_agent_speaks_there_in_its_place(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = ada.send(bob)["conversation"]
    boss(daemon).call(
        "control.send", event="stream.route", conversation=number, agent=bob.name, to=eve.address
    )
    sent = say(eve, number)
    assert recipients(daemon, sent) == [ada.address] and sent["conversation"] == number


@pytest.mark.slow
def test_it_holds_over_a_restart(tmp_path: Path) -> None:
    with started(tmp_path) as running:
        ada, bob, eve = agents(running, 3)
        number = ada.send(bob, eve)["conversation"]
        running.kill()
        running.start()
        assert recipients(running, say(bob, number)) == [ada.address, eve.address]


def test_the_command_line_says_it_in_a_conversation(ada: Party, bob: Party) -> None:
    number = ada.send(bob)["conversation"]
    done = Shell(ada.daemon.home.path)(
        "envelope", "send", "--conversation", number, "--text", "here", env={"HIBOSS_TOKEN": bob.token}
    )
    assert ada.list()[0]["text"] == "here" and done.record["id"] == ada.list()[0]["id"]
