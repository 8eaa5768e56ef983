"""kill -9 of the daemon under 32 senders, at named places and at random (the driver is in soak.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP
from hiboss.core.errors import DaemonUnreachable
from hiboss.routing.router import Router
from hiboss.testing.running_daemon import running_daemon
from tests.acceptance.soak import House
from tests.support.crash_groups import groups_of
from tests.support.daemons import set_up
from tests.support.failures import seeded
from tests.support.forked_daemons import spawn

pytestmark = pytest.mark.slow

SEED = 21


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with running_daemon(tmp_path_factory.mktemp("d")) as daemon:
        yield House(daemon, seed=SEED)


@pytest.mark.parametrize("passes", [15, 30])
@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT])
def test_what_was_answered_survives_death_at_a_crash_point(house: House, point: str, passes: int) -> None:
    before = house.counts.asked
    house.round(f"{point}:{passes}")
    assert house.counts.asked > before


def test_what_was_answered_survives_death_at_random_moments(house: House) -> None:
    house.chance = seeded(SEED)
    before = house.counts.answered
    for _ in range(2):
        house.round()
    assert house.counts.answered > before


@pytest.mark.parametrize(
    ("point", "stored"), [(BEFORE_WRITE, False), (IN_GROUP, False), (AFTER_COMMIT, True)]
)
def test_the_crash_points_lie_where_they_say(tmp_path: Path, point: str, stored: bool) -> None:
    """With one client, one request at a time: the one that was not answered is stored after COMMIT only."""
    set_up(tmp_path)
    crash = {"HIBOSS_CRASH_AT": f"{point}:5", **groups_of(Router.plan)}
    with running_daemon(tmp_path, set_up=False, **crash) as daemon:
        send = {"token": daemon.token("nex"), "to": "agent:nex"}
        answered = 0
        with pytest.raises(DaemonUnreachable):
            while answered < 5:
                daemon.call("envelope.send", text=f"{answered}", key=f"{answered}", **send)
                answered += 1
        assert daemon.wait_for_death() == -9
        assert answered == 4
        daemon.start()
        daemon.check()
        texts = [f"{number}" for number in range(answered + 1)]
        again = [daemon.call("envelope.send", text=text, key=text, **send) for text in texts]
        assert [one["duplicate"] for one in again] == [*[True] * answered, stored]
        found = daemon.call("envelope.list", token=send["token"], oldest_first=True, page_size=100)[
            "envelopes"
        ]
        assert [(one["text"], one["seq"]) for one in found] == list(zip(texts, range(1, 99), strict=False))


def test_a_death_while_starting_does_not_hinder_the_next_start(tmp_path: Path) -> None:
    home = set_up(tmp_path)
    with running_daemon(tmp_path, set_up=False) as daemon:
        sent = daemon.call("envelope.send", token=daemon.token("nex"), to="agent:nex", text="before")
        daemon.kill()
        for point in (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT):
            with pytest.raises(DaemonUnreachable):
                spawn(home, {"HIBOSS_CRASH_AT": f"{point}:1"})
        daemon.start()
        got = daemon.call("envelope.get", token=daemon.token("nex"), id=sent["ids"][0])
        assert got["envelope"]["text"] == "before"
        daemon.check()
