"""A message that was deleted and restored: its posts that are still there keep or get its text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.changing_places import ChangingPlace
from tests.support.daemons import wait_until
from tests.support.scripted_channels import daemon_with_channels


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def place(daemon: RunningDaemon, tmp_path: Path) -> ChangingPlace:
    one = ChangingPlace(tmp_path)
    one.bound(daemon)
    return one


def restored(place: ChangingPlace, number: str) -> int:
    answer = place.owner.call("message.restore", id=number)
    assert answer["changed"]
    return int(answer["posts"])


def test_a_post_that_was_not_taken_back_yet_stays_as_it_is(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.steer("pause")
    place.delete(number)
    assert restored(place, number) == 1
    place.steer("resume")
    place.wait_until_in_line("AAAAA", "BBBBB")
    assert place.calls() == []


def test_a_post_gets_the_latest_wording_of_what_was_restored(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.steer("pause")
    place.edit(number, "BBBBB")
    place.delete(number)
    assert restored(place, number) == 1
    place.steer("resume")
    place.wait_until_in_line("BBBBB")


def test_what_was_taken_back_is_not_posted_again(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.delete(number)
    wait_until(lambda: place.left() == [])
    assert restored(place, number) == 0
    other = place.send("next")
    place.wait_for_status(other, "done")
    place.wait_until_in_line("next")
