"""Each control with a program that really streams: it stops, goes on, is gone; and its envelopes are where they belong.

Of pause, resume and cancel. What cannot be done is refused with its reason, and what is over is too late.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent
from tests.support.shell_agents import (
    ESCAPES,
    Boss,
    Worker,
    assert_idle,
    end_all,
    eventually,
    has_ended,
    held,
    limits,
    rows,
    running,
)
from tests.support.waits import wait_until

# Writes a line each moment, as one process with a child; `$D/go` ends it.
STREAM = """
(while [ ! -e "$D/go" ]; do date +%N >> "$D/child"; sleep 0.02; done) &
n=0; while [ ! -e "$D/go" ]; do n=$((n+1)); echo "line $n"; sleep 0.02; done; echo end
"""

# A shell that was stopped between vfork and exec waits for its child, in the kernel.
STOPPED = {"T", "D"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(
        tmp_path_factory.mktemp("d"), finish_seconds=0.1, provider_modules="tests.support.control_providers"
    ) as found:
        yield found
        found.check()


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    yield Worker(daemon, tmp_path)
    end_all(daemon)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def control(party: Party, event: str, **params: Any) -> tuple[str, str | None]:
    found = party.call("control.send", event=f"stream.{event}", **params)
    return found["outcome"], found["why"]


def applied(party: Party, event: str, **params: Any) -> None:
    assert control(party, event, **params) == ("applied", None)


def shown(ada: Boss, run: str) -> int:
    """How many parts of output there are."""
    return int(ada.call("run.tail", id=run)["next"])


def written(worker: Worker) -> int:
    """How much its child has written."""
    file = worker.program.directory / "child"
    return os.path.getsize(file) if file.exists() else 0


def state(pid: int) -> str:
    """The state of a process in /proc: T is stopped. Empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processes(worker: Worker, run: str) -> list[int]:
    [row] = rows(worker.daemon, "SELECT pid FROM run WHERE id = ?", int(run[1:]))
    return process_control.members(row["pid"])


def lane(worker: Worker) -> tuple[str, int | None]:
    found = rows(
        worker.daemon,
        "SELECT l.state, l.paused_run FROM lane l JOIN address a ON a.id = l.address WHERE a.name = ?",
        worker.name,
    )
    return (found[0]["state"], found[0]["paused_run"]) if found else ("open", None)


def streams(ada: Boss, worker: Worker, script: str = STREAM) -> tuple[str, str]:
    """Let it begin to stream; return its envelope and its run."""
    worker.program.does(script)
    turn = len(worker.program.pids) + 1  # counted before: it may begin at once
    number = ada.tell(worker)
    run = worker.under_way(turn)["id"]
    wait_until(lambda: shown(ada, run) > 2)
    return number, run


# --- pause and resume ------------------------------------------------------------------


def test_a_paused_run_gives_no_output_and_goes_on_where_it_was(ada: Boss, worker: Worker) -> None:
    number, run = streams(ada, worker, ESCAPES + STREAM)
    escaped = worker.program.escaped
    applied(ada, "pause", run=run, reason="a look")
    # It returned after the processes were stopped, also the one that has left the session of the run.
    stopped = [*processes(worker, run), escaped.pid]
    assert len(stopped) >= 3
    assert {state(pid) for pid in stopped} <= STOPPED and state(escaped.pid) == "T"
    child = written(worker)
    # What others do meanwhile takes longer than a step of the stream, and than what was on its way.
    other = Worker(worker.daemon, worker.program.directory)
    seen = []
    for _ in range(2):
        asked = ada.tell(other)
        eventually(lambda: other.answers_to(asked), ["done"])  # noqa: B023 - called here
        seen.append(shown(ada, run))
    before = seen[-1]
    assert written(worker) == child and seen == [before] * 2
    assert lane(worker) == ("paused", int(run[1:])) and worker.runs()[0]["paused"]
    later = ada.tell(worker, text="and then")
    assert ada.get(later)["status"] == "pending"
    applied(ada, "resume", run=run)
    assert lane(worker) == ("open", None)
    wait_until(lambda: written(worker) > child and shown(ada, run) > before + 2)
    assert state(escaped.pid) != "T"
    worker.program.let_go()
    assert worker.settled()["status"] == "completed"
    eventually(lambda: ada.get(number)["status"], "done")
    eventually(lambda: ada.get(later)["status"], "done")
    assert_idle(worker.daemon, worker.program, other.program)


def test_a_program_that_starts_during_a_pause_is_stopped_at_once(ada: Boss, worker: Worker) -> None:
    place = worker.program.directory
    worker.change(provider="programmed", workspace=str(place), settings={"command": ""})
    number = ada.tell(worker)
    wait_until(lambda: running(worker.daemon))
    run = worker.runs()[0]["id"]
    assert worker.runs()[0]["pid"] is None
    applied(ada, "pause", run=run)
    (place / "start").touch()
    wait_until(lambda: worker.runs()[0]["pid"] is not None)
    pid = worker.runs()[0]["pid"]
    wait_until(lambda: state(pid) in STOPPED)
    applied(ada, "resume", run=run)
    (place / "go").touch()
    eventually(lambda: worker.answers_to(number), ["done"])
    assert_idle(worker.daemon)


def test_a_run_that_is_paused_for_too_long_is_ended_and_comes_again_by_its_session(
    ada: Boss, worker: Worker
) -> None:
    session = """printf '{"hiboss":"session","id":"one"}\\n'; echo "$HIBOSS_RESUME" >> "$D/sessions"\n"""
    with limits(worker.daemon, paused_seconds=0.2):
        number, run = streams(ada, worker, session + STREAM)
        wait_until(lambda: worker.runs()[0]["session"] == "one")
        applied(ada, "pause", run=run)
        ended = worker.settled()
        assert (ended["status"], ended["error_kind"]) == ("interrupted", "paused")
        assert_idle(worker.daemon, worker.program)
        assert (ada.get(number)["status"], ada.get(number)["attempts"]) == ("pending", 0)
        assert (lane(worker), len(worker.runs())) == (("paused", int(run[1:])), 1)
        worker.program.let_go()
        applied(ada, "resume", run=run)
        assert worker.settled(2)["status"] == "completed"
    assert (worker.program.directory / "sessions").read_text().splitlines() == ["", "one"]
    assert ada.get(number)["status"] == "done"
    assert lane(worker) == ("open", None)
    assert control(ada, "resume", run=run)[0] == "too-late"
    assert_idle(worker.daemon, worker.program)


def test_the_lane_of_a_paused_run_can_be_resumed_too_and_the_run_goes_on(ada: Boss, worker: Worker) -> None:
    number, run = streams(ada, worker)
    applied(ada, "pause", conversation=ada.get(number)["conversation"])
    assert ada.call("lane.resume", address=worker.address)["changed"] == 1
    assert lane(worker) == ("open", None) and not worker.runs()[0]["paused"]
    assert {state(pid) for pid in processes(worker, run)} & {"S", "R"}
    worker.program.let_go()
    assert worker.settled()["status"] == "completed"
    assert_idle(worker.daemon, worker.program)


def test_an_agent_is_paused_with_its_runs_and_resumed_with_all_of_them(ada: Boss, worker: Worker) -> None:
    number, _ = streams(ada, worker)
    ada.call("agent.background", agent=worker.name, task="beside that")
    wait_until(lambda: len(running(worker.daemon)) == 2 and len(worker.program.pids) == 2)
    applied(ada, "pause", agent=worker.name, reason="lunch")
    assert [one["paused"] for one in worker.runs()] == [True, True]
    assert {state(pid) for one in worker.runs() for pid in processes(worker, one["id"])} <= STOPPED
    assert lane(worker) == ("open", None)
    later = ada.tell(worker, text="and then")
    applied(ada, "resume", agent=worker.name)
    worker.program.let_go()
    assert [worker.settled(place)["status"] for place in (1, 2)] == ["completed"] * 2
    eventually(lambda: {ada.get(one)["status"] for one in (number, later)}, {"done"})
    assert_idle(worker.daemon, worker.program)


def test_a_task_in_the_background_stays_paused_however_long_it_takes(ada: Boss, worker: Worker) -> None:
    worker.program.does(STREAM)
    with limits(worker.daemon, paused_seconds=0.1):
        ada.call("agent.background", agent=worker.name, task="beside that")
        run = worker.under_way()["id"]
        applied(ada, "pause", run=run)
        other = Worker(worker.daemon, worker.program.directory)
        number, turn = streams(ada, other)
        applied(ada, "pause", run=turn)
        assert other.settled()["error_kind"] == "paused"  # a turn is ended meanwhile
    assert worker.runs()[0]["paused"] and lane(worker) == ("open", None)
    applied(ada, "resume", run=run)
    worker.program.let_go()
    assert worker.settled()["status"] == "completed"
    other.program.let_go()
    applied(ada, "resume", run=turn)
    eventually(lambda: ada.get(number)["status"], "done")
    assert_idle(worker.daemon, worker.program, other.program)


@frozen(at=None, quiet=False, provider_modules="tests.support.control_providers", lock_wait_seconds=60)
async def test_an_answer_that_is_ready_when_its_run_is_paused_waits_for_the_resume(
    daemon: InProcessDaemon,
) -> None:
    place = Path(daemon.home.path).parent / "workspace"
    place.mkdir()
    await daemon.ask("agent.set", name="nex", provider="programmed", workspace=str(place))
    await daemon.send("agent:nex", who="boss", from_="user:boss")
    (place / "start").touch()
    wiring = daemon.daemon.wiring
    runner, writer = wiring.runner, wiring._store._writer
    await daemon.until((place / "pid").exists)
    with daemon.locked():
        before = writer._submitted
        paused = asyncio.create_task(daemon.ask("control.send", event="stream.pause", run="r1"))
        await daemon.until(lambda: writer._submitted > before)
        (place / "go").touch()  # its answer is ready before the pause is stored
        await daemon.until(lambda: writer._submitted > before + 1)
    assert (await paused)["outcome"] == "applied"
    row = (await daemon.ask("run.get", id="r1"))["run"]
    assert (row["status"], row["paused"]) == ("running", True)
    assert (await daemon.ask("control.send", event="stream.resume", run="r1"))["outcome"] == "applied"
    await daemon.until(lambda: runner.execution(1) is None)
    row = (await daemon.ask("run.get", id="r1"))["run"]
    assert (row["status"], row["text"]) == ("completed", "done")


# --- cancel ----------------------------------------------------------------------------


def test_a_cancelled_run_is_gone_with_all_its_processes_and_its_sender_is_told(
    ada: Boss, worker: Worker
) -> None:
    zoe = agent(worker.daemon)
    worker.program.does(ESCAPES + STREAM)
    number = zoe.tell(worker)
    run = worker.under_way()["id"]
    escaped = worker.program.escaped
    applied(ada, "cancel", run=run, reason="wrong branch")
    ended = worker.settled()
    assert (ended["status"], ended["error"]) == ("cancelled", "the boss cancelled it: wrong branch")
    assert has_ended(escaped)
    assert_idle(worker.daemon, worker.program)
    assert zoe.get(number)["status"] == "cancelled" and held(worker.daemon) == []
    told = [one["text"] for one in zoe.list() if one["from"] == "agent:system"]
    assert len(told) == 1 and told[0].startswith(f"Not delivered: {number}") and "wrong branch" in told[0]
    assert control(ada, "cancel", run=run) == ("too-late", f"{run} has ended (cancelled)")
    assert control(ada, "cancel", envelope=number) == ("too-late", f"{number} is cancelled")
    worker.program.answers("again")
    assert zoe.call("envelope.retry", ids=[number])["changed"] == 1
    eventually(lambda: worker.answers_to(number), ["again"])


def test_a_cancelled_run_that_is_requeued_begins_anew(ada: Boss, worker: Worker) -> None:
    number, run = streams(ada, worker)
    worker.program.answers("anew")  # from the next turn on
    applied(ada, "cancel", run=run, requeue=True)
    assert worker.settled()["status"] == "cancelled"
    eventually(lambda: worker.answers_to(number), ["anew"])
    assert (ada.get(number)["status"], ada.get(number)["attempts"]) == ("done", 0)
    assert_idle(worker.daemon, worker.program)


def test_a_cancelled_run_that_was_paused_leaves_its_lane_open(ada: Boss, worker: Worker) -> None:
    number, run = streams(ada, worker)
    applied(ada, "pause", run=run)
    later = ada.tell(worker, text="and then")
    worker.program.answers("then")
    applied(ada, "cancel", envelope=number)
    eventually(lambda: worker.answers_to(later), ["then"])
    assert ada.get(number)["status"] == "cancelled" and lane(worker) == ("open", None)
    assert_idle(worker.daemon, worker.program)


def test_a_provider_that_can_end_in_an_orderly_way_is_asked_to_before_signals(
    ada: Boss, worker: Worker
) -> None:
    place = worker.program.directory
    worker.change(provider="scripted", workspace=str(place), settings={"command": ""})
    number = ada.tell(worker, text="hang")
    wait_until(lambda: (place / "notes").exists() and worker.runs()[0]["session"] == "one")
    run = worker.runs()[0]["id"]
    assert control(ada, "pause", run=run)[0] == "refused"
    applied(ada, "cancel", run=run)
    assert worker.settled()["status"] == "cancelled"
    assert (place / "notes").read_text().splitlines() == ["turn -", "interrupted"]
    assert ada.get(number)["status"] == "cancelled"
    assert_idle(worker.daemon)


def test_an_envelope_that_waits_is_cancelled_without_its_turn(ada: Boss, worker: Worker) -> None:
    streams(ada, worker)
    zoe = agent(worker.daemon)
    waits = zoe.tell(worker, text="not now")
    applied(ada, "cancel", envelope=waits)
    assert zoe.get(waits)["status"] == "cancelled"
    assert zoe.list()[0]["text"].startswith(f"Not delivered: {waits}")
    assert control(ada, "cancel", envelope=waits, requeue=True)[0] == "too-late"
    worker.program.let_go()
    assert worker.settled()["status"] == "completed" and len(worker.runs()) == 1
    assert_idle(worker.daemon, worker.program)


# --- the record ------------------------------------------------------------------------


def test_a_control_is_a_message_of_the_conversation_that_starts_no_turn(ada: Boss, worker: Worker) -> None:
    number, run = streams(ada, worker)
    conversation = ada.get(number)["conversation"]
    sent = ada.call("control.send", event="stream.pause", run=run, reason="a look", meta={"ticket": 7})
    said = ada.call("conversation.messages", **{"with": worker.address})["envelopes"]
    [record] = [one for one in said if one["message"] == sent["message"]]
    assert (record["type"], record["conversation"], record["status"]) == ("event", conversation, "done")
    assert (record["from"], record["to"], record["auto"]) == ("user:boss", worker.address, True)
    assert record["text"] == f'pause {run}: applied. Reason: "a look"'
    assert record["metadata"] == {
        "ticket": 7,
        "control": {"event": "stream.pause", "target": run, "reason": "a look", "outcome": "applied"},
    }
    applied(ada, "resume", run=run)
    worker.program.let_go()
    assert worker.settled()["status"] == "completed"
    for listed in ({"agent": worker.name}, {"conversation": conversation}, {"actor": "user:boss"}):
        found = ada.call("control.list", **listed)["controls"]
        assert [one["event"] for one in found[:2]] == ["stream.resume", "stream.pause"]
    assert found[1]["message"] == sent["message"] and found[1]["why"] is None
    assert len(worker.runs()) == 1 and worker.list(unread=True) == []  # nobody has to do anything with it
    assert_idle(worker.daemon, worker.program)
