"""`hiboss notify` and `hiboss presence`, and what `hiboss chat` says and shows of typing."""

from __future__ import annotations

import pytest

from tests.support.cli import Office
from tests.support.followers import following
from tests.support.talk import chatting, talking

pytestmark = pytest.mark.usefixtures("demo_office")


def notices(office: Office) -> list[str]:
    found = office.daemon.call("envelope.list", token=office.token("boss"), page_size=100)["envelopes"]
    return [one["text"] for one in found if one["from"] == "agent:system"]


def tell_boss(office: Office, name: str, text: str) -> None:
    office.daemon.call("envelope.send", token=office.token(name), to="user:boss", text=text)


def test_one_is_told_at_once_or_later_and_can_take_it_back(office: Office) -> None:
    name = office.agent()
    assert office("notify", name, "--when", "idle", "--as", "boss").record == {
        "name": name,
        "when": "idle",
        "told": "true",
    }
    assert f"agent:{name} is idle: nothing runs, and no mail waits for it." in notices(office)
    assert office("notify", name, "--when", "finished", "--as", "boss").record["told"] == "false"
    [watch] = office("notify", "--list", "--as", "boss").blocks
    assert (watch["name"], watch["when"], watch["watcher"]) == (name, "finished", "user:boss")
    assert office("notify", name, "--remove", "--as", "boss").record == {"name": name, "removed": "1"}
    assert office("notify", "--list", "--as", "boss").stdout == "no-watches: true\n"


@pytest.mark.parametrize(
    "words, says",
    [
        (("notify",), "name the agent"),
        (("notify", "nex"), "--when idle"),
        (("notify", "nex", "--list"), "name the agent"),
        (("notify", "nex", "--when", "idle", "--as", "nex"), "about itself"),
    ],
)
def test_what_is_missing_is_said(office: Office, words: tuple[str, ...], says: str) -> None:
    done = office(*words, *(() if "--as" in words else ("--as", "boss")))
    assert done.rc != 0 and says in done.stderr and done.stdout == ""


def test_presence_shows_one_or_all(office: Office) -> None:
    with following(office.daemon) as follower:
        follower.subscribe(office.token("boss"))
        assert office("presence", "boss", "--as", "nex").record["presence"] == "online"
        everybody = {one["address"]: one for one in office("presence", "--as", "boss").blocks}
        assert everybody["user:boss"]["presence"] == "online" and "state" not in everybody["user:boss"]
        assert (everybody["agent:nex"]["presence"], everybody["agent:nex"]["state"]) == ("idle", "idle")
    assert office("presence", "nex", "--as", "boss", "--json").json["presence"] == "idle"
    assert office("agent", "status", "nex", "--as", "boss").record["presence"] == "idle"
    assert "presence" in office("user", "list", "--as", "boss").blocks[0]


# --- hiboss chat ---------------------------------------------------------------------


def test_chat_says_that_a_person_types_and_when_the_prompt_is_empty_again(office: Office) -> None:
    name = office.agent()
    tell_boss(office, name, "hello")
    token = office.token(name)
    with following(office.daemon) as follower, talking(office, name) as terminal:
        follower.subscribe(token, topics=["presence.typing", "envelope.arrived"])
        terminal.ready()
        terminal.press("/status")  # a command is for this program alone
        terminal.see("> /status")
        terminal.press("\x15hello")
        fact = follower.next()
        assert (fact["topic"], fact["who"], fact["on"]) == ("presence.typing", "user:boss", True)
        terminal.press(" there\r")
        topics = {(one["topic"], one.get("on")) for one in (follower.next(), follower.next())}
        assert topics == {("presence.typing", False), ("envelope.arrived", None)}


def test_chat_shows_that_the_other_types_until_it_has_written(office: Office) -> None:
    name = office.agent()
    tell_boss(office, name, "hello")
    token = office.token(name)
    found = office.daemon.call("conversation.messages", token=token, **{"with": "user:boss"})
    with chatting(office, name) as terminal:
        terminal.until(
            lambda: (
                office.daemon.call("presence.typing", token=token, conversation=found["conversation"])
                and f"{name} is typing" in terminal.text
            ),
            "that the other types",
        )
        tell_boss(office, name, "here it is")
        terminal.see("here it is")
        terminal.until(lambda: f"{name} is typing" not in terminal.text, "that the other types no more")
