"""A daemon that stops or crashes during runs: nothing of them is left, and their envelopes are redelivered."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.agents import process_control
from hiboss.cli.daemon_process import holder
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, set_up
from tests.support.parties import agent
from tests.support.shell_agents import (
    ESCAPES,
    Boss,
    Worker,
    assert_idle,
    begin,
    eventually,
    has_ended,
    left_behind,
    rows,
    running,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon for this test only, which may be stopped."""
    with daemon_with(tmp_path, finish_seconds=0.2) as running:
        yield running


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    made = Worker(daemon, tmp_path)
    yield made
    assert_idle(daemon, made.program)


def restarted(daemon: RunningDaemon, **env: str) -> None:
    daemon.start(**env)
    daemon.check()


def test_a_stop_lets_runs_finish_that_finish_soon(daemon: RunningDaemon, ada: Boss, worker: Worker) -> None:
    daemon.stop()
    daemon.start(HIBOSS_RUNS_FINISH_SECONDS="60")
    worker.program.waits()
    number = ada.tell(worker)
    worker.under_way()
    second = ada.tell(worker)
    daemon.call("daemon.stop")
    worker.program.let_go()
    assert daemon.stop() == 0
    assert_idle(daemon, worker.program)
    [row] = rows(daemon, "SELECT status FROM run")
    assert row["status"] == "completed"
    restarted(daemon)
    assert worker.answers_to(number) == ["done"]
    eventually(lambda: worker.answers_to(second), ["done"])


def test_a_stop_interrupts_the_others_and_tells_them_later_what_they_had_sent(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    ada, worker, kai = Boss(daemon), Worker(daemon, tmp_path), agent(daemon)
    worker.program.sends(kai.address, "please help", then="exec sleep 1000")
    number = ada.tell(worker, text="the task")
    worker.under_way()
    wait_until(lambda: worker.program.sent)
    assert "already-sent" not in worker.program.given
    assert daemon.stop() == 0
    assert_idle(daemon, worker.program)
    [row] = rows(daemon, "SELECT status, error, ended_at FROM run")
    assert row["status"] == "interrupted"
    assert row["error"] == "the daemon stopped during the run; its envelopes are redelivered"
    worker.program.answers("this time")
    restarted(daemon)
    eventually(lambda: worker.answers_to(number), ["this time"])
    given = worker.program.given
    assert "the task" in given and f'to {kai.address}: "please help"' in given.partition("already-sent:")[2]
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    assert ada.get(number)["redelivered"] is True
    assert [one["text"] for one in kai.list()] == ["please help"]
    assert_idle(daemon, worker.program)


def test_a_stop_ends_also_what_is_halted_and_what_hears_no_signal(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    ada, workers = Boss(daemon), [Worker(daemon, tmp_path) for _ in range(2)]
    workers[0].program.hangs()
    workers[1].program.ignores_signals()
    for worker in workers:
        ada.tell(worker)
        worker.program.begins()
    ada.call("run.pause", id=workers[0].runs()[0]["id"])
    assert daemon.stop() == 0
    assert_idle(daemon, *(worker.program for worker in workers))
    assert [row["status"] for row in rows(daemon, "SELECT status FROM run")] == ["interrupted"] * 2


def test_a_daemon_killed_during_runs_leaves_processes_which_the_next_one_ends(
    daemon: RunningDaemon, ada: Boss, worker: Worker
) -> None:
    number, _ = begin(ada, worker, "setsid sleep 1000 &\nsleep 1000 &\nexec sleep 1000")
    wait_until(lambda: len(left_behind(daemon, worker.program.pids)) == 3)
    daemon.kill()
    assert len(left_behind(daemon, worker.program.pids)) == 3
    worker.program.answers("again")
    restarted(daemon)
    eventually(lambda: worker.answers_to(number), ["again"])
    runs = worker.runs()
    assert [run["status"] for run in runs] == ["interrupted", "completed"]
    assert runs[0]["error"] == "the daemon ended during the run; its envelopes are redelivered"


def test_a_child_that_left_its_session_with_an_emptied_environment_is_ended_by_the_next_daemon(
    daemon: RunningDaemon, ada: Boss, worker: Worker
) -> None:
    number, _ = begin(ada, worker, f"{ESCAPES}exec sleep 1000")
    child = worker.program.escaped
    daemon.kill()
    assert not has_ended(child)
    worker.program.answers("again")
    restarted(daemon)
    eventually(lambda: worker.answers_to(number), ["again"])
    assert has_ended(child)


def test_a_daemon_that_an_agent_has_started_is_no_part_of_its_run(
    daemon: RunningDaemon, ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    other = RunningDaemon(set_up(tmp_path / "other"))
    start = f"HIBOSS_HOME={shlex.quote(other.home.path)} hiboss daemon start >&2"
    begin(ada, worker, f'{start} && touch "$D/started"\nexec sleep 1000')
    wait_until((worker.program.directory / "started").exists)
    try:
        daemon.kill()
        worker.program.answers("again")
        restarted(daemon)
        wait_until(lambda: not running(daemon))
        assert other.call("daemon.ping")["pong"]
    finally:
        other.call("daemon.stop")
        wait_until(lambda: holder(other.home) is None)


def test_a_stranger_with_the_number_of_a_former_process_is_left_alone(
    daemon: RunningDaemon, ada: Boss, worker: Worker
) -> None:
    worker.program.hangs()
    number = ada.tell(worker)
    run = worker.under_way()
    daemon.kill()
    process_control.signal_all(worker.program.pids, signal.SIGKILL)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        try:
            with daemon.database() as database:  # as if the system had used the pid again
                database.execute("UPDATE run SET pid = ? WHERE id = ?", (stranger.pid, int(run["id"][1:])))
                database.commit()
            worker.program.answers("again")
            restarted(daemon)
            eventually(lambda: worker.answers_to(number), ["again"])
            assert stranger.poll() is None
        finally:
            stranger.kill()
