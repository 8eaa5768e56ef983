"""Another priority for one delivery to a channel, or for the forward of what is in the box of the boss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import wait_until
from tests.support.holding_agents import control
from tests.support.parties import agent, boss
from tests.support.phones import Phone, forwards
from tests.support.scripted_channels import Place, daemon_with_channels


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with_channels(tmp_path_factory.mktemp("d")) as running:
        yield running
        running.check()


def test_what_is_made_urgent_is_posted_first(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).bound(daemon)
    place.steer("pause")
    first, _, third = (place.send(text) for text in ("one", "two", "three"))
    assert control(daemon, "priority", envelope=third, level="critical") == ("applied", None)
    assert control(daemon, "priority", envelope=first, level="low") == ("applied", None)
    place.steer("resume")
    place.wait_for("three", "two", "one")
    outcome = control(daemon, "priority", envelope=third, level="low")
    assert outcome == ("too-late", f"{third} is done")


def test_a_forward_has_a_priority_of_its_own(daemon: RunningDaemon, tmp_path: Path) -> None:
    phone, chief, kai = Phone(tmp_path), boss(daemon), agent(daemon)
    phone.bound(daemon)
    phone.reached()
    phone.steer("pause")
    boxes = [kai.tell(chief, text=text) for text in ("one", "two")]
    [later], [sooner] = (forwards(chief, number) for number in boxes)
    assert control(daemon, "priority", envelope=boxes[1], level="high") == ("too-late", f"{boxes[1]} is done")
    assert control(daemon, "priority", envelope=sooner["id"], level="high") == ("applied", None)
    phone.steer("resume")
    wait_until(lambda: chief.get(later["id"])["status"] == "done")
    assert [one["id"] for one in phone.posts()] == [sooner["id"], later["id"]]
    chief.call("boss.set", reach="", forward="all")
