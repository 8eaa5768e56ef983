"""The boss is one person: what he writes in a chat of his, and what is posted there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.live_places import Writer
from tests.support.parties import Party, agent, boss
from tests.support.phones import Phone, box, forwards
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import (
    Place,
    envelope_error,
    lane_error,
    notices,
)
from tests.support.waits import wait_until

# --- what he writes ----------------------------------------------------------------------


def test_what_he_writes_in_his_chat_is_in_his_conversation_and_shows_the_place(
    phone: Phone, chief: Party
) -> None:
    before = phone.says("who is this?", author={"name": "Ada", "username": "ada"})
    assert (before["sender"], before["from_boss"]) == (phone.address, False)
    phone.reached()
    found = phone.says("it is me", author={"name": "Ada", "username": "ada"})
    typed = chief.send(phone.owner, text="at the terminal")
    assert (found["from"], found["sender"], found["from_boss"]) == (phone.address, "user:boss", True)
    assert found["conversation"] == typed["conversation"] != before["conversation"]
    turn = phone.owner.call("turn.preview")["text"]
    addresses = f"from: {phone.address}\nto: {phone.owner.address}\n"
    assert f"\n{addresses}from-boss: true\nfrom-name: Ada (@ada) [boss]\n" in turn
    said = chief.call("conversation.messages", **{"with": phone.owner.address})["envelopes"]
    assert [one["text"] for one in said] == ["it is me", "at the terminal"]


def test_a_list_finds_it_by_the_place_and_by_him(phone: Phone) -> None:
    phone.reached().says("find me")
    for sender in (phone.address, "user:boss"):
        assert [one["text"] for one in phone.owner.list(**{"from": sender})] == ["find me"]


def test_in_a_group_the_chat_is_the_sender_and_his_own_words_are_marked(phone: Phone) -> None:
    phone.reached()
    his = phone.says("mine", place="g1", group="ops", author={"id": phone.name, "name": "Ada"})
    other = phone.says("not mine", place="g1", group="ops", author={"id": "7", "name": "Ada"})
    assert [(one["sender"], one["from_boss"]) for one in (his, other)] == [
        ("channel:scripted:g1", True),
        ("channel:scripted:g1", False),
    ]
    assert his["conversation"] == other["conversation"]


def test_a_message_of_a_group_in_the_same_chat_leaves_the_chat_his(phone: Phone) -> None:
    """A folder has one chat for both."""
    phone.reached()
    assert phone.says("of a group", group="ops", author={"name": "Eve"})["sender"] == phone.address
    assert phone.says("of the boss", author={"name": "Ada"})["sender"] == "user:boss"


def test_an_answer_to_a_group_in_the_same_chat_is_for_the_group(phone: Phone, chief: Party) -> None:
    phone.reached()
    asked = phone.says("what of the group?", group="ops", author={"name": "Eve"})
    [number] = phone.owner.send(text="for the group", reply_to=asked["id"])["ids"]
    phone.post_of("for the group")
    assert phone.owner.get(number)["conversation"] == asked["conversation"]
    assert all(one["text"] != "for the group" for one in chief.list())


# --- what is posted there ----------------------------------------------------------------


def test_mail_for_him_is_posted_there_too_and_a_reply_there_answers_it(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    phone.reached()
    lin = agent(daemon)  # not an agent of the account
    number = lin.tell(chief, text="the build is red")
    post = phone.post_of("the build is red")
    assert phone.texts()[-1] == f"{lin.name}:\nthe build is red"
    [forward] = forwards(chief, number)
    assert (forward["to"], forward["message"]) == (phone.address, lin.get(number)["message"])
    assert lin.ids(box="outbox") == [number]  # it is one mail
    assert lin.call("envelope.get", id=number)["recipients"] == ["user:boss"]

    phone.comes_in("r1", text="mend it", reply_to=post)
    wait_until(lambda: lin.list())
    [reply] = lin.list()
    assert (reply["text"], reply["from"], reply["sender"]) == ("mend it", phone.address, "user:boss")
    assert reply["reply_to"] == lin.get(number)["message"] and reply["from_boss"]
    assert reply["conversation"] == lin.get(number)["conversation"]
    assert phone.owner.list() == []
    # The answer to that goes where he asked, and names its sender again.
    lin.send(text="done", reply_to=reply["id"])
    phone.post_of("done")


@pytest.mark.parametrize(
    ("forward", "posted"),
    [("all", ["normal", "high"]), ("important", ["high"]), ("off", [])],
)
def test_what_is_posted_there_is_his_choice(
    phone: Phone, chief: Party, forward: str, posted: list[str]
) -> None:
    phone.reached(forward=forward)
    for priority in ("normal", "high"):
        phone.owner.send(chief, text=f"{forward} {priority}", priority=priority)
    mail = {priority: box(chief, f"{forward} {priority}")["id"] for priority in ("normal", "high")}
    assert [priority for priority, number in mail.items() if forwards(chief, number)] == posted
    # What he asks there is answered there, whatever is forwarded.
    phone.owner.send(text=f"so-so, {forward}", reply_to=phone.says(f"well, {forward}?", message="42")["id"])
    phone.post_of(f"so-so, {forward}")
    assert phone.posts()[-1]["reply_to"] == "42"


def test_a_notice_is_posted_there_and_a_reply_to_it_goes_to_the_agents_of_the_account(
    phone: Phone, chief: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone.reached(forward="important")
    other = Place(tmp_path).bound(daemon)
    other.script(envelope_error(text="too long"))
    chief.send(other.address, text="never posted")
    answer = phone.says("never mind", reply_to=phone.post_of("too long"))
    assert (answer["sender"], answer["to"]) == ("user:boss", phone.owner.address)
    assert answer["reply_to"] is not None


def test_mail_to_the_address_of_his_chat_is_mail_for_him(phone: Phone, chief: Party) -> None:
    phone.reached(forward="off")
    asked = phone.says("are you there?")
    sent = phone.owner.send(phone.address, text="to the chat", key="once")
    [number] = sent["ids"]
    assert phone.owner.get(number)["to"] == phone.address and sent["conversation"] == asked["conversation"]
    found = box(chief, "to the chat")
    assert phone.owner.get(number)["forwards"] == found["id"]
    phone.post_of("to the chat")
    again = phone.owner.send(phone.address, text="to the chat", key="once")
    assert again["ids"] == sent["ids"] and again["duplicate"]
    both = phone.owner.send(chief, phone.address, text="twice named", key="both")
    assert [phone.owner.get(one)["to"] for one in both["ids"]] == ["user:boss", phone.address]
    assert phone.owner.send(chief, phone.address, text="twice named", key="both")["ids"] == both["ids"]
    assert phone.owner.ids(box="outbox", to=phone.address) == [both["ids"][1], number]


def test_who_may_not_post_there_may_not_write_to_the_chat(phone: Phone, daemon: RunningDaemon) -> None:
    phone.reached()
    assert agent(daemon).refusal("envelope.send", to=phone.address, text="x") == "not_bound"


def test_deferred_mail_is_posted_when_it_arrives_and_both_are_cancelled_together(
    phone: Phone, chief: Party
) -> None:
    phone.reached(forward="off")
    later = {"deliver_at": "2099-01-01T00:00:00Z"}
    [number] = phone.owner.send(phone.address, text="later", **later)["ids"]
    assert phone.owner.call("envelope.cancel", ids=[number])["changed"] == 1
    [other] = [one["forwards"] for one in [phone.owner.get(number)]]
    assert chief.get(other)["status"] == "cancelled"
    boss(phone.daemon).call("boss.set", forward="all")
    deferred = phone.owner.tell(chief, text="soon", deliver_at="+1s")
    assert forwards(chief, deferred) == []
    phone.post_of("soon")
    assert len(forwards(chief, deferred)) == 1


# --- when it cannot be posted ------------------------------------------------------------


def test_a_forward_that_fails_tells_only_his_box(phone: Phone, chief: Party) -> None:
    phone.reached()
    known = len(notices(chief))
    phone.script(envelope_error(text="too big"))
    number = phone.owner.tell(chief, text="a long letter")
    wait_until(lambda: len(notices(chief)) == known + 1)
    told = notices(chief)[-1]
    assert number in told["text"] and "too big" in told["text"]
    assert forwards(chief, told["id"]) == [] and notices(phone.owner) == []
    assert chief.get(number)["status"] == "done"


def test_a_failed_forward_of_a_notice_makes_no_notice(
    phone: Phone, chief: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone.reached()
    other = Place(tmp_path).bound(daemon)
    other.script(envelope_error(text="refused there"))
    phone.script(envelope_error(text="refused here"))
    chief.send(other.address, text="causes a notice")
    wait_until(lambda: any("refused there" in one["text"] for one in notices(chief)))
    [told] = [one for one in notices(chief) if "refused there" in one["text"]]
    [forward] = forwards(chief, told["id"])
    phone.wait_for_status(forward["id"], "failed")
    phone.owner.send(chief, text="the next one")
    phone.post_of("the next one")
    assert not any("refused here" in one["text"] for one in notices(chief))


def test_a_chat_that_fails_at_every_first_try_causes_one_notice_and_no_loop(
    phone: Phone, chief: Party
) -> None:
    phone.reached()
    phone.script(*[lane_error(text="busy", retry_after=None), {"do": "ok"}] * 5)
    for text in ("one", "two"):
        phone.owner.send(chief, text=text)
        phone.wait_for_failures(1)
        phone.steer("retry")
        phone.post_of(text)
    about = [one for one in notices(chief) if "busy" in one["text"] and phone.address in one["text"]]
    assert len(about) == 2  # one for each outage
    assert [forwards(chief, one["id"]) for one in about] == [[], []]
    assert phone.texts() == [f"{phone.owner.name}:\none", f"{phone.owner.name}:\ntwo"]


def test_unbinding_ends_his_reach_and_tells_him(phone: Phone, chief: Party) -> None:
    phone.reached(forward="important")
    phone.unbind()
    found = chief.call("boss.get")
    assert (found["reach"], found["reach_binding"], found["forward"]) == (None, None, "important")
    told = [one for one in notices(chief) if f"no longer posted to {phone.address}" in one["text"]]
    assert len(told) == 1 and forwards(chief, told[0]["id"]) == []


def test_with_its_last_agent_his_chat_ends_too(phone: Phone, chief: Party) -> None:
    phone.reached()
    chief.call("agent.delete", name=phone.owner.name)
    assert chief.call("boss.get")["reach"] is None


# --- another chat ------------------------------------------------------------------------


def test_a_chat_that_is_not_his_any_more_is_a_strangers(
    phone: Phone, chief: Party, daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone.reached()
    asked = phone.says("asked on the old one")
    new = Phone(tmp_path).bound(daemon)
    new.reached()
    assert chief.call("boss.get") == {
        **chief.call("boss.get"),
        "reach": new.address,
        "reach_binding": f"b{new.binding}",
    }
    assert phone.says("a stranger")["sender"] == phone.address
    phone.owner.send(text="answered on the new one", reply_to=asked["id"])
    new.post_of("answered on the new one")
    assert phone.texts() == []


def test_a_run_that_answers_after_he_was_reached_answers_him(phone: Phone, chief: Party) -> None:
    asked = phone.says("asked as a stranger")
    phone.reached()
    [number] = phone.owner.send(text="answered to the boss", reply_to=asked["id"])["ids"]
    phone.post_of("answered to the boss")
    assert box(chief, "answered to the boss")["id"] == chief.get(number)["forwards"]


def test_what_is_no_chat_of_his_changes_nothing(phone: Phone, chief: Party) -> None:
    before = chief.call("boss.get")
    for params, code in (
        ({"reach": "agent:nex"}, "invalid_params"),
        ({"reach": "channel:scripted"}, "bad_address"),
        ({"reach": "channel:scripted:nobody"}, "not_bound"),
        ({"reach": phone.address, "reach_binding": "b99"}, "not_bound"),
        ({"reach": phone.address, "reach_binding": "x"}, "bad_id"),
        ({"reach_binding": "b1"}, "invalid_params"),
        ({"forward": "some"}, "invalid_params"),
    ):
        assert chief.refusal("boss.set", name="Eve", **params) == code, params
    assert chief.call("boss.get") == before


def test_a_group_is_no_place_to_reach_him(phone: Phone, chief: Party) -> None:
    phone.says("hello", place="g2", group="ops")
    assert chief.refusal("boss.set", reach="channel:scripted:g2") == "not_bound"


def test_mail_that_was_in_hand_when_he_named_another_chat_goes_there_if_it_is_refused(
    phone: Phone, daemon: RunningDaemon, tmp_path: Path
) -> None:
    other = Phone(tmp_path).bound(daemon)
    phone.reached()
    phone.script(phone.gated(**lane_error()))
    phone.owner.send("user:boss", text="urgent")
    wait_until(lambda: phone.steps_left() == 0)
    other.reached()
    phone.open_gate()
    other.post_of("urgent")
    assert phone.texts() == []


# --- answers of runs ----------------------------------------------------------------


def test_what_an_agent_sent_him_in_reply_is_not_sent_to_him_again_as_its_answer(
    team: Team, ada: Boss, daemon: RunningDaemon, tmp_path: Path
) -> None:
    other = agent(daemon)  # it leads the account
    replies = 'call("envelope.send", reply_to=re.search(r"envelope-id: (e[0-9]+)", TURN)[1], text="done")'
    writer = team.hire(f'{replies}; print("done")')
    phone = Phone(tmp_path).bound(daemon, other)
    phone.bind(writer)  # type: ignore[arg-type] # it only needs a name and a daemon
    ada.call("boss.set", reach=phone.address)
    phone.comes_in("1", text=f"@{writer.name} do it", message="7")
    wait_until(lambda: [one["status"] for one in writer.runs()] == ["completed"])
    assert [one["text"] for one in ada.list() if one["from"] == writer.address] == ["done"]
    phone.wait_for(f"{writer.name}:\ndone")
    ada.call("boss.set", reach="")


def test_an_answer_follows_its_chat_that_got_another_id_while_the_agent_worked(
    team: Team, daemon: RunningDaemon, tmp_path: Path
) -> None:
    writer = Writer(team, "writer")
    place = Place(tmp_path).settings(places=["g", "g2"])
    place.bound(daemon, writer.agent)  # type: ignore[arg-type] # it only needs a name and a daemon
    place.comes_in("1", text="in the new", place="g2", group="ops", message="1")
    wait_until(lambda: writer.agent.runs() and writer.status() == "running")
    place.comes_in(
        "2", kind="membership", membership="renamed", place="g", group="ops", renamed_to="g2", act=True
    )
    wait_until(lambda: not (place.root / "inbox" / "2.json").exists())
    writer.goes_on()
    wait_until(lambda: writer.status() == "completed")
    wait_until(lambda: place.posts())
    assert [(one["place"], one["chunk"]) for one in place.posts()] == [("g2", "well…\nand done")]


def test_what_a_run_asks_is_told_in_the_chat_where_he_wrote_whatever_else_is_posted_there(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    ask = {"hiboss": "ask", "text": "May I?", "options": ["yes", "no"]}
    program = tmp_path / "asks.sh"
    program.write_text(f"read turn\necho '{json.dumps(ask)}'\nread answer\necho 'then I did'\n")
    asking = agent(daemon, provider="command", settings={"command": f"sh {program}", "input": "open"})
    phone = Phone(tmp_path).bound(daemon, asking)
    ada.call("boss.set", reach=phone.address, forward="off")
    phone.comes_in("1", text="clean up", message="7")
    phone.post_of("May I?")
    (ask,) = ada.call("ask.list")["asks"]
    ada.call("ask.answer", id=ask["id"], choice="yes")
    phone.post_of("then I did")
    ada.call("boss.set", reach="", forward="important")
