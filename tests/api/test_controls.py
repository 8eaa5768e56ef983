"""Who may send which control, and what others learn of it: rights, foreign ids, facts, lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.followers import following
from tests.support.parties import Party, agent, person
from tests.support.shell_agents import Boss, Worker, assert_idle, end_all, eventually, rows
from tests.support.waits import wait_until

LIVELY = 'while [ ! -e "$D/go" ]; do echo alive >&2; sleep 0.05; done\necho done'


daemon = daemon_fixture(finish_seconds=0.1)


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


def control(party: Party, event: str, **params: Any) -> str:
    return str(party.call("control.send", event=f"stream.{event}", **params)["outcome"])


def refusal(party: Party, event: str, **params: Any) -> str:
    return party.refusal("control.send", event=f"stream.{event}", **params)


def recorded(daemon: RunningDaemon) -> int:
    return int(rows(daemon, "SELECT count(*) FROM control")[0][0])


# --- rights ----------------------------------------------------------------------------


def test_who_wrote_all_that_a_run_works_on_may_pause_resume_and_cancel_it(ada: Boss, worker: Worker) -> None:
    ann = person(ada.daemon, f"ann-{worker.name}")
    number = ann.tell(worker)
    run = worker.under_way()["id"]
    conversation = ann.get(number)["conversation"]
    assert control(ann, "pause", run=run) == control(ann, "resume", conversation=conversation) == "applied"
    assert ann.call("run.pause", id=run) == ann.call("run.resume", id=run) == {"id": run, "changed": True}
    assert refusal(ann, "preempt", run=run, envelope=number) == "forbidden"
    assert refusal(ann, "priority", envelope=number, level="high") == "forbidden"
    assert refusal(ann, "pause", agent=worker.name) == "forbidden"
    assert control(ann, "cancel", envelope=number) == "applied"
    assert worker.settled()["status"] == ann.get(number)["status"] == "cancelled"
    assert [one for one in ann.list() if one["from"] == "agent:system"] == []  # she did it herself
    assert control(ann, "cancel", conversation=conversation) == "too-late"
    assert ann.call("envelope.retry", ids=[number])["changed"] == 1
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["done"])
    assert_idle(worker.daemon, worker.program)


def test_who_wrote_only_a_part_of_it_needs_the_right(ada: Boss, worker: Worker) -> None:
    """Both wrote into one conversation, so the turn is not of one of them."""
    zoe, kim = agent(worker.daemon), agent(worker.daemon)
    zoe.send(worker, kim)
    run = worker.under_way()["id"]
    assert refusal(zoe, "cancel", run=run) == "forbidden"  # it is not private
    assert refusal(kim, "pause", run=run) == zoe.refusal("run.cancel", id=run) == "forbidden"


def test_a_foreign_id_is_not_found_and_an_agent_is_not_its_own_master(ada: Boss, worker: Worker) -> None:
    zoe, kim = agent(worker.daemon), agent(worker.daemon)
    number = zoe.tell(worker)
    run, before = worker.under_way()["id"], recorded(worker.daemon)
    for target in ({"run": run}, {"envelope": number}, {"conversation": zoe.get(number)["conversation"]}):
        assert refusal(kim, "cancel", **target) == "not_found"
    assert kim.refusal("run.cancel", id=run) == "not_found"
    assert refusal(worker, "pause", run=run) == refusal(worker, "pause", agent=worker.name) == "forbidden"
    assert refusal(worker, "cancel", envelope=number) == "forbidden"
    assert recorded(worker.daemon) == before  # what is not allowed leaves nothing behind


def test_the_right_is_of_the_level_that_the_policy_says(ada: Boss, worker: Worker) -> None:
    kim, lea = agent(worker.daemon), agent(worker.daemon)
    ada.call("agent.permission.set", name=lea.name, level="privileged")
    ada.tell(worker)
    run = worker.under_way()["id"]
    assert refusal(kim, "pause", agent=worker.name) == "forbidden"
    assert control(lea, "pause", agent=worker.name) == "applied"
    assert refusal(lea, "resume", run=run) == "not_found"  # she may act on agents, and cannot see that run
    ada.call("permission.policy.set", policy={"control.interrupt": "standard"})
    try:
        assert control(kim, "resume", agent=worker.name) == "applied"
        ada.call("permission.policy.set", policy={"control.interrupt": "boss"})
        assert refusal(lea, "cancel", agent=worker.name) == "forbidden"
        assert control(ada, "cancel", agent=worker.name) == "applied"
    finally:
        ada.call("permission.policy.set", policy={})


def test_only_the_boss_lets_an_agent_go_on_that_has_reached_a_limit(ada: Boss, worker: Worker) -> None:
    lea = agent(worker.daemon)
    ada.call("agent.permission.set", name=lea.name, level="privileged")
    with worker.daemon.database() as database:
        database.execute(
            "UPDATE agent SET paused_at = 1, paused_kind = 'budget', paused_why = 'used up' WHERE address ="
            " (SELECT id FROM address WHERE name = ? AND retired_at IS NULL)",
            (worker.name,),
        )
        database.commit()
    found = lea.call("control.send", event="stream.resume", agent=worker.name)
    assert (found["outcome"], "only the boss" in found["why"]) == ("refused", True)
    assert control(ada, "resume", agent=worker.name) == "applied"


def test_a_right_that_is_taken_back_meanwhile_does_not_count(ada: Boss, worker: Worker) -> None:
    lea = agent(worker.daemon)
    ada.call("agent.permission.set", name=lea.name, level="privileged")
    assert control(lea, "pause", agent=worker.name) == "applied"
    ada.call("agent.permission.set", name=lea.name, level="standard")
    assert refusal(lea, "resume", agent=worker.name) == "forbidden"
    ada.call("agent.token.revoke", name=lea.name)
    assert refusal(lea, "resume", agent=worker.name) == "bad_token"


# --- what others learn -----------------------------------------------------------------


def test_who_is_in_the_conversation_is_told_of_a_control_and_nobody_else(ada: Boss, worker: Worker) -> None:
    zoe, kim = agent(worker.daemon), agent(worker.daemon)
    number = zoe.tell(worker)
    run = worker.under_way()["id"]
    with ExitStack() as stack:
        followers = [stack.enter_context(following(one.daemon)) for one in (ada, zoe, worker, kim)]
        for party, follower in zip((ada, zoe, worker, kim), followers, strict=True):
            follower.subscribe(party.token, topics=["control"])
        sent = ada.call("control.send", event="stream.pause", run=run, reason="a look")
        for fact in [one.next("control") for one in followers[:3]]:
            assert {name: fact[name] for name in ("event", "outcome", "actor", "agent", "run")} == {
                "event": "stream.pause",
                "outcome": "applied",
                "actor": "user:boss",
                "agent": worker.address,
                "run": run,
            }
            assert fact["message"] == sent["message"]
            assert fact["conversation"] == zoe.get(number)["conversation"]
            assert "a look" not in str(fact)  # that is in the message
        control(kim, "cancel", envelope=kim.tell(zoe))
        assert followers[3].next("control")["event"] == "stream.cancel"  # her own is the first she sees


def test_each_sees_the_controls_about_him_and_in_his_conversations(ada: Boss, worker: Worker) -> None:
    zoe, kim = agent(worker.daemon), agent(worker.daemon)
    number = zoe.tell(worker)
    run = worker.under_way()["id"]
    control(ada, "pause", run=run)
    control(ada, "pause", agent=kim.name)
    conversation = zoe.get(number)["conversation"]

    def seen(party: Party, **params: Any) -> list[tuple[str, str | None]]:
        return [(one["event"], one["agent"]) for one in party.call("control.list", **params)["controls"]]

    of_run, of_kim = ("stream.pause", worker.address), ("stream.pause", kim.address)
    assert seen(ada)[:2] == [of_kim, of_run]
    assert seen(zoe) == [of_run] == seen(worker, conversation=conversation)
    assert seen(kim) == [of_kim] == seen(ada, agent=kim.name)
    assert kim.refusal("control.list", conversation=conversation) == "not_found"
    assert seen(zoe, actor="user:boss") == [of_run] and seen(zoe, actor=kim.address) == []
    first = ada.call("control.list", page_size=1)
    assert len(first["controls"]) == 1
    assert ada.call("control.list", page_size=1, after=first["next"])["controls"][0]["run"] == run


def test_an_old_door_answers_with_its_error_and_stores_nothing(ada: Boss, worker: Worker) -> None:
    number = ada.tell(worker)
    run, before = worker.under_way()["id"], recorded(worker.daemon)
    assert ada.call("run.pause", id=run)["changed"] and not ada.call("run.pause", id=run)["changed"]
    assert ada.call("run.resume", id=run)["changed"] and not ada.call("run.resume", id=run)["changed"]
    assert ada.call("run.cancel", id=run, requeue=True)["changed"]
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["done"])
    assert {ada.refusal(f"run.{verb}", id=run) for verb in ("pause", "resume", "cancel")} == {"not_running"}
    assert recorded(worker.daemon) == before + 3


def test_the_record_of_a_control_about_a_deleted_agent_is_kept_for_who_sent_it(
    ada: Boss, worker: Worker
) -> None:
    worker.program.answers("done")
    ada.tell(worker)
    run = worker.settled()["id"]
    ada.call("agent.delete", name=worker.name)
    assert control(ada, "cancel", run=run) == "too-late"
    [record] = [one for one in ada.list(page_size=5) if one["type"] == "event"][:1]
    assert record["to"] == "user:boss" and record["text"].startswith(f"cancel {run}: too-late")
    wait_until(lambda: ada.call("control.list")["controls"][0]["run"] == run)


# --- retry -----------------------------------------------------------------------------


def test_what_was_cancelled_after_its_arrival_can_be_retried_and_nothing_else(
    ada: Boss, worker: Worker
) -> None:
    zoe, kim = agent(worker.daemon), agent(worker.daemon)
    arrived, deleted = zoe.tell(kim, text="one"), zoe.tell(kim, text="two")
    deferred = zoe.tell(kim, text="three", deliver_at="+1h")
    zoe.call("envelope.cancel", ids=[arrived, deferred])
    zoe.call("message.delete", id=deleted)
    assert zoe.call("envelope.retry", ids=[arrived])["changed"] == 1
    assert kim.get(arrived)["status"] == "pending"
    assert zoe.refusal("envelope.retry", ids=[deferred]) == "too_late"
    assert zoe.refusal("envelope.retry", ids=[deleted]) == "too_late"
    assert zoe.refusal("envelope.retry", ids=[arrived]) == "too_late"  # it is pending
    assert zoe.get(deferred)["status"] == "cancelled"
