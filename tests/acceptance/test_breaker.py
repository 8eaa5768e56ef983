"""stop --all and go: what they end and hold, by the terminal and the phone, over hanging and killed daemons and full disks."""

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

from hiboss.agents.breaker import Breaker
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    BREAKER_FLAGGED,
    BREAKER_OBEYED,
    BREAKER_PULLED,
    BREAKER_RELEASED,
    COMMANDED,
    IN_GROUP,
)
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.breaker_stories import DEAF, HANGS, WITH_CHILD, Story, told
from tests.support.mortals import Mortal
from tests.support.shell_agents import Worker, end_all, eventually, left_behind, remains, running
from tests.support.telegram_bots import TelegramDaemon, address, telegram_daemon
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def story(daemon: Mortal, tmp_path: Path) -> Iterator[Story]:
    with told(daemon, tmp_path) as one:
        yield one


# --- at the terminal ------------------------------------------------------------------


def test_one_screen_says_what_was_ended_and_what_waits(story: Story) -> None:
    number = story.begins()
    done = story.office("stop", "--all", "--reason", "too expensive")
    assert done.rc == 0
    assert done.record["ended"] == f"{story.worker.runs()[0]['id']} of {story.worker.address}"
    assert "too expensive" in done.record["breaker"]
    assert done.record["mail"] == f"{story.worker.address} 1" and "hiboss go" in done.stderr
    assert left_behind(story.daemon, story.program.pids) == []
    assert "too expensive" in story.office("daemon", "status").blocks[0]["breaker"]
    assert "too expensive" in story.office("agent", "status", story.worker.name).stdout
    story.waits_for_go(number)
    assert "breaker" not in story.office("daemon", "status").blocks[0]
    assert story.office("go").values("breaker") == ["not pulled"]


def test_stop_alone_teaches_and_stops_nothing(story: Story) -> None:
    story.begins()
    done = story.office("stop")
    assert done.rc == 2
    assert all(one in done.stderr for one in ("hiboss stop --all", "hiboss daemon stop", "hiboss go"))
    assert story.ada.call("breaker.status")["breaker"] is None and len(running(story.daemon)) == 1


def test_an_agent_cannot_stop_everything(story: Story) -> None:
    story.begins()
    token = {"HIBOSS_TOKEN": story.worker.token}
    assert story.office("stop", "--all", "--json", env=token).error["code"] == "forbidden"
    story.daemon.kill()  # nor while no daemon answers
    assert story.office("stop", "--all", "--json", env=token).error["code"] == "forbidden"
    assert story.office("go", "--json", env=token).error["code"] == "forbidden"
    assert not story.flag() and left_behind(story.daemon, story.program.pids) != []


# --- a daemon that does not answer ----------------------------------------------------


def test_a_daemon_that_hangs_is_not_needed_and_obeys_when_it_works_again(story: Story) -> None:
    story.program.does(DEAF)
    number = story.begins()
    os.kill(story.daemon.pid, signal.SIGSTOP)
    try:
        done = story.office("stop", "--all", "--reason", "it hangs", env=HANGS)
        assert done.rc == 0 and done.record["ended"].endswith(f"of {story.worker.address}")
        assert f"pid {story.daemon.pid}" in done.record["daemon"]
        assert done.record["mail"] == f"{story.worker.address} 1"
        assert story.flag()
        story.program.answers("done")
        wait_until(lambda: len(left_behind(story.daemon, story.program.pids)) == 0)
    finally:
        os.kill(story.daemon.pid, signal.SIGCONT)
    wait_until(lambda: not story.flag())
    story.is_held(number)
    assert story.ada.call("breaker.status")["breaker"]["reason"] == "it hangs"
    story.comes_after_go(number)


def test_a_daemon_that_hung_and_was_killed_obeys_at_its_next_start(story: Story) -> None:
    number = story.begins()
    os.kill(story.daemon.pid, signal.SIGSTOP)
    assert story.office("stop", "--all", "--reason", "it hangs", env=HANGS).rc == 0
    story.daemon.kill()
    story.program.answers("done")
    story.daemon.start()
    assert not story.flag()
    story.waits_for_go(number)


def test_what_a_killed_daemon_left_is_ended_and_go_needs_no_daemon(story: Story) -> None:
    number = story.begins()
    story.daemon.kill()
    wait_until(lambda: len(left_behind(story.daemon, story.program.pids)) == 2)
    done = story.office("stop", "--all")
    assert (done.rc, done.record["daemon"]) == (0, "none runs; the next one obeys when it starts")
    assert left_behind(story.daemon, story.program.pids) == [] and story.flag()
    story.program.answers("done")
    assert story.office("go").values("breaker") == ["released"] and not story.flag()
    story.daemon.start()
    eventually(lambda: story.worker.answers_to(number), ["done"])


def test_without_a_daemon_and_without_runs_the_next_daemon_obeys(story: Story) -> None:
    story.daemon.stop()
    done = story.office("stop", "--all", "--json")
    assert (done.rc, done.json["runs"]) == (0, [])
    story.daemon.start()
    number = story.ada.tell(story.worker)
    assert (story.ada.call("breaker.status")["breaker"]["pulled_by"], story.worker.runs()) == (None, [])
    story.program.answers("done")
    story.comes_after_go(number)


def test_go_takes_back_a_pull_that_is_stored_while_no_daemon_runs(story: Story) -> None:
    story.ada.call("breaker.pull")
    number = story.ada.tell(story.worker)
    story.daemon.stop()
    assert story.office("go").values("breaker") == ["released"]
    story.program.answers("done")
    story.daemon.start()
    eventually(lambda: story.worker.answers_to(number), ["done"])


def test_a_stop_and_a_start_change_nothing(story: Story) -> None:
    number = story.begins()
    assert story.office("stop", "--all").rc == 0
    story.program.answers("done")
    story.daemon.stop()
    story.daemon.start()
    story.waits_for_go(number)


# --- kill -9 --------------------------------------------------------------------------


@pytest.mark.parametrize("place", [IN_GROUP, AFTER_COMMIT, BREAKER_PULLED])
def test_a_daemon_killed_during_a_pull_has_pulled_it_or_not(story: Story, place: str) -> None:
    armed = story.daemon.dies_at(place, of=Breaker)
    number = story.begins()
    story.daemon.dies_of(armed, lambda: story.ada.call("breaker.pull"))
    story.program.answers("done")
    story.daemon.start()
    if place == IN_GROUP:  # it was not stored: the run comes again
        eventually(lambda: story.worker.answers_to(number), ["done"])
        assert story.ada.call("breaker.status")["breaker"] is None
    else:
        story.waits_for_go(number)


@pytest.mark.parametrize("place", [IN_GROUP, AFTER_COMMIT, BREAKER_RELEASED])
def test_a_daemon_killed_during_a_release_has_released_it_or_not(story: Story, place: str) -> None:
    number = story.begins()
    story.ada.call("breaker.pull")
    story.is_held(number)
    story.daemon.dies_of(story.daemon.dies_at(place, of=Breaker), lambda: story.ada.call("breaker.release"))
    story.daemon.start()
    stays = story.ada.call("breaker.status")["breaker"] is not None
    assert stays == (place == IN_GROUP)
    if stays:
        story.waits_for_go(number)
    else:
        eventually(lambda: story.worker.answers_to(number), ["done"])


def test_a_daemon_killed_while_it_obeys_obeys_at_its_next_start(story: Story) -> None:
    number = story.begins()
    story.daemon.kill()
    assert story.office("stop", "--all").rc == 0
    with pytest.raises(DaemonUnreachable):
        story.daemon.start(HIBOSS_CRASH_AT=BREAKER_OBEYED)
    assert story.flag()
    story.daemon.start()
    assert not story.flag()
    story.waits_for_go(number)


def test_a_command_killed_before_it_ends_anything_has_left_the_flag(story: Story) -> None:
    number = story.begins()
    story.daemon.kill()
    assert story.office("stop", "--all", env={"HIBOSS_CRASH_AT": BREAKER_FLAGGED}).rc == 3 and story.flag()
    assert len(left_behind(story.daemon, story.program.pids)) > 0
    story.program.answers("done")
    story.daemon.start()
    story.waits_for_go(number)


# --- on the phone ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelegramDaemon]:
    with telegram_daemon(tmp_path_factory.mktemp("t")) as running:
        yield running


@pytest.fixture
def telegram(shared: TelegramDaemon) -> Iterator[TelegramDaemon]:
    yield shared
    shared.boss.call("breaker.release")
    end_all(shared.daemon)


def test_stop_all_on_the_phone_stops_everything_and_go_lets_it_go_on(
    telegram: TelegramDaemon, tmp_path: Path
) -> None:
    daemon = telegram.daemon
    worker = Worker(daemon, tmp_path)
    worker.program.does(DEAF)
    bot = telegram.bound_bot("breakerbot", worker.name)
    chat = telegram.pair(ada := telegram.api.add_person("Ada"), bot)
    bob = telegram.approved(telegram.api.add_person("Bob"), bot)
    ada.says(chat, "begin")
    worker.program.begins()
    ada.says(chat, "/stop all")
    chat.wait_for_text("Everything is stopped")
    [told] = [one.text for one in chat.messages if "Everything is stopped" in one.text]
    assert f"{worker.runs()[0]['id']} of {worker.name}" in told and f"1 for {worker.name}" in told
    eventually(lambda: remains(daemon, worker.program.pids), [])
    assert worker.runs()[0]["status"] == "interrupted"
    worker.program.answers("done")
    worker.send(address(bob), text="to a stranger")  # holds
    worker.send("user:boss", text="to the boss")
    chat.wait_for_text("to the boss")
    eve = telegram.approved(who := telegram.api.add_person("Eve"), bot)
    who.says(eve, "hello")  # it waits, as all mail
    wait_until(lambda: len(worker.ids(status="pending")) == 2)
    assert len(worker.runs()) == 1
    assert not any("to a stranger" in one.text for one in bob.messages)
    ada.says(chat, "/go")
    chat.wait_for_text("Everybody works again")
    bob.wait_for_text("to a stranger")
    chat.wait_for_text("done")
    eve.wait_for_text("done")


def test_a_daemon_killed_after_stop_all_on_the_phone_says_it_when_it_runs_again(
    telegram: TelegramDaemon, tmp_path: Path
) -> None:
    daemon = telegram.daemon
    worker = Worker(daemon, tmp_path)
    worker.program.does(WITH_CHILD)
    bot = telegram.bound_bot("crashbot", worker.name)
    chat = telegram.pair(ada := telegram.api.add_person("Ada"), bot)
    daemon.stop()
    telegram.start(HIBOSS_CRASH_AT=f"{COMMANDED}@{tmp_path / 'armed'}")
    ada.says(chat, "begin")
    worker.program.begins()
    (tmp_path / "armed").touch()
    ada.says(chat, "/stop all")
    daemon.wait_for_death()
    worker.program.answers("done")
    telegram.start()
    chat.wait_for_text("Everything is stopped")
    eventually(lambda: remains(daemon, worker.program.pids), [])
    assert len(worker.runs()) == 1
    ada.says(chat, "/go")
    chat.wait_for_text("done")
    assert sum("Everything is stopped" in one.text for one in chat.messages) == 1


# --- faults ---------------------------------------------------------------------------


# The command as it is, but it waits less for a daemon that hangs.
IMPATIENT = """
from hiboss.cli.commands import go
go.ANSWER_SECONDS = 0.5
from hiboss.cli.entry import main
main()
"""


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
        assert story.office("stop", "--all", "--reason", "second", env=HANGS).rc == 0 and story.flag()
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
