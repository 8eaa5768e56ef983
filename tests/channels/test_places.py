"""Chats and their topics, as they are met, approved, left, renamed and merged."""

from __future__ import annotations

from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import outcomes, received, rows, updates
from tests.support.parties import agent, boss
from tests.support.scripted_channels import Place, lane_error
from tests.support.waits import wait_until


def test_each_topic_of_a_chat_is_a_place_of_its_own_and_answers_go_there(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    for topic in ("plans", "news"):
        place.comes_in(f"u-{topic}", text=topic, place=f"{place.name}/{topic}", message=f"m-{topic}")
    plans, news = received(place)[::-1]
    assert {plans["from"], news["from"]} == {f"{place.address}/plans", f"{place.address}/news"}
    assert plans["conversation"] != news["conversation"]
    answered = next(one for one in (plans, news) if one["from"].endswith("/plans"))
    (number,) = place.owner.send(text="agreed", reply_to=answered["id"])["ids"]
    place.wait_for_status(number, "done")
    (post,) = place.posts()
    assert (post["place"], post["reply_to"]) == (f"{place.name}/plans", "m-plans")


def test_a_send_to_a_new_topic_of_an_allowed_chat_is_posted_there_but_not_by_strangers(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    stranger = agent(daemon)
    topic = f"{place.address}/ideas"
    assert stranger.refusal("envelope.send", to=topic, text="me too") == "not_bound"
    assert rows(place, "SELECT 1 FROM address WHERE name LIKE '%/ideas'") == []
    (number,) = place.owner.send(topic)["ids"]
    place.wait_for_status(number, "done")
    assert [one["place"] for one in place.posts()] == [f"{place.name}/ideas"]
    assert place.owner.refusal("envelope.send", to="channel:scripted:no-such-chat/x", text="x") == "not_bound"


def test_a_chat_that_was_never_approved_is_known_and_cannot_be_written_to(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="let me in", place="somebody/topic", author={"name": "Sam"})
    (contact,) = rows(
        place, "SELECT * FROM contact WHERE binding = ? AND platform_id = 'somebody'", place.binding
    )
    assert (contact["state"], contact["name"], contact["kind"]) == ("asking", "Sam", "private")
    (message,) = received(place)
    assert place.owner.refusal("envelope.send", reply_to=message["id"], text="no") == "not_bound"
    assert place.owner.refusal("envelope.send", to="channel:scripted:somebody/new", text="no") == "not_bound"


def test_a_chat_is_known_by_its_last_kind_and_its_last_name(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    seen = []
    for number, facts in enumerate(({"author": {"name": "Ann"}}, {"group": "The team"}, {})):
        place.comes_in(f"u{number}", text="hi", **facts)
        (contact,) = rows(place, "SELECT kind, name FROM contact WHERE binding = ?", place.binding)
        seen.append((contact["kind"], contact["name"]))
    assert seen == [("private", "Ann"), ("group", "The team"), ("private", "The team")]


def test_what_waits_for_a_chat_that_the_account_left_fails(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).settings(places=["other"]).bound(daemon)
    place.script(lane_error(), lane_error())
    gone = place.send("nobody reads this")
    place.wait_for_failures(1)
    (elsewhere,) = place.owner.send("channel:scripted:other")["ids"]
    place.comes_in("u1", kind="membership", act=True, membership="left")
    assert place.wait_for_status(gone, "failed")["last_error"]["kind"] == "left"
    assert place.owner.get(elsewhere)["status"] == "pending"
    place.comes_in("u2", kind="membership", act=True, membership="joined", group="The team")
    assert outcomes(place) == {"u1": "left", "u2": "joined"}
    (contact,) = rows(
        place, "SELECT * FROM contact WHERE binding = ? AND platform_id = ?", place.binding, place.name
    )
    assert (contact["state"], contact["kind"], contact["name"]) == ("allowed", "group", "The team")


def test_a_chat_that_gets_another_id_keeps_its_topics_its_mail_and_its_conversations(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="before", place=f"{place.name}/plans", message="m1")
    (before,) = received(place)
    place.script(lane_error())
    number = place.send("waits")
    place.wait_for_failures(1)
    new = f"{place.name}-moved"
    rename = {"kind": "membership", "act": True, "membership": "renamed", "renamed_to": new}
    place.comes_in("u2", **rename)
    place.comes_in("u3", **rename)  # the platform says it twice
    place.comes_in("u4", text="after", place=f"{new}/plans")
    place.comes_in("u5", text="late", place=f"{place.name}/plans")  # it still has the old id
    assert [one["text"] for one in received(place)] == ["before", "after", "late"]
    assert {one["from"] for one in received(place)} == {f"channel:scripted:{new}/plans"}
    assert {one["conversation"] for one in received(place)} == {before["conversation"]}
    boss(daemon).call("lane.retry", address=f"channel:scripted:{new}")
    place.wait_for_status(number, "done")
    assert [one["place"] for one in place.posts()] == [new]
    assert place.owner.refusal("envelope.send", to=place.address, text="x") == "not_bound"


def test_an_edit_and_a_reply_that_wait_while_their_chat_is_renamed_still_find_their_message(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    gate = tmp_path / "gate"
    slow = [{"name": "a.txt", "content": "x", "gate": str(gate)}]
    place.put_in_inbox("u1", text="typo", message="m1", downloads=slow)
    place.put_in_inbox("u2", kind="edit", text="typo mended", message="m1")
    place.put_in_inbox("u3", text="thanks", message="m2", reply_to="m1")
    wait_until(lambda: len(updates(place)) == 3)
    new = f"{place.name}-moved"
    place.comes_in("u4", kind="membership", act=True, membership="renamed", renamed_to=new)
    gate.touch()
    wait_until(lambda: len(received(place)) == 2)
    first, answer = received(place)
    assert (first["text"], answer["reply_to"]) == ("typo mended", first["message"])
    # In the new chat the platform counts anew: the same id is another message.
    place.comes_in("u5", text="another m1", message="m1", place=new)
    place.comes_in("u6", kind="edit", text="another m1!", message="m1", place=new)
    assert [one["text"] for one in received(place)] == ["typo mended", "thanks", "another m1!"]


def test_what_came_in_under_the_new_id_before_the_renaming_was_known_is_merged(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    new = f"{place.name}-moved"
    place.settings(places=[new]).bound(daemon)
    place.comes_in("u1", text="old", message="m1")
    place.comes_in("u2", text="new", place=new, message="m2")
    place.script(lane_error())
    (number,) = place.owner.send(f"channel:scripted:{new}", text="waits there")["ids"]
    wait_until(lambda: place.steps_left() == 0)
    place.comes_in("u3", kind="membership", act=True, membership="renamed", renamed_to=new)
    boss(daemon).call("lane.retry", address=f"channel:scripted:{new}")
    place.wait_for_status(number, "done")
    place.comes_in("u4", text="after", place=new)
    assert [one["text"] for one in received(place)] == ["old", "new", "after"]
    assert {one["from"] for one in received(place)} == {f"channel:scripted:{new}"}
    assert len({one["conversation"] for one in received(place)}) == 1
    assert len(rows(place, "SELECT 1 FROM contact WHERE binding = ?", place.binding)) == 1
