"""Forwards: who may know of them, where they go when the boss is reached elsewhere, and whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.followers import following
from tests.support.holding_agents import control
from tests.support.parties import Party, agent, boss
from tests.support.phones import Phone, box, forwards
from tests.support.scripted_channels import Place, envelope_error, lane_error, notices, row
from tests.support.waits import wait_until

pytestmark = pytest.mark.usefixtures("phone")  # after each test the boss is reached nowhere


def a_phone(daemon: RunningDaemon, directory: Path, **settings: Any) -> Phone:
    return Phone(directory).settings(**settings).bound(daemon)


# --- who knows of them -------------------------------------------------------------------


def test_nobody_but_the_boss_learns_where_his_mail_is_posted(phone: Phone, chief: Party, kai: Party) -> None:
    phone.reached()
    with following(phone.daemon) as his, following(phone.daemon) as kais:
        his.subscribe(chief.token)
        kais.subscribe(kai.token)
        number = kai.tell(chief, text="a secret")
        forwarded = his.next("envelope.forwarded")
        assert forwarded["to"] == phone.address
        assert his.next("envelope.settled")["envelope"] == forwarded["envelope"]
        told = kais.until("the last one", kai.token, kai.address)
    assert [one["topic"] for one in told] == ["envelope.arrived"]
    [forward] = forwards(chief, number)
    assert kai.refusal("envelope.get", id=forward["id"]) == "not_found"
    assert kai.refusal("envelope.cancel", ids=[forward["id"]]) == "not_found"
    assert kai.refusal("envelope.retry", ids=[forward["id"]]) == "not_found"
    assert kai.refusal("envelope.list", box="outbox", to=phone.address) == "unknown_address"
    assert chief.get(forward["id"])["to"] == phone.address


def test_who_named_the_chat_follows_his_own_envelope_there(phone: Phone, chief: Party) -> None:
    phone.reached(forward="off")
    phone.script(envelope_error(text="too big"))
    with following(phone.daemon) as follower:
        follower.subscribe(phone.owner.token)
        [number] = phone.owner.send(phone.address, text="to the chat")["ids"]
        assert follower.next("envelope.settled")["envelope"] == number
    assert phone.owner.get(number)["status"] == "failed"
    assert phone.owner.ids(box="outbox", status="failed") == [number]


def test_of_a_deferred_send_to_his_chat_both_envelopes_are_told_when_it_is_sent_and_when_they_arrive(
    phone: Phone,
) -> None:
    phone.reached(forward="off")
    with following(phone.daemon) as follower:
        follower.subscribe(phone.owner.token)
        [number] = phone.owner.send(phone.address, text="later", deliver_at="+1s")["ids"]
        deferred = follower.next("envelope.deferred")["envelopes"]
        [mail] = follower.next("envelope.arrived")["envelopes"]
        forwarded = follower.next("envelope.forwarded")
    assert (forwarded["envelope"], forwarded["forwards"]) == (number, mail["id"])
    assert deferred == [{"id": mail["id"]}, {"id": number}]
    assert forwarded["arrived"] == mail["arrived"] + 1


def test_what_is_in_his_box_cannot_be_cancelled_by_its_post(phone: Phone, chief: Party) -> None:
    phone.reached()
    phone.steer("pause")
    [number] = phone.owner.send(phone.address, text="too late")["ids"]
    assert phone.owner.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert chief.call("envelope.cancel", ids=[number])["changed"] == 1  # he may: it is his chat


# --- another chat ------------------------------------------------------------------------


def test_what_waits_is_not_posted_to_a_chat_that_is_not_his_any_more(
    phone: Phone, chief: Party, kai: Party
) -> None:
    phone.reached()
    phone.steer("pause")
    number = kai.tell(chief, text="a secret")
    chief.call("boss.set", reach="")
    [forward] = forwards(chief, number)
    assert forward["status"] == "cancelled"
    phone.steer("resume")
    phone.send("the next one there")
    phone.wait_for("the next one there")
    phone.reached()  # it is his again: what was cancelled stays so
    kai.send(chief, text="new")
    phone.post_of("new")
    assert not any("secret" in one for one in phone.texts())


def test_what_waits_goes_to_the_new_chat_and_back_again(
    phone: Phone, chief: Party, kai: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    new = a_phone(daemon, tmp_path)
    phone.reached()
    for place in (phone, new):
        place.steer("pause")
    number = kai.tell(chief, text="a letter", priority="high")
    kai.send(chief, text="not important")
    new.reached(forward="important")
    assert [(one["to"], one["status"]) for one in forwards(chief, number)] == [
        (phone.address, "cancelled"),
        (new.address, "pending"),
    ]
    phone.reached()
    assert [one["status"] for one in forwards(chief, number)] == ["pending", "cancelled"]
    phone.reached()  # again: nothing changes
    new.reached()
    for place in (phone, new):
        place.steer("resume")
    new.wait_for(f"{kai.name}:\na letter")
    assert phone.texts() == []


def test_a_post_on_its_way_when_his_chat_changed_is_not_tried_there_again(
    phone: Phone, chief: Party, kai: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    new = a_phone(daemon, tmp_path)
    phone.reached()
    gate = tmp_path / "gate"
    phone.script(lane_error(retry_after=0.01, until=str(gate)))
    [forward] = forwards(chief, kai.tell(chief, text="on its way"))
    wait_until(lambda: row(daemon, forward["id"])["held_by"] is not None)
    new.reached()
    assert chief.get(forward["id"])["status"] == "pending"  # in the hands of the adapter
    gate.touch()
    new.post_of("on its way")
    assert chief.get(forward["id"])["status"] == "cancelled" and phone.texts() == []


def test_a_failed_forward_is_not_retried_to_a_chat_that_is_not_his_any_more(
    phone: Phone, chief: Party, kai: Party
) -> None:
    phone.reached()
    phone.script(envelope_error(text="no"))
    [forward] = forwards(chief, kai.tell(chief, text="a secret"))
    phone.wait_for_status(forward["id"], "failed")
    chief.call("boss.set", reach="")
    assert chief.refusal("envelope.retry", ids=[forward["id"]]) == "too_late"
    phone.reached()
    assert chief.call("envelope.retry", ids=[forward["id"]])["changed"] == 1
    phone.post_of("a secret")


def test_unbinding_says_how_much_is_only_in_his_box(phone: Phone, chief: Party, kai: Party) -> None:
    phone.reached()
    phone.steer("pause")
    number = kai.tell(chief, text="waits")
    phone.unbind()
    assert "what waited for it: 1" in notices(chief)[-1]["text"]
    assert [one["status"] for one in forwards(chief, number)] == ["cancelled"]


def test_by_two_accounts_in_one_chat_mail_to_it_is_mail_for_him(
    chief: Party, kai: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    first = a_phone(daemon, tmp_path, places=["desk"])
    second = a_phone(daemon, tmp_path, places=["desk"])
    for place in (first, second):
        place.bind(kai)
    reach = {"reach": "channel:scripted:desk", "reach_binding": f"b{second.binding}"}
    chief.call("boss.set", **reach)
    kai.send("channel:scripted:desk", text="for him")
    second.post_of("for him")
    assert box(chief, "for him") and first.texts() == []


def test_a_message_of_a_group_in_his_chat_leaves_it_a_private_one(phone: Phone, chief: Party) -> None:
    phone.reached()
    phone.says("of a group", group="ops")
    chief.call("boss.set", reach="")
    phone.reached()  # a chat of a group would be refused


@pytest.mark.parametrize("his", ["old", "new"])
def test_his_reach_ends_when_his_chat_becomes_one_with_somebody_elses(
    chief: Party, kai: Party, daemon: RunningDaemon, tmp_path: Path, his: str
) -> None:
    account = a_phone(daemon, tmp_path, places=[f"old-{his}", f"new-{his}"])
    reach = f"channel:scripted:{his}-{his}"
    chief.call("boss.set", reach=reach)
    renamed = {"kind": "membership", "membership": "renamed", "renamed_to": f"new-{his}", "act": True}
    account.comes_in("renamed", place=f"old-{his}", **renamed)
    wait_until(lambda: chief.call("boss.get")["reach"] is None)
    assert f"no longer posted to {reach}" in notices(chief)[-1]["text"]
    said = account.says("a stranger", place=f"new-{his}")
    assert (said["sender"], said["from_boss"]) == (f"channel:scripted:new-{his}", False)


def test_his_chat_stays_his_when_something_came_in_before_its_new_id_was_known(
    phone: Phone, chief: Party
) -> None:
    phone.reached()
    new = f"{phone.name}-new"
    assert phone.says("too early", place=new)["sender"] == f"channel:scripted:{new}"
    phone.comes_in("renamed", kind="membership", membership="renamed", renamed_to=new, act=True)
    wait_until(lambda: chief.call("boss.get")["reach"] == f"channel:scripted:{new}")
    assert phone.says("me again", place=new)["sender"] == "user:boss"


def test_what_is_posted_to_his_chat_follows_when_it_becomes_one_with_an_earlier_id_of_it(
    phone: Phone, chief: Party, kai: Party
) -> None:
    early = f"{phone.name}-early"
    phone.says("who is this?", place=early)
    phone.reached()
    kai.send(chief, text="posted before")
    post = phone.post_of("posted before")
    asked = phone.says("asked before", message="m1")
    phone.steer("pause")
    kai.send(chief, text="waits")
    phone.comes_in(
        "renamed", kind="membership", membership="renamed", place=early, renamed_to=phone.name, act=True
    )
    assert phone.steer("resume") == 1
    phone.post_of("waits")
    assert phone.says_to(kai, "an answer", reply_to=post)["sender"] == "user:boss"
    chief.call("boss.set", forward="off")  # what he asked there is answered there
    phone.owner.send(text="answered after", reply_to=asked["id"])
    phone.post_of("answered after")


# --- what else counts them ---------------------------------------------------------------


def test_a_reply_to_ones_own_mail_for_him_is_mail_for_him_and_nothing_else(
    phone: Phone, chief: Party, kai: Party
) -> None:
    phone.reached()
    for sender in (kai, phone.owner):
        [again] = sender.send(text=f"more of {sender.name}", reply_to=sender.tell(chief, text="first"))["ids"]
        assert sender.call("envelope.get", id=again)["recipients"] == ["user:boss"]
        phone.post_of(f"more of {sender.name}")
    chief.call("boss.set", reach="")
    [last] = phone.owner.send(text="after that", reply_to=again)["ids"]
    assert phone.owner.get(last)["conversation"] == phone.owner.get(again)["conversation"]
    assert forwards(chief, last) == []


def test_a_reply_to_ones_own_mail_to_his_chat_is_posted_there_while_it_is_his(
    phone: Phone, chief: Party
) -> None:
    phone.reached(forward="off")
    [number] = phone.owner.send(phone.address, text="to the chat")["ids"]
    [again] = phone.owner.send(text="more", reply_to=number)["ids"]
    assert phone.owner.get(again)["to"] == phone.address
    chief.call("boss.set", reach="")
    [last] = phone.owner.send(text="even more", reply_to=again)["ids"]
    assert phone.owner.get(last)["to"] == "user:boss"


# --- whose they are ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text"), [("json", '{"a":1}'), ("html", "<b>red</b>"), ("markdown", "# red")]
)
def test_every_post_in_his_chat_begins_with_its_sender(
    phone: Phone, chief: Party, kai: Party, kind: str, text: str
) -> None:
    phone.send("to a stranger")
    phone.reached()
    phone.send("to him")
    kai.send(chief, text=text, type=kind)
    phone.owner.send(chief, text=f"{kai.name}:\nforged")
    own = phone.owner.name
    phone.wait_for("to a stranger", f"{own}:\nto him", f"{kai.name}:\n{text}", f"{own}:\n{kai.name}:\nforged")


# --- another priority for one delivery ----------------------------------------------------


def test_what_is_made_urgent_is_posted_first(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.steer("pause")
    first, _, third = (place.send(text) for text in ("one", "two", "three"))
    assert control(daemon, "priority", envelope=third, level="critical") == ("applied", None)
    assert control(daemon, "priority", envelope=first, level="low") == ("applied", None)
    place.goes_on("resume", "three", "two", "one")
    assert control(daemon, "priority", envelope=third, level="low") == ("too-late", f"{third} is done")


def test_a_forward_has_a_priority_of_its_own(daemon: RunningDaemon, tmp_path: Path) -> None:
    phone, chief, kai = Phone(tmp_path), boss(daemon), agent(daemon)
    phone.bound(daemon)
    phone.reached()
    phone.steer("pause")
    boxes = [kai.tell(chief, text=text) for text in ("one", "two")]
    [later], [sooner] = (forwards(chief, number) for number in boxes)
    assert control(daemon, "priority", envelope=boxes[1], level="high") == ("too-late", f"{boxes[1]} is done")
    assert control(daemon, "priority", envelope=sooner["id"], level="high") == ("applied", None)
    phone.steer("resume")
    wait_until(lambda: chief.get(later["id"])["status"] == "done")
    assert [one["id"] for one in phone.posts()] == [sooner["id"], later["id"]]
    chief.call("boss.set", reach="", forward="all")
