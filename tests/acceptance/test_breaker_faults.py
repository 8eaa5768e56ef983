"""The breaker when orders come late, the disk is full, or its flag cannot be left: nothing goes on by itself."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.breaker_stories import DEAF, HANGS, Story, told
from tests.support.mortals import Mortal
from tests.support.shell_agents import left_behind, running
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

# The command as it is, but it waits less for a daemon that hangs.
IMPATIENT = """
from hiboss.cli.commands import go
go.ANSWER_SECONDS = 0.5
from hiboss.cli.entry import main
main()
"""


@pytest.fixture
def story(daemon: Mortal, tmp_path: Path) -> Iterator[Story]:
    with told(daemon, tmp_path) as one:
        yield one


@contextmanager
def hanging(daemon: RunningDaemon) -> Iterator[None]:
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


@contextmanager
def full_disk(daemon: RunningDaemon) -> Iterator[None]:
    """The daemon cannot write anything."""
    before = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def no_flag(daemon: RunningDaemon) -> Iterator[None]:
    """Something lies in the place of the flag."""
    place = Path(daemon.home.path) / "stop-all"
    (place / "something").mkdir(parents=True)
    try:
        yield
    finally:
        (place / "something").rmdir()
        place.rmdir()


# --- orders that come late ------------------------------------------------------------


def test_a_go_that_a_hanging_daemon_did_not_answer_does_not_undo_a_later_stop(story: Story) -> None:
    number = story.begins()
    with hanging(story.daemon):
        assert story.office("stop", "--all", "--reason", "first", env=HANGS).rc == 0
        done = story.office.run([sys.executable, "-c", IMPATIENT, "go"])
        assert done.rc == 4 and "hiboss daemon restart" in done.stderr
        assert story.office("stop", "--all", "--reason", "second", env=HANGS).rc == 0
        assert story.flag()
    wait_until(lambda: not story.flag())
    story.waits_for_go(number)


@pytest.mark.parametrize("meant", [None, ""])
def test_a_release_that_is_carried_out_late_does_not_undo_a_later_stop(
    story: Story, meant: str | None
) -> None:
    number = story.begins()
    pull = story.ada.call("breaker.pull")["pull"] if meant is None else meant
    request = {"method": "breaker.release", "params": {"token": story.ada.token, "pull": pull}}
    with hanging(story.daemon):
        with story.daemon.connect() as connection:
            connection.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, **request}).encode() + b"\n")
        assert story.office("stop", "--all", env=HANGS).rc == 0
    wait_until(lambda: not story.flag())
    story.waits_for_go(number)


def test_go_releases_also_a_stop_that_the_daemon_has_not_obeyed_yet(story: Story) -> None:
    number = story.begins()
    assert story.office("stop", "--all").rc == 0
    story.program.answers("done")
    with hanging(story.daemon):
        assert story.office("stop", "--all", env=HANGS).rc == 0
    story.comes_after_go(number)


# --- a full disk ----------------------------------------------------------------------


def test_everything_ends_though_the_daemon_cannot_store_it_and_no_run_begins_before_it_can(
    story: Story,
) -> None:
    story.program.does(DEAF)
    number = story.begins()
    with full_disk(story.daemon):
        with pytest.raises(Answered) as refused:
            story.ada.call("breaker.pull", reason="full")
        assert refused.value.stable_code == "breaker_not_stored" and "not durable" in refused.value.message
        wait_until(lambda: left_behind(story.daemon, story.program.pids) == [])
        story.program.answers("done")
    wait_until(lambda: story.ada.call("breaker.status")["breaker"] is not None)
    assert story.ada.call("breaker.status")["breaker"]["reason"] == "full"
    story.waits_for_go(number)


def test_on_a_full_disk_the_flag_makes_it_durable(story: Story) -> None:
    number = story.begins()
    with full_disk(story.daemon):
        done = story.office("stop", "--all", "--reason", "full")
        assert done.rc == 0 and "could not store this" in done.record["daemon"]
        assert left_behind(story.daemon, story.program.pids) == [] and story.flag()
        os.kill(story.daemon.pid, signal.SIGSTOP)  # it stores nothing after this
    story.daemon.kill()
    story.program.answers("done")
    story.daemon.start()
    story.waits_for_go(number)


def test_what_is_not_durable_is_said_and_everything_has_ended(story: Story) -> None:
    number = story.begins()
    with full_disk(story.daemon), no_flag(story.daemon):
        done = story.office("stop", "--all")
        assert done.rc == 1 and "Is a directory" in done.record["not-durable"]
        assert done.record["ended"].endswith(f"of {story.worker.address}")
        assert left_behind(story.daemon, story.program.pids) == []
        story.program.answers("done")
    wait_until(lambda: story.ada.call("breaker.status")["breaker"] is not None)
    story.waits_for_go(number)  # as long as this daemon lives, it is


# --- a flag that cannot be left -------------------------------------------------------


def test_everything_ends_though_no_flag_can_be_left_for_a_daemon_that_hangs(story: Story) -> None:
    number = story.begins()
    with no_flag(story.daemon):
        os.kill(story.daemon.pid, signal.SIGSTOP)
        done = story.office("stop", "--all", env=HANGS)
        assert done.rc == 1 and "Is a directory" in done.record["not-durable"]
        assert "not if it starts again" in done.record["daemon"]
        assert left_behind(story.daemon, story.program.pids) == []
        story.daemon.kill()
        done = story.office("stop", "--all")
        assert done.rc == 1 and "knows nothing of this" in done.record["daemon"]
        story.program.answers("done")
        story.daemon.start()  # what lies there is no flag
        wait_until(lambda: story.worker.answers_to(number) == ["done"])
        assert story.office("go").values("breaker") == ["not pulled"]


def test_a_reason_that_is_too_long_is_refused_without_a_daemon_too(story: Story) -> None:
    story.begins()
    story.daemon.kill()
    for size in (300, 70_000):
        done = story.office("stop", "--all", "--json", "--reason", "y" * size)
        assert (done.rc, done.error["code"]) == (1, "too_large") and "256" in done.error["message"]
    assert not story.flag() and left_behind(story.daemon, story.program.pids) != []
    story.daemon.start()
    assert len(running(story.daemon)) <= 1 and story.ada.call("breaker.status")["pull"] is None
