"""kill -9 while an answer grows in its channel: the next daemon makes it the answer, or removes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hiboss.core.crashpoint import (
    LIVE_BECAME,
    LIVE_BEGUN,
    LIVE_DELETED,
    LIVE_NOTED,
    LIVE_POSTED,
    RUN_SETTLED,
)
from hiboss.core.errors import DaemonUnreachable
from tests.support.live_places import LivePlace, Writer
from tests.support.mortals import Mortal
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.scripted_channels import SCRIPTED
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = {**SCRIPTED, "HIBOSS_DELIVERY_LIVE_SECONDS": "0.02", "HIBOSS_RUNS_FINISH_SECONDS": "0"}


class Story:
    """A daemon that dies, a channel, and an agent that is asked there."""

    def __init__(self, daemon: Mortal, team: Team, directory: Path, name: str) -> None:
        self.daemon = daemon
        self.writer = Writer(team, name)
        self.place = LivePlace(directory)
        self.place.bound(daemon, self.writer.agent)

    def dies_at(
        self, point: str, then: Callable[[], object] | None = None, when: Callable[[], object] | None = None
    ) -> None:
        """Let somebody ask; it dies at this point: while the post grows, or after what follows (`then`).

        `when`: that follows when this is true; if not given, when the post is there.
        """
        armed = self.daemon.dies_at(point)
        self.place.wait_for_state("running")
        armed.touch()
        self.place.put_in_inbox("1", text="hello")
        if then is not None:
            wait_until(
                when or (lambda: [row["platform_id"] for row in self.place.rows()] not in ([], [None]))
            )
            with suppress(DaemonUnreachable):
                then()
        self.daemon.wait_for_death()

    def cancels(self) -> None:
        Boss(self.daemon).call("run.cancel", id=self.writer.agent.runs()[0]["id"])

    def goes_on(self) -> None:
        """Start it, and return when all has ended and nothing is left."""
        self.daemon.start()
        self.writer.goes_on()
        wait_until_idle(self.daemon)
        wait_until(lambda: self.place.rows() == [] and self.outcomes() == {"done"})
        self.daemon.check()

    def outcomes(self) -> set[str]:
        return {one["status"] for one in self.writer.agent.list(box="outbox")}

    @property
    def note(self) -> str:
        """Return what people are told after a start that interrupted what was done for them."""
        return f"hiboss was restarted while {self.writer.agent.name} worked on this; it begins again."

    def warnings(self) -> list[str]:
        lines = Path(self.daemon.home.log_file).read_text().splitlines()
        return [line for line in lines if "live post" in line]


@pytest.fixture
def story(outlived: Mortal, team: Team, tmp_path: Path) -> Story:
    return Story(outlived, team, tmp_path, f"mortal-{next(_numbers)}")


_numbers = itertools.count(1)
ANSWER = "well…\nand done"


def test_what_was_not_posted_yet_leaves_nothing(story: Story) -> None:
    story.dies_at(LIVE_BEGUN)
    assert story.place.seen() == []
    story.goes_on()
    assert story.place.seen() == [story.note, ANSWER]


def test_what_was_posted_without_an_id_stays_and_is_counted(story: Story) -> None:
    story.dies_at(LIVE_POSTED)
    [row] = story.place.rows()
    assert story.place.seen() == ["well…"] and row["platform_id"] is None
    story.goes_on()
    assert story.place.seen() == ["well…", story.note, ANSWER]
    assert any("1 live posts of the last daemon stay" in line for line in story.warnings())


def test_what_was_posted_with_an_id_is_removed_and_the_new_run_answers(story: Story) -> None:
    story.dies_at(LIVE_NOTED)
    assert story.place.seen() == ["well…"]
    story.goes_on()
    assert story.place.seen() == [story.note, ANSWER]
    assert [run["status"] for run in story.writer.agent.runs()] == ["interrupted", "completed"]


def test_what_was_being_posted_when_its_chat_got_another_id_is_removed_where_it_is(story: Story) -> None:
    place = story.place
    place.script(place.gated())

    def renames() -> None:
        place.comes_in("2", kind="membership", act=True, membership="renamed", renamed_to=f"{place.name}-new")
        place.open_gate()

    story.dies_at(LIVE_NOTED, renames, when=lambda: place.rows() and not place.steps_left())
    assert place.seen() == ["well…"]
    story.goes_on()
    assert place.seen() == [story.note, ANSWER] and place.posts()[-1]["place"] == f"{place.name}-new"
    assert place.changes("delete")[0] == {
        "do": "delete",
        "id": place.posts()[0]["id"] + ".0",
        "place": place.name,
    }


@pytest.mark.parametrize("point", [RUN_SETTLED, LIVE_BECAME])
def test_an_answer_that_was_not_recorded_takes_the_live_post_after_the_next_start(
    story: Story, point: str
) -> None:
    story.dies_at(point, story.writer.goes_on)
    assert len(story.place.posts()) == 1 and len(story.place.rows()) == 1
    story.goes_on()
    assert story.place.seen() == [ANSWER] and len(story.place.posts()) == 1
    assert story.writer.status() == "completed"


def test_if_something_was_posted_after_it_the_answer_is_posted_anew_also_after_a_restart(
    story: Story,
) -> None:
    def overtakes() -> None:
        story.place.send("in between")
        wait_until(lambda: story.place.rows()[0]["overtaken"])
        story.writer.goes_on()

    story.dies_at(RUN_SETTLED, overtakes)
    assert len(story.place.posts()) == 2 and len(story.place.rows()) == 1
    story.goes_on()
    assert story.place.seen() == ["in between", ANSWER]


def test_what_was_deleted_is_not_missed(story: Story) -> None:
    story.dies_at(LIVE_DELETED, story.cancels)
    # The note that it was stopped may have been posted before the daemon died.
    assert "well…" not in story.place.seen() and len(story.place.rows()) == 1
    old = "SELECT run, address, binding, 'long ago', NULL, 1 FROM live_post"
    columns = "(run, address, binding, platform_id, place, deleted_at)"
    with story.daemon.database() as database:
        database.execute(f"INSERT INTO deleted_live_post {columns} {old}")
        database.commit()
    story.daemon.start()
    wait_until(lambda: story.place.rows() == [])
    note = f"{story.writer.agent.name} was stopped before it could answer this."
    wait_until(lambda: {*story.place.seen()} == {note})
    with story.daemon.database() as database:  # its id is kept, for a week
        kept = database.execute("SELECT platform_id FROM deleted_live_post ORDER BY id DESC").fetchall()
    assert kept[0]["platform_id"] == f"{story.writer.agent.runs()[0]['id']}.0"
    assert "long ago" not in [row["platform_id"] for row in kept]


def test_a_stop_removes_what_grows_and_the_next_daemon_answers(story: Story) -> None:
    story.place.put_in_inbox("1", text="hello")
    story.place.wait_until_seen("well…")
    story.daemon.stop()
    assert story.place.seen() == [] and story.place.rows() == []
    story.goes_on()
    assert story.place.seen() == [story.note, ANSWER]
