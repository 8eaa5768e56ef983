"""Groups over the socket: who may do what, who gets and reads what, and that others learn nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.followers import following
from tests.support.parties import Party, agents, at_once, boss, checked_daemon, person
from tests.support.raising import raised


def group(owner: Party, name: str, *members: Party | str, **params: Any) -> Any:
    """Create a group and return it."""
    named = [one.address if isinstance(one, Party) else one for one in members]
    return owner.call("conversation.create", name=name, participants=named, **params)["conversation"]


def roles(party: Party, name: str) -> dict[str, str]:
    found = party.call("conversation.get", conversation=f"group:{name}")["participants"]
    return {one["address"]: one["role"] for one in found}


def texts(party: Party, name: str, **params: Any) -> list[str]:
    page = party.call("conversation.messages", conversation=name, page_size=100, **params)
    return [one["text"] for one in page["envelopes"]]


# --- creating ------------------------------------------------------------------------


def test_a_group_keeps_who_created_it_and_what_was_said_of_it(ada: Party, bob: Party) -> None:
    facts = {"description": "the core", "metadata": {"wiki": "/core"}, "history": 4, "open": True}
    made = group(ada, "kept", bob, **facts)
    assert made == made | facts | {"type": "group", "name": "kept", "address": "group:kept"}
    assert made["created_by"] == ada.address and made["created_at"] and made["role"] == "owner"
    [first, second] = ada.call("conversation.get", conversation="kept")["participants"]
    assert (first["role"], second["role"], second["respond"]) == ("owner", "member", "mentioned")
    assert second["joined_at"] and second["joined_seq"] == 1
    ada.call("conversation.delete", conversation="kept", reason="it was a test")
    old = ada.call("conversation.get", conversation=made["id"])["conversation"]
    assert (old["deleted_by"], old["delete_reason"]) == (ada.address, "it was a test") and old["deleted_at"]


def test_a_name_is_that_of_one_agent_one_person_or_one_group(ada: Party, chief: Party) -> None:
    group(ada, "One-Name")
    assert ada.refusal("conversation.create", name="one-name") == "name_taken"
    assert ada.refusal("conversation.create", name=ada.name.upper()) == "name_taken"
    assert chief.refusal("agent.register", name="ONE-NAME") == "name_taken"
    assert chief.refusal("user.register", name="one-NAME") == "name_taken"
    assert ada.refusal("conversation.create", name=person(ada.daemon).name.title()) == "name_taken"
    assert {
        ada.refusal("conversation.create", name=bad) for bad in ("", "a b", "-a", "x" * 65, "boss", "system")
    } == {"bad_name"}
    assert ada.refusal("conversation.create") == "invalid_params"


# --- members -------------------------------------------------------------------------


def test_re_adding_a_member_keeps_the_role(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    group(ada, "kept-roles", bob)
    ada.call("participant.role", conversation="kept-roles", address=bob.address, role="admin")
    for adder, who, fields in ((ada, bob, {}), (bob, ada, {}), (boss(daemon), ada, {"role": "member"})):
        again = adder.call("participant.add", conversation="kept-roles", address=who.address, **fields)
        assert again["changed"] is False
    assert roles(ada, "kept-roles") == {ada.address: "owner", bob.address: "admin"}
    set_ = ada.call("participant.add", conversation="kept-roles", address=bob.address, respond="all")
    assert set_["changed"] and [one["respond"] for one in set_["participants"]] == ["mentioned", "all"]
    assert roles(ada, "kept-roles")[bob.address] == "admin"


def test_the_owner_cannot_leave_or_be_removed_but_can_transfer(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    group(ada, "owned", bob)
    assert ada.refusal("participant.leave", conversation="owned") == "owner_stays"
    ada.call("participant.role", conversation="owned", address=bob.address, role="admin")
    for remover in (ada, bob, boss(daemon)):
        error = refused(remover, "participant.remove", conversation="owned", address=ada.address)
        assert error.stable_code == "owner_stays" and "hiboss group transfer group:owned" in error.message
    lowered = {"conversation": "owned", "address": ada.address, "role": "member"}
    assert boss(daemon).refusal("participant.role", **lowered) == "owner_stays"
    assert bob.refusal("participant.transfer", conversation="owned", address=bob.address) == "not_manager"
    ada.call("participant.transfer", conversation="owned", address=bob.address)
    assert roles(bob, "owned") == {bob.address: "owner", ada.address: "admin"}
    ada.call("participant.leave", conversation="owned")
    assert roles(bob, "owned") == {bob.address: "owner"}


def test_of_two_transfers_at_once_one_wins(daemon: RunningDaemon, ada: Party, bob: Party, eve: Party) -> None:
    group(ada, "contested", bob, eve)
    transfer = partial(ada.call, "participant.transfer", conversation="contested")
    found = at_once([partial(transfer, address=one.address) for one in (bob, eve)])
    assert [one.stable_code for one in found if isinstance(one, Answered)] == ["not_manager"]
    after = roles(boss(daemon), "contested")
    assert sorted(after.values()) == ["admin", "member", "owner"] and after[ada.address] == "admin"


def test_two_groups_of_one_name_at_once_are_one(daemon: RunningDaemon) -> None:
    found = at_once([partial(group, one, "only-one") for one in agents(daemon, 4)])
    assert [one.stable_code for one in found if isinstance(one, Answered)] == ["name_taken"] * 3
    assert len(roles(boss(daemon), "only-one")) == 1


def test_a_removed_member_neither_receives_nor_sends_from_the_next_moment_on(
    ada: Party, bob: Party, eve: Party
) -> None:
    made = group(ada, "parting", bob, eve)
    ada.send("group:parting", text="one")
    bob.send("group:parting", text="two")
    late = ada.send("group:parting", text="late", deliver_at="+2h")
    ada.call("participant.remove", conversation="parting", address=bob.address)
    assert bob.refusal("envelope.send", to="group:parting", text="x") == "unknown_recipient"
    reply = bob.list()[0]["id"]
    assert bob.refusal("envelope.send", reply_to=reply, text="x") in ("unknown_recipient", "not_member")
    ada.send("group:parting", text="three")
    assert [one["text"] for one in bob.list()] == ["one"]
    assert texts(bob, made["id"]) == ["one", "two"] and texts(eve, made["id"]) == ["one", "two", "three"]
    seen = bob.call("conversation.get", conversation=made["id"])
    assert (seen["conversation"]["role"], seen["conversation"]["last_seq"]) == (None, 2)
    assert seen["participants"] == [] and seen["conversation"]["participants"] == 0
    assert late["ids"][0] not in [one["id"] for one in bob.list()]


def test_a_stay_shows_what_was_said_in_it_and_history_what_was_before(daemon: RunningDaemon) -> None:
    ada, bob, eve, mia = agents(daemon, 4)
    made = group(ada, "stays", bob, history=1)
    for text in ("one", "two"):
        ada.send("group:stays", text=text)
    ada.call("participant.add", conversation="stays", address=eve.address)
    ada.call("participant.add", conversation="stays", address=mia.address, history=9)
    ada.call("participant.role", conversation="stays", address=bob.address, role="admin")
    ada.call("participant.remove", conversation="stays", address=bob.address)
    ada.send("group:stays", text="three")
    ada.call("participant.add", conversation="stays", address=bob.address, history=0)
    assert roles(ada, "stays")[bob.address] == "member"
    ada.send("group:stays", text="four")
    assert texts(bob, "stays") == ["one", "two", "four"] and texts(eve, "stays") == ["two", "three", "four"]
    assert texts(mia, "stays") == ["one", "two", "three", "four"]
    page = bob.call("conversation.messages", conversation=made["id"], after_seq=0)
    assert (page["first_seq"], page["last_seq"]) == (1, 4)
    assert page["visible"] == [{"first": 1, "last": 2}, {"first": 4, "last": 4}]


def test_open_groups_are_found_and_joined_and_closed_ones_are_not(
    daemon: RunningDaemon, ada: Party, bob: Party, chief: Party
) -> None:
    mia = person(daemon, "mia")
    group(ada, "topic-a", open=True)
    group(ada, "secret-a")
    for one in (bob, mia):
        found = one.call("conversation.list", scope="open")["conversations"]
        names = [conversation["name"] for conversation in found]
        assert "topic-a" in names and "secret-a" not in names and names[0] == "all"
        error = refused(one, "envelope.send", to="group:topic-a", text="x")
        assert error.stable_code == "not_member" and "hiboss group join topic-a" in error.message
        assert one.call("participant.join", conversation="topic-a")["changed"] is True
        assert one.call("participant.join", conversation="topic-a")["changed"] is False
        assert one.refusal("participant.join", conversation="secret-a") == "unknown_group"
        one.send("group:topic-a", text=f"hello from {one.name}")
    ada.call("conversation.set", conversation="topic-a", open=False)
    mia.call("participant.leave", conversation="topic-a")
    assert mia.refusal("participant.join", conversation="topic-a") == "group_closed"
    assert texts(mia, "topic-a")[-1] == "hello from mia"
    every = [one["name"] for one in chief.call("conversation.list", scope="all")["conversations"]]
    assert {"topic-a", "secret-a"} <= set(every)
    assert bob.refusal("conversation.list", scope="all") == "boss_only"


def test_a_foreign_group_reveals_nothing(ada: Party, bob: Party, eve: Party) -> None:
    made = group(ada, "hidden", bob, description="plans")
    ada.send("group:hidden", text="a secret")
    for name in ("group:hidden", "hidden", made["id"]):
        nowhere = "c999999" if name == made["id"] else "group:not-there"
        for method, params in (
            ("conversation.get", {}),
            ("conversation.messages", {}),
            ("conversation.markRead", {}),
            ("conversation.set", {"open": True}),
            ("conversation.archive", {}),
            ("conversation.delete", {}),
            ("participant.add", {"address": eve.address}),
            ("participant.remove", {"address": bob.address}),
            ("participant.role", {"address": bob.address, "role": "admin"}),
            ("participant.transfer", {"address": eve.address}),
            ("participant.join", {}),
            ("participant.leave", {}),
        ):
            there = refused(eve, method, conversation=name, **params)
            other = refused(eve, method, conversation=nowhere, **params)
            assert there.stable_code == other.stable_code in ("unknown_group", "not_found"), method
            assert "plans" not in there.message and ada.name not in there.message
    sent = [refused(eve, "envelope.send", to=to, text="x") for to in ("group:hidden", "group:hiddem")]
    assert [one.stable_code for one in sent] == ["unknown_recipient"] * 2
    assert "hidden" not in sent[1].message  # no advice to write to it
    assert eve.call("conversation.list", type="group", past=True)["conversations"][1:] == []


def refused(party: Party, method: str, **params: Any) -> Answered:
    return raised(Answered, party.call, method, **params)


def test_admins_manage_members_and_members_manage_nothing(daemon: RunningDaemon, chief: Party) -> None:
    ada, bob, eve, mia = agents(daemon, 4)
    group(ada, "managed", bob, eve)
    for method, params in (
        ("participant.add", {"address": mia.address}),
        ("participant.remove", {"address": eve.address}),
        ("participant.role", {"address": eve.address, "role": "admin"}),
        ("participant.role", {"address": eve.address, "respond": "all"}),
        ("conversation.set", {"description": "mine"}),
        ("conversation.archive", {}),
        ("conversation.delete", {}),
    ):
        assert bob.refusal(method, conversation="managed", **params) == "not_manager", method
    ada.call("participant.role", conversation="managed", address=bob.address, role="admin")
    bob.call("participant.add", conversation="managed", address=mia.address)
    bob.call("participant.role", conversation="managed", address=eve.address, respond="all")
    bob.call("participant.remove", conversation="managed", address=eve.address)
    bob.call("conversation.set", conversation="managed", description="ours")
    for method, params in (
        ("participant.role", {"address": mia.address, "role": "admin"}),
        ("participant.add", {"address": eve.address, "role": "admin"}),
        ("participant.transfer", {"address": bob.address}),
        ("conversation.delete", {}),
    ):
        assert bob.refusal(method, conversation="managed", **params) == "not_manager", method
    own = mia.call("participant.role", conversation="managed", address=mia.address, respond="never")
    assert own["changed"] and own["conversation"]["respond"] == "never"
    for changed in (True, False):
        made = chief.call("participant.role", conversation="managed", address=mia.address, role="admin")
        assert made["changed"] is changed
    assert bob.refusal("participant.remove", conversation="managed", address=mia.address) == "not_manager"
    ada.call("participant.role", conversation="managed", address=mia.address, role="member")
    bob.call("participant.remove", conversation="managed", address=mia.address)
    assert roles(ada, "managed") == {ada.address: "owner", bob.address: "admin"}


def test_a_group_of_the_same_name_inherits_neither_members_nor_mail(daemon: RunningDaemon) -> None:
    ada, bob, eve, mia = agents(daemon, 4)
    old = group(ada, "again", bob)
    ada.send("group:again", text="old")
    [late] = ada.send("group:again", text="late", deliver_at="+2h")["ids"]
    deleted = ada.call("conversation.delete", conversation="again")
    assert deleted["failed_envelopes"] == 1 and ada.get(late)["status"] == "failed"
    assert ada.refusal("envelope.send", to="group:again", text="x") == "unknown_recipient"
    new = group(eve, "again", mia)
    assert new["id"] != old["id"] and set(roles(eve, "again")) == {eve.address, mia.address}
    eve.send("group:again", text="new")
    assert texts(mia, "again") == ["new"] and texts(bob, old["id"]) == ["old"]
    assert bob.refusal("conversation.messages", conversation="again") == "unknown_group"
    assert [one["text"] for one in bob.list()] == ["old"]


def test_an_archived_group_refuses_sends_until_it_is_opened_again(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    group(ada, "shelved", bob)
    [first] = ada.send("group:shelved", text="one")["ids"]
    assert ada.call("conversation.archive", conversation="shelved")["changed"] is True
    assert ada.call("conversation.archive", conversation="shelved")["changed"] is False
    for sender in (ada, bob, boss(daemon)):
        found = refused(sender, "envelope.send", to="group:shelved", text="x")
        assert found.stable_code == "archived" and "--undo" in found.message
    assert bob.refusal("envelope.send", reply_to=bob.list()[0]["id"], text="x") == "archived"
    assert bob.refusal("envelope.send", to="group:shelved", text="x", deliver_at="+1h") == "archived"
    assert texts(bob, "shelved") == ["one"] and ada.get(first)["status"] == "done"
    listed = ada.call("conversation.list", archived=True)["conversations"]
    assert [one["name"] for one in listed] == ["shelved"]
    assert ada.call("conversation.archive", conversation="shelved", archived=False)["changed"] is True
    ada.send("group:shelved", text="two")


# --- the group of all agents ---------------------------------------------------------


def test_the_group_of_all_agents_is_there_and_nobodys(ada: Party, chief: Party) -> None:
    shown = ada.call("conversation.get", conversation="group:all")
    assert shown["conversation"]["address"] == "group:all" and shown["participants"] == []
    assert shown["conversation"]["participants"] == len(ada.call("agent.list")["agents"])
    assert ada.call("conversation.list", type="group")["conversations"][0]["address"] == "group:all"
    for method, params in (
        ("participant.add", {"address": ada.address}),
        ("participant.join", {}),
        ("participant.leave", {}),
        ("conversation.archive", {}),
        ("conversation.delete", {}),
        ("conversation.set", {"open": True}),
    ):
        assert chief.refusal(method, conversation="all", **params) == "built_in_group", method
    assert ada.refusal("conversation.create", name="ALL") == "built_in_group"


# --- facts, and restarts -------------------------------------------------------------


def test_members_hear_what_changes_in_their_group(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    with following(daemon) as member, following(daemon) as stranger:
        topics = ["conversation.changed", "participant.changed"]
        member.subscribe(bob.token, topics=topics)
        stranger.subscribe(eve.token, topics=topics)
        made = group(ada, "heard", bob)
        came = member.next("participant.changed")
        assert (came["who"], came["change"], came["role"]) == (bob.address, "joined", "member")
        assert came["conversation"] == made["id"] and came["by"] == ada.address and "parties" not in came
        created = member.next("conversation.changed")
        assert (created["change"], created["by"]) == ("created", ada.address)
        ada.call("participant.remove", conversation="heard", address=bob.address)
        left = member.next("participant.changed")
        assert (left["who"], left["change"], left["role"]) == (bob.address, "left", None)
        ada.call("conversation.delete", conversation="heard")
        group(ada, "heard-by-eve", eve)
        first = stranger.next()
        assert first["topic"] == "participant.changed" and first["who"] == eve.address


@pytest.mark.slow
def test_groups_are_the_same_after_a_kill(tmp_path: Path) -> None:
    with checked_daemon(tmp_path) as daemon:
        ada, bob, eve = agents(daemon, 3)
        group(ada, "lasting", bob, eve, description="d")
        ada.call("participant.role", conversation="lasting", address=bob.address, role="admin")
        ada.send("group:lasting", text="one")
        ada.call("participant.remove", conversation="lasting", address=eve.address)
        before = [one.call("conversation.list", past=True) for one in (ada, bob, eve)]
        daemon.kill()
        daemon.start()
        assert [one.call("conversation.list", past=True) for one in (ada, bob, eve)] == before
        assert eve.refusal("envelope.send", to="group:lasting", text="x") == "unknown_recipient"
        bob.send("group:lasting", text="two")
        assert texts(ada, "lasting") == ["one", "two"] and texts(eve, "lasting") == ["one"]
