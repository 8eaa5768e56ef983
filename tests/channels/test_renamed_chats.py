"""Chats that get another id: what names them follows, what waits keeps its order, and ids of messages mean what they meant."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import outcomes, received, rows
from tests.support.followers import following
from tests.support.parties import Party, agent, boss
from tests.support.phones import Phone
from tests.support.scripted_channels import Place, lane_error, row
from tests.support.waits import wait_until


def rename(place: Place, new: str, /, **facts: Any) -> None:
    place.comes_in(f"to-{new}", kind="membership", act=True, membership="renamed", renamed_to=new, **facts)


# --- schedules ---------------------------------------------------------------------------


def schedule(owner: Party, *to: str) -> str:
    return str(owner.call("cron.create", to=list(to), text=f"to {' '.join(to)}", every="1h")["id"])


def fires(place: Place, number: str) -> list[str]:
    """Fire a schedule; return where it was posted."""
    before = len(place.posts())
    for one in place.owner.call("cron.run", id=number)["ids"]:
        place.wait_for_status(one, "done")
    return sorted(one["place"] for one in place.posts()[before:])


def test_schedules_follow_a_chat_and_its_topics_to_their_new_id(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    topic = schedule(place.owner, f"{place.address}/plans")
    both = schedule(place.owner, place.address, f"{place.address}/plans")
    new = f"{place.name}-moved"
    rename(place, new)
    assert (fires(place, topic), fires(place, both)) == ([f"{new}/plans"], [new, f"{new}/plans"])


def test_schedules_to_two_chats_that_become_one_send_to_that_one(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    new = f"{place.name}-moved"
    place.settings(places=[new]).bound(daemon)
    numbers = [
        schedule(place.owner, *to)
        for to in ([place.address], [f"channel:scripted:{new}"], [place.address, f"channel:scripted:{new}"])
    ]
    rename(place, new)
    assert [fires(place, number) for number in numbers] == [[new]] * 3


# --- who follows ----------------------------------------------------------------------------


def test_who_follows_a_chat_that_gets_another_id_is_told_of_a_gap_and_nobody_else(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    stranger = agent(daemon)
    place.comes_in("u1", text="before")
    with following(daemon) as owners, following(daemon) as his, following(daemon) as strangers:
        owners.subscribe(place.owner.token, topics=["envelope.read"])
        begun = his.subscribe(boss(daemon).token, addresses=[place.address])
        strangers.subscribe(stranger.token, topics=["envelope.arrived"])
        rename(place, f"{place.name}-moved")
        assert owners.next()["topic"] == "gap"
        assert his.next()["topic"] == "gap"
        assert strangers.until("nothing else", stranger.token, stranger.address) == []
        # Who comes back and has not heard of it is told too.
        owners.subscribe(
            place.owner.token, topics=["envelope.read"], boot=begun["boot"], after=begun["number"]
        )
        assert owners.next()["topic"] == "gap"


def test_who_follows_an_address_or_a_conversation_that_becomes_one_with_another_is_told_and_goes_on(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    new = f"{place.name}-moved"
    place.settings(places=[new]).bound(daemon)
    place.comes_in("u1", text="old")
    place.comes_in("u2", text="new", place=new)
    old_one, new_one = (one["conversation"] for one in received(place))
    with following(daemon) as old, following(daemon) as gone, following(daemon) as his:
        for follower, conversation in ((old, old_one), (gone, new_one)):
            follower.subscribe(place.owner.token, conversations=[conversation])
        his.subscribe(boss(daemon).token, addresses=[f"channel:scripted:{new}"])
        rename(place, new)
        told = [one.next("gap", "envelope.arrived") for one in (old, gone, his)]
        assert [one["topic"] for one in told] == ["gap"] * 3
        assert [one.get("became") for one in told] == [None, {new_one: old_one}, None]
        place.comes_in("u3", text="after", place=new)  # and each goes on with what it is now
        assert {follower.next()["conversation"] for follower in (old, gone, his)} == {old_one}
    moved = received(place)[1]
    assert (moved["text"], moved["conversation"]) == ("new", old_one)


# --- two chats that become one ---------------------------------------------------------------


def merged(daemon: RunningDaemon, tmp_path: Path, **settings: Any) -> tuple[Place, str]:
    """Bind a place whose account has a second chat, which the first is about to become one with."""
    place = Place(tmp_path)
    new = f"{place.name}-moved"
    place.settings(places=[new], **settings).bound(daemon)
    return place, f"channel:scripted:{new}"


def states(place: Place) -> list[str]:
    return [one["state"] for one in rows(place, "SELECT state FROM contact WHERE binding = ?", place.binding)]


@pytest.mark.parametrize("unknown_becomes_known", [True, False])
def test_a_chat_that_may_be_written_to_stays_so_when_it_becomes_one_with_an_unknown_one(
    daemon: RunningDaemon, tmp_path: Path, unknown_becomes_known: bool
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="let me in", place=f"{place.name}-unknown")
    assert sorted(states(place)) == ["allowed", "asking"]
    old, new = f"{place.name}-unknown", place.name
    if not unknown_becomes_known:
        old, new = new, old
    rename(place, new, place=old)
    assert states(place) == ["allowed"]
    (number,) = place.owner.send(f"channel:scripted:{new}")["ids"]
    place.wait_for_status(number, "done")


def test_a_chat_that_becomes_one_with_a_blocked_one_is_blocked(daemon: RunningDaemon, tmp_path: Path) -> None:
    place, address = merged(daemon, tmp_path)
    with daemon.database() as database:  # no operation blocks a chat yet
        database.execute("UPDATE contact SET state = 'blocked' WHERE platform_id = ?", (place.name,))
        database.commit()
    rename(place, address.rpartition(":")[2])
    assert states(place) == ["blocked"]
    assert place.owner.refusal("envelope.send", to=address, text="may I?") == "not_bound"


def test_a_lane_that_the_boss_paused_stays_paused_when_its_chat_becomes_one_with_another(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path)
    boss(daemon).call("lane.pause", address=address)
    (number,) = place.owner.send(address, text="not before the boss says so")["ids"]
    rename(place, address.rpartition(":")[2])
    assert boss(daemon).call("lane.resume", address=address)["changed"] == 1
    place.wait_for_status(number, "done")


def test_a_wait_that_the_platform_named_holds_all_of_the_chat_that_two_become(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path)
    sent = place.owner.send(f"{place.address}/plans", text="a topic of the other one")["ids"][0]
    place.wait_for_status(sent, "done")
    place.script(lane_error(kind="rate_limited"))
    place.owner.send(address, text="too much")
    wait_until(lambda: lane_rows(place))
    [waits] = lane_rows(place)
    rename(place, address.rpartition(":")[2])
    found = lane_rows(place)
    assert [one["not_before"] for one in found] == [waits["not_before"]] * 2
    assert sorted(one["failures"] for one in found) == [0, 1]


def lane_rows(place: Place) -> list[dict[str, Any]]:
    return rows(
        place,
        """
        SELECT l.*, a.retired_at FROM lane l JOIN address a ON a.id = l.address
        WHERE l.binding = ? AND l.failures + l.not_before > 0
        """,
        place.binding,
    )


def test_a_post_that_fails_while_its_chat_becomes_one_with_another_is_tried_again_there(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path)
    place.script(place.gated(do="lane_error", retry_after=0.05))
    (number,) = place.owner.send(address, text="in hand")["ids"]
    wait_until(lambda: place.steps_left() == 0)
    rename(place, address.rpartition(":")[2])
    place.open_gate()
    place.wait_for_status(number, "done")
    assert place.texts() == ["in hand"]
    retired = "SELECT 1 FROM lane l JOIN address a ON a.id = l.address WHERE a.retired_at IS NOT NULL"
    assert rows(place, retired) == []


def test_mail_that_waits_because_its_chat_has_another_id_goes_when_that_is_known(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(lane_error(retry_after=None, text="no such chat"))
    number = place.send("to the old id")
    place.wait_for_failures(1)
    with daemon.database() as database:  # as after some failures
        database.execute("UPDATE lane SET wake_at = wake_at + 3600000 WHERE binding = ?", (place.binding,))
        database.commit()
    rename(place, f"{place.name}-moved")
    place.wait_for_status(number, "done")


def test_chunks_stop_for_a_pause_of_the_chat_that_theirs_became_and_go_on_after_it(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path, chunk=4)
    place.script(place.gated())
    (number,) = place.owner.send(address, text="one two!")["ids"]
    wait_until(lambda: place.steps_left() == 0)
    rename(place, address.rpartition(":")[2])
    boss(daemon).call("lane.pause", address=address)
    place.open_gate()
    wait_until(lambda: row(daemon, number)["held_by"] is None)
    assert place.texts() == ["one "]
    assert boss(daemon).call("lane.resume", address=address)["changed"] == 1
    place.wait_for_status(number, "done")
    assert place.texts() == ["one ", "two!"]


# --- ids of messages ------------------------------------------------------------------------


def test_in_a_group_ids_of_posts_belong_to_the_id_that_the_chat_had(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Phone(tmp_path)
    place.bound(daemon)
    group = {"group": "The team"}
    place.comes_in("u1", text="hello", message="m1", **group)
    sent = place.owner.send(place.address, text="our post")
    post = place.post_of("our post")
    new = f"{place.name}-moved"
    rename(place, new, **group)
    late = place.says("late", reply_to=post, **group)  # it still has the old id
    assert late["reply_to"] == sent["message"]
    assert place.says("another message has that id", reply_to=post, place=new, **group)["reply_to"] is None
    for number in (sent["ids"][0], received(place)[0]["id"]):  # nor do our answers name those ids
        [answer] = place.owner.send(f"channel:scripted:{new}", text=f"re {number}", reply_to=number)["ids"]
        place.wait_for_status(answer, "done")
        assert place.posts()[-1]["reply_to"] is None


def test_in_a_private_chat_ids_of_messages_stay_what_they_were(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Phone(tmp_path)
    place.bound(daemon)
    place.comes_in("u1", text="typo", message="m1")
    sent = place.owner.send(place.address, text="our post")
    post = place.post_of("our post")
    new = f"{place.name}-moved"
    rename(place, new)
    assert place.says("an answer", reply_to=post, place=new)["reply_to"] == sent["message"]
    place.comes_in("u2", kind="edit", text="mended", message="m1", place=new)
    assert [one["text"] for one in received(place)] == ["mended", "an answer"]
    for number, platform_id in ((sent["ids"][0], post), (received(place)[0]["id"], "m1")):
        [answer] = place.owner.send(f"channel:scripted:{new}", text=f"re {number}", reply_to=number)["ids"]
        place.wait_for_status(answer, "done")
        assert place.posts()[-1]["reply_to"] == platform_id


# --- accounts that are bound again ---------------------------------------------------------


def test_an_account_that_is_bound_again_goes_on_behind_what_it_had_received(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).settings(keeps_updates=True).bound(daemon)
    place.put_in_inbox("u1", text="before")
    wait_until(lambda: "u1" in place.digested())
    place.unbind()
    place.put_in_inbox("u2", text="meanwhile")
    place.bound(daemon, place.owner)
    wait_until(lambda: "u2" in place.digested())
    assert [one["text"] for one in received(place)] == ["before", "meanwhile"]


def test_an_account_of_the_same_name_with_other_settings_begins_anew(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    first = Place(tmp_path).settings(keeps_updates=True).bound(daemon)
    first.put_in_inbox("u2", text="there", message="m1")
    wait_until(lambda: "u2" in first.digested())
    first.unbind()
    other = Place(tmp_path / "elsewhere", name=first.name).settings(keeps_updates=True)
    other.bound(daemon, first.owner)
    for update, facts in (("u1", {"message": "m1"}), ("u2", {"reply_to": "m1"})):
        other.put_in_inbox(update, text=f"here {update}", **facts)
        wait_until(lambda update=update: update in other.digested())
    there, here, reply = received(first)
    assert [one["text"] for one in (there, here, reply)] == ["there", "here u1", "here u2"]
    assert reply["reply_to"] == here["message"]


def test_an_answer_goes_by_the_account_that_was_asked_also_if_that_was_bound_again(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    owner = agent(daemon)
    chat = f"desk-{owner.name}"
    first, second = (Place(tmp_path).settings(places=[chat]).bound(daemon, owner) for _ in range(2))
    second.comes_in("u1", text="by the second", place=chat, message="m1")
    [asked] = received(second)
    second.unbind()
    second.bound(daemon, owner)
    [answer] = owner.send(text="answered", reply_to=asked["id"])["ids"]
    second.wait_for_status(answer, "done")
    assert (first.texts(), second.texts(), second.posts()[0]["reply_to"]) == ([], ["answered"], "m1")


# --- while something waits, or several times ------------------------------------------


def rename_from(place: Place, old: str, new: str) -> None:
    facts = {"kind": "membership", "membership": "renamed", "renamed_to": new, "place": old}
    place.comes_in(f"{old}-to-{new}", act=True, **facts)


def test_what_comes_under_the_new_id_does_not_overtake_what_still_waits_under_the_old_ones(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    slow = {"name": "a.txt", "content": "x", "gate": str(tmp_path / "gate")}
    place.put_in_inbox("u1", text="first", message="1", downloads=[slow])
    place.put_in_inbox("u2", text="second", message="2")
    wait_until(lambda: len(outcomes(place)) == 2)
    for old, new in ((place.name, f"{place.name}-b"), (f"{place.name}-b", f"{place.name}-c")):
        rename_from(place, old, new)
        place.put_in_inbox(f"u-{new}", text=new, message="3", place=new)
        wait_until(lambda new=new: f"u-{new}" in outcomes(place))  # type: ignore[misc]
    place.comes_in("u9", text="of another chat", place="elsewhere")
    assert [one["text"] for one in received(place)] == ["of another chat"]
    (tmp_path / "gate").touch()
    wait_until(lambda: len(received(place)) == 5)
    in_order = ["first", "second", f"{place.name}-b", f"{place.name}-c"]
    assert [one["text"] for one in received(place)] == ["of another chat", *in_order]


def test_in_a_private_chat_ids_of_messages_stay_valid_after_several_new_ids_and_when_it_is_bound_again(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    ids = [f"{place.name}-{letter}" for letter in "abcd"]
    place.comes_in("u1", text="typo", message="m1", place=ids[0])
    (message,) = received(place)
    for old, new in itertools.pairwise(ids):
        rename_from(place, old, new)
    place.comes_in("u2", kind="edit", text="mended", message="m1", place=ids[-1])
    place.unbind()
    place.bound(daemon, place.owner)
    place.comes_in("u3", text="an answer", reply_to="m1", place=ids[-1])
    place.comes_in("u4", text="late", place=ids[0])
    first, answer, late = received(place)
    assert late["from"] == f"channel:scripted:{ids[-1]}"
    assert (first["text"], first["message"]) == ("mended", message["message"])
    assert answer["reply_to"] == message["message"]


# --- what the boss wrote to two chats, and changed, before they became one ------------------------


def test_changed_messages_of_the_boss_go_along_when_their_chat_becomes_one_with_another(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, address = merged(daemon, tmp_path)
    chief, kai = boss(daemon), agent(daemon)
    chief.tell(kai, text="as in every chat")
    changed = chief.list(box="outbox", page_size=1)[0]["message"]
    assert chief.call("message.edit", id=changed, text="an entry of their chat")["changed"]
    [row] = chief.call("chat.read", agent=kai.name, limit=5)["messages"][-1:]
    assert row["content"] == "an entry of their chat"

    numbers = []
    for to in (address, place.address):
        [number] = chief.send(to, text="hello")["ids"]
        place.wait_for_status(number, "done")
        message = chief.list(box="outbox", page_size=1)[0]["message"]
        assert chief.call("message.edit", id=message, text="hello again")["changed"]
        numbers.append(number)
    rename(place, address.rpartition(":")[2])
    assert [chief.get(number)["text"] for number in numbers] == ["hello again"] * 2
    daemon.check()
