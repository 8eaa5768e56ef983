"""An edit or a deletion of what was cancelled half-way, unbound, or never confirmed: nobody is left in the dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.changing_places import ChangingPlace
from tests.support.parties import agent, boss
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import (
    CRASH,
    OK,
    SCRIPTED,
    Place,
    daemon_with_channels,
    envelope_error,
    lane_error,
    notices,
)
from tests.support.waits import wait_until

PLACE = ChangingPlace


def test_an_edit_of_what_was_cancelled_changes_the_posts_that_are_there_and_adds_none(
    place: ChangingPlace,
) -> None:
    number = place.send_failing("AAAAABBBBBCCCCC", OK, OK, lane_error())
    assert place.owner.call("envelope.cancel", ids=[number]) == {"changed": 1, "partly_posted": 1}
    place.steer("retry")
    place.edit(number, "AAAAAXXXXXYYYYYZZZZZ")
    place.wait_until_in_line("AAAAA", "XXXXX")
    place.edit(number, "short")
    place.wait_until_in_line("short")
    assert not notices(place.owner) and place.texts() == ["AAAAA", "BBBBB"]


def test_an_edit_before_the_cancellation_is_made_after_it(place: ChangingPlace) -> None:
    place.script(OK, lane_error(retry_after=None))
    number, other = place.send("AAAAABBBBB"), place.send("next")
    place.wait_for_failures(1)
    place.edit(number, "XXXXXBBBBB")
    assert place.owner.call("envelope.cancel", ids=[number, other]) == {"changed": 2, "partly_posted": 1}
    place.wait_until_in_line("XXXXX")


def test_an_edit_of_what_is_partly_posted_when_its_account_is_unbound_is_told_and_made_by_a_retry(
    place: ChangingPlace,
) -> None:
    number = place.send_failing("AAAAABBBBBCCCCC", OK, lane_error())
    place.edit(number, "XXXXXBBBBBZZZZZ")
    place.unbind()
    wait_until(lambda: place.left() == [])
    assert place.seen() == ["AAAAA"]
    assert [one["text"] for one in notices(place.owner) if "not changed" in one["text"]] == [
        f"{number} was not changed in {place.address}: 1 post there did not get the new text. "
        'Reason: "this account is not bound any more"'
    ]
    place.bound(place.daemon, place.owner)
    place.owner.call("envelope.retry", ids=[number])
    place.wait_for_status(number, "done")
    place.wait_until_in_line("XXXXX", "BBBBB", "ZZZZZ")
    assert place.texts() == ["AAAAA", "BBBBB", "CCCCC"]


def of_unconfirmed(place: ChangingPlace, number: str) -> str:
    return (
        f"{number} may still be in {place.address}: the confirmation of a post never came, "
        "and without it the post cannot be taken back."
    )


@pytest.mark.parametrize(
    "step",
    [CRASH, *[lane_error(kind=kind, retry_after=None) for kind in ("no_answer", "server_error")]],
    ids=["crash", "no-answer", "server-error"],
)
def test_who_deletes_what_was_never_confirmed_is_told_that_it_may_be_there(
    place: ChangingPlace, step: dict[str, Any]
) -> None:
    number = place.send_failing("AAAAA", step)
    answer = place.delete(number)
    assert (answer["cancelled"], answer["posts"]) == (1, 1)
    wait_until(lambda: place.left() == [])
    assert [one["text"] for one in notices(place.owner)] == [of_unconfirmed(place, number)]
    place.delete(number)
    assert len(notices(place.owner)) == 1


def test_it_is_told_in_the_end_when_it_was_in_hand_and_what_is_known_is_taken_back(
    place: ChangingPlace,
) -> None:
    place.script(OK, place.gated(**CRASH))
    number = place.send("AAAAABBBBB")
    wait_until(lambda: len(place.posts()) == 1 and not place.steps_left())
    assert place.delete(number)["posts"] == 1
    place.open_gate()
    place.wait_for_failures(1)
    assert not notices(place.owner)
    place.steer("retry")
    place.wait_until_in_line()
    assert [one["text"] for one in notices(place.owner)] == [of_unconfirmed(place, number)]


def test_it_is_told_with_what_could_not_be_taken_back(place: ChangingPlace) -> None:
    number = place.send_failing("AAAAABBBBB", OK, CRASH)
    place.script_for("delete", envelope_error(text="it is too old"))
    place.delete(number)
    place.wait_until_in_line("AAAAA")
    [told] = notices(place.owner)
    assert "1 post of it is still there" in told["text"]
    assert told["text"].endswith(of_unconfirmed(place, number))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_in_hand_when_the_daemon_ended_is_not_confirmed(tmp_path: Path, end: str) -> None:
    with daemon_with_channels(tmp_path / "home") as daemon:
        place = ChangingPlace(tmp_path)
        place.bound(daemon)
        place.script({"do": "hang"})
        number = place.send("AAAAA")
        wait_until(lambda: not place.steps_left())
        place.delete(number)
        getattr(daemon, end)()
        daemon.start(**SCRIPTED)
        place.wait_for_status(number, "cancelled")
        wait_until(lambda: place.left() == [])
        assert [one["text"] for one in notices(place.owner)] == [of_unconfirmed(place, number)]


def test_what_the_platform_refused_or_confirmed_later_is_not_told(place: ChangingPlace) -> None:
    assert place.delete(place.send_failing("AAAAA", lane_error(retry_after=None)))["posts"] == 0
    place.script(CRASH)
    place.steer("retry")
    other = place.send("BBBBB")
    wait_until(lambda: place.lane()["failures"] > 0 and place.owner.get(other)["attempts"] == 1)
    place.steer("retry")
    place.wait_for_status(other, "done")
    place.delete(other)
    place.wait_until_in_line()
    assert not notices(place.owner)


# --- deleted messages ---------------------------------------------------------------


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
