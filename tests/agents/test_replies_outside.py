"""Final texts that go out of the house: back to the platform where something was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.office import Party, agent
from tests.support.places import Place, envelope_error, post_office
from tests.support.thinkers import QUIET, Chief, Team, rest, texts


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    modules = {"HIBOSS_PROVIDERS_MODULES": "tests.support.odd_providers"}
    with post_office(tmp_path_factory.mktemp("d"), **modules) as running:
        yield running


def test_what_is_asked_on_a_platform_is_answered_there(team: Team, ada: Chief, tmp_path: Path) -> None:
    kai = team.hire('print("you said: " + TEXTS[-1])')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("7", text="hello", message="42")
    place.wait_for("you said: hello")
    rest(ada.daemon)
    [run] = kai.runs()
    [post] = place.posts()
    assert post["reply_to"] == "42" and ada.get(post["id"])["message"] == run["answer"]
    assert ada.get(post["id"])["trace"] == run["trace"] and ada.get(post["id"])["hops"] == 1


def test_the_result_of_an_errand_goes_back_to_the_platform(team: Team, ada: Chief, tmp_path: Path) -> None:
    zoe = team.hire('print("green")')
    kai = team.hire(
        f'send("{zoe.address}", "colour?") if "colour" in TEXTS[0] else print("it is " + TEXTS[0])'
    )
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="which colour?", message="9")
    place.wait_for("it is green")
    assert place.posts()[0]["reply_to"] == "9" and ada.heard(kai) == []


def test_who_has_posted_there_itself_is_not_heard_twice(team: Team, ada: Chief, tmp_path: Path) -> None:
    place = Place(tmp_path)
    kai = team.hire(f'send("{place.address}", "myself"); print("final")')
    place.bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    rest(ada.daemon)
    place.wait_for("myself")
    assert kai.runs()[0]["note"] == "not sent: it had already written there itself"


def test_an_answer_that_cannot_be_sent_is_kept_and_the_boss_is_told(
    team: Team, ada: Chief, tmp_path: Path
) -> None:
    kai = team.hire('wait_for("unbound"); print("an answer")')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    wait_until(kai.turns)
    place.unbind()
    team.place("unbound").touch()
    rest(ada.daemon)
    [run] = kai.runs()
    assert (run["status"], run["text"], run["answer"]) == ("completed", "an answer", None)
    assert "cannot post to" in run["note"]
    [told] = [text for text in ada.told_of(kai) if "could not be sent" in text]
    assert f"hiboss run get --id {run['id']}" in told


def test_an_answer_the_platform_refuses_is_told_to_its_agent_who_takes_no_turn_for_it(
    team: Team, ada: Chief, tmp_path: Path
) -> None:
    kai = team.hire('print("an answer")')
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.script(envelope_error(text="too rude"))
    place.comes_in("1", text="hello")
    wait_until(lambda: [one for one in kai.list() if one["from"] == "agent:system"])
    rest(ada.daemon)
    [notice] = [one for one in kai.list() if one["from"] == "agent:system"]
    assert "too rude" in notice["text"] and notice["status"] == "pending" and len(kai.runs()) == 1
    assert texts(ada.heard(kai)) == []


def test_silence_is_kept_there_too(team: Team, ada: Chief, tmp_path: Path) -> None:
    kai = team.hire(QUIET)
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    rest(ada.daemon)
    assert place.posts() == [] and [run["status"] for run in kai.runs()] == ["completed"]


# --- reminders a provider asks for -----------------------------------------------------------


def late(ada: Chief, room: Path) -> Party:
    """An agent whose provider says nothing but reminders."""
    room.mkdir()
    return agent(ada.daemon, provider="late", workspace=str(room))


def go(room: Path, *reminders: str) -> None:
    (room / "part").write_text("".join(f"{line}\n" for line in reminders))
    (room / "part").rename(room / "go")


def test_reminders_go_later_to_where_the_answer_goes(ada: Chief, tmp_path: Path) -> None:
    kai = late(ada, tmp_path / "room")
    ada.say(kai, text="remind me")
    go(tmp_path / "room", "tea", "cake")
    rest(ada.daemon)
    sent = kai.list(box="outbox", oldest_first=True)
    assert [(one["text"], one["to"], one["waits"], one["auto"]) for one in sent] == [
        ("tea", "user:boss", "deferred", True),
        ("cake", "user:boss", "deferred", True),
    ]


def test_a_reminder_that_cannot_be_sent_does_not_keep_a_run_from_its_end(ada: Chief, tmp_path: Path) -> None:
    kai = late(ada, tmp_path / "room")
    place = Place(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="remind me")
    wait_until(lambda: ada.status(kai)["running"])
    place.unbind()
    go(tmp_path / "room", "tea")
    rest(ada.daemon)
    [run] = kai.call("run.list")["runs"]
    assert run["status"] == "completed" and "cannot post to" in run["note"]


@pytest.mark.parametrize("reminder", ["\\ud800", "\\x00", "x" * 1_048_577])
def test_a_reminder_that_cannot_be_stored_does_not_keep_a_run_from_its_end(
    ada: Chief, tmp_path: Path, reminder: str
) -> None:
    kai = late(ada, tmp_path / "room")
    number = ada.say(kai, text="remind me")["ids"][0]
    go(tmp_path / "room", reminder)
    rest(ada.daemon)
    [run] = kai.call("run.list")["runs"]
    assert run["status"] == "failed" and ada.get(number)["waits"] == "retry"
    ada.call("agent.delete", name=kai.name)
