"""What a pause holds, and until when; runs that are set aside with programs that stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Office
from tests.support.daemons import daemon_with
from tests.support.holding_agents import HoldingWorker
from tests.support.parties import Party, agent
from tests.support.shell_agents import (
    Boss,
    Worker,
    assert_idle,
    end_all,
    eventually,
    left_behind,
    limits,
    rows,
)
from tests.support.waits import wait_until

LIVELY = 'while [ ! -e "$D/go" ]; do echo alive >&2; sleep 0.05; done\necho done'
TOKEN = "hba_" + "S3cretS3cret" * 3


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), finish_seconds=0.1) as running:
        yield running
        running.check()


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    made = Worker(daemon, tmp_path)
    made.program.does(LIVELY)
    yield made
    made.program.let_go()
    end_all(daemon)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def person(ada: Boss, name: str) -> Party:
    return Party(ada.daemon, f"user:{name}", ada.call("user.register", name=name)["token"])


def privileged(ada: Boss, party: Party) -> Party:
    ada.call("agent.permission.set", name=party.name, level="privileged")
    return party


def send(party: Party, event: str, **params: Any) -> dict[str, Any]:
    return party.call("control.send", event=f"stream.{event}", **params)


def control(party: Party, event: str, **params: Any) -> str:
    return str(send(party, event, **params)["outcome"])


def refusal(party: Party, event: str, **params: Any) -> str:
    return party.refusal("control.send", event=f"stream.{event}", **params)


def paused(party: Party) -> str | None:
    [row] = rows(
        party.daemon,
        "SELECT paused_kind FROM agent g JOIN address a ON a.id = g.address"
        " WHERE a.name = ? AND a.retired_at IS NULL",
        party.name,
    )
    return None if row[0] is None else str(row[0])


def ended_in_a_pause(ada: Boss, worker: Worker, sender: Party, by: Party) -> tuple[str, str]:
    """Let a run be paused by somebody for too long; return its envelope and the run."""
    with limits(worker.daemon, paused_seconds=0.1):
        number = sender.tell(worker)
        run = worker.under_way()["id"]
        assert control(by, "pause", run=run) == "applied"
        assert worker.settled()["error_kind"] == "paused"
    return number, run


# --- an agent --------------------------------------------------------------------------


def test_a_limit_is_not_lifted_by_a_pause_and_a_resume(ada: Boss, worker: Worker) -> None:
    privileged(ada, worker)
    ada.call("agent.set", name=worker.name, daily_cost=0.000001)
    # The program tells what it used, so the next turn is over the budget.
    worker.program.does("""printf '{"hiboss":"usage","cost":1}\\n'; echo NO_REPLY""")
    ada.tell(worker)
    worker.settled()
    ada.tell(worker)
    wait_until(lambda: paused(worker) == "budget")
    asked = "SELECT k.state FROM ask k JOIN address a ON a.id = k.asker WHERE k.kind = 'limit' AND a.name = ?"
    found = send(worker, "pause", agent=worker.name)
    assert (found["outcome"], "by a limit" in found["why"]) == ("refused", True)
    assert paused(worker) == "budget"
    assert [row[0] for row in rows(worker.daemon, asked, worker.name)] == ["open"]
    assert (control(worker, "resume", agent=worker.name), paused(worker)) == ("refused", "budget")
    assert control(ada, "pause", agent=worker.name) == "applied"  # the boss may replace it
    assert paused(worker) == "boss"
    found = send(worker, "resume", agent=worker.name)
    assert (found["outcome"], "the boss paused" in found["why"]) == ("refused", True)
    assert control(ada, "resume", agent=worker.name) == "applied"
    wait_until(lambda: paused(worker) == "budget")  # a new limit pause, with a new ask
    assert [row[0] for row in rows(worker.daemon, asked, worker.name)] == ["cancelled", "open"]


def test_what_the_boss_paused_only_he_resumes_and_what_agents_paused_also_agents(
    ada: Boss, worker: Worker
) -> None:
    lea = privileged(ada, agent(worker.daemon))
    privileged(ada, worker)
    ada.call("agent.pause", name=worker.name)
    assert {control(party, "resume", agent=worker.name) for party in (worker, lea)} == {"refused"}
    assert control(ada, "resume", agent=worker.name) == "applied"
    assert control(lea, "pause", agent=worker.name) == "applied"
    assert control(worker, "resume", agent=worker.name) == "applied"
    assert control(lea, "pause", agent=worker.name) == "applied"
    assert ada.call("agent.pause", name=worker.name)["changed"]  # from now on it is his pause
    assert not ada.call("agent.pause", name=worker.name)["changed"]
    assert control(lea, "resume", agent=worker.name) == "refused"
    assert ada.call("agent.resume", name=worker.name)["changed"]


# --- a run that has ended in its pause ---------------------------------------------------


def test_the_agent_itself_does_not_end_the_pause_of_its_run(ada: Boss, worker: Worker) -> None:
    ann = person(ada, f"ann-{worker.name}")
    number, run = ended_in_a_pause(ada, worker, ann, ada)
    conversation = ann.get(number)["conversation"]
    for target in ({"run": run}, {"conversation": conversation}, {"envelope": number}):
        assert refusal(worker, "resume", **target) == "forbidden"
        assert refusal(ann, "resume", **target) == "forbidden"  # the boss paused it
    assert [row[0] for row in rows(worker.daemon, "SELECT state FROM lane WHERE paused_run IS NOT NULL")] == [
        "paused"
    ]
    worker.program.let_go()
    assert control(ada, "resume", conversation=conversation) == "applied"
    eventually(lambda: ann.get(number)["status"], "done")


def test_who_wrote_all_of_it_resumes_what_she_paused_and_a_guest_does_not(ada: Boss, worker: Worker) -> None:
    ann, zoe = person(ada, f"ann-{worker.name}"), person(ada, f"zoe-{worker.name}")
    number, run = ended_in_a_pause(ada, worker, ann, ann)
    conversation = ann.get(number)["conversation"]
    assert control(ada, "handoff", conversation=conversation, to=zoe.address) == "applied"
    assert {refusal(zoe, event, conversation=conversation) for event in ("resume", "cancel")} == {"forbidden"}
    worker.program.let_go()
    assert control(ann, "resume", conversation=conversation) == "applied"
    assert control(ann, "resume", run=run) == "too-late"


def test_a_person_with_other_mail_there_does_not_open_the_lane(ada: Boss, worker: Worker) -> None:
    ann, zoe = person(ada, f"ann-{worker.name}"), person(ada, f"zoe-{worker.name}")
    _, run = ended_in_a_pause(ada, worker, ann, ann)
    number = zoe.tell(worker)
    assert control(zoe, "resume", conversation=zoe.get(number)["conversation"]) == "too-late"
    worker.program.let_go()
    assert control(ann, "resume", run=run) == "applied"
    eventually(lambda: zoe.get(number)["status"], "done")


@pytest.mark.parametrize("target", ["run", "conversation", "envelope", "agent"])
def test_what_waits_in_a_paused_lane_is_cancelled_with_its_run(
    ada: Boss, worker: Worker, target: str
) -> None:
    number, run = ended_in_a_pause(ada, worker, ada, ada)
    names = {
        "run": run,
        "conversation": ada.get(number)["conversation"],
        "envelope": number,
        "agent": worker.name,
    }
    assert control(ada, "cancel", **{target: names[target]}) == "applied"
    assert ada.get(number)["status"] == "cancelled"
    worker.program.let_go()
    later = ada.tell(worker)
    eventually(lambda: ada.get(later)["status"], "done")
    assert (control(ada, "cancel", run=run), control(ada, "resume", run=run)) == ("too-late", "too-late")


# --- restarts --------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_paused_begins_again_only_when_it_is_resumed(tmp_path: Path, end: str) -> None:
    with daemon_with(tmp_path, finish_seconds=60) as daemon:
        ada, worker, other = Boss(daemon), Worker(daemon, tmp_path), Worker(daemon, tmp_path)
        for one in (worker, other):
            one.program.does(LIVELY)
        ada.call("agent.background", agent=worker.name, task="beside that")
        task = worker.under_way()["id"]
        number = ada.tell(other)
        turn = other.under_way()["id"]
        assert [control(ada, "pause", run=run) for run in (task, turn)] == ["applied"] * 2
        getattr(daemon, end)()
        daemon.start()
        for one in (worker, other):
            [run] = one.runs()
            assert (run["status"], run["error_kind"]) == ("interrupted", "paused")
        # Another task runs from its beginning to its end, so that one would have begun too.
        third = Worker(daemon, tmp_path)
        ada.call("agent.background", agent=third.name, task="and that")
        assert third.settled()["status"] == "completed"
        assert len(worker.runs()) == len(other.runs()) == 1
        for one in (worker, other):
            one.program.let_go()
        assert [control(ada, "resume", run=run) for run in (task, turn)] == ["applied"] * 2
        assert worker.settled(2)["status"] == "completed"
        eventually(lambda: ada.get(number)["status"], "done")
        assert control(ada, "resume", run=task) == "too-late"
        assert_idle(daemon, worker.program, other.program)
        daemon.check()


def test_a_paused_task_is_cancelled_and_resumed_with_its_agent_after_a_restart(tmp_path: Path) -> None:
    with daemon_with(tmp_path, finish_seconds=60) as daemon:
        ada, worker, other = Boss(daemon), Worker(daemon, tmp_path), Worker(daemon, tmp_path)
        for one in (worker, other):
            one.program.does(LIVELY)
            ada.call("agent.background", agent=one.name, task="beside that")
            one.under_way()
            assert control(ada, "pause", agent=one.name) == "applied"
        daemon.stop()
        daemon.start()
        assert control(ada, "cancel", run=worker.runs()[0]["id"]) == "applied"
        for one in (worker, other):
            assert control(ada, "resume", agent=one.name) == "applied"
            one.program.let_go()
        assert other.settled(2)["status"] == "completed"
        assert len(worker.runs()) == 1
        assert_idle(daemon, worker.program, other.program)
        daemon.check()


# --- the record ------------------------------------------------------------------------


def test_the_lane_of_a_deleted_agent_goes_with_it(ada: Boss, worker: Worker) -> None:
    ended_in_a_pause(ada, worker, ada, ada)
    ada.call("agent.delete", name=worker.name)
    assert worker.address not in [one["address"] for one in ada.call("lane.list")["lanes"]]
    assert rows(worker.daemon, "SELECT 1 FROM lane WHERE paused_run IS NOT NULL") == []


def test_who_may_not_hand_anything_over_does_not_learn_whom_there_is(ada: Boss, worker: Worker) -> None:
    kim = agent(worker.daemon)
    conversation = kim.get(kim.tell(worker))["conversation"]
    for to in ("user:boss", "user:nobody-of-that-name"):
        assert refusal(kim, "handoff", conversation=conversation, to=to) == "forbidden"
        assert refusal(kim, "route", conversation="c999999", to=to) == "not_found"
    lea = privileged(ada, agent(worker.daemon))
    mine = lea.get(lea.tell(worker))["conversation"]
    assert refusal(lea, "handoff", conversation=mine, to="user:nobody-of-that-name") == "unknown_address"


def test_a_token_in_a_reason_or_in_metadata_is_not_stored(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    run = worker.under_way()["id"]
    send(ada, "pause", run=run, reason=f"see {TOKEN}", meta={TOKEN: {"list": [TOKEN, 1]}})
    send(ada, "resume", run=run)
    ada.call("run.cancel", id=run, reason=f"see {TOKEN}")
    worker.settled()
    with worker.daemon.database() as database:
        stored = "\n".join(database.iterdump())
    assert "see hba_…" in stored and "S3cret" not in stored


# --- preempt and priority -------------------------------------------------------------


@pytest.fixture
def office(daemon: RunningDaemon) -> Iterator[Office]:
    yield Office(daemon)
    end_all(daemon)


@pytest.fixture
def nex(daemon: RunningDaemon, tmp_path: Path) -> HoldingWorker:
    """An agent whose program streams words until it is let go, and answers with the number of its turn."""
    worker = HoldingWorker(daemon, tmp_path)
    worker.program.does(
        """
n=$(wc -l < "$D/turns" | tr -d ' ')
cp "$D/given" "$D/turn.new" && mv "$D/turn.new" "$D/turn.$n"
while grep -q '^> hold' "$D/turn.$n" && [ ! -e "$D/go" ]; do
    echo '{"hiboss": "delta", "text": "still at it\\n"}'; sleep 0.02
done
echo '{"hiboss": "final", "text": "answer '$n'"}'
"""
    )
    return worker


def test_a_streaming_run_is_set_aside_and_comes_back_and_nothing_is_lost_or_doubled(
    office: Office, nex: HoldingWorker
) -> None:
    boss = Boss(office.daemon)
    held = [boss.tell(nex, text=f"hold {number}") for number in range(2)]
    run = nex.works()
    wait_until(lambda: boss.call("run.tail", id=run)["parts"])  # it streams
    pids = nex.program.pids
    waiting = agent(office.daemon).tell(nex, text="afterwards")
    urgent = agent(office.daemon).tell(nex, text="first")
    done = office("control", "preempt", "--envelope", urgent, "--reason", "the client waits")
    assert (done.rc, done.values("outcome")) == (0, ["applied"]), done
    nex.all_done(urgent)
    assert nex.shown(2) == [urgent]
    nex.turn(3)
    assert not any(one.startswith(f"{pids[0]} ") for one in left_behind(office.daemon, []))  # it is gone
    nex.program.let_go()
    nex.all_done(*held, waiting)
    assert_idle(office.daemon, nex.program)
    history = nex.history()
    assert history[0][:2] == ("interrupted", "preempted") and history[1] == ("completed", None, [urgent])
    assert sorted(one for status, _, shown in history for one in shown if status == "completed") == sorted(
        [*held, urgent, waiting]
    )
    assert [boss.get(one)["attempts"] for one in (*held, urgent, waiting)] == [0] * 4
    again = office("control", "preempt", "--envelope", urgent)
    assert (again.rc, again.values("outcome")) == (1, ["too-late"])
    assert office("control", "list", "--agent", nex.name).values("outcome") == ["too-late", "applied"]
    query = "SELECT type, metadata FROM messages WHERE type = 'event' AND metadata LIKE '%the client waits%'"
    [record] = rows(office.daemon, query)
    assert re.search(r'"event": ?"stream.preempt"', record["metadata"])
