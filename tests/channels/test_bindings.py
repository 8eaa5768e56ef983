"""Bind and unbind agents while the daemon runs, and what happens to their mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Party, agent, boss
from tests.support.scripted_channels import HANG, SCRIPTED, Place, daemon_with_channels, notices, row
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d"), HIBOSS_DELIVERY_POST_SECONDS="1") as running:
        yield running


def bindings(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    return {one["binding"]: one for one in boss(daemon).call("agent.bindings")["bindings"]}


def test_a_place_is_bound_and_unbound_without_a_restart(daemon: RunningDaemon, tmp_path: Path) -> None:
    place, ada = Place(tmp_path), agent(daemon)
    answer = place.bind(ada)
    assert (answer["address"], answer["created"]) == (place.address, True)
    place.wait_for_state("running")
    assert bindings(daemon)[answer["binding"]]["agents"] == [ada.name]
    place.send("out")
    place.wait_for("out")
    place.comes_in("u1", text="in")
    assert [(one["from"], one["text"]) for one in ada.list()] == [(place.address, "in")]
    ended = {"ended": True, "failed_envelopes": 0, "dropped_updates": 0}
    assert place.unbind() == {"binding": answer["binding"], **ended}
    assert answer["binding"] not in bindings(daemon)
    assert ada.refusal("envelope.send", to=place.address, text="x") == "not_bound"


def test_a_binding_shows_the_chats_that_can_be_written_to_but_not_to_strangers(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(places=["second"]).bound(daemon)
    place.comes_in("u1", text="hi", place="stranger")  # never approved
    place.comes_in("u2", text="hi", place="second", group="The team")

    def chats(party: Party) -> list[dict[str, Any]]:
        found = party.call("agent.bindings")["bindings"]
        return next(one["chats"] for one in found if one["binding"] == f"b{place.binding}")  # type: ignore[no-any-return]

    first = {"address": place.address, "kind": "private", "name": None}
    second = {"address": "channel:scripted:second", "kind": "group", "name": "The team"}
    assert chats(place.owner) == chats(boss(daemon)) == [first, second]
    assert chats(agent(daemon)) == []
    shown = Shell(daemon.home.path)("agent", "bindings").values("chats")
    assert f"{place.address}, channel:scripted:second The team" in shown
    for chat in chats(place.owner):
        place.owner.send(chat["address"], text="x")


@pytest.mark.parametrize("by", ["unbinding", "deletion of its agent"])
def test_the_boss_is_told_of_what_came_in_and_was_not_read_when_its_binding_ended(
    daemon: RunningDaemon, tmp_path: Path, by: str
) -> None:
    place = Place(tmp_path).bound(daemon)
    slow = {"name": "a", "content": "x", "gate": str(tmp_path / "never")}
    place.put_in_inbox("u1", text="slow", downloads=[slow])
    place.put_in_inbox("u2", text="behind it")
    wait_until(lambda: not list((place.root / "inbox").iterdir()))
    if by == "unbinding":
        assert place.unbind()["dropped_updates"] == 2
    else:
        boss(daemon).call("agent.delete", name=place.owner.name)
    told = f"The binding of scripted:{place.name} ended: 2 updates that had come in were not read yet"
    told += f', and will not be delivered.\nFrom: "{place.name}" (2)'
    assert [told in one["text"] for one in notices(boss(daemon))].count(True) == 1


def test_binding_the_same_again_changes_nothing(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path, kind="noted").bound(daemon)
    again = place.bind(place.owner)
    assert (again["binding"], again["created"]) == (f"b{place.binding}", False)
    assert bindings(daemon)[f"b{place.binding}"]["agents"] == [place.owner.name]
    assert place.life() == ["start"]


def test_two_agents_share_a_place_and_the_last_one_ends_it(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path, kind="noted").bound(daemon)
    first, second = place.owner, agent(daemon)
    assert place.bind(second)["created"] is False
    place.comes_in("u1", text="to the first")
    place.comes_in("u2", text=f"@{second.name.upper()}: to the second")
    assert [one["text"] for one in first.list()] == ["to the first"]
    assert [one["text"] for one in second.list()] == [f"@{second.name.upper()}: to the second"]
    for who in (first, second):
        who.send(place.address, text="done")
    place.wait_for(f"{first.name}:\ndone", f"{second.name}:\ndone")  # each post names its agent
    assert place.unbind(first)["ended"] is False
    assert first.refusal("envelope.send", to=place.address, text="x") == "not_bound"
    place.comes_in("u3", text="to the one that is left")
    assert len(first.list()) == 1
    assert len(second.list()) == 2
    assert place.life() == ["start"] and place.unbind(second)["ended"] is True
    assert place.life() == ["start", "stop"]


@pytest.mark.parametrize("name", ["reports"])
def test_another_directory_of_the_same_name_is_refused(
    daemon: RunningDaemon, tmp_path: Path, name: str
) -> None:
    first = Place(tmp_path / "here", name="reports").bound(daemon)
    second = Place(tmp_path / "there", name=name)
    second.owner = agent(daemon)
    code = boss(daemon).refusal(
        "agent.bind", name=second.owner.name, adapter_type="scripted", settings={"path": str(second.root)}
    )
    assert code == "binding_taken"
    first.unbind()
    second.bound(daemon, second.owner)
    second.send("mine now")
    second.wait_for("mine now")
    assert first.texts() == []
    second.unbind()


def test_of_several_places_one_must_be_named(daemon: RunningDaemon, tmp_path: Path) -> None:
    first = Place(tmp_path).bound(daemon)
    second = Place(tmp_path).bound(daemon, first.owner)
    with pytest.raises(Answered, match=f"{first.name}, {second.name}"):
        boss(daemon).call("agent.unbind", name=first.owner.name, adapter_type="scripted")
    first.unbind()
    answer = boss(daemon).call("agent.unbind", name=first.owner.name, adapter_type="scripted")
    assert answer["binding"] == f"b{second.binding}"


# --- mail that waits -----------------------------------------------------------------


def test_unbinding_fails_what_waits_visibly(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.steer("pause")
    due, later = place.send("due"), place.send("later", deliver_at="+1h")
    assert place.unbind()["failed_envelopes"] == 2
    for number in (due, later):
        failed = place.owner.get(number)
        assert (failed["status"], failed["attempts"]) == ("failed", 0)
        assert f"scripted:{place.name} is no longer bound" in failed["last_error"]["text"]
    (notice,) = notices(place.owner)
    assert due in notice["text"] and later in notice["text"]
    assert place.address not in [one["address"] for one in boss(daemon).call("lane.list")["lanes"]]
    assert place.address not in [one["address"] for one in daemon.call("daemon.status")["lanes"]]
    daemon.check()


def test_a_post_in_hand_when_its_place_is_unbound_is_no_outage(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(HANG)
    number = place.send("being delivered")
    wait_until(lambda: row(daemon, number)["held_by"] is not None)
    place.unbind()
    assert place.wait_for_status(number, "failed")["last_error"]["kind"] == "unbound"
    wait_until(lambda: (place.lane(), place.account()) == ({}, {}))
    assert [one for one in notices(boss(daemon)) if place.name in one["text"]] == []
    daemon.check()


def test_bound_again_a_place_begins_anew(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    first = place.binding
    place.steer("pause")
    lost = place.send("lost")
    place.unbind()
    place.bound(daemon, place.owner)
    assert place.binding != first
    place.send("new")
    place.wait_for("new")  # the pause belonged to the old binding
    assert place.owner.get(lost)["status"] == "failed"
    place.comes_in("u1", text="heard again")
    assert "heard again" in [one["text"] for one in place.owner.list()]


def test_with_an_agent_its_bindings_end_and_their_adapters_stop(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    own, shared = Place(tmp_path, kind="noted").bound(daemon), Place(tmp_path, kind="noted").bound(daemon)
    shared.bind(own.owner)
    own.steer("pause")
    number = own.send("never")
    boss(daemon).call("agent.delete", name=own.owner.name)
    assert own.life() == ["start", "stop"]
    assert f"b{own.binding}" not in bindings(daemon) and boss(daemon).get(number)["status"] == "failed"
    assert own.owner.name not in bindings(daemon)[f"b{shared.binding}"]["agents"]
    assert shared.life() == ["start"]
    assert own.put_in_inbox("u1", text="to nobody").exists()
    assert agent(daemon, own.owner.name).refusal("envelope.send", to=own.address, text="x") == "not_bound"
    daemon.check()


def test_bindings_outlive_a_kill(daemon: RunningDaemon, tmp_path: Path) -> None:
    place, gone = Place(tmp_path, kind="noted").bound(daemon), Place(tmp_path, kind="noted").bound(daemon)
    gone.unbind()
    daemon.kill()
    daemon.start(**SCRIPTED, HIBOSS_DELIVERY_POST_SECONDS="1")
    place.send("after")
    place.wait_for("after")
    assert place.life() == ["start", "start"]
    assert gone.life() == ["start", "stop"]
    assert f"b{place.binding}" in bindings(daemon) and f"b{gone.binding}" not in bindings(daemon)


def test_the_command_line_binds_lists_and_unbinds(daemon: RunningDaemon, tmp_path: Path) -> None:
    shell, ada = Shell(daemon.home.path), agent(daemon)
    words = ("--as", "boss", "--name", ada.name, "--adapter-type", "folder")
    done = shell("agent", "bind", *words, "--path", "inbound", cwd=tmp_path)
    assert done.record["address"] == "channel:folder:inbound"
    assert (tmp_path / "inbound" / "in").is_dir()
    (shown,) = [
        one
        for one in shell("agent", "bindings", "--as", "boss", "--json").json["bindings"]
        if one["agents"] == [ada.name]
    ]
    assert (shown["adapter_type"], shown["account"]) == ("folder", "inbound")
    assert shell("agent", "unbind", *words).record["ended"] == "true"
    assert shell("agent", "unbind", *words, "--json").error["code"] == "unknown_binding"


# --- pinned routes -------------------------------------------------------------------


def test_a_reply_leaves_by_the_binding_its_message_came_in(daemon: RunningDaemon, tmp_path: Path) -> None:
    """Two accounts reach the same place; each answer leaves by the account its question came from."""
    ada = agent(daemon)
    first, second = (Place(tmp_path).settings(places=["square"]) for _ in range(2))
    for place in (first, second):
        place.bound(daemon, ada)
        place.comes_in("u1", place="square", text=f"by {place.name}", message=f"msg-{place.name}")
    for one in ada.list():
        ada.send(text=f"re {one['text']}", reply_to=one["id"])
    ada.send("channel:scripted:square", text="of my own")
    for place in (second, first):
        wait_until(lambda place=place: f"re by {place.name}" in place.texts())  # type: ignore[misc]
    wait_until(lambda: "of my own" in first.texts())
    assert second.texts() == [f"re by {second.name}"]
    assert sorted(first.texts()) == ["of my own", f"re by {first.name}"]
    (answer,) = second.posts()
    assert (answer["place"], answer["reply_to"]) == ("square", f"msg-{second.name}")


def test_a_reply_from_there_finds_the_message_it_answers(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    number = place.send("how are you?")
    sent = place.wait_for_status(number, "done")
    place.comes_in("u1", text="well", reply_to=f"{number}.0")
    (heard,) = place.owner.list()
    assert (heard["reply_to"], heard["thread"]) == (sent["message"], sent["thread"])
    place.comes_in("u2", text="what?", reply_to="somebody else's")
    assert place.owner.list()[0]["reply_to"] is None


def test_what_is_answered_lies_in_the_same_chat(daemon: RunningDaemon, tmp_path: Path) -> None:
    """Platforms number their messages per chat."""
    place = Place(tmp_path).settings(places=["garden"])
    place.bound(daemon)
    number = place.send("said in one chat")
    place.wait_for_status(number, "done")
    place.comes_in("u1", place="garden", text="hers", message="5")
    place.comes_in("u2", text="ours", message="5")
    place.comes_in("u3", place="garden", text="to another's post", reply_to=f"{number}.0")
    place.comes_in("u4", place="garden", text="to hers", reply_to="5")
    hers, _, foreign, answer = place.owner.list(oldest_first=True)
    assert foreign["reply_to"] is None
    assert answer["reply_to"] == hers["message"]


def test_the_boss_may_post_to_any_bound_place(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    boss(daemon).send(place.address, text="from above", from_="user:boss")
    place.wait_for("from above")
    assert (
        boss(daemon).refusal("envelope.send", to="channel:scripted:nowhere", text="x", from_="user:boss")
        == "not_bound"
    )


def test_speaking_for_an_agent_the_boss_posts_only_where_that_agent_may(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, stranger = Place(tmp_path).bound(daemon), agent(daemon)
    code = boss(daemon).refusal("envelope.send", to=place.address, text="x", from_=stranger.address)
    assert code == "not_bound"
    boss(daemon).send(place.address, text="for him", from_=place.owner.address)
    place.wait_for("for him")
