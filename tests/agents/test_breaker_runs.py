"""The breaker ends all runs and lets nobody begin, until it is released; then everything comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.followers import following
from tests.support.parties import at_once
from tests.support.shell_agents import (
    SLEEP,
    STUBBORN,
    Boss,
    Worker,
    assert_idle,
    end_all,
    eventually,
    left_behind,
    rows,
    running,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

MANY = 50


daemon = daemon_fixture(parallel_runs=MANY + 10, finish_seconds=0)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Iterator[Boss]:
    chief = Boss(daemon)
    yield chief
    chief.call("breaker.release")
    end_all(daemon)
    # Mail that a test has left would wait in the next one too.
    left = """
        SELECT DISTINCT a.name FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.status = 0 AND a.kind = 'agent'
    """
    for row in rows(daemon, left):
        chief.call("agent.delete", name=row["name"])


def hire(daemon: RunningDaemon, directory: Path, script: str = f"exec {SLEEP}") -> Worker:
    worker = Worker(daemon, directory)
    worker.program.does(script)
    return worker


def stopped(ada: Boss) -> dict[str, Any]:
    """Wait until the breaker has ended all runs; return its status."""
    wait_until(lambda: all(one["ended"] for one in ada.call("breaker.status")["runs"]))
    return ada.call("breaker.status")


def is_answered_after_go(ada: Boss, worker: Worker, number: str) -> None:
    worker.program.answers("done")
    ada.call("breaker.release")
    eventually(lambda: worker.answers_to(number), ["done"])


def test_fifty_runs_end_half_of_them_deaf_and_nothing_starts_until_go(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    scripts = [f"{SLEEP} &\n{SLEEP}", f"trap '' INT TERM\n{SLEEP} &\n{STUBBORN} &\n{SLEEP}"]
    workers = [hire(daemon, tmp_path, scripts[number % 2]) for number in range(MANY)]
    numbers = [ada.tell(worker) for worker in workers]
    wait_until(lambda: all(worker.program.pids for worker in workers), 60)
    pulled = ada.call("breaker.pull", reason="too many")
    assert pulled["changed"] and len(pulled["runs"]) == MANY
    assert pulled["waits"]["mail"] == sorted(
        ({"agent": worker.address, "due": 1} for worker in workers), key=lambda one: str(one["agent"])
    )
    for worker in workers:
        worker.program.answers("done")
    late = ada.tell(workers[0])
    assert {one["agent"] for one in stopped(ada)["runs"]} == {worker.address for worker in workers}
    assert_idle(daemon, *[worker.program for worker in workers])
    for worker in workers:
        [run] = worker.runs()
        assert (run["status"], run["error"]) == ("interrupted", 'the breaker was pulled: "too many"')
    assert all(ada.get(number)["status"] == "pending" for number in (*numbers, late))
    assert all(ada.get(number)["attempts"] == 0 for number in numbers)
    ada.call("breaker.release")
    numbers[0] = late  # one turn is for both
    for worker, number in zip(workers, numbers, strict=True):
        eventually(lambda: worker.answers_to(number), ["done"])  # noqa: B023 - awaited here
        assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    assert_idle(daemon, *[worker.program for worker in workers])


def test_the_state_of_an_agent_says_that_the_breaker_is_pulled(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path)
    ada.call("breaker.pull", reason="lunch")
    status = worker.status()
    assert (status["state"], status["why"]) == ("paused", 'the breaker is pulled: "lunch" (hiboss go)')
    assert ada.call("daemon.status")["breaker"]["reason"] == "lunch"
    ada.call("breaker.release")
    assert (worker.status()["state"], worker.status()["why"]) == ("idle", None)
    assert ada.call("daemon.status")["breaker"] is None


def test_a_task_in_the_background_ends_and_comes_again(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path)
    ada.call("agent.background", agent=worker.name, task="something long")
    worker.program.begins()
    ada.call("breaker.pull")
    assert stopped(ada)["waits"]["tasks"] == 1
    assert left_behind(daemon, worker.program.pids) == []
    worker.program.answers("done")
    ada.call("breaker.release")
    assert worker.settled(2)["status"] == "completed"


def test_deferred_mail_arrives_and_waits(daemon: RunningDaemon, ada: Boss, tmp_path: Path) -> None:
    worker = hire(daemon, tmp_path)
    ada.call("breaker.pull")
    number = ada.tell(worker, deliver_at="+1s")
    wait_until(lambda: worker.ids())  # it is in its box
    assert worker.runs() == [] and ada.call("breaker.status")["waits"]["mail"][0]["due"] == 1
    is_answered_after_go(ada, worker, number)


def test_two_pulls_and_two_releases_at_once_have_one_winner_each(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path)
    number = ada.tell(worker)
    worker.program.begins()
    pulls = at_once([lambda: ada.call("breaker.pull", reason="me")] * 4)
    assert sorted(one["changed"] for one in pulls) == [False, False, False, True]
    stopped(ada)
    worker.program.answers("done")
    releases = at_once([lambda: ada.call("breaker.release")] * 4)
    assert sorted(one["changed"] for one in releases) == [False, False, False, True]
    eventually(lambda: worker.answers_to(number), ["done"])
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]


def test_go_while_the_runs_are_still_ending_lets_them_come_again(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path, f"trap '' INT TERM\n{SLEEP}")
    number = ada.tell(worker)
    worker.program.begins()
    worker.program.answers("done")
    assert not ada.call("breaker.pull")["runs"][0]["ended"]
    ada.call("breaker.release")
    eventually(lambda: worker.answers_to(number), ["done"])
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    assert_idle(daemon, worker.program)


def test_a_paused_run_is_ended_too_and_stays_paused_after_go(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path, f"{SLEEP} &\n{SLEEP}")
    number = ada.tell(worker)
    run = worker.under_way()
    ada.call("run.pause", id=run["id"])
    ada.call("breaker.pull")
    stopped(ada)
    assert left_behind(daemon, worker.program.pids) == []
    worker.program.answers("done")
    ada.call("breaker.release")
    assert worker.status()["state"] == "paused" and worker.answers_to(number) == []
    ada.call("run.resume", id=run["id"])
    eventually(lambda: worker.answers_to(number), ["done"])


def test_a_run_that_was_cancelled_before_and_still_ends_is_waited_for_too(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path, f"trap '' INT TERM\n{SLEEP} &\n{SLEEP}")
    number = ada.tell(worker)
    run = worker.under_way()
    worker.program.begins()
    assert ada.call("control.send", event="stream.cancel", agent=worker.name)["outcome"] == "applied"
    pulled = ada.call("breaker.pull")
    assert pulled["runs"] == [{"id": run["id"], "agent": worker.address, "ended": False}]
    assert pulled["waits"]["mail"] == []
    assert stopped(ada)["runs"] == [{"id": run["id"], "agent": worker.address, "ended": True}]
    assert left_behind(daemon, worker.program.pids) == []
    assert (worker.runs()[0]["status"], ada.get(number)["status"]) == ("cancelled", "cancelled")


def test_an_agent_that_is_deleted_meanwhile_does_not_come_again(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker, other = hire(daemon, tmp_path), hire(daemon, tmp_path)
    number, second = ada.tell(worker), ada.tell(other)
    worker.program.begins()
    other.program.begins()
    ada.call("breaker.pull")
    ada.call("agent.delete", name=worker.name)
    assert len(stopped(ada)["runs"]) == 2
    is_answered_after_go(ada, other, second)
    assert ada.get(number)["status"] == "failed" and len(worker.program.pids) == 1
    assert running(daemon) == []


def test_a_person_still_reads_while_agents_that_fetch_their_mail_get_nothing(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    fetcher = Worker(daemon, tmp_path)
    fetcher.change(mode="pull", provider="")
    number = ada.tell(fetcher)
    ada.call("breaker.pull")
    assert fetcher.call("envelope.claim")["envelopes"] == fetcher.call("envelope.poll")["envelopes"] == []
    assert fetcher.call("envelope.wait", timeout="0.01s")["envelopes"] == []
    fetcher.send("user:boss", text="I am here")
    assert ada.call("envelope.wait", timeout="30s")["envelopes"]
    ada.call("breaker.release")
    assert [one["id"] for one in fetcher.call("envelope.poll")["envelopes"]] == [number]
    assert [one["id"] for one in fetcher.call("envelope.claim")["envelopes"]] == [number]


def test_a_session_that_waits_for_mail_is_woken_by_go(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    fetcher = Worker(daemon, tmp_path)
    fetcher.change(mode="pull", provider="")
    ada.call("breaker.pull")
    number = ada.tell(fetcher)

    def goes() -> Any:
        wait_until(lambda: ada.call("daemon.status")["connections"] > 1)
        return ada.call("breaker.release")

    found, _ = at_once([lambda: fetcher.call("envelope.wait", timeout="60s"), goes])
    assert [one["id"] for one in found["envelopes"]] == [number]


def test_a_pull_and_a_release_are_the_bosss(daemon: RunningDaemon, ada: Boss, tmp_path: Path) -> None:
    worker = hire(daemon, tmp_path)
    assert worker.refusal("breaker.pull") == worker.refusal("breaker.release") == "forbidden"
    other = hire(daemon, tmp_path)
    ada.tell(other)
    other.program.begins()
    ada.call("breaker.pull")
    stopped(ada)
    seen = worker.call("breaker.status")
    assert seen["breaker"]["pulled_by"] == "user:boss" and seen["runs"] == []
    assert len(other.call("breaker.status")["runs"]) == 1


def test_pulling_and_releasing_are_told_to_the_boss_and_agents_see_their_state(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    worker = hire(daemon, tmp_path)
    with following(daemon) as follower, following(daemon) as other:
        follower.subscribe(ada.token, topics=["breaker.pulled", "breaker.released"])
        other.subscribe(worker.token, addresses=[worker.address], topics=["presence", "breaker.pulled"])
        ada.call("breaker.pull")
        pulled = follower.next()
        assert (pulled["topic"], pulled["by"]) == ("breaker.pulled", "user:boss")
        seen = other.next()
        assert (seen["topic"], seen["agent"], seen["state"]) == ("presence", worker.address, "paused")
        ada.call("breaker.release")
        assert follower.next()["topic"] == "breaker.released"
        assert other.next()["state"] == "idle"
