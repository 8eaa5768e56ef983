"""An edit or a deletion of what was cancelled half-way, unbound, or never confirmed: nobody is left in the dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_places import ChangingPlace
from tests.support.scripted_channels import (
    CRASH,
    OK,
    SCRIPTED,
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
