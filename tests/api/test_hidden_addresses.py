"""What others are not shown: closed groups and chats, live output where the answer does not go, error texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agent, agents
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("message.list", "author_id", {"unread": True}),
    ("envelope.list", "from", {}),
    ("envelope.list", "to", {"box": "outbox"}),
    ("control.list", "actor", {}),
    ("presence.get", "address", {}),
    ("conversation.messages", "with", {}),
    ("envelope.send", "to", {"text": "x"}),
]


@pytest.fixture(scope="module")
def cast(daemon: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    owner, stranger = agents(daemon, 2)
    owner.call("conversation.create", type="group", name="secret-1", participants=[])
    owner.call("conversation.create", type="group", name="public-1", participants=[], open=True)
    box = tmp_path_factory.mktemp("folder") / "chat1"
    bound = {"name": owner.name, "adapter_type": "folder", "settings": {"path": str(Path(box))}}
    yield owner, stranger, Boss(daemon).call("agent.bind", **bound)["address"]


def told(who: Party, method: str, **params: Any) -> str:
    """Return the code and the text of a refusal; without them if there is none."""
    try:
        who.call(method, **params)
    except Answered as error:
        return f"{error.stable_code}: {error}"
    return "done"


def test_a_closed_group_and_a_chat_are_for_a_stranger_as_if_there_were_none(
    cast: tuple[Party, Party, str],
) -> None:
    with sweep() as row:
        for method, name, beside in ASKED:
            with row(method):
                _, stranger, chat = cast
                pairs = [("secret-1", "secret-2"), ("group:secret-1", "group:secret-2")]
                if method != "envelope.send":  # to a chat it says that the sender has no account there
                    pairs.append((chat, "channel:folder:chat2"))
                for hidden, missing in pairs:
                    answers = [told(stranger, method, **beside, **{name: one}) for one in (hidden, missing)]
                    same = answers[0].replace("secret-1", "secret-2").replace("chat1", "chat2")
                    assert same == answers[1] != "done"


def test_who_is_in_the_group_or_uses_the_chat_knows_it_and_so_does_the_boss(
    cast: tuple[Party, Party, str], chief: Boss
) -> None:
    owner, stranger, chat = cast
    for who in (owner, chief):
        assert {
            told(who, "message.list", author_id=address, unread=True)
            for address in ("secret-1", "group:secret-1", chat)
        } == {"done"}
    assert told(stranger, "message.list", author_id="public-1", unread=True) == "done"


def test_only_who_knows_a_group_mentions_it(cast: tuple[Party, Party, str]) -> None:
    owner, stranger, _ = cast
    text = "@secret-1 and @public-1, @secret-2"
    for who, known in ((owner, ["public-1", "secret-1"]), (stranger, ["public-1"])):
        sent, later = who.send(who, text=text), who.send(who, text="nothing")
        who.call("message.edit", id=later["message"], text=text)
        assert mentioned(who, sent) == mentioned(who, later) == known


def mentioned(who: Party, sent: Any) -> list[str]:
    refs = who.call("message.get", message_id=sent["message"])["message"]["refs"]
    return sorted(one["value"] for one in refs if one["type"] == "mention")


# --- what is shown of an agent -----------------------------------------------------


def test_live_output_is_shown_only_where_the_answer_goes(team: Team, chief: Boss) -> None:
    lin = team.hire('print("my opinion")')
    kai = team.hire(f"""
if "ask" in TURN: send("{lin.address}", "your opinion?"); print("I will ask.")
else: print("Dear boss, lin is wrong.", flush=True); wait_for("go-on")
""")
    chief.say(kai, text="ask lin")
    wait_until(lambda: len(kai.turns()) == 2)  # the second is about the answer of lin, and goes to the boss
    try:
        heard: list[str] = []

        def live() -> bool:
            found = chief.call("conversation.news", **{"with": kai.address}, after=10**9)["run"]
            heard.extend(part["text"] for part in (found or {"parts": []})["parts"])
            return "Dear boss" in "".join(heard)

        wait_until(live)
        assert lin.call("conversation.news", **{"with": kai.address}, after=10**9)["run"] is None
    finally:
        team.place("go-on").touch()
    wait_until_idle(team.daemon)


def test_live_output_that_is_never_sent_is_shown_to_the_boss_alone(team: Team, chief: Boss) -> None:
    lin = team.hire("")
    kai = team.hire('print("my thoughts", flush=True); wait_for("think-on")', reply="explicit")
    lin.tell(kai)
    try:
        wait_until(kai.turns)
        number = kai.runs()[0]["id"]
        wait_until(lambda: chief.call("run.tail", id=number)["parts"])
        follow = {"with": kai.address, "after": 10**9}
        assert lin.call("conversation.news", **follow)["run"] is None
        seen = chief.call("conversation.news", **follow, address=lin.address)["run"]
        assert "my thoughts" in "".join(part["text"] for part in seen["parts"])
    finally:
        team.place("think-on").touch()
    wait_until_idle(team.daemon)


def test_why_an_agent_waits_is_told_to_the_boss_and_the_agent_alone(
    daemon: RunningDaemon, chief: Boss
) -> None:
    kai, lin = agent(daemon, settings={"command": "/nowhere/secret-program"}), agent(daemon)
    chief.tell(kai, text="hello")

    def state(who: object) -> tuple[str | None, str | None]:
        found = who.call("conversation.news", **{"with": kai.address}, after=10**9)  # type: ignore[attr-defined]
        return found["state"], found["why"]

    wait_until(lambda: state(chief)[0] == "waiting")
    assert "secret-program" in (state(chief)[1] or "")
    assert state(lin) == ("waiting", None)


def test_the_error_of_an_agents_turn_is_told_by_no_list_of_lanes(daemon: RunningDaemon, chief: Boss) -> None:
    kai, lin = agent(daemon, settings={"command": "/nowhere/secret-program"}), agent(daemon)
    chief.call("agent.permission.set", name=lin.name, level="privileged")
    chief.tell(kai, text="hello")

    def error(method: str, who: Party | None) -> str | None:
        answer = daemon.call(method) if who is None else who.call(method)
        (lane,) = [one for one in answer["lanes"] if one["address"] == kai.address]
        found: str | None = lane["last_error"]
        return found

    wait_until(lambda: chief.status(kai)["state"] == "waiting")
    assert [error("daemon.status", who) for who in (None, lin)] == [None, None]
    assert error("lane.list", lin) is None
    for who, method in ((chief, "daemon.status"), (chief, "lane.list"), (kai, "daemon.status")):
        assert "secret-program" in (error(method, who) or "")
