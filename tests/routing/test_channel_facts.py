"""The facts of channels and boxes, as those who follow them hear them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.followers import Follower, following
from tests.support.parties import agent, boss
from tests.support.scripted_channels import Place, lane_error


@pytest.fixture
def follower(daemon: RunningDaemon) -> Iterator[Follower]:
    with following(daemon) as one:
        yield one


def test_the_agent_hears_that_a_message_was_edited_and_that_somebody_reacted_to_it(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    follower.subscribe(place.owner.token, topics=["message.edited", "message.reacted"])
    place.comes_in("u1", text="teh first", message="m1")
    place.comes_in("u2", kind="edit", text="the first", message="m1")
    place.comes_in("u3", kind="edit", text="the first", message="m1")  # nothing new
    place.comes_in("u4", kind="reaction", emoji="👍", message="m1")
    place.comes_in("u5", kind="reaction", emoji="👍", message="m1", removed=True)
    (message,) = place.owner.list()
    about = {"message": message["message"], "from": place.address, "conversation": message["conversation"]}
    told = [follower.next() for _ in range(3)]
    assert all(about.items() <= one.items() for one in told)
    assert [(one["topic"], one.get("emoji"), one.get("removed")) for one in told] == [
        ("message.edited", None, None),
        ("message.reacted", "👍", False),
        ("message.reacted", "👍", True),
    ]


def test_a_binding_that_ends_is_told_to_the_boss_and_each_agent_hears_when_it_is_served_no_more(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    first, last = agent(daemon), agent(daemon)
    place = Place(tmp_path).bound(daemon, first)
    place.bind(last)
    chief = boss(daemon)
    with following(daemon) as of_first, following(daemon) as of_last:
        for one, token in ((follower, chief.token), (of_first, first.token), (of_last, last.token)):
            one.subscribe(token, topics=["binding.removed", "envelope.arrived"])
        place.unbind(first)
        chief.call("agent.delete", name=last.name)
        told = [follower.next("binding.removed") for _ in range(2)]
        binding, account = f"b{place.binding}", f"scripted:{place.name}"
        assert [(one["topic"], one["binding"], one["account"]) for one in told] == [
            ("binding.removed", binding, account)
        ] * 2
        assert [(one["agent"], one["ended"]) for one in told] == [
            (first.address, False),
            (last.address, True),
        ]
        heard = of_first.until("the end", first.token, to=first.address)
        assert [(one["agent"], one["ended"]) for one in heard] == [(first.address, False)]


def test_a_new_topic_of_a_chat_that_waits_is_told_as_waiting_at_once(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(lane_error(kind="rate_limited"))
    follower.subscribe(place.owner.token, topics=["lane.waiting"])
    place.owner.send(f"{place.address}/1", text="too much")
    waits = {follower.next()["address"] for _ in range(2)}
    assert waits == {place.address, f"{place.address}/1"}
    place.owner.send(f"{place.address}/2", text="a new topic")
    told = follower.next()
    assert (told["topic"], told["address"]) == ("lane.waiting", f"{place.address}/2")
    assert told["until"] > told["at"]


def test_an_adapter_that_crashed_is_told_to_the_boss_with_its_error(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    follower.subscribe(boss(daemon).token, topics=["adapter.failed"])
    place.put_in_inbox("u1", wrong="no part of a message")
    told = follower.next()
    assert (told["topic"], told["binding"]) == ("adapter.failed", f"b{place.binding}")
    assert told["error"]


def test_mail_that_is_also_posted_to_the_boss_s_chat_is_told_to_him_as_forwarded(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, chief = Place(tmp_path).bound(daemon), boss(daemon)
    chief.call("boss.set", reach=place.address, forward="all")
    follower.subscribe(chief.token, topics=["envelope.forwarded", "envelope.settled"])
    number = agent(daemon).tell(chief, text="come home")
    forwarded, settled = follower.next("envelope.forwarded"), follower.next("envelope.settled")
    assert forwarded["topic"] == "envelope.forwarded" and forwarded["forwards"] == number
    assert (settled["envelope"], settled["to"]) == (forwarded["envelope"], place.address)
    chief.call("boss.set", reach="")


def test_what_a_recipient_does_with_its_mail_is_told_step_by_step(
    follower: Follower, daemon: RunningDaemon
) -> None:
    ada, bob = agent(daemon), agent(daemon)
    follower.subscribe(bob.token)
    number = ada.tell(bob)
    bob.call("envelope.claim", limit=1)
    bob.call("envelope.release", ids=[number])
    bob.call("envelope.ack", ids=[number])
    bob.call("envelope.archive", ids=[number])
    told = [one for one in follower.until("the end", bob.token, to=bob.address) if one["topic"] != "presence"]
    assert [one["topic"] for one in told] == [
        "envelope.arrived",
        "envelope.claimed",
        "envelope.due",
        "envelope.acknowledged",
        "envelope.moved",
    ]
    assert told[1]["until"] > told[1]["at"] and told[-1]["box"] == "archived"
    assert {one["envelope"] for one in told[1:]} == {number}
