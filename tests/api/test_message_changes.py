"""Who may change a message that was sent, who is told of it, and what goes with it when it is deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agents, boss
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import notices
from tests.support.waits import wait_until

OLD, NEW, LAST = "the old words", "the new words", "the last words"
_numbers = itertools.count(1)


def group(owner: Party, *members: Party, **params: Any) -> tuple[str, str]:
    """A new group; its address and its conversation."""
    named = [one.address for one in members]
    name = f"club-{next(_numbers)}"
    made = owner.call("conversation.create", name=name, participants=named, **params)["conversation"]
    return str(made["address"]), str(made["id"])


def leaves(who: Party, talk: str, owner: Party) -> None:
    owner.call("participant.remove", conversation=talk, address=who.address)


def due(party: Party) -> list[str]:
    return [one["text"] for one in party.list(status="pending")]


def shown_to(party: Party) -> str:
    """All that somebody is shown in lists, threads, the briefing, polls and the preview of a turn."""
    views: list[Any] = [
        party.call("message.list", page_size=100),
        party.call("envelope.list", page_size=100),
        party.call("envelope.list", box="outbox"),
        party.call("thread.list"),
        party.call("envelope.poll", session="a look"),
    ]
    if party.address.startswith("agent:"):
        views += [party.call("agent.briefing"), party.call("turn.preview")]
    for one in party.call("conversation.list")["conversations"]:
        views.append(party.call("conversation.messages", conversation=one["id"]))
    for one in views[0]["messages"]:
        views.append(party.call("message.get", message_id=one["message_id"]))
        views.append(party.call("thread.get", thread_id=one["thread_id"]))
        views.append(party.call("envelope.trace", id=one["message_id"]))
    return str(views)


# --- who wrote it ------------------------------------------------------------------------


@pytest.mark.parametrize("from_boss", [True, False])
def test_what_the_boss_wrote_in_the_name_of_an_agent_only_the_boss_changes(
    ada: Party, bob: Party, from_boss: bool, chief: Party
) -> None:
    sent = chief.send(bob, from_=ada.address, from_boss=from_boss, text=OLD)
    number = sent["message"]
    bob.call("envelope.ack", ids=sent["ids"])
    for method, params in (("message.edit", {"text": "forged"}), ("message.delete", {})):
        with pytest.raises(Answered, match="was written by user:boss; only its author"):
            ada.call(method, id=number, **params)
    assert chief.call("message.edit", id=number, text=NEW)["changed"]
    (told,) = [one["message"] for one in bob.list() if one["message"] != number]
    assert ada.refusal("message.delete", id=told) in ("not_author", "not_found")
    chief.call("message.delete", id=number)
    assert ada.refusal("message.restore", id=number) == "not_author"
    with pytest.raises(Answered, match=f"was written by {ada.address}"):  # what others are shown
        bob.call("message.edit", id=number, text="x")


def test_what_the_boss_deleted_only_the_boss_restores_whoever_wrote_it(
    ada: Party, bob: Party, chief: Party
) -> None:
    own, in_its_name = ada.send(bob), chief.send(bob, from_=ada.address)
    for one in (own, in_its_name):
        chief.call("message.delete", id=one["message"])
        assert {party.refusal("message.restore", id=one["message"]) for party in (ada, bob)} == {"not_author"}
        assert chief.call("message.restore", id=one["message"])["changed"]


# --- what repeats its text ---------------------------------------------------------------


def test_a_deleted_message_takes_its_new_wordings_and_the_notices_that_quote_it_along(
    ada: Party, bob: Party, chief: Party
) -> None:
    by_boss, by_ada = chief.send(bob, text=OLD), ada.send(bob, text=OLD)
    bob.call("envelope.ack", ids=[*by_boss["ids"], *by_ada["ids"]])
    for party, sent in ((chief, by_boss), (ada, by_ada)):
        party.call("message.edit", id=sent["message"], text=NEW)
    assert sorted(due(bob)) == sorted(
        [NEW, f'{ada.address} edited {by_ada["message"]}. It now reads: "{NEW}"']
    )
    for party, sent in ((chief, by_boss), (ada, by_ada)):
        done = party.call("message.delete", id=sent["message"], reason="a mistake")
        assert (done["changed"], done["cancelled"]) == (True, 1)
    assert due(bob) == [] and bob.call("envelope.claim")["envelopes"] == []
    for party in (ada, bob, chief):
        seen = shown_to(party)
        assert OLD not in seen and NEW not in seen


def test_wordings_that_were_done_go_too_and_come_back_with_the_message(bob: Party, chief: Party) -> None:
    sent = chief.send(bob, text=OLD)
    bob.call("envelope.ack", ids=sent["ids"])
    for text in (NEW, LAST):
        chief.call("message.edit", id=sent["message"], text=text)
        bob.call("envelope.ack", ids=bob.ids(status="pending"))
    before = [(one["id"], one["text"]) for one in bob.list()]
    assert [text for _, text in before] == [LAST, NEW, LAST]
    alone = bob.list()[1]["message"]
    chief.call("message.delete", id=alone, reason="only this one")
    chief.call("message.delete", id=sent["message"])
    assert [one["text"] for one in bob.list()] == [""] * 3
    chief.call("message.restore", id=sent["message"])
    assert [one["text"] for one in bob.list()] == [LAST, "", LAST]  # the other was deleted for itself
    chief.call("message.restore", id=alone)
    assert [(one["id"], one["text"]) for one in bob.list()] == before


@frozen()
async def test_what_was_deleted_for_itself_in_the_same_millisecond_stays_deleted(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    await daemon.send("agent:kai", who="nex", text=OLD)
    (sent,) = daemon.rows("SELECT id FROM message WHERE text = ?", OLD)
    await daemon.ask("envelope.ack", "kai", all=True)
    await daemon.ask("message.edit", "nex", id=f"m{sent[0]}", text=NEW)  # a message of its own tells it
    told = daemon.rows("SELECT id FROM message WHERE reply_to = ?", sent[0])[-1][0]
    await daemon.ask("message.delete", "boss", id=f"m{told}")
    await daemon.ask("message.delete", "boss", id=f"m{sent[0]}")
    await daemon.ask("message.restore", "boss", id=f"m{sent[0]}")
    assert [row[0] for row in daemon.rows("SELECT id FROM message WHERE deleted_at IS NOT NULL")] == [told]


def test_a_notice_that_mail_was_not_acknowledged_goes_with_the_mail(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    chief, words = boss(daemon), "to be acknowledged at once"
    sent = ada.send(bob, text=words, ack_by="1s")
    wait_until(lambda: notices(ada) and words in str(chief.list()))
    assert "was not acknowledged" in notices(ada)[0]["text"]
    ada.call("message.delete", id=sent["message"])
    for party in (ada, bob, chief):
        assert words not in shown_to(party)
    ada.call("message.restore", id=sent["message"])
    assert words in str(ada.list()) and words in str(chief.list())


def test_a_paused_agent_does_not_get_the_new_wording_of_what_was_deleted(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire('note(TEXTS); print("fine")')
    sent = chief.say_and_wait(worker, text="do A")
    chief.call("agent.pause", name=worker.name)
    chief.call("message.edit", id=sent["message"], text="do B instead")
    chief.call("message.delete", id=sent["message"])
    chief.call("agent.resume", name=worker.name)
    chief.say_and_wait(worker, text="go on")
    assert worker.program.notes() == [["do A"], ["go on"]]
    assert "do B instead" not in str(worker.program.turns())


# --- in groups ---------------------------------------------------------------------------


def test_an_edit_in_a_group_is_told_to_nobody_who_left_it(
    ada: Party, bob: Party, eve: Party, chief: Party
) -> None:
    address, talk = group(chief, ada, bob, eve)
    by_boss = chief.send(address, text=f"{OLD} @all")
    by_ada = ada.send(address, text=f"{OLD} @all")
    for party in (bob, eve):
        party.call("envelope.ack", all=True)
    leaves(eve, talk, chief)
    seen = len(eve.list(page_size=100))
    chief.call("message.edit", id=by_boss["message"], text=f"{NEW} @all")
    ada.call("message.edit", id=by_ada["message"], text=f"{NEW} @all")
    assert len(due(bob)) == 2 and due(eve) == [] and len(eve.list(page_size=100)) == seen


def test_a_new_wording_that_waits_for_who_left_the_group_is_cancelled_by_the_next_edit(
    bob: Party, eve: Party, chief: Party
) -> None:
    address, talk = group(chief, bob, eve)
    sent = chief.send(address, text=f"{OLD} @all")
    for party in (bob, eve):
        party.call("envelope.ack", all=True)
    chief.call("message.edit", id=sent["message"], text=f"{NEW} @all")
    leaves(eve, talk, chief)
    chief.call("message.edit", id=sent["message"], text=f"{LAST} @all")
    assert due(bob) == [f"{LAST} @all"] and due(eve) == []


def test_an_edit_of_the_boss_is_new_mail_only_for_agents_that_had_it_to_answer(
    bob: Party, eve: Party, chief: Party
) -> None:
    address, _ = group(chief, bob, eve)
    sent = chief.send(address, text=f"{OLD} @{bob.name}")
    bob.call("envelope.ack", all=True)
    chief.call("message.edit", id=sent["message"], text=f"{NEW} @{bob.name}")
    assert due(bob) == [f"{NEW} @{bob.name}"] and due(eve) == []
    (along,) = [one for one in eve.list() if one["message"] == sent["message"]]
    assert along["text"] == f"{NEW} @{bob.name}" and along["context"]
    assert eve.call("message.list", unread=True)["total"] == 0
    nobody = chief.send(address, text=OLD)
    before = len(chief.call("message.list", thread_id=nobody["thread"])["messages"])
    chief.call("message.edit", id=nobody["message"], text=NEW)
    assert len(chief.call("message.list", thread_id=nobody["thread"])["messages"]) == before


def test_who_left_a_group_changes_nothing_there_but_takes_back_what_is_its_own(
    ada: Party, bob: Party, eve: Party
) -> None:
    address, talk = group(ada, bob, eve)
    own, other = eve.send(address, text=OLD), bob.send(address, text="hello")
    eve.call("reaction.set", id=other["message"], emoji="👍")
    leaves(eve, talk, ada)
    with pytest.raises(Answered, match=f"{eve.address} is not a member of {address}"):
        eve.call("message.edit", id=own["message"], text=NEW)
    assert eve.refusal("reaction.set", id=other["message"], emoji="🎉") == "not_member"
    assert eve.call("reaction.remove", id=other["message"])["changed"]
    assert [one["text"] for one in bob.list() if one["message"] == own["message"]] == [OLD]
    assert eve.call("message.delete", id=own["message"])["changed"]
    ada.call("participant.add", conversation=talk, address=eve.address)
    eve.call("message.restore", id=own["message"])
    assert eve.call("message.edit", id=own["message"], text=NEW)["changed"]
    assert eve.call("reaction.set", id=other["message"], emoji="🎉")["changed"]


def test_the_boss_edits_and_reacts_in_a_group_that_he_is_not_in(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    address, _ = group(ada, bob)
    sent = boss(daemon).send(address, text=OLD)
    assert boss(daemon).call("message.edit", id=sent["message"], text=NEW)["changed"]
    assert boss(daemon).call("reaction.set", id=sent["message"], emoji="👍")["changed"]


def test_what_was_said_to_all_agents_its_author_edits_and_they_react_to(
    daemon: RunningDaemon, bob: Party, eve: Party
) -> None:
    boss(daemon).call("agent.permission.set", name=eve.name, level="privileged")
    sent = eve.send("group:all", text=OLD)
    assert eve.call("message.edit", id=sent["message"], text=NEW)["changed"]
    assert bob.call("reaction.set", id=sent["message"], emoji="👍")["changed"]


def _archived(ada: Party, bob: Party) -> Any:
    address, talk = group(ada, bob)
    sent = ada.send(address, text=OLD)
    ada.call("conversation.archive", conversation=talk)
    return sent


def _archived_private(ada: Party, bob: Party) -> Any:
    sent = ada.send(bob, text=OLD)
    boss(ada.daemon).call("conversation.archive", conversation=sent["conversation"])
    return sent


@pytest.mark.parametrize("closed", [_archived, _archived_private])
def test_an_archived_conversation_refuses_edits_and_lets_its_messages_be_deleted(
    daemon: RunningDaemon, ada: Party, bob: Party, closed: Callable[[Party, Party], Any]
) -> None:
    sent = closed(ada, bob)
    assert ada.refusal("message.edit", id=sent["message"], text=NEW) == "archived"
    assert ada.call("message.delete", id=sent["message"])["changed"]
    assert ada.call("message.restore", id=sent["message"])["changed"]
    boss(daemon).call("conversation.archive", conversation=sent["conversation"], archived=False)
    assert ada.call("message.edit", id=sent["message"], text=NEW)["changed"]


def test_what_was_said_in_a_deleted_group_is_not_edited_any_more(ada: Party, bob: Party) -> None:
    address, talk = group(ada, bob)
    sent = ada.send(address, text=OLD)
    ada.call("conversation.delete", conversation=talk)
    assert ada.refusal("message.edit", id=sent["message"], text=NEW) == "too_late"
    assert bob.refusal("reaction.set", id=sent["message"], emoji="👍") == "too_late"
    assert ada.call("message.delete", id=sent["message"])["changed"]


# --- notices and filters -----------------------------------------------------------------


def test_several_edits_in_a_row_leave_one_unread_notice_for_each_agent(daemon: RunningDaemon) -> None:
    ada, bob, eve, joe = agents(daemon, 4)
    sent = ada.send(bob, eve, joe, text="0")
    for party, number in zip((bob, eve, joe), sent["ids"], strict=True):
        party.call("envelope.ack", ids=[number])
    for text in ("1", "2"):
        ada.call("message.edit", id=sent["message"], text=text)
    eve.call("envelope.read", ids=[notices(eve)[0]["id"]])
    joe.call("envelope.poll", session="one")
    ada.call("message.edit", id=sent["message"], text="3")
    said = f"{ada.address} edited {sent['message']}. It now reads: "
    assert [one["text"] for one in notices(bob)] == [f'{said}"3"']
    assert sorted(one["text"] for one in notices(eve)) == [f'{said}"2"', f'{said}"3"']
    assert [one["text"] for one in notices(joe)] == [f'{said}"3"']
    (announced,) = joe.call("envelope.poll", session="one")["envelopes"]
    assert announced["text"] == f'{said}"3"'
    assert bob.call("message.list", unread=True)["total"] == 1


def test_a_deleted_message_is_found_by_none_of_its_tags(ada: Party, bob: Party) -> None:
    tags: dict[str, Any] = {
        "scopes": [{"type": "module", "value": "a"}],
        "refs": [{"type": "issue", "value": "4"}],
    }
    sent = ada.send(bob, text=f"hello @{bob.name}", **tags)
    filters: list[dict[str, Any]] = [
        {"scope": tags["scopes"][0]},
        {"ref": tags["refs"][0]},
        {"ref": {"type": "mention", "value": bob.name}},
        {"mentions": True},
        {"mentions": True, "scope": tags["scopes"][0]},
        {"thread_id": sent["thread"], "scope": tags["scopes"][0]},
    ]

    def found() -> list[tuple[int, int]]:
        lists = [bob.call("message.list", **one) for one in filters]
        envelopes = [bob.call("envelope.list", mentions=True), bob.call("envelope.list", **filters[0])]
        return [(len(one["messages"]), one["total"]) for one in lists] + [
            (len(one["envelopes"]), 0) for one in envelopes
        ]

    assert found() == [(1, 1)] * len(filters) + [(1, 0)] * 2
    ada.call("message.delete", id=sent["message"])
    assert found() == [(0, 0)] * (len(filters) + 2)
    ada.call("message.restore", id=sent["message"])
    assert found() == [(1, 1)] * len(filters) + [(1, 0)] * 2
