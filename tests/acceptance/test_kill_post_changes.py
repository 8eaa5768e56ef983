"""kill -9 while posts are changed, taken back or reacted to: the next daemon ends in the same state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import messages
from hiboss.core.crashpoint import AFTER_COMMIT, CHANGE_MADE, CHANGE_NOTED, CHANGE_PLANNED, POSTED, REACTED
from tests.support.changing_places import ChangingPlace
from tests.support.mortals import Mortal
from tests.support.scripted_channels import SCRIPTED
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = SCRIPTED
CAPABILITIES = ("edit", "delete", "react", "threads")


class Story:
    """A daemon that dies, and a channel in chunks of five characters."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.place = ChangingPlace(directory, *CAPABILITIES)
        self.place.bound(daemon)

    def dies_at(self, point: str, what: Callable[[], object], passes: int = 1) -> None:
        """Do something; the daemon dies when it passes this point so often."""
        armed = self.daemon.dies_at(f"{point}:{passes}", of=messages.edit)
        self.place.wait_for_state("running")
        self.daemon.dies_of(armed, what)

    def stores(self, what: Callable[[], object]) -> None:
        """Do something while no adapter runs, so that it is only stored; then it dies."""
        self.place.settings(capabilities=CAPABILITIES, chunk=5, fail_starts=1_000)
        self.daemon.start()
        what()
        self.daemon.kill()
        self.place.settings(capabilities=CAPABILITIES, chunk=5)

    def goes_on(self) -> None:
        """Start it, and return when there is nothing left to change."""
        self.daemon.start()
        wait_until(lambda: not self.left())
        self.daemon.check()

    def left(self) -> int:
        with self.daemon.database() as database:
            return sum(
                database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("post_change", "post_step", "reaction_change")
            )

    def call(self, method: str, **params: Any) -> Callable[[], object]:
        return lambda: self.place.owner.call(method, **params)


@pytest.fixture
def story(outlived: Mortal, tmp_path: Path) -> Story:
    return Story(outlived, tmp_path)


@pytest.mark.parametrize(
    ("point", "passes"),
    [
        (AFTER_COMMIT, 1),  # the message has its new text, nothing else is done
        (CHANGE_PLANNED, 1),
        *[(CHANGE_MADE, number) for number in (1, 2, 3)],
        *[(CHANGE_NOTED, number) for number in (1, 2, 3)],
    ],
)
def test_an_edit_is_finished_by_the_next_daemon(story: Story, point: str, passes: int) -> None:
    number = story.place.posted("AAAAABBBBBCCCCCDDDDD")
    edit = story.call("message.edit", id=number, text="VVVVVWWWWWCCCCC")
    story.dies_at(point, edit, passes)
    story.goes_on()
    assert story.place.seen() == ["VVVVV", "WWWWW", "CCCCC"]
    assert len(story.place.posts()) == 4


@pytest.mark.parametrize("point", [CHANGE_PLANNED, CHANGE_MADE, CHANGE_NOTED])
def test_what_is_added_is_doubled_only_if_its_confirmation_was_not_stored(story: Story, point: str) -> None:
    number = story.place.posted("AAAAA")
    story.dies_at(point, story.call("message.edit", id=number, text="AAAAABBBBBCCCCC"))
    story.goes_on()
    double = ["BBBBB"] if point == CHANGE_MADE else []
    assert sorted(story.place.texts()) == sorted(["AAAAA", "BBBBB", "CCCCC", *double])
    keys = [one["key"] for one in story.place.posts()]
    assert len(keys) - len(set(keys)) == len(double)  # a platform that knows keys would not double it


@pytest.mark.parametrize(
    ("point", "passes"), [(CHANGE_PLANNED, 1), (CHANGE_MADE, 1), (CHANGE_MADE, 2), (CHANGE_NOTED, 1)]
)
def test_a_deletion_is_finished_by_the_next_daemon(story: Story, point: str, passes: int) -> None:
    number = story.place.posted("AAAAABBBBBCCCCC")
    story.dies_at(point, story.call("message.delete", id=number), passes)
    story.goes_on()
    assert story.place.seen() == []


@pytest.mark.parametrize("point", [CHANGE_PLANNED, CHANGE_MADE, CHANGE_NOTED])
def test_another_edit_after_the_crash_counts_and_nothing_old_stays(story: Story, point: str) -> None:
    number = story.place.posted("AAAAABBBBB")
    story.dies_at(point, story.call("message.edit", id=number, text="CCCCCDDDDDEEEEE"))
    story.stores(story.call("message.edit", id=number, text="AAAAABBBBB"))
    story.goes_on()
    assert story.place.seen() == ["AAAAA", "BBBBB"]


def test_what_is_edited_and_deleted_between_two_crashes_is_taken_back(story: Story) -> None:
    number = story.place.posted("AAAAABBBBB")
    story.dies_at(CHANGE_MADE, story.call("message.edit", id=number, text="CCCCCDDDDDEEEEE"))
    story.stores(story.call("message.delete", id=number))
    story.daemon.start(HIBOSS_CRASH_AT=CHANGE_MADE)
    story.daemon.wait_for_death()
    story.goes_on()
    assert story.place.seen() == []


def test_a_post_that_was_not_recorded_when_its_message_was_deleted_is_the_only_one_that_can_stay(
    story: Story,
) -> None:
    place = story.place
    place.script(place.gated())

    def what() -> None:
        number = place.send("AAAAA")
        wait_until(lambda: not place.steps_left())
        place.owner.call("message.delete", id=number)
        place.open_gate()

    story.dies_at(POSTED, what)
    story.goes_on()
    assert place.seen() == ["AAAAA"]  # nobody knows its id: it is counted among the doubles of a crash
    assert [one["status"] for one in place.owner.list(box="outbox")] == ["cancelled"]


def test_a_reaction_is_shown_once_more_after_a_crash_and_ends_as_it_should(story: Story) -> None:
    place = story.place
    place.comes_in("1", text="hello", message="p1")
    [came] = place.owner.list()
    story.dies_at(REACTED, story.call("reaction.set", id=came["id"], emoji="👍"))
    story.goes_on()
    assert [one["emoji"] for one in place.signs("react")] == ["👍", "👍"]
