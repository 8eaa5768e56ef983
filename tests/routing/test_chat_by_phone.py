"""The chat of an agent and the boss, with a phone: what he writes in a private chat of his is in it, and answers go there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.parties import boss
from tests.support.phones import Phone
from tests.support.scripted_channels import daemon_with_channels


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running


def test_what_the_boss_says_by_phone_is_in_the_chat_and_is_answered_there(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    phone = Phone(tmp_path)
    phone.bound(daemon)
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
    phone = Phone(tmp_path)
    phone.bound(daemon)
    phone.reached()
    nex = phone.owner
    phone.says("teh plan", message="7")
    last = nex.call("chat.read")["last_id"]
    phone.comes_in("edit-1", text="the plan", message="7", kind="edit")
    wait_until(lambda: nex.call("chat.read", after_id=last)["messages"])
    (change,) = nex.call("chat.read", after_id=last)["messages"]
    assert change["edits"] == last and change["content"] == "the plan"
