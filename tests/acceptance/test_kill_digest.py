"""kill -9 around the end of the quiet hours: the boss gets one digest, whole, wherever the daemon dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    ARRIVED,
    ARRIVING,
    BEFORE_WRITE,
    CLAIMED,
    IN_GROUP,
    POSTED,
    SETTLED,
)
from hiboss.routing.scheduler import Scheduler
from tests.support.mortals import Mortal
from tests.support.parties import Party, boss
from tests.support.phones import Phone
from tests.support.quiet_nights import end_night, now_quiet, set_hours
from tests.support.scripted_channels import SCRIPTED, Place, envelope_error
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = SCRIPTED
POINTS = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, ARRIVING, ARRIVED, CLAIMED, POSTED, SETTLED)


class Story:
    """A daemon that dies, the boss's phone, and a place where nothing can be posted."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.chief: Party = boss(daemon)
        self.phone = Phone(directory)
        self.phone.bound(daemon)
        self.phone.reached()
        self.wall = Place(directory).bound(daemon)
        self._nights = 0

    def night(self, point: str) -> Path:
        """Begin quiet hours in which three notices come; return the file that arms the daemon to die."""
        self._nights += 1
        set_hours(self.daemon, now_quiet())
        armed = self.daemon.dies_at(point, of=Scheduler.catch_up)
        self.phone.wait_for_state("running")
        self.wall.wait_for_state("running")
        told = len(self.notices())
        self.wall.script(*[envelope_error(text=f"wall {self._nights}-{n}") for n in range(3)])
        for number in range(3):
            self.chief.send(self.wall.address, text=f"{number}")
        wait_until(lambda: len(self.notices()) == told + 3)
        return armed

    def notices(self) -> list[str]:
        return [one["text"] for one in self.chief.list(page_size=100) if one["text"].startswith("Not deliv")]

    def digests(self) -> list[str]:
        return [one["text"] for one in self.chief.list(page_size=100) if "quiet hours:" in one["text"]]

    def posted(self) -> list[str]:
        """Return the digests that were posted, when nothing waits to be."""
        wait_until(lambda: not self.rows("SELECT id FROM envelope WHERE forwards IS NOT NULL AND status = 0"))
        assert not [one for one in self.phone.texts() if one.startswith("system:\nNot deliv")]
        return [one for one in self.phone.texts() if "quiet hours:" in one]

    def rows(self, sql: str) -> list[object]:
        with self.daemon.database() as database:
            return database.execute(sql).fetchall()


@pytest.fixture(scope="module")
def story(daemon: Mortal, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(daemon, tmp_path_factory.mktemp("s"))


@pytest.mark.parametrize("point", POINTS)
def test_there_is_one_digest_wherever_the_daemon_dies(story: Story, point: str) -> None:
    before, posted = len(story.digests()), len(story.posted())
    armed = story.night(point)
    assert len(story.rows("SELECT envelope FROM quiet_notice")) == 3
    assert len(story.posted()) == posted
    story.daemon.dies_of(armed, lambda: end_night(story.daemon))
    story.daemon.start()
    wait_until(lambda: not story.rows("SELECT envelope FROM quiet_notice"))
    new = story.digests()[: len(story.digests()) - before]
    assert len(new) == 1 and new[0].startswith("3 notices came in your quiet hours:")
    times = len(story.posted()) - posted
    # A post that was made, and of which nobody could note that it was, is made again.
    assert times == 1 or (point == POSTED and times == 2)
    story.daemon.check()
