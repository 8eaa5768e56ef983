"""Runs under way are watched, halted and ended; and what becomes of one whose agent or daemon changes meanwhile."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hiboss.cli.spawn import holder
from hiboss.runner import process
from hiboss.testing import RunningDaemon
from tests.integration.daemons import daemon_with, set_up, wait_until
from tests.integration.office import agent
from tests.integration.programs import (
    Boss,
    Worker,
    at_rest,
    end_all,
    eventually,
    held,
    left_behind,
    rows,
    running,
)

PARALLEL = 2
IDLE = 2.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    settings = {"parallel_runs": PARALLEL, "idle_seconds": IDLE, "finish_seconds": 0.1}
    with daemon_with(tmp_path_factory.mktemp("d"), **settings) as running:
        yield running
        running.check()


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    yield Worker(daemon, tmp_path)
    end_all(daemon)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


LIVELY = 'while [ ! -e "$D/go" ]; do echo alive >&2; sleep 0.05; done\necho done'


def states(worker: Worker, run: str) -> list[str]:
    """How the processes of a run stand: sleeping, stopped, …"""
    [row] = rows(worker.daemon, "SELECT pid FROM run WHERE id = ?", int(run[1:]))
    found = []
    for pid in process.members(row["pid"]):
        try:
            found.append(psutil.Process(pid).status())
        except psutil.NoSuchProcess:
            pass
    return found


# --- what is known of one under way --------------------------------------------------


def test_the_process_of_a_run_is_recorded_with_its_start(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    number = ada.tell(worker)
    run = worker.under_way()
    [pid] = worker.program.pids
    [row] = rows(worker.daemon, "SELECT pid, pid_started FROM run WHERE id = ?", int(run["id"][1:]))
    assert (run["pid"], row["pid"], row["pid_started"]) == (pid, pid, process.started_at(pid))
    assert (run["envelopes"], run["ended_at"], run["provider"]) == ([number], None, "command")
    assert worker.standing()["state"] == "running"
    assert psutil.Process(pid).ppid() == worker.daemon.pid
    worker.program.let_go()
    assert worker.settled()["pid"] is None
    at_rest(worker.daemon, worker.program)


def test_what_is_in_hand_can_neither_be_taken_back_nor_taken_twice(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    number = ada.tell(worker)
    worker.under_way()
    assert held(worker.daemon) == [int(number[1:])]
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert worker.refusal("envelope.ack", ids=[number]) == "too_late"
    assert worker.call("envelope.claim")["envelopes"] == []
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["done"])
    at_rest(worker.daemon, worker.program)


def test_a_program_gets_its_turn_its_place_and_a_token_of_its_own(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    worker.change(workspace=str(tmp_path))
    shown = '$PWD" "$HIBOSS_HOME" "$HIBOSS_AGENT" "${HIBOSS_TOKEN%%_*}" "$HIBOSS_RUNS_IDLE_SECONDS"'
    worker.program.does(
        f"printf '%s\\n' \"{shown} \"$(hiboss agent self --json | tr -d ' \\n' | cut -c1-40)\""
    )
    number = ada.tell(worker, text="what do you see?")
    worker.settled()
    [answer] = worker.answers_to(number)
    home = worker.daemon.home.path
    lines = answer.splitlines()
    assert lines[:4] == [str(tmp_path), home, worker.name, "hbr"]
    assert lines[4] == ""  # the daemon's own settings are not passed on
    assert "agent" in lines[5]
    assert "what do you see?" in worker.program.given


# --- cancel --------------------------------------------------------------------------


def test_a_cancelled_run_ends_with_its_processes_and_its_envelopes_can_be_tried_again(
    ada: Boss, worker: Worker
) -> None:
    worker.program.does("sleep 1000 & exec sleep 1000")
    number = ada.tell(worker)
    run = worker.under_way()
    assert ada.call("run.cancel", id=run["id"], reason="wrong day")["changed"]
    ended = worker.settled()
    assert (ended["status"], ended["error"]) == ("cancelled", "the boss cancelled it: wrong day")
    assert ended["ended_at"]
    at_rest(worker.daemon, worker.program)
    assert (ada.get(number)["status"], ada.get(number)["attempts"]) == ("failed", 0)
    worker.program.answers("another day")
    assert ada.call("envelope.retry", ids=[number])["changed"] == 1
    eventually(lambda: worker.answers_to(number), ["another day"])
    at_rest(worker.daemon, worker.program)


def test_the_lane_goes_on_behind_a_cancelled_run(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    first = ada.tell(worker)
    run = worker.under_way()
    worker.program.answers("next, please")
    second = ada.tell(worker)
    ada.call("run.cancel", id=run["id"])
    eventually(lambda: worker.answers_to(second), ["next, please"])
    assert ada.get(first)["status"] == "failed"
    at_rest(worker.daemon, worker.program)


def test_only_what_is_under_way_can_be_steered_and_by_the_boss_alone(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    ada.tell(worker)
    run = worker.under_way()
    orders = ("run.cancel", "run.pause", "run.resume")
    assert {worker.refusal(order, id=run["id"]) for order in orders} == {"forbidden"}
    assert {ada.refusal(order, id="r999999") for order in orders} == {"not_found"}
    worker.program.let_go()
    worker.settled()
    assert {ada.refusal(order, id=run["id"]) for order in orders} == {"not_running"}
    at_rest(worker.daemon, worker.program)


# --- pause and resume ----------------------------------------------------------------


def test_a_halted_run_stands_still_with_all_its_processes_and_goes_on(ada: Boss, worker: Worker) -> None:
    worker.program.does(f"({LIVELY}) >&2 &\n{LIVELY}")
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    assert ada.call("run.pause", id=run) == {"id": run, "changed": True}
    wait_until(lambda: set(states(worker, run)) == {psutil.STATUS_STOPPED})
    assert ada.call("run.pause", id=run) == {"id": run, "changed": False}
    assert ada.call("run.get", id=run)["run"]["paused"] is True
    worker.program.let_go()
    assert worker.runs()[0]["status"] == "running"
    assert ada.call("run.resume", id=run) == {"id": run, "changed": True}
    ended = worker.settled()
    assert (ended["status"], ended["paused"]) == ("completed", False)
    assert worker.answers_to(number) == ["done"]
    at_rest(worker.daemon, worker.program)


def test_who_is_born_in_that_moment_is_halted_too(ada: Boss, worker: Worker) -> None:
    worker.program.does("while :; do echo alive; sleep 1000 & sleep 0.003; done")
    ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: len(states(worker, run)) > 20)
    ada.call("run.pause", id=run)
    wait_until(lambda: set(states(worker, run)) == {psutil.STATUS_STOPPED})
    ada.call("run.cancel", id=run)
    assert worker.settled()["status"] == "cancelled"
    at_rest(worker.daemon, worker.program)


def test_the_limits_stand_still_while_a_run_is_halted(ada: Boss, worker: Worker) -> None:
    """Halted for longer than it may be silent, it still has its time afterwards."""
    worker.program.does('sleep 0.5\nwhile [ ! -e "$D/go" ]; do sleep 0.05; done\necho done')
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    ada.call("run.pause", id=run)
    other = Worker(
        worker.daemon, worker.program.directory
    )  # one that is not halted meets its limit meanwhile
    other.program.hangs()
    ada.tell(other)
    assert other.settled()["error_kind"] == "timed_out"
    assert worker.runs()[0]["status"] == "running"
    worker.program.let_go()
    ada.call("run.resume", id=run)
    eventually(lambda: worker.answers_to(number), ["done"])
    [row] = rows(worker.daemon, "SELECT paused_ms FROM run WHERE id = ?", int(run[1:]))
    assert row["paused_ms"] >= IDLE * 1000
    at_rest(worker.daemon, worker.program, other.program)


def test_after_it_was_halted_a_run_is_held_to_its_limits_again(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    ada.tell(worker)
    run = worker.under_way()["id"]
    ada.call("run.pause", id=run)
    ada.call("run.resume", id=run)
    assert ada.call("run.resume", id=run) == {"id": run, "changed": False}
    assert worker.settled()["error_kind"] == "timed_out"
    at_rest(worker.daemon, worker.program)


def test_a_halted_run_can_be_cancelled(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    ada.tell(worker)
    run = worker.under_way()["id"]
    ada.call("run.pause", id=run)
    ada.call("run.cancel", id=run)
    ended = worker.settled()
    assert (ended["status"], ended["paused"]) == ("cancelled", False)
    at_rest(worker.daemon, worker.program)


def test_what_has_no_program_cannot_be_halted(ada: Boss, worker: Worker) -> None:
    worker.change(provider="demo", command="")
    ada.tell(worker, text="slow " * 500)
    wait_until(lambda: running(worker.daemon))
    run = worker.runs()[0]["id"]
    assert ada.refusal("run.pause", id=run) == "not_running"
    ada.call("run.cancel", id=run)
    assert worker.settled()["status"] == "cancelled"
    at_rest(worker.daemon)


# --- many ----------------------------------------------------------------------------


def test_no_more_runs_go_on_at_once_than_may_and_all_have_their_turn(
    ada: Boss, daemon: RunningDaemon, tmp_path: Path
) -> None:
    workers = [Worker(daemon, tmp_path) for _ in range(5)]
    for worker in workers:
        worker.program.does(LIVELY)
    numbers = [ada.tell(worker) for worker in workers]

    def begun() -> list[Worker]:
        return [worker for worker in workers if worker.program.pids]

    for rest in range(len(workers), 0, -1):
        at_once = min(PARALLEL, rest)
        done = len(workers) - rest
        wait_until(lambda wanted=done + at_once: len(begun()) >= wanted)  # type: ignore[misc]
        assert len(running(daemon)) == at_once
        assert len(begun()) == done + at_once
        next(one for one in begun() if not (one.program.directory / "go").exists()).program.let_go()
        wait_until(
            lambda wanted=done + 1: (
                sum(bool(w.answers_to(n)) for w, n in zip(workers, numbers, strict=True)) == wanted
            )  # type: ignore[misc]
        )
    at_rest(daemon, *(worker.program for worker in workers))


def test_an_agent_has_one_turn_at_a_time_and_what_comes_meanwhile_is_the_next(
    ada: Boss, worker: Worker
) -> None:
    worker.program.does(LIVELY)
    first = ada.tell(worker)
    worker.under_way()
    others = [ada.tell(worker, text=f"{number}") for number in range(3)]
    assert len(worker.runs()) == 1
    worker.program.let_go()
    second = worker.settled(2)
    assert second["envelopes"] == others
    assert [worker.answers_to(one) for one in (first, *others)] == [["done"], [], [], ["done"]]
    assert len(worker.runs()) == 2
    at_rest(worker.daemon, worker.program)


# --- what changes in the midst -------------------------------------------------------


def test_an_agent_deleted_in_the_midst_takes_its_run_along(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    other = agent(worker.daemon)
    number = other.tell(worker)
    run = worker.under_way()
    deleted = ada.call("agent.delete", name=worker.name)
    assert deleted["failed_envelopes"] == 1
    wait_until(lambda: not running(worker.daemon))
    ended = ada.call("run.get", id=run["id"])["run"]
    assert (ended["status"], ended["error"]) == ("cancelled", "the agent was deleted")
    assert ada.get(number)["status"] == "failed"
    at_rest(worker.daemon, worker.program)


def test_a_namesake_of_one_deleted_in_the_midst_has_nothing_of_its_run(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    worker.program.does("trap '' INT TERM\nsleep 0.7\necho too late")
    number = ada.tell(worker)
    worker.under_way()
    ada.call("agent.delete", name=worker.name)
    namesake = agent(worker.daemon, worker.name)
    wait_until(lambda: not running(worker.daemon))
    assert ada.call("run.list", agent=worker.name)["runs"] == []
    assert ada.get(number)["status"] == "failed"
    assert rows(worker.daemon, "SELECT id FROM message WHERE text LIKE 'too late%'") == []
    assert namesake.list() == []
    at_rest(worker.daemon, worker.program)


def test_another_provider_begins_with_the_next_turn(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    first = ada.tell(worker)
    worker.under_way()
    worker.change(provider="demo", command="")
    second = ada.tell(worker, text="echo this")
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    assert worker.settled(2)["provider"] == "demo"
    assert [run["provider"] for run in worker.runs()] == ["command", "demo"]
    assert worker.answers_to(second)
    at_rest(worker.daemon, worker.program)


def test_one_that_shall_fetch_its_mail_finishes_its_turn_and_gets_no_other(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    first = ada.tell(worker)
    worker.under_way()
    worker.change(provider="none")
    second = ada.tell(worker)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    at_rest(worker.daemon, worker.program)
    assert len(worker.runs()) == 1
    assert [one["id"] for one in worker.call("envelope.claim")["envelopes"]] == [second]
    worker.call("envelope.ack", ids=[second])


def test_an_agent_paused_in_the_midst_finishes_its_turn_and_gets_no_other(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    first = ada.tell(worker)
    worker.under_way()
    ada.call("agent.pause", name=worker.name, reason="holidays")
    second = ada.tell(worker)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    at_rest(worker.daemon, worker.program)
    standing = worker.standing()
    assert (standing["state"], standing["why"], standing["due"]) == ("paused", "holidays", 1)
    assert len(worker.runs()) == 1
    ada.call("agent.resume", name=worker.name)
    eventually(lambda: worker.answers_to(second), ["done"])
    at_rest(worker.daemon, worker.program)


# --- the daemon's end ----------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon of this test's own, which may be stopped."""
    with daemon_with(tmp_path, finish_seconds=0.2) as running:
        yield running


def restarted(daemon: RunningDaemon, **env: str) -> None:
    daemon.start(**env)
    daemon.check()


def test_a_stop_lets_runs_finish_that_finish_soon(own: RunningDaemon, tmp_path: Path) -> None:
    own.stop()
    own.start(HIBOSS_RUNS_FINISH_SECONDS="60")
    ada, worker = Boss(own), Worker(own, tmp_path)
    worker.program.does(LIVELY)
    number = ada.tell(worker)
    worker.under_way()
    second = ada.tell(worker)
    own.call("daemon.stop")
    worker.program.let_go()
    assert own.stop() == 0
    at_rest(own, worker.program)
    [row] = rows(own, "SELECT status FROM run")
    assert row["status"] == "completed"
    restarted(own)
    assert worker.answers_to(number) == ["done"]
    eventually(lambda: worker.answers_to(second), ["done"])


def test_a_stop_interrupts_the_others_and_tells_them_later_what_they_had_sent(
    own: RunningDaemon, tmp_path: Path
) -> None:
    ada, worker, kai = Boss(own), Worker(own, tmp_path), agent(own)
    worker.program.sends(kai.address, "please help", then="sleep 1000 &\nexec sleep 1000")
    number = ada.tell(worker, text="the errand")
    worker.under_way()
    wait_until(lambda: worker.program.sent)
    assert "already-sent" not in worker.program.given
    assert own.stop() == 0
    at_rest(own, worker.program)
    [row] = rows(own, "SELECT status, error, ended_at FROM run")
    assert row["status"] == "interrupted"
    assert row["error"] == "the daemon stopped in the midst of it; its envelopes come again"
    worker.program.answers("this time")
    restarted(own)
    eventually(lambda: worker.answers_to(number), ["this time"])
    given = worker.program.given
    assert "the errand" in given
    assert f'to {kai.address}: "please help"' in given.partition("already-sent:")[2]
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    assert ada.get(number)["redelivered"] is True
    assert [one["text"] for one in kai.list()] == ["please help"]
    at_rest(own, worker.program)


def test_a_stop_ends_also_what_is_halted_and_what_hears_no_signal(own: RunningDaemon, tmp_path: Path) -> None:
    ada, workers = Boss(own), [Worker(own, tmp_path) for _ in range(2)]
    workers[0].program.hangs()
    workers[1].program.ignores_signals()
    for worker in workers:
        ada.tell(worker)
        worker.program.begins()
    ada.call("run.pause", id=workers[0].runs()[0]["id"])
    assert own.stop() == 0
    at_rest(own, *(worker.program for worker in workers))
    assert [row["status"] for row in rows(own, "SELECT status FROM run")] == ["interrupted"] * 2


def test_a_daemon_killed_in_the_midst_leaves_processes_which_the_next_one_ends(
    own: RunningDaemon, tmp_path: Path
) -> None:
    ada, worker = Boss(own), Worker(own, tmp_path)
    worker.program.does("setsid sleep 1000 &\nsleep 1000 &\nexec sleep 1000")
    number = ada.tell(worker)
    worker.under_way()
    wait_until(lambda: len(left_behind(own, worker.program.pids)) == 3)
    own.kill()
    assert len(left_behind(own, worker.program.pids)) == 3
    worker.program.answers("again")
    restarted(own)
    eventually(lambda: worker.answers_to(number), ["again"])
    runs = worker.runs()
    assert [run["status"] for run in runs] == ["interrupted", "completed"]
    assert runs[0]["error"] == "the daemon ended in the midst of it; its envelopes come again"
    at_rest(own, worker.program)


def test_a_daemon_that_an_agent_has_started_is_no_part_of_its_run(own: RunningDaemon, tmp_path: Path) -> None:
    ada, worker = Boss(own), Worker(own, tmp_path)
    other = RunningDaemon(set_up(tmp_path / "other"))
    start = f"HIBOSS_HOME={shlex.quote(other.home.path)} hiboss daemon start >&2"
    worker.program.does(f'{start} && touch "$D/started"\nexec sleep 1000')
    ada.tell(worker)
    worker.under_way()
    wait_until((worker.program.directory / "started").exists)
    try:
        own.kill()
        worker.program.answers("again")
        restarted(own)
        wait_until(lambda: not running(own))
        assert other.call("daemon.ping")["pong"]
    finally:
        other.call("daemon.stop")
        wait_until(lambda: holder(other.home) is None)
    at_rest(own, worker.program)


def test_a_stranger_with_the_number_of_a_former_process_is_left_alone(
    own: RunningDaemon, tmp_path: Path
) -> None:
    ada, worker = Boss(own), Worker(own, tmp_path)
    worker.program.hangs()
    number = ada.tell(worker)
    run = worker.under_way()
    own.kill()
    process.signal_all(worker.program.pids, signal.SIGKILL)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        try:
            with own.database() as database:  # as if the system had given the number again
                database.execute("UPDATE run SET pid = ? WHERE id = ?", (stranger.pid, int(run["id"][1:])))
                database.commit()
            worker.program.answers("again")
            restarted(own)
            eventually(lambda: worker.answers_to(number), ["again"])
            assert stranger.poll() is None
        finally:
            stranger.kill()
    at_rest(own, worker.program)
