"""A copy of a home has the runs of the first one in its database, and none of their processes is its own."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.paths import Home
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.breaker_stories import Story
from tests.support.cli import Office
from tests.support.mortals import Mortal
from tests.support.shell_agents import end_all, eventually, left_behind, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    daemon = Mortal(tmp_path / "d")
    daemon.start()
    yield Story(daemon, tmp_path)
    if daemon.process is not None:
        end_all(daemon)
    daemon.stop()


def copied(home: Home, to: Path) -> RunningDaemon:
    """Copy a home as `cp -r` does, also under a running daemon; no daemon runs in the copy."""

    def sockets(directory: str, names: list[str]) -> list[str]:
        return [one for one in names if stat.S_ISSOCK(os.lstat(os.path.join(directory, one)).st_mode)]

    shutil.copytree(home.path, to, ignore=sockets)
    return RunningDaemon(Home(str(to)))


def is_at_work(story: Story) -> bool:
    return len(left_behind(story.daemon, story.program.pids)) == 2


def test_neither_a_stop_nor_a_start_in_a_copy_ends_a_run_of_the_first_home(
    story: Story, tmp_path: Path
) -> None:
    number = story.begins()
    wait_until(lambda: is_at_work(story))
    copy = copied(story.daemon.home, tmp_path / "copy")
    done = Office(copy)("stop", "--all", "--json")
    assert (done.rc, done.json["runs"]) == (0, [])
    assert is_at_work(story)
    for _ in range(2):  # the second one knows that the store is in this home
        copy.start()
        copy.kill()
        assert is_at_work(story)
    copy.start()
    try:
        assert rows(copy, "SELECT status, pid FROM run")[0]["status"] == "interrupted"
        copy.check()
    finally:
        copy.stop()
    assert [one["status"] for one in story.worker.runs()] == ["running"]
    story.program.answers("done")
    assert story.ada.call("run.cancel", id=story.worker.runs()[0]["id"], requeue=True)
    eventually(lambda: story.worker.answers_to(number), ["done"])


@pytest.mark.parametrize("by", ["start", "stop"])
def test_what_a_daemon_left_is_ended_also_after_its_home_was_renamed(
    story: Story, tmp_path: Path, by: str
) -> None:
    story.begins()
    wait_until(lambda: is_at_work(story))
    story.daemon.kill()
    shutil.move(story.daemon.home.path, tmp_path / "renamed")
    renamed = RunningDaemon(Home(str(tmp_path / "renamed")))
    if by == "stop":
        assert len(Office(renamed)("stop", "--all", "--json").json["runs"]) == 1
    else:
        story.program.answers("done")
        renamed.start()
        renamed.stop()
    assert left_behind(story.daemon, story.program.pids) == []
