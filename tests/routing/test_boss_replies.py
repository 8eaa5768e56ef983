"""To whom the boss's replies go that he writes in a chat of his."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.channels.stored_updates import outcomes
from tests.support.live_places import LivePlace, Writer
from tests.support.parties import Party, agent, boss, person
from tests.support.phones import Phone
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import notices
from tests.support.waits import wait_until

ENVIRONMENT = {"HIBOSS_DELIVERY_LIVE_SECONDS": "0.02"}


def test_a_reply_to_his_own_reply_goes_to_the_same_recipient_again(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    phone.reached()
    kai = agent(daemon)  # not an agent of the account
    kai.send(chief, text="the build is red")
    first = phone.says_to(kai, "mend it", reply_to=phone.post_of("the build is red"), message="100")
    second = phone.says_to(kai, "and quickly", reply_to="100", message="101")
    third = phone.says_to(kai, "please", reply_to="101")
    assert [one["conversation"] for one in (second, third)] == [first["conversation"]] * 2
    assert [second["reply_to"], third["reply_to"]] == [first["message"], second["message"]]
    assert phone.owner.list() == []


def test_a_reply_to_what_he_wrote_before_the_chat_was_his_goes_to_those_who_got_it(
    phone: Phone, daemon: RunningDaemon
) -> None:
    phone.says("who reads this?", message="100")
    first, second = phone.owner, agent(daemon)
    phone.bind(second)  # another agent of the account, which did not get it
    phone.reached()
    assert phone.says_to(first, "hello?", reply_to="100")["sender"] == "user:boss"
    assert second.list() == []


@pytest.mark.parametrize("forward", ["all", "off"])
def test_a_reply_to_the_mail_of_a_deleted_agent_goes_to_nobody_else_and_he_is_told_there(
    phone: Phone, chief: Party, daemon: RunningDaemon, forward: str
) -> None:
    phone.reached()
    kai = agent(daemon)
    kai.send(chief, text="it is done")
    post = phone.post_of("it is done")
    chief.call("agent.delete", name=kai.name)
    namesake = agent(daemon, kai.name)
    chief.call("boss.set", forward=forward)
    phone.comes_in("secret", text=f"the password is {forward}", reply_to=post, message="7")
    phone.post_of(f"the password is {forward}")
    told = notices(chief)[-1]
    assert f"{kai.address} was deleted" in told["text"] and phone.posts()[-1]["reply_to"] == "7"
    [kept] = chief.list(box="outbox", status="failed", to=kai.address)
    assert kept["id"] in told["text"] and kept["text"] == f"the password is {forward}"
    assert (kept["from"], kept["last_error"]["text"]) == (phone.address, "the recipient was deleted")
    assert chief.refusal("envelope.retry", ids=[kept["id"]]) == "too_late"
    assert phone.owner.list() == namesake.list() == []


def test_a_reply_to_the_mail_of_a_deleted_person_is_kept_as_failed(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    phone.reached()
    person(daemon, "ann").send(chief, text="it is me, ann")
    post = phone.post_of("it is me, ann")
    chief.call("user.delete", name="ann")
    phone.comes_in("secret", text="for ann alone", reply_to=post)
    phone.post_of("for ann alone")
    [kept] = chief.list(box="outbox", status="failed", to="user:ann")
    assert kept["text"] == "for ann alone" and phone.owner.list() == []


def test_a_reply_to_a_post_that_grows_or_grew_goes_to_the_agent_that_writes_it(
    chief: Party, team: Team, ada: Boss, daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = LivePlace(tmp_path).bound(daemon)
    chief.call("boss.set", reach=phone.address)
    writer = Writer(team, "writer")  # not an agent of the account
    asked = ada.say(writer.agent)
    wait_until(lambda: phone.rows() and phone.rows()[0]["platform_id"])
    phone.comes_in("1", text="stop that", reply_to=phone.rows()[0]["platform_id"])
    [reply] = [one for one in writer.agent.list() if one["text"] == "stop that"]
    assert reply["reply_to"] == asked["message"] and phone.owner.list() == []
    shown = phone.rows()[0]["platform_id"]
    phone.comes_in("2", kind="reaction", emoji="👍", message=shown)  # to nothing that is a message yet
    assert outcomes(phone)["2"] == "ignored"
    # What he wrote overtook it, so it is deleted; and he had not seen that when he replied to it.
    writer.goes_on()
    wait_until(lambda: shown in [one["id"] for one in phone.changes("delete")] and phone.is_settled())
    phone.comes_in("3", text="I said stop", reply_to=shown)
    [late] = [one for one in writer.agent.list() if one["text"] == "I said stop"]
    assert late["reply_to"] == writer.agent.runs()[0]["answer"] and phone.owner.list() == []
    chief.call("boss.set", reach="")


def test_after_the_account_was_bound_again_a_reply_goes_to_whom_it_answers_and_an_edit_is_one(
    phone: Phone, chief: Party, daemon: RunningDaemon
) -> None:
    phone.reached()
    kai = agent(daemon)  # not an agent of the account
    number = kai.tell(chief, text="which one?")
    post = phone.post_of("which one?")
    asked = phone.says("from the boss", message="10")
    phone.unbind()
    phone.bind(phone.owner)
    phone.reached()
    answer = phone.says_to(kai, "the first one", reply_to=post, message="11")
    assert answer["reply_to"] == kai.get(number)["message"]
    assert phone.says("what about that?", reply_to="10")["reply_to"] == asked["message"]
    phone.comes_in("edited", kind="edit", text="from the boss, again", message="10")
    assert phone.owner.get(asked["id"])["text"] == "from the boss, again"
    phone.owner.send(text="I see", reply_to=asked["id"])
    phone.post_of("I see")
    assert phone.posts()[-1]["reply_to"] == "10"


# --- the chat of an agent and the boss, with a phone --------------------------------------


def test_what_the_boss_says_by_phone_is_in_the_chat_and_is_answered_there(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = Phone(tmp_path).bound(daemon)
    phone.reached(forward="off")
    nex = phone.owner
    phone.says("from the phone")
    boss(daemon).tell(nex, text="from the terminal")
    page = nex.call("chat.read")
    assert [(one["author"], one["content"]) for one in page["messages"]] == [
        ("user", "from the phone"),
        ("user", "from the terminal"),
    ]
    by_phone, by_terminal = page["messages"]
    nex.call("chat.post", content="answer to the phone", reply_to=by_phone["id"])
    nex.call("chat.post", content="answer to the terminal", reply_to=by_terminal["id"])
    wait_until(lambda: any("answer to the phone" in one for one in phone.texts()))
    assert not any("answer to the terminal" in one for one in phone.texts())
    found = [one["content"] for one in boss(daemon).call("chat.read", agent=nex.name)["messages"]]
    assert found[2:] == ["answer to the phone", "answer to the terminal"]


def test_an_edit_by_phone_is_one_new_entry(daemon: RunningDaemon, tmp_path: Path) -> None:
    phone = Phone(tmp_path).bound(daemon)
    phone.reached()
    nex = phone.owner
    phone.says("teh plan", message="7")
    last = nex.call("chat.read")["last_id"]
    phone.comes_in("edit-1", text="the plan", message="7", kind="edit")
    wait_until(lambda: nex.call("chat.read", after_id=last)["messages"])
    (change,) = nex.call("chat.read", after_id=last)["messages"]
    assert change["edits"] == last and change["content"] == "the plan"
