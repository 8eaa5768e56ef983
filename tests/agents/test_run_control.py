"""Runs under way: show, pause, resume and cancel them; and what happens when their agent changes meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from hiboss.agents import process_control
from hiboss.core.errors import NotRunning
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent
from tests.support.shell_agents import (
    Boss,
    Worker,
    assert_idle,
    begin,
    end_all,
    eventually,
    held,
    rows,
    running,
)
from tests.support.waits import wait_until

PARALLEL = 2


daemon = daemon_fixture(parallel_runs=PARALLEL, finish_seconds=0.1, lock_wait_seconds=0.5)


LIVELY = 'while [ ! -e "$D/go" ]; do echo alive >&2; sleep 0.05; done\necho done'
WAITS_DEAF = 'trap "" INT TERM\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done\necho too late'


def states(worker: Worker, run: str) -> list[str]:
    """Return the states of the processes of a run: sleeping, stopped, …"""
    [row] = rows(worker.daemon, "SELECT pid FROM run WHERE id = ?", int(run[1:]))
    found = []
    for pid in process_control.members(row["pid"]):
        try:
            found.append(psutil.Process(pid).status())
        except psutil.NoSuchProcess:
            pass
    return found


def halted(worker: Worker, run: str) -> bool:
    """Tell whether all processes of a run stand still."""
    found = set(states(worker, run))
    # A shell whose child was halted between vfork and exec waits for that child, in the kernel.
    return psutil.STATUS_STOPPED in found <= {psutil.STATUS_STOPPED, psutil.STATUS_DISK_SLEEP}


# --- what a running run shows --------------------------------------------------------


def test_the_process_of_a_run_is_recorded_with_its_start(ada: Boss, worker: Worker) -> None:
    worker.program.does(LIVELY)
    number = ada.tell(worker)
    run = worker.under_way()
    [pid] = worker.program.pids
    [row] = rows(worker.daemon, "SELECT pid, pid_started FROM run WHERE id = ?", int(run["id"][1:]))
    assert (run["pid"], row["pid"], row["pid_started"]) == (pid, pid, process_control.started_at(pid))
    assert (run["envelopes"], run["ended_at"], run["provider"]) == ([number], None, "command")
    assert worker.status()["state"] == "running"
    assert psutil.Process(pid).ppid() == worker.daemon.pid
    worker.program.let_go()
    assert worker.settled()["pid"] is None


def test_what_is_in_hand_can_neither_be_taken_back_nor_taken_twice(ada: Boss, worker: Worker) -> None:
    number, _ = begin(ada, worker, LIVELY)
    assert held(worker.daemon) == [int(number[1:])]
    assert ada.refusal("envelope.cancel", ids=[number]) == "too_late"
    assert worker.refusal("envelope.ack", ids=[number]) == "too_late"
    assert worker.call("envelope.claim")["envelopes"] == []
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["done"])


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


def told(party: Party) -> list[str]:
    """Return what agent:system told somebody."""
    return [one["text"] for one in party.list(page_size=100) if one["from"] == "agent:system"]


def test_another_sender_is_told_that_the_run_was_cancelled(ada: Boss, worker: Worker) -> None:
    """Both wrote into one conversation, so one turn has an envelope of each."""
    zoe = agent(worker.daemon)
    worker.order("agent.pause", name=worker.name)
    ids = [ada.send(worker, zoe)["ids"][0], zoe.send(worker, ada)["ids"][0]]
    worker.program.hangs()
    worker.order("agent.resume", name=worker.name)
    run = worker.under_way()
    assert sorted(run["envelopes"]) == sorted(ids)
    before = told(ada)
    ada.call("run.cancel", id=run["id"], reason="wrong day")
    worker.settled()
    assert {ada.get(one)["status"] for one in ids} == {"cancelled"}
    [notice] = told(zoe)
    assert notice.startswith(f"Not delivered: {ids[1]}") and "wrong day" in notice and ids[0] not in notice
    assert told(ada) == before


# --- pause and resume ----------------------------------------------------------------


def test_a_halted_run_stands_still_with_all_its_processes_and_goes_on(ada: Boss, worker: Worker) -> None:
    number, run = begin(ada, worker, f"({LIVELY}) >&2 &\n{LIVELY}")
    assert ada.call("run.pause", id=run) == {"id": run, "changed": True}
    wait_until(lambda: halted(worker, run))
    assert ada.call("run.pause", id=run) == {"id": run, "changed": False}
    assert ada.call("run.get", id=run)["run"]["paused"] is True
    worker.program.let_go()
    assert worker.runs()[0]["status"] == "running"
    assert ada.call("run.resume", id=run) == {"id": run, "changed": True}
    ended = worker.settled()
    assert rows(worker.daemon, "SELECT paused_ms FROM run WHERE id = ?", int(run[1:]))[0]["paused_ms"] > 0
    assert (ended["status"], ended["paused"]) == ("completed", False)
    assert worker.answers_to(number) == ["done"]


def test_who_is_born_in_that_moment_is_halted_too(ada: Boss, worker: Worker) -> None:
    _, run = begin(ada, worker, "while :; do echo alive; sleep 1000 & sleep 0.003; done")
    wait_until(lambda: len(states(worker, run)) > 20)
    ada.call("run.pause", id=run)
    wait_until(lambda: halted(worker, run))
    ada.call("run.cancel", id=run)
    ended = worker.settled()
    assert (ended["status"], ended["paused"]) == ("cancelled", False)


def test_what_has_no_program_cannot_be_halted(ada: Boss, worker: Worker) -> None:
    worker.change(provider="demo", settings={"command": ""})
    ada.tell(worker, text="slow " * 500)
    wait_until(lambda: running(worker.daemon))
    run = worker.runs()[0]["id"]
    assert ada.refusal("run.pause", id=run) == "not_running"
    ada.call("run.cancel", id=run)
    assert worker.settled()["status"] == "cancelled"
    assert_idle(worker.daemon)


def test_a_pause_that_cannot_be_recorded_stops_nothing(ada: Boss, worker: Worker) -> None:
    """A run must not stand still when nobody can see why, or when the caller was not allowed to pause it."""
    _, run = begin(ada, worker, LIVELY)
    with worker.daemon.database() as other:
        other.execute("BEGIN IMMEDIATE")
        assert ada.refusal("run.pause", id=run) == "store_locked"
        assert psutil.STATUS_STOPPED not in states(worker, run)
    assert ada.call("run.pause", id=run)["changed"] is True
    with worker.daemon.database() as other:
        other.execute("BEGIN IMMEDIATE")
        assert ada.refusal("run.resume", id=run) == "store_locked"
        wait_until(lambda: halted(worker, run))
    assert ada.call("run.resume", id=run)["changed"] is True
    worker.program.let_go()
    assert worker.settled()["status"] == "completed"


def test_halted_runs_take_no_place_from_others(ada: Boss, daemon: RunningDaemon, tmp_path: Path) -> None:
    halted = [Worker(daemon, tmp_path) for _ in range(PARALLEL)]
    for one in halted:
        one.program.does(LIVELY)
        ada.tell(one)
        ada.call("run.pause", id=one.under_way()["id"])
    others = [Worker(daemon, tmp_path) for _ in range(PARALLEL + 1)]
    numbers = [ada.tell(one) for one in others]
    for one, number in zip(others, numbers, strict=True):
        eventually(lambda one=one, number=number: one.answers_to(number), ["done"])
    for one in halted:
        ada.call("run.resume", id=one.runs()[0]["id"])
        one.program.let_go()
        assert one.settled()["status"] == "completed"
    for one in others:  # as many places as before
        one.program.does(LIVELY)
        ada.tell(one)
    wait_until(lambda: len(running(daemon)) == PARALLEL)
    for one in others:
        one.program.let_go()
    for one in others:
        one.settled(2)
    assert_idle(daemon, *(one.program for one in (*halted, *others)))
    end_all(daemon)


@frozen(at=None, quiet=False, provider_modules="tests.support.extra_providers")
async def test_a_cancel_during_the_settle_does_not_claim_a_run_that_completes(
    daemon: InProcessDaemon,
) -> None:
    workspace = Path(daemon.home.path).parent / "workspace"
    workspace.mkdir()
    await daemon.ask("agent.set", name="nex", provider="late", workspace=str(workspace))
    await daemon.send("agent:nex", who="boss", from_="user:boss")
    runner, writer = daemon.daemon.wiring.runner, daemon.daemon.wiring._store._writer
    await daemon.until(lambda: runner.execution(1) is not None)
    with daemon.locked():
        before = writer._submitted
        (workspace / "go").touch()
        await daemon.until(lambda: writer._submitted > before)
        cancelled = asyncio.create_task(daemon.ask("run.cancel", id="r1"))
        await daemon.until(lambda: writer._submitted > before + 1)
    with pytest.raises(NotRunning, match="completed"):
        await cancelled
    await daemon.until(lambda: runner.execution(1) is None)
    assert (await daemon.ask("run.get", id="r1"))["run"]["status"] == "completed"


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
    assert_idle(daemon, *(worker.program for worker in workers))


# --- changes during a run ------------------------------------------------------------


def test_an_agent_deleted_during_a_run_takes_its_run_along(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    number = agent(worker.daemon).tell(worker)
    run = worker.under_way()
    assert ada.call("agent.delete", name=worker.name)["failed_envelopes"] == 1
    wait_until(lambda: not running(worker.daemon))
    ended = ada.call("run.get", id=run["id"])["run"]
    assert (ended["status"], ended["error"]) == ("cancelled", "the agent was deleted")
    assert ada.get(number)["status"] == "failed"


def test_a_namesake_of_one_deleted_during_a_run_has_nothing_of_its_run(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    number, _ = begin(ada, worker, WAITS_DEAF)
    ada.call("agent.delete", name=worker.name)
    namesake = agent(worker.daemon, worker.name)
    worker.program.let_go()
    wait_until(lambda: not running(worker.daemon))
    assert ada.call("run.list", agent=worker.name)["runs"] == [] and ada.get(number)["status"] == "failed"
    assert rows(worker.daemon, "SELECT id FROM message WHERE text LIKE 'too late%'") == namesake.list() == []


def test_another_provider_begins_with_the_next_turn(ada: Boss, worker: Worker) -> None:
    first, _ = begin(ada, worker, LIVELY)
    worker.change(provider="demo", settings={"command": ""})
    second = ada.tell(worker, text="echo this")
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    assert worker.settled(2)["provider"] == "demo"
    assert [run["provider"] for run in worker.runs()] == ["command", "demo"] and worker.answers_to(second)


def test_one_that_shall_fetch_its_mail_finishes_its_turn_and_gets_no_other(ada: Boss, worker: Worker) -> None:
    first, _ = begin(ada, worker, LIVELY)
    worker.change(provider="none")
    second = ada.tell(worker)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    assert_idle(worker.daemon, worker.program)
    assert len(worker.runs()) == 1
    assert [one["id"] for one in worker.call("envelope.claim")["envelopes"]] == [second]
    worker.call("envelope.ack", ids=[second])


def test_an_agent_paused_during_a_run_finishes_its_turn_and_gets_no_other(ada: Boss, worker: Worker) -> None:
    first, _ = begin(ada, worker, LIVELY)
    ada.call("agent.pause", name=worker.name, reason="holidays")
    second = ada.tell(worker)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(first), ["done"])
    assert_idle(worker.daemon, worker.program)
    status = worker.status()
    assert (status["state"], status["why"], status["due"]) == ("paused", "holidays", 1)
    assert len(worker.runs()) == 1
    ada.call("agent.resume", name=worker.name)
    eventually(lambda: worker.answers_to(second), ["done"])
