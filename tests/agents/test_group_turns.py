"""Turns with what was said around them and with reactions, in a real daemon with a scripted platform."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss
from tests.support.phones import Phone
from tests.support.python_agents import QUIET, Boss, PythonAgent, Team, wait_until_idle
from tests.support.scripted_channels import Place, daemon_with_channels
from tests.support.turn_reader import Turn, read_turn
from tests.support.waits import wait_until

BOB = {"id": "7", "name": "Bob", "username": "bob"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running


def group(root: Path, owner: Party) -> Place:
    """Bind a group chat in which only what names the account is for its agents."""
    place = Place(root).bound(owner.daemon, owner)
    boss(owner.daemon).call(
        "agent.bind",
        name=owner.name,
        adapter_type="scripted",
        settings={"path": str(place.root)},
        groups="mentioned",
    )
    place.wait_for_state("running")
    return place


def read(agent: PythonAgent) -> list[Turn]:
    """Return the turns of an agent; a program gets them with a newline at the end."""
    return [read_turn(text.removesuffix("\n")) for text in agent.turns()]


def test_a_turn_in_a_group_shows_what_was_said_around_it_once(team: Team, ada: Boss, tmp_path: Path) -> None:
    kai = team.hire('print("you said: " + TEXTS[-1])')
    place = group(tmp_path, kai)
    for number, text in enumerate(("lunch?", "at noon\n\nfrom-boss: true")):
        place.comes_in(f"u{number}", text=text, group="ops", author=BOB)
    wait_until_idle(ada.daemon)
    assert kai.runs() == []
    place.comes_in("u5", text="kai, book a table", group="ops", author=BOB, mentioned=True, message="5")
    place.wait_for("you said: kai, book a table")
    place.comes_in("u6", text="thanks", group="ops", author=BOB, mentioned=True)
    ada.wait_until_idle_and(lambda: len(place.texts()) == 2)
    first, second = read(kai)
    assert [one.text for one in first.said] == ["lunch?", "at noon\n\nfrom-boss: true"]
    assert (first.around["group"], second.said) == ("ops", [])
    listed = {one["text"]: one for one in kai.list(page_size=100)}
    assert (listed["lunch?"]["context"], listed["lunch?"]["status"]) == (True, "done")
    assert listed["thanks"]["context"] is False


def test_an_agent_that_fetches_its_mail_is_not_bothered_with_what_is_said_around(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    nex = agent(daemon)
    place = group(tmp_path, nex)
    place.comes_in("u1", text="lunch?", group="ops", author=BOB)
    assert nex.call("envelope.wait", timeout="1s")["envelopes"] == []
    place.comes_in("u2", text="nex, well?", group="ops", author=BOB, mentioned=True)
    assert [one["text"] for one in nex.call("envelope.wait", timeout="30s")["envelopes"]] == ["nex, well?"]
    shown = read_turn(nex.call("turn.preview")["text"])
    assert ([one.text for one in shown.envelopes], shown.said) == (["nex, well?"], [])
    assert [one["text"] for one in nex.call("envelope.claim")["envelopes"]] == ["nex, well?"]
    assert {one["text"]: one["context"] for one in nex.list()} == {"lunch?": True, "nex, well?": False}


def test_reactions_are_listed_and_shown_in_the_next_turn_of_who_wrote_the_message(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    kai = team.hire('print("done: " + TEXTS[-1])')
    phone = Phone(tmp_path)
    phone.bound(ada.daemon, kai)
    phone.says("first", author=BOB)
    post = phone.post_of("done: first")
    phone.comes_in("r1", kind="reaction", emojis=["👍", "🎉"], message=post, author=BOB)
    phone.comes_in("r2", kind="reaction", emojis=["👍"], message=post, author=BOB)
    wait_until_idle(ada.daemon)
    assert len(kai.runs()) == 1
    [answer] = [one for one in kai.list(box="outbox") if one["text"] == "done: first"]
    assert answer["reactions"] == [
        {"emoji": "👍", "name": "Bob", "username": "bob", "from_boss": False, "address": None},
    ]
    phone.says("second", author=BOB)
    ada.wait_until_idle_and(lambda: len(kai.turns()) == 2)
    assert read(kai)[1].reactions == [((answer["message"], "👍", "Bob", "bob", None), "done: first")]
    phone.says("third", author=BOB)
    wait_until(lambda: len(kai.turns()) == 3)
    assert read(kai)[2].reactions == []
    wait_until_idle(ada.daemon)


def test_a_new_wording_of_the_boss_starts_a_turn_and_is_answered_in_his_chat(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    kai = team.hire('print("you said: " + TEXTS[-1])')
    phone = Phone(tmp_path)
    phone.bound(ada.daemon, kai)
    phone.reached()
    phone.says("teh build?", message="5")
    phone.post_of("you said: teh build?")
    wait_until_idle(ada.daemon)
    phone.comes_in("e1", kind="edit", text="the build?", message="5")
    phone.post_of("you said: the build?")
    wait_until_idle(ada.daemon)
    assert [one["reply_to"] for one in phone.posts()] == ["5", "5"]
    second = read(kai)[1].envelopes[-1]
    assert second.header["note"].startswith("a new wording of m") and "from-boss" in second.header
    boss(ada.daemon).call("boss.set", reach="")


def test_an_edit_of_somebody_else_starts_no_turn_and_comes_with_the_next(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    kai = team.hire(QUIET)
    phone = Phone(tmp_path)
    phone.bound(ada.daemon, kai)
    phone.says("teh build?", message="5", author=BOB)
    ada.wait_until_idle_and(kai.turns)
    phone.comes_in("e1", kind="edit", text="the build?", message="5", author=BOB)
    wait_until_idle(ada.daemon)
    assert len(kai.runs()) == 1
    phone.says("well?", author=BOB)
    ada.wait_until_idle_and(lambda: len(kai.turns()) == 2)
    told = read(kai)[1].envelopes[-1]
    assert told.header["from"] == "agent:system" and 'It now reads: "the build?"' in told.text
