"""Sending to groups: who gets it, who may send, what is deferred, and the group of all agents."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import ARRIVED, ARRIVING
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.channels.bound_folder import Folder
from tests.support.daemons import set_up
from tests.support.parties import Party, agent, agents, at_once, boss, bring, club, got, hears, stored
from tests.support.phones import Phone
from tests.support.scripted_channels import Place, daemon_with_channels, row
from tests.support.waits import wait_until


def add(owner: Party, group: str, who: Party | str, **fields: Any) -> None:
    address = who if isinstance(who, str) else who.address
    owner.call("participant.add", conversation=group, address=address, **fields)


def remove(owner: Party, group: str, who: Party) -> None:
    owner.call("participant.remove", conversation=group, address=who.address)


def recipients(daemon: RunningDaemon, message: str) -> list[str]:
    """Return the recipients of a message, in the order of its envelopes."""
    with daemon.database() as database:
        query = """
            SELECT a.kind || ':' || a.name FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.message = ? ORDER BY e.id
        """
        return [found[0] for found in database.execute(query, (int(message[1:]),))]


# --- who gets it ----------------------------------------------------------------------------------


def test_each_member_but_the_sender_gets_an_envelope_and_the_sender_knows_it_by_the_groups(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    group = club(ada, bob, eve, "user:boss")
    sent = ada.send(group, text="hello all")
    (number,) = sent["ids"]
    first, *others = recipients(daemon, sent["message"])
    assert first == group and sorted(others) == sorted([bob.address, eve.address, "user:boss"])
    own = ada.get(number)
    assert (own["to"], own["status"], own["group"]) == (group, "done", group.partition(":")[2])
    assert hears("hello all", ada, bob, eve, boss(daemon)) == [bob.name, eve.name, "boss"]
    for one in (bob, eve):
        (found,) = got(one, "hello all")
        assert found["conversation"] == sent["conversation"] and found["seq"] == own["seq"] == 1
    assert [one["id"] for one in ada.list(box="outbox") if one["text"] == "hello all"] == [number]


def test_only_members_send_and_a_closed_group_is_as_if_there_were_none(daemon: RunningDaemon) -> None:
    ada, bob, stranger = agents(daemon, 3)
    closed, opened = club(ada, bob), club(bob, ada, open=True)
    before = stored(daemon)
    assert stranger.refusal("envelope.send", to=closed, text="x") == "unknown_recipient"
    assert stranger.refusal("envelope.send", to="group:there-is-none", text="x") == "unknown_recipient"
    assert stranger.refusal("envelope.send", to=opened, text="x") == "not_member"
    assert stored(daemon) == before
    assert boss(daemon).send(closed, text="from the boss")["ids"]
    assert hears("from the boss", ada, bob) == [ada.name, bob.name]


def test_in_the_name_of_an_agent_the_boss_sends_only_to_groups_that_it_is_in(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    group, everybody = club(ada, bob), boss(daemon)
    before = stored(daemon)
    for method, more in (("envelope.send", {}), ("cron.create", {"every": "1h"})):
        with pytest.raises(Answered, match=f"add it first: hiboss group add .* {eve.address}") as refused:
            everybody.call(method, to=group, text="in her name", from_=eve.address, **more)
        assert refused.value.stable_code == "not_member"
    assert stored(daemon) == before
    everybody.call("envelope.send", to=group, text="in his name", from_=bob.address)
    assert hears("in his name", ada, bob, eve) == [ada.name]


def test_the_refusal_for_a_closed_group_is_that_for_none(daemon: RunningDaemon) -> None:
    ada, stranger = agents(daemon, 2)
    club(ada, name=f"plaza-{ada.name}-1", open=True)
    closed = club(ada, name=f"plaza-{ada.name}-2")
    told = []
    for address in (closed, f"group:plaza-{ada.name}-3"):
        with pytest.raises(Answered) as caught:
            stranger.send(address, text="x")
        told.append(str(caught.value).replace(address, "it"))
    assert told[0] == told[1]


def test_a_group_in_which_nobody_else_is_takes_nothing(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    group = club(ada)
    before = stored(daemon)
    assert ada.refusal("envelope.send", to=group, text="x") == "empty_group"
    assert stored(daemon) == before
    add(ada, group, bob)
    ada.send(group, text="first")
    assert got(bob, "first")[0]["seq"] == 1


def test_a_group_among_other_recipients_is_refused(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    group, other = club(ada, bob), club(bob, ada)
    before = stored(daemon)
    for to in ([group, bob.address], [bob.address, group], [group, other]):
        assert ada.refusal("envelope.send", to=to, text="x") == "invalid_params"
    assert stored(daemon) == before


def test_an_archived_private_conversation_refuses_sends_and_takes_them_again(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    sent = ada.send(bob, text="before")
    boss(daemon).call("conversation.archive", conversation=sent["conversation"])
    assert ada.refusal("envelope.send", to=bob.address, text="x") == "archived"
    boss(daemon).call("conversation.archive", conversation=sent["conversation"], archived=False)
    assert ada.send(bob, text="after")["conversation"] == sent["conversation"]


def test_a_repeated_send_to_a_group_sends_nothing(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    group = club(ada, bob)
    first = ada.send(group, text="once", key="k")
    before = stored(daemon)
    assert ada.send(group, text="once", key="k") == first | {"duplicate": True}
    assert stored(daemon) == before and len(got(bob, "once")) == 1
    assert ada.refusal("envelope.send", to=group, text="other", key="k") == "key_reused"
    assert ada.send(group, text="later", key="d", deliver_at="+1h") == ada.send(
        group, text="later", key="d", deliver_at="+1h"
    ) | {"duplicate": False}


def test_many_at_once_get_numbers_without_a_gap(daemon: RunningDaemon) -> None:
    members = agents(daemon, 6)
    group = club(members[0], *members[1:])
    at_once([partial(one.send, group, text=f"{i}") for one in members for i in range(5)])
    said = members[0].call("conversation.messages", conversation=group, page_size=100)["envelopes"]
    assert sorted(one["seq"] for one in said) == list(range(1, 31))


# --- deferred -----------------------------------------------------------------------------------------


def test_a_deferred_message_goes_to_those_who_are_members_when_it_arrives(daemon: RunningDaemon) -> None:
    ada, bob, eve, new = agents(daemon, 4)
    group = club(ada, bob, eve)
    sent = ada.send(group, text="later", deliver_at="+1h", priority="critical")
    assert recipients(daemon, sent["message"]) == [group] and sent["deliver_at"]
    remove(ada, group, bob)
    add(ada, group, new)
    bring(daemon, sent)
    wait_until(lambda: got(eve, "later"))
    assert hears("later", ada, bob, eve, new) == [eve.name, new.name]
    assert {got(one, "later")[0]["priority"] for one in (eve, new)} == {"critical"}
    (number,) = sent["ids"]
    assert (ada.get(number)["status"], ada.get(number)["seq"]) == ("done", 1)


def test_a_deferred_message_that_was_cancelled_arrives_nowhere(ada: Party, bob: Party) -> None:
    (number,) = ada.send(club(ada, bob), text="never", deliver_at="+1h")["ids"]
    ada.call("envelope.cancel", ids=[number])
    assert ada.get(number)["status"] == "cancelled" and got(bob, "never") == []


def test_a_deferred_message_of_who_was_removed_meanwhile_fails_and_its_sender_sees_it(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    group = club(ada, bob, eve)
    sent = bob.send(group, text="too late", deliver_at="+1h")
    (number,) = sent["ids"]
    remove(ada, group, bob)
    bring(daemon, sent)
    wait_until(lambda: bob.get(number)["status"] != "pending")
    found = bob.get(number)
    assert (found["status"], found["last_error"]["kind"]) == ("failed", "not_member")
    assert hears("too late", ada, eve) == []
    assert [one["id"] for one in bob.list(status="failed")] == [number]


def test_a_deferred_message_of_the_boss_who_is_in_no_group_arrives(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    bring(daemon, boss(daemon).send(club(ada, bob), text="from outside", deliver_at="+1h"))
    wait_until(lambda: hears("from outside", ada, bob) == [ada.name, bob.name])


def test_when_the_group_is_deleted_what_was_deferred_fails_and_its_sender_sees_it(
    ada: Party, bob: Party
) -> None:
    group = club(ada, bob)
    (number,) = bob.send(group, text="never", deliver_at="+1h")["ids"]
    ada.call("conversation.delete", conversation=group)
    found = bob.get(number)
    assert (found["status"], found["last_error"]["kind"]) == ("failed", "recipient_deleted")
    assert bob.refusal("envelope.retry", ids=[number]) == "too_late"
    assert bob.refusal("envelope.send", to=group, text="x") == "unknown_recipient"
    again = club(bob, ada, name=group.partition(":")[2])  # the name is free; the old mail is not for it
    assert again == group and got(ada, "never") == []


def test_a_schedule_to_a_group_goes_to_its_members_and_not_to_others(
    ada: Party, bob: Party, eve: Party
) -> None:
    group = club(ada, bob)
    made = ada.call("cron.create", every="1h", to=group, text="as every hour")
    add(ada, group, eve)
    ada.call("cron.run", id=made["id"])
    assert hears("as every hour", ada, bob, eve) == [bob.name, eve.name]


# --- everybody ----------------------------------------------------------------------------------------


def test_group_all_is_every_active_agent_and_needs_a_privileged_sender(daemon: RunningDaemon) -> None:
    ada, bob, gone = agents(daemon, 3)
    boss(daemon).call("agent.delete", name=gone.name)
    before = stored(daemon)
    assert {
        ada.refusal("envelope.send", to="group:all", text="x", **params)
        for params in ({}, {"deliver_at": "+1h"})
    } == {"forbidden"}
    assert stored(daemon) == before
    boss(daemon).call("agent.permission.set", name=ada.name, level="privileged")
    sent = ada.send("group:all", text="from ada to all")
    assert hears("from ada to all", ada, bob, boss(daemon)) == [bob.name]
    live = {one["name"] for one in boss(daemon).call("agent.list")["agents"]}
    everybody = {f"agent:{name}" for name in live if not name.startswith(("system", "background"))}
    assert set(recipients(daemon, sent["message"])) - {"group:all"} == everybody - {ada.address}
    assert gone.address not in recipients(daemon, sent["message"])
    boss(daemon).send("group:all", text="from the boss to all")
    assert hears("from the boss to all", ada, bob) == [ada.name, bob.name]
    boss(daemon).call("agent.permission.set", name=ada.name, level="standard")
    assert ada.refusal("envelope.send", to="group:all", text="x") == "forbidden"


def test_a_schedule_to_group_all_needs_a_privileged_owner_too(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    assert ada.refusal("cron.create", every="1h", to="group:all", text="x") == "forbidden"
    boss(daemon).call("agent.permission.set", name=ada.name, level="privileged")
    made = ada.call("cron.create", every="1h", to="group:all", text=f"hourly of {ada.name}")
    ada.call("cron.run", id=made["id"])
    assert hears(f"hourly of {ada.name}", bob) == [bob.name]
    boss(daemon).call("agent.permission.set", name=ada.name, level="standard")
    ada.call("cron.run", id=made["id"])
    assert len(got(bob, f"hourly of {ada.name}")) == 1
    assert ada.call("cron.show", id=made["id"])["enabled"] is False


def test_a_broadcast_starts_a_turn_only_of_those_whom_it_names(daemon: RunningDaemon, bob: Party) -> None:
    eve = agent(daemon, role=f"reader-of-{bob.name}")
    text = f"maintenance tonight; @{bob.name} prepares"
    boss(daemon).send("group:all", text=text)
    assert [one["context"] for one in (got(bob, text)[0], got(eve, text)[0])] == [False, True]


def test_a_new_agent_gets_no_old_broadcast(daemon: RunningDaemon) -> None:
    sent = boss(daemon).send("group:all", text="an old story")
    new = agent(daemon)
    assert new.list() == [] and new.call("envelope.poll")["envelopes"] == []
    assert new.refusal("envelope.get", id=sent["ids"][0]) == "not_found"
    assert new.refusal("envelope.send", text="?", reply_to=sent["message"]) == "not_found"
    boss(daemon).send("group:all", text="again")
    page = new.call("conversation.messages", conversation="all")
    assert [one["text"] for one in page["envelopes"]] == ["again"]


def test_a_reply_to_a_broadcast_goes_to_who_sent_it_and_not_to_everybody(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    boss(daemon).send("group:all", text="who is there?")
    answer = ada.send(text="I am", reply_to=got(ada, "who is there?")[0]["id"])
    assert recipients(daemon, answer["message"]) == ["user:boss"] and answer["elsewhere"]
    assert got(bob, "I am") == []


def test_a_broadcast_that_nobody_would_get_is_refused_and_stores_nothing(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path) as daemon:
        boss(daemon).call("agent.delete", name="nex")
        before = stored(daemon)
        assert boss(daemon).refusal("envelope.send", to="group:all", text="anybody?") == "empty_group"
        assert stored(daemon) == before
        alone = agent(daemon)
        boss(daemon).call("agent.permission.set", name=alone.name, level="privileged")
        assert alone.refusal("envelope.send", to="group:all", text="anybody?") == "empty_group"


# --- chats as members ------------------------------------------------------------------------------------


def test_posts_of_the_group_arrive_in_a_chat_and_what_is_written_there_is_for_the_group(
    daemon: RunningDaemon, tmp_path: Path, bob: Party, eve: Party, chief: Party
) -> None:
    place = Place(tmp_path).bound(daemon)
    group = club(chief, place.owner, bob, eve, place.address)
    bob.send(group, text="from bob")
    place.wait_for("from bob")
    place.comes_in("u1", text=f"hello @{eve.name}")
    wait_until(lambda: got(eve, f"hello @{eve.name}"))
    assert hears(f"hello @{eve.name}", place.owner, bob, eve, chief) == [
        place.owner.name,
        bob.name,
        eve.name,
        "boss",
    ]
    assert [got(one, f"hello @{eve.name}")[0]["context"] for one in (bob, eve)] == [True, False]
    answer = eve.send(text="hello back", reply_to=got(eve, f"hello @{eve.name}")[0]["id"])
    place.wait_for("from bob", "hello back")  # and what was written there is not posted there again
    assert eve.get(answer["ids"][0])["to"] == group


def test_what_comes_in_from_a_chat_of_an_archived_group_is_not_lost(
    daemon: RunningDaemon, tmp_path: Path, bob: Party
) -> None:
    place = Place(tmp_path).bound(daemon)
    group = club(boss(daemon), bob, place.owner, place.address, name=f"old-{bob.name}")
    boss(daemon).call("conversation.archive", conversation=group)
    place.comes_in("u1", text="still here")
    wait_until(lambda: got(place.owner, "still here"))
    assert got(bob, "still here") == []


def test_a_chat_that_no_account_may_post_to_fails_and_the_others_get_it(
    daemon: RunningDaemon, tmp_path: Path, bob: Party, eve: Party
) -> None:
    place = Place(tmp_path).bound(daemon)
    group = club(boss(daemon), bob, eve, place.address, name=f"torn-{bob.name}")
    place.unbind()
    for params in ({}, {"deliver_at": "+1h"}):
        text = f"after {params}"
        sent = bob.send(group, text=text, **params)
        if params:
            bring(daemon, sent)
        wait_until(partial(got, eve, text))
        with daemon.database() as database:
            failed = database.execute(
                """
                SELECT a.name, e.status, e.error_kind FROM envelope e JOIN address a ON a.id = e.recipient
                WHERE e.message = ? AND a.kind = 'channel'
                """,
                (int(sent["message"][1:]),),
            ).fetchall()
        assert [(one["status"], one["error_kind"]) for one in failed] == [(2, "unbound")]
    assert hears("after {}", eve, boss(daemon)) == [eve.name, "boss"]
    assert row(daemon, sent["ids"][0])["status"] == 1


def test_the_outbox_shows_what_was_sent_to_a_group_once(ada: Party, bob: Party, eve: Party) -> None:
    name = f"outbox-{ada.name}"
    ada.call("conversation.create", type="group", name=name, participants=[bob.address, eve.address])
    (number,) = ada.send(f"group:{name}", text="all of you")["ids"]
    assert ada.ids(box="outbox") == [number]
    assert [one["to"] for one in ada.list(box="outbox", to=bob.address)] == [bob.address]


def test_a_folder_can_be_a_member_as_any_other_chat(
    daemon: RunningDaemon, tmp_path: Path, bob: Party
) -> None:
    folder = Folder(daemon, tmp_path / "folder")
    group = club(boss(daemon), bob, folder.address, name=f"papers-{bob.name}")
    bob.send(group, text="for the folder")
    wait_until(lambda: any(b"for the folder" in one for one in folder.out().values()))
    folder.put("a.txt", "from the folder")
    wait_until(lambda: got(bob, "from the folder"))
    assert got(bob, "from the folder")[0]["group"] == f"papers-{bob.name}"
    assert hears("from the folder", folder.owner, boss(daemon)) == ["boss"]
    bob.send(group, text="a mark after it")
    wait_until(lambda: any(b"a mark after it" in one for one in folder.out().values()))
    assert not any(b"from the folder" in one for one in folder.out().values())


def test_what_the_boss_writes_in_a_chat_that_became_his_is_for_his_agent_and_not_for_the_group(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = Phone(tmp_path).bound(daemon)
    bob = agent(daemon)
    group = club(bob, name=f"phone-{bob.name}")
    boss(daemon).call("participant.add", conversation=group, address=phone.address)
    phone.reached()
    bob.send(group, text="are you there?")
    phone.post_of("are you there?")
    phone.comes_in("u1", text="what is new?")
    wait_until(lambda: got(phone.owner, "what is new?"))
    assert got(bob, "what is new?") == []
    assert [one.splitlines()[-1] for one in phone.texts()] == ["are you there?"], phone.posts()
    boss(daemon).call("boss.set", reach="")


def test_the_boss_who_is_a_member_with_his_chat_reads_each_post_there_once(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = Phone(tmp_path).bound(daemon)
    bob = agent(daemon)
    group = club(bob, "user:boss", name=f"both-{bob.name}")
    boss(daemon).call("participant.add", conversation=group, address=phone.address)
    phone.reached()
    bob.send(group, text="only once")
    phone.post_of("only once")
    bob.send("user:boss", text="a mark after it")
    phone.post_of("a mark after it")
    assert len([one for one in phone.texts() if "only once" in one]) == 1
    assert len(got(boss(daemon), "only once")) == 1
    boss(daemon).call("boss.set", reach="")


def test_what_comes_in_from_a_platform_is_taken_also_in_an_archived_conversation(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="before")
    wait_until(partial(got, place.owner, "before"))
    where = got(place.owner, "before")[0]["conversation"]
    boss(daemon).call("conversation.archive", conversation=where)
    place.comes_in("u2", text="after")
    wait_until(partial(got, place.owner, "after"))
    assert got(place.owner, "after")[0]["conversation"] == where
    assert place.owner.refusal("envelope.send", to=place.address, text="x") == "archived"


@pytest.mark.slow
@pytest.mark.parametrize("point", [ARRIVING, ARRIVED])
def test_after_a_crash_while_a_deferred_message_arrives_each_member_has_it_once(
    tmp_path: Path, point: str
) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    daemon.start()
    try:
        ada, bob, eve = agents(daemon, 3)
        group = club(ada, bob, eve)
        daemon.kill()
        armed = tmp_path / "armed"
        daemon.start(HIBOSS_CRASH_AT=f"{point}@{armed}")
        sent = ada.send(group, text="later", deliver_at="+1h")
        armed.touch()
        with suppress(EOFError, OSError):  # it dies while it looks, perhaps before it answers
            bring(daemon, sent)
        daemon.wait_for_death()
        daemon.start()
        wait_until(lambda: hears("later", bob, eve) == [bob.name, eve.name])
        assert sorted(recipients(daemon, sent["message"])) == sorted([group, bob.address, eve.address])
        daemon.check()
    finally:
        daemon.stop()
