"""kill -9 between the stages of the intake: what was taken is digested or acts once, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, DIGESTED, TAKEN
from hiboss.routing.intake import Intake
from hiboss.store.envelopes import CRASHES
from tests.support.crash_groups import Submits
from tests.support.mortals import Mortal
from tests.support.parties import boss
from tests.support.scripted_channels import SCRIPTED, Place, lane_error, notices
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow


ENVIRONMENT = SCRIPTED


class Killed:
    """A place whose daemon dies at a point once these updates come in, and is started again."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.place = Place(directory).bound(daemon)

    def dies_at(self, point: str, of: Submits | None = None, **updates: dict[str, Any]) -> None:
        self.daemon.dies_at(point, of=of).touch()
        for number, update in updates.items():
            self.place.put_in_inbox(number, **update)
        assert self.daemon.wait_for_death(30) == -9
        self.daemon.start()
        wait_until(lambda: not list((self.place.root / "inbox").glob("*.json")))
        wait_until(lambda: [*self.outcomes().values()].count(None) == 0)

    def die(self, point: str) -> None:
        """Start the daemon; it dies at this point."""
        self.daemon.start(HIBOSS_CRASH_AT=point)
        assert self.daemon.wait_for_death(30) == -9

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with self.daemon.database() as database:
            return [dict(row) for row in database.execute(sql, values)]

    def outcomes(self) -> dict[str, str | None]:
        found = self.rows("SELECT * FROM platform_update WHERE binding = ?", self.place.binding)
        return {one["update_id"]: one["outcome"] for one in found}

    def texts(self) -> list[str]:
        return [one["text"] for one in self.place.owner.list(oldest_first=True)]


STORED = [
    (TAKEN, None),
    (DIGESTED, None),
    (AFTER_COMMIT, Intake.take),
    (AFTER_COMMIT, Intake._store_meaning),
    (f"{AFTER_COMMIT}:2", Intake._store_meaning),
]


@pytest.mark.parametrize(("point", "of"), STORED)
def test_an_album_and_what_follows_become_a_message_each_wherever_the_daemon_dies(
    daemon: Mortal, tmp_path: Path, point: str, of: Submits | None
) -> None:
    killed = Killed(daemon, tmp_path)
    photo = {"album": "a", "downloads": [{"name": "1.jpg", "content": "one"}]}
    updates = {"u1": {"text": "album", **photo}, "u2": {"text": "", **photo}, "u3": {"text": "after"}}
    killed.dies_at(point, of, **updates)
    assert killed.texts() == ["album", "after"]
    assert killed.outcomes() == dict.fromkeys(("u1", "u2", "u3"), "accepted")
    assert len(killed.place.owner.list(oldest_first=True)[0]["attachments"]) == 2


@pytest.mark.parametrize("point", [TAKEN, AFTER_COMMIT, f"{AFTER_COMMIT}:2"])
def test_a_press_and_a_renaming_act_once_wherever_the_daemon_dies(
    daemon: Mortal, tmp_path: Path, point: str
) -> None:
    killed = Killed(daemon, tmp_path)
    number = killed.place.send("shall I?")
    killed.place.wait_for_status(number, "done")
    new = f"{killed.place.name}-new"
    killed.dies_at(
        point,
        Intake._act,
        u1={"kind": "press", "act": True, "message": f"{number}.0", "button": "yes"},
        u2={"kind": "membership", "act": True, "membership": "renamed", "renamed_to": new},
        u3={"text": "still in the old chat"},
    )
    assert sorted(killed.texts()) == ["still in the old chat", "yes"]
    assert killed.outcomes() == {"u1": "pressed", "u2": "renamed", "u3": "accepted"}
    assert {one["from"] for one in killed.place.owner.list()} == {f"channel:scripted:{new}"}


def test_an_update_that_kills_the_daemon_again_and_again_is_given_up_and_the_boss_is_told(
    daemon: Mortal, tmp_path: Path
) -> None:
    killed = Killed(daemon, tmp_path)
    daemon.kill()
    killed.place.put_in_inbox("u1", text="poison")
    for _ in range(1 + CRASHES):  # the first time it is new
        killed.die(DIGESTED)
    daemon.start(HIBOSS_CRASH_AT=DIGESTED)
    wait_until(lambda: killed.outcomes() == {"u1": "failed"})
    daemon.stop()
    daemon.start()
    killed.place.comes_in("u2", text="goes on")
    assert killed.texts() == ["goes on"]
    assert any("the daemon ended 3 times in a row" in one["text"] for one in notices(boss(daemon)))


def test_what_waits_for_a_chat_that_was_left_is_failed_with_that(daemon: Mortal, tmp_path: Path) -> None:
    killed = Killed(daemon, tmp_path)
    killed.place.script(lane_error())
    number = killed.place.send("nobody reads this")
    killed.place.wait_for_failures(1)
    left = {"kind": "membership", "act": True, "membership": "left"}
    killed.dies_at(AFTER_COMMIT, Intake._act, u1=left)
    assert boss(daemon).get(number)["status"] == "failed"
