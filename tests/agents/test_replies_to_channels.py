"""Final texts that are posted to a channel: back to the platform where the question came from; and what is said around."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, boss
from tests.support.python_agents import QUIET, Boss, Team, texts, wait_until_idle
from tests.support.scripted_channels import Place, daemon_with_channels, envelope_error
from tests.support.turn_reader import read_turn
from tests.support.waits import wait_until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    modules = {"HIBOSS_PROVIDERS_MODULES": "tests.support.extra_providers"}
    with daemon_with_channels(tmp_path_factory.mktemp("d"), **modules) as running:
        yield running


def test_what_is_asked_on_a_platform_is_answered_there(team: Team, ada: Boss, tmp_path: Path) -> None:
    kai = team.hire('print("you said: " + TEXTS[-1])')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("7", text="hello", message="42")
    place.wait_for("you said: hello")
    wait_until_idle(ada.daemon)
    [run] = kai.runs()
    [post] = place.posts()
    assert post["reply_to"] == "42" and ada.get(post["id"])["message"] == run["answer"]
    assert ada.get(post["id"])["trace"] == run["trace"] and ada.get(post["id"])["hops"] == 1


def test_the_result_of_a_question_to_another_agent_goes_back_to_the_platform(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    zoe = team.hire('print("green")')
    kai = team.hire(
        f'send("{zoe.address}", "colour?") if "colour" in TEXTS[0] else print("it is " + TEXTS[0])'
    )
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="which colour?", message="9")
    place.wait_for("it is green")
    assert place.posts()[0]["reply_to"] == "9" and ada.heard(kai) == []


def test_a_final_text_that_the_agent_already_posted_there_is_not_posted_again(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    kai = team.hire(f'send("{place.address}", "the same"); print("the same")')
    place.bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    wait_until_idle(ada.daemon)
    place.wait_for("the same")
    assert kai.runs()[0]["note"] == "not sent: the agent had already sent this text there"


def test_progress_that_the_agent_posted_there_itself_does_not_cost_the_final_text(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    kai = team.hire(f'send("{place.address}", "half done"); print("final")')
    place.bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    wait_until_idle(ada.daemon)
    place.wait_for("half done", "final")
    assert kai.runs()[0]["note"] is None


def test_an_answer_that_cannot_be_sent_is_kept_and_the_boss_is_told(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    kai = team.hire('wait_for("unbound"); print("an answer")')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    wait_until(kai.turns)
    place.unbind()
    team.let_go("unbound")
    [run] = kai.runs()
    assert (run["status"], run["text"], run["answer"]) == ("completed", "an answer", None)
    assert "cannot post to" in run["note"]
    [told] = [text for text in ada.told_of(kai) if "could not be sent" in text]
    assert f"hiboss run get {run['id']}" in told


def test_an_answer_the_platform_refuses_is_told_to_its_agent_who_takes_no_turn_for_it(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    kai = team.hire('print("an answer")')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.script(envelope_error(text="too rude"))
    place.comes_in("1", text="hello")
    ada.wait_until_idle_and(lambda: [one for one in kai.list() if one["from"] == "agent:system"])
    [notice] = [one for one in kai.list() if one["from"] == "agent:system"]
    assert "too rude" in notice["text"] and notice["status"] == "pending" and len(kai.runs()) == 1
    assert texts(ada.heard(kai)) == []


def test_silence_is_kept_there_too(team: Team, ada: Boss, tmp_path: Path) -> None:
    kai = team.hire(QUIET)
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    wait_until_idle(ada.daemon)
    assert place.posts() == [] and [run["status"] for run in kai.runs()] == ["completed"]


# --- reminders a provider asks for -----------------------------------------------------------


def late(ada: Boss, room: Path) -> Party:
    """Register an agent whose provider answers with reminders only."""
    room.mkdir()
    return agent(ada.daemon, provider="late", workspace=str(room))


def go(room: Path, *reminders: str) -> None:
    (room / "part").write_text("".join(f"{line}\n" for line in reminders))
    (room / "part").rename(room / "go")


def test_reminders_go_later_to_where_the_answer_goes(ada: Boss, tmp_path: Path) -> None:
    kai = late(ada, tmp_path / "room")
    ada.say(kai, text="remind me")
    go(tmp_path / "room", "tea", "cake")
    wait_until_idle(ada.daemon)
    sent = kai.list(box="outbox", oldest_first=True)
    assert [(one["text"], one["to"], one["waits"], one["auto"]) for one in sent] == [
        ("tea", "user:boss", "deferred", True),
        ("cake", "user:boss", "deferred", True),
    ]


def test_a_reminder_that_cannot_be_sent_does_not_keep_a_run_from_its_end(ada: Boss, tmp_path: Path) -> None:
    kai = late(ada, tmp_path / "room")
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="remind me")
    wait_until(lambda: ada.status(kai)["running"])
    place.unbind()
    go(tmp_path / "room", "tea")
    wait_until_idle(ada.daemon)
    [run] = kai.call("run.list")["runs"]
    assert run["status"] == "completed" and "cannot post to" in run["note"]


@pytest.mark.parametrize("reminder", ["\\ud800", "\\x00"])
def test_what_cannot_be_stored_in_a_reminder_is_replaced(ada: Boss, tmp_path: Path, reminder: str) -> None:
    kai = late(ada, tmp_path / "room")
    ada.say(kai, text="remind me")
    go(tmp_path / "room", f"tea {reminder}")
    wait_until_idle(ada.daemon)
    [run] = kai.call("run.list")["runs"]
    assert run["status"] == "completed"
    assert [one["text"] for one in kai.list(box="outbox")] == ["tea \N{REPLACEMENT CHARACTER}"]


def test_a_reminder_that_is_too_long_does_not_keep_a_run_from_its_end(ada: Boss, tmp_path: Path) -> None:
    kai = late(ada, tmp_path / "room")
    number = ada.say(kai, text="remind me")["ids"][0]
    go(tmp_path / "room", "x" * 1_048_577)
    wait_until_idle(ada.daemon)
    [run] = kai.call("run.list")["runs"]
    assert run["status"] == "failed" and ada.get(number)["waits"] == "retry"
    ada.call("agent.delete", name=kai.name)


# --- what is said around --------------------------------------------------------------

BOB = {"id": "7", "name": "Bob", "username": "bob"}


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
