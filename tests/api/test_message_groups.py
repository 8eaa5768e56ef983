"""Lists of messages and threads of groups: members see what was said during their stays, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agents, boss

_names = iter(f"group-{n}" for n in range(1_000))


def group(owner: Party, *members: Party, **params: Any) -> tuple[str, str]:
    """A new group; its address and its conversation."""
    named = [one.address for one in members]
    made = owner.call("conversation.create", name=next(_names), participants=named, **params)["conversation"]
    return str(made["address"]), str(made["id"])


def texts(party: Party, **params: Any) -> list[str]:
    found = party.call("message.list", **{"sort_order": "asc", "page_size": 100, **params})["messages"]
    return [one["body"]["content"] for one in found if one["body"]["format"] != "event"]


def test_a_message_to_a_group_is_listed_once_and_its_recipient_is_the_group(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    address, talk = group(ada, bob, eve)
    sent = ada.send(address, text="hello all")
    for party in (ada, bob, eve):
        found = party.call("message.list", conversation_id=talk)["messages"]
        (one,) = [one for one in found if one["message_id"] == sent["message"]]
        assert one["to"] == [address]
    assert texts(boss(daemon), conversation_id=talk) == ["hello all"]


def test_a_newcomer_and_a_removed_member_see_what_was_said_while_they_were_members(
    daemon: RunningDaemon,
) -> None:
    ada, bob, eve = agents(daemon, 3)
    address, talk = group(ada, bob)
    ada.send(address, text="1")
    ada.call("participant.add", conversation=talk, address=eve.address)
    ada.send(address, text="2")
    ada.call("participant.remove", conversation=talk, address=bob.address)
    ada.send(address, text="3")
    assert texts(ada, conversation_id=talk) == ["1", "2", "3"]
    assert texts(bob, conversation_id=talk) == ["1", "2"]
    assert texts(eve, conversation_id=talk) == ["2", "3"]


def test_with_history_a_newcomer_sees_the_last_messages_too(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    address, talk = group(ada, bob, history=2)
    for text in ("1", "2", "3"):
        ada.send(address, text=text)
    ada.call("participant.add", conversation=talk, address=eve.address)
    found = texts(eve, conversation_id=talk)
    assert found and "1" not in found and found[-1] == "3"
    message = eve.call("message.list", conversation_id=talk)["messages"][0]["message_id"]
    assert eve.call("message.markRead", message_ids=[message])["marked_count"] == 0


def test_a_stranger_to_a_group_is_not_told_of_it(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    address, talk = group(ada, bob)
    sent = ada.send(address)
    assert eve.refusal("message.list", conversation_id=talk) == "not_found"
    assert eve.refusal("message.get", message_id=sent["message"]) == "not_found"
    assert eve.refusal("thread.get", thread_id=sent["thread"]) == "not_found"


def test_threads_of_a_group_are_listed_for_its_members_only(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    address, talk = group(ada, bob)
    first = ada.send(address, text="question")
    bob.send(reply_to=first["message"], text="answer")

    def listed(party: Party) -> list[tuple[str, str]]:
        found = party.call("thread.list")["threads"]
        return [(one["thread_id"], one["preview"]) for one in found]

    assert listed(ada) == listed(bob) == [(first["thread"], "answer")] and listed(eve) == []
    ada.call("participant.add", conversation=talk, address=eve.address)
    assert listed(eve) == []  # all of it was said before
    ada.send(reply_to=first["message"], text="later")
    assert listed(eve) == [(first["thread"], "later")]
    (seen,) = eve.call("thread.get", thread_id=first["thread"])["messages"]
    assert seen["body"]["content"] == "later"
    ada.call("participant.remove", conversation=talk, address=bob.address)
    assert listed(bob) == []  # he is not in it any more; what he saw he can still read
    assert bob.call("thread.get", thread_id=first["thread"])["total"] >= 2


@pytest.mark.parametrize("mentioned", [True, False])
def test_what_one_only_reads_along_in_a_group_is_not_counted_as_unread(
    daemon: RunningDaemon, mentioned: bool
) -> None:
    ada, bob = agents(daemon, 2)
    address, talk = group(ada, bob)
    ada.send(address, text=f"hello @{bob.name}" if mentioned else "hello")
    page = bob.call("message.list", conversation_id=talk)
    assert page["unread"] == int(mentioned)
    assert [one["is_read"] for one in page["messages"]][:1] == [not mentioned]
