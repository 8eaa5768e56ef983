"""Deleting a message takes away its text; it jams nobody who delivers, fails or answers it."""

from __future__ import annotations

from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import agent, boss
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import Place, envelope_error, notices
from tests.support.waits import wait_until


def delete(daemon: RunningDaemon, number: str) -> None:
    assert boss(daemon).call("message.delete", id=number)["changed"]


def test_an_envelope_that_is_refused_after_its_message_was_deleted_fails_and_its_lane_goes_on(
    daemon: RunningDaemon, place: Place
) -> None:
    place.script(place.gated(**envelope_error(text="no such chat")))
    deleted, other = place.send("deleted"), place.send("other")
    wait_until(lambda: not place.steps_left())
    delete(daemon, deleted)
    place.open_gate()
    place.wait_for("other")
    assert place.wait_for_status(deleted, "failed")["last_error"]["text"] == "no such chat"
    place.wait_for_status(other, "done")
    assert not any(deleted in one["text"] for one in notices(place.owner))  # it is wanted no more


def test_what_was_deleted_before_it_was_posted_is_not_posted(daemon: RunningDaemon, place: Place) -> None:
    place.steer("pause")
    deleted, other = place.send("deleted"), place.send("other")
    delete(daemon, deleted)
    place.steer("resume")
    place.wait_for_status(other, "done")
    place.wait_for("other")
    assert boss(daemon).get(deleted)["status"] == "cancelled"


def test_a_reply_of_a_platform_to_a_deleted_message_comes_in_and_what_follows_it(
    daemon: RunningDaemon, place: Place
) -> None:
    number = place.send("hi")
    place.wait_for_status(number, "done")
    delete(daemon, number)
    place.comes_in("1", text="I answer", reply_to=f"{number}.0")
    place.comes_in("2", text="and something else")
    found = [one["text"] for one in place.owner.list(oldest_first=True)]
    assert found[-2:] == ["I answer", "and something else"]
    assert place.shown()["state"] == "running"


def test_the_answer_of_a_run_to_a_message_deleted_meanwhile_is_sent(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    team, chief = Team(daemon, tmp_path), Boss(daemon)
    worker = team.hire('note("here"); wait_for("go"); print("done")')
    (number,) = chief.say(worker, text="do it")["ids"]
    wait_until(lambda: bool(worker.program.notes()))
    delete(daemon, number)
    team.place("go").touch()
    wait_until(lambda: [one["text"] for one in chief.heard(worker)] == ["done"])
    assert chief.get(number)["status"] == "done"


def test_who_can_know_that_a_message_was_deleted_cannot_answer_it(daemon: RunningDaemon) -> None:
    one, other = agent(daemon), agent(daemon)
    number = one.tell(other)
    delete(daemon, number)
    assert other.refusal("envelope.send", text="too late", reply_to=number) == "not_found"
