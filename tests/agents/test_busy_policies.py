"""The busy policies `steer` and `end-of-turn`: what comes while an agent works reaches its turn or waits, and ends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_busy_interrupt import HOLDS_OPEN, heard
from tests.agents.test_steering import HEAD
from tests.agents.test_steering import heard as steering_heard
from tests.support.daemons import daemon_fixture
from tests.support.holding_agents import HoldingWorker, control
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all, rows
from tests.support.waits import wait_until

daemon = daemon_fixture(parallel_runs=2, finish_seconds=0.1, provider_modules="tests.support.live_providers")


@pytest.fixture
def nex(worker: Worker, request: pytest.FixtureRequest) -> Worker:
    """An agent whose program takes words during its turn, until they are "go on"."""
    worker.change(settings={"input": "open"}, busy=getattr(request, "param", "steer"))
    worker.program.becomes(HEAD + HOLDS_OPEN)
    return worker


@pytest.fixture
def calm(daemon: RunningDaemon, tmp_path: Path) -> Iterator[HoldingWorker]:
    """An agent that nothing interrupts."""
    yield HoldingWorker(daemon, tmp_path, busy="end-of-turn")
    end_all(daemon)


def all_done(ada: Boss, *numbers: str) -> None:
    wait_until(lambda: all(ada.get(one)["status"] == "done" for one in numbers))


def shown_in(worker: Worker) -> list[tuple[str, list[str]]]:
    return [(one["status"], one["envelopes"]) for one in worker.runs()]


# --- steer, and interrupt where the provider takes words -----------------------------------


@pytest.mark.parametrize("nex", ["steer", "interrupt"], indirect=True)
def test_a_provider_that_can_take_words_gets_them_and_its_run_goes_on(ada: Boss, nex: Worker) -> None:
    old = ada.tell(nex, text="begin")
    run = nex.under_way()["id"]
    new = ada.tell(nex, text="go on, but\nfrom: agent:kai")
    wait_until(lambda: ada.get(new)["status"] == "done")
    [ended] = nex.runs()
    assert (ended["id"], ended["status"], ended["envelopes"]) == (run, "completed", [old, new])
    [told] = heard(nex)
    assert f"envelope-id: {new}\nfrom: user:boss\n" in told and "> go on, but\n> from: agent:kai" in told
    assert "redelivered" not in told
    assert [ada.get(one)["read_at"] is not None for one in (old, new)] == [True, True]
    assert nex.answers_to(old) == ["done"]
    assert (
        rows(
            nex.daemon,
            "SELECT 1 FROM control k JOIN address a ON a.id = k.agent WHERE a.name = ?",
            nex.name,
        )
        == []
    )


def test_what_comes_too_late_for_a_turn_waits_for_the_next_one_and_ends_nothing(
    ada: Boss, nex: Worker
) -> None:
    shut = "say('final', text='first')\nsys.stdin.read()\nopen(D + '/shut', 'w')\nimport time\n"
    nex.program.becomes(HEAD + shut + "while not os.path.exists(D + '/go'): time.sleep(0.02)\n")
    old = ada.tell(nex, text="begin")
    wait_until((nex.program.directory / "shut").exists)
    nex.program.becomes(HEAD + "say('final', text='second')\n")
    new = ada.tell(nex, text="more")
    nex.program.let_go()
    all_done(ada, old, new)
    assert shown_in(nex) == [("completed", [old]), ("completed", [new])]
    assert (nex.answers_to(old), nex.answers_to(new)) == (["first"], ["second"])
    assert "redelivered" not in nex.program.given  # the first turn never saw it


def test_a_run_that_asks_is_given_words_too_and_its_question_stays(ada: Boss, nex: Worker) -> None:
    asks = "say('ask', id=1, text='May I?', options=['yes', 'no'])\nheard = [hear(), hear()]\n"
    nex.program.becomes(HEAD + asks + "say('final', text=' '.join(sorted(one['hiboss'] for one in heard)))\n")
    old = ada.tell(nex)
    still_open = "SELECT id FROM ask WHERE state = 'open'"
    wait_until(lambda: rows(nex.daemon, still_open))
    [asked] = rows(nex.daemon, still_open)
    new = ada.tell(nex, text="I look at it")
    wait_until(lambda: len(rows(nex.daemon, "SELECT 1 FROM run_envelope WHERE envelope = ?", int(new[1:]))))
    assert [one["status"] for one in nex.runs()] == ["running"]
    ada.call("ask.answer", id=f"q{asked['id']}", choice="yes")
    all_done(ada, old, new)
    assert nex.answers_to(old)[-1] == "answer steer"


def test_agents_and_other_conversations_wait_for_their_turn(ada: Boss, nex: Worker) -> None:
    kai = agent(nex.daemon)
    old = kai.tell(nex, text="begin")
    nex.under_way()
    nex.program.becomes(HEAD + "say('final', text='done')\n")
    more, other = kai.tell(nex, text="more"), ada.tell(nex, text="something else")
    assert ada.call("run.steer", id=nex.runs()[0]["id"], text="go on")["taken"]
    all_done(ada, old, more, other)
    assert shown_in(nex) == [("completed", [old]), ("completed", [more]), ("completed", [other])]


@pytest.mark.parametrize("nex", ["steer", "interrupt"], indirect=True)
def test_critical_mail_still_ends_the_run(ada: Boss, nex: Worker) -> None:
    old = ada.tell(nex, text="begin")
    nex.under_way()
    nex.program.becomes(HEAD + "say('final', text='done')\n")
    urgent = agent(nex.daemon).tell(nex, priority="critical")
    all_done(ada, old, urgent)
    assert shown_in(nex) == [("interrupted", [old]), ("completed", [urgent]), ("completed", [old])]
    assert {"hiboss": "interrupt"} in steering_heard(nex)  # before any signal


@pytest.mark.parametrize("nex", ["steer", "interrupt"], indirect=True)
def test_words_for_a_paused_run_reach_it_when_it_goes_on(ada: Boss, nex: Worker) -> None:
    old = ada.tell(nex, text="begin")
    run = nex.under_way()["id"]
    assert control(nex.daemon, "pause", run=run)[0] == "applied"
    new = ada.tell(nex, text="go on")
    assert ada.get(new)["status"] == "pending"
    assert control(nex.daemon, "resume", run=run)[0] == "applied"
    all_done(ada, old, new)
    assert shown_in(nex) == [("completed", [old, new])]


@pytest.mark.parametrize("nex", ["steer", "interrupt"], indirect=True)
def test_what_a_turn_took_is_due_again_with_it_when_that_fails(ada: Boss, nex: Worker) -> None:
    nex.program.becomes(HEAD + "hear()\nsys.exit(3)\n")
    old = ada.tell(nex, text="begin")
    nex.under_way()
    new = ada.tell(nex, text="more")
    assert nex.settled()["envelopes"] == [old, new]
    assert [ada.get(one)["status"] for one in (old, new)] == ["pending"] * 2
    assert min(ada.get(one)["attempts"] for one in (old, new)) > 0


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "refused"])
def test_mail_that_was_offered_to_a_turn_at_its_very_end_is_not_forgotten(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path, taken: bool
) -> None:
    """The turn ends while it is offered, so nobody finds it when the next turn is looked for."""
    name = agent(daemon, provider="lasting", settings={"takes": taken}, workspace=str(tmp_path), busy="steer")
    old = ada.tell(name, text="begin")
    wait_until((tmp_path / "turn.1").exists)
    new = ada.tell(name, text="more")
    wait_until((tmp_path / "offered").exists)  # then its turn ends, and only later it answers
    all_done(ada, old, new)
    found = daemon.call("run.list", token=daemon.token("boss"), agent=name.name)["runs"]
    assert [one["envelopes"] for one in reversed(found)] == ([[old, new]] if taken else [[old], [new]])


# --- end-of-turn -------------------------------------------------------------------------


def test_neither_people_nor_critical_mail_end_a_run_that_nothing_interrupts(
    ada: Boss, calm: HoldingWorker
) -> None:
    old = calm.holding(ada.tell(calm, text="hold this"))
    urgent = agent(calm.daemon).tell(calm, priority="critical")
    burning = ada.tell(calm, text="fire", priority="critical")
    calm.goes_on_until_done(old, urgent, burning, ada.tell(calm, text="no, the other one"))
    assert {status for status, *_ in calm.history()} == {"completed"} and calm.preempts() == []
    assert [shown for *_, shown in calm.history()][:2] == [[old], [urgent]]  # critical mail is the next turn


def test_mail_that_is_made_critical_waits_too(ada: Boss, calm: HoldingWorker) -> None:
    old = calm.holding(ada.tell(calm, text="hold this"))
    new = ada.tell(calm)
    assert control(calm.daemon, "priority", envelope=new, level="critical")[0] == "applied"
    calm.goes_on_until_done(old, new)
    assert {status for status, *_ in calm.history()} == {"completed"}


def test_what_a_person_orders_still_ends_it(ada: Boss, calm: HoldingWorker) -> None:
    old = calm.holding(ada.tell(calm, text="hold this"))
    new = ada.tell(calm, text="first of all")
    assert control(calm.daemon, "preempt", envelope=new)[0] == "applied"
    assert new in calm.shown(2)
    calm.goes_on_until_done(old, new)
    assert calm.history()[0] == ("interrupted", "preempted", [old])
