"""Agents with the busy policy `interrupt`: what a person writes where they work ends the run, or reaches its turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_steering import HEAD
from tests.support.daemons import daemon_fixture
from tests.support.holding_agents import HoldingWorker
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all, eventually, rows
from tests.support.waits import wait_until

HOLDS_OPEN = """
while "go on" not in (hear() or {}).get("text", "go on"):
    pass
say("final", text="done")
"""


daemon = daemon_fixture(parallel_runs=2, finish_seconds=0.1)


@pytest.fixture
def nex(daemon: RunningDaemon, tmp_path: Path) -> Iterator[HoldingWorker]:
    yield HoldingWorker(daemon, tmp_path, busy="interrupt")
    end_all(daemon)


@pytest.fixture
def open_nex(worker: Worker) -> Worker:
    """An agent whose program takes words during its turn."""
    worker.change(settings={"input": "open"}, busy="interrupt")
    worker.program.becomes(HEAD + HOLDS_OPEN)
    return worker


def heard(worker: Worker) -> list[str]:
    """Return what the program was told during its turns."""
    lines = (worker.program.directory / "heard").read_text().splitlines()
    given = [json.loads(line) for line in lines]
    return [one["text"] for one in given if one and one.get("hiboss") == "steer"]


# --- what ends a run -------------------------------------------------------------------


def test_a_persons_new_message_ends_the_run_there_and_both_come_in_one_turn(
    ada: Boss, nex: HoldingWorker
) -> None:
    old = nex.holding(ada.tell(nex, text="hold this"))
    new = ada.tell(nex, text="no, the other one")
    assert nex.shown(2) == [old, new] and f"set-aside-for: {ada.get(new)['message']}" in nex.turn(2)
    nex.goes_on_until_done(old, new)
    assert nex.history() == [("interrupted", "preempted", [old]), ("completed", None, [old, new])]
    assert nex.preempts() == [("agent:system", "applied", f"{new} was written by a person while it worked")]
    assert [ada.get(one)["attempts"] for one in (old, new)] == [0, 0]


@pytest.mark.parametrize("busy", ["collect", "followup"])
def test_other_policies_let_the_run_go_on(ada: Boss, nex: HoldingWorker, busy: str) -> None:
    nex.change(busy=busy)
    old = nex.holding(ada.tell(nex, text="hold"))
    new = ada.tell(nex)
    nex.goes_on_until_done(old, new)
    assert [shown for *_, shown in nex.history()] == [[old], [new]]


def test_neither_agents_nor_other_conversations_nor_deferred_mail_end_a_run(
    ada: Boss, nex: HoldingWorker
) -> None:
    kai = agent(nex.daemon)
    later = ada.tell(nex, deliver_at="+1h")
    first = kai.tell(nex, text="hold")
    nex.works()
    nex.goes_on_until_done(first, *[kai.tell(nex), ada.tell(nex), nex.tell(nex)])
    assert "interrupted" not in {status for status, *_ in nex.history()} and nex.preempts() == []
    assert ada.get(later)["status"] == "pending"


def test_a_run_whose_sender_wants_no_interruption_goes_on(ada: Boss, nex: HoldingWorker) -> None:
    kept = nex.holding(ada.tell(nex, text="hold", interruptible=False))
    new = ada.tell(nex)
    nex.goes_on_until_done(kept, new)
    assert [shown for *_, shown in nex.history()] == [[kept], [new]]


def test_messages_in_quick_succession_end_one_run_and_are_collected(ada: Boss, nex: HoldingWorker) -> None:
    old = nex.holding(ada.tell(nex, text="hold"))
    burst = [*ada.flood(nex, 15, from_="user:boss")]
    assert nex.shown(2) == [old, *burst[:8], burst[-1]]  # ten, and the last words are among them
    nex.goes_on_until_done(old, *burst)
    assert nex.history()[0] == ("interrupted", "preempted", [old])
    assert [status for status, *_ in nex.history()[1:]] == ["completed", "completed"]
    assert len(nex.preempts()) == 1


def test_a_person_comes_before_critical_mail_where_they_wrote_it_and_nobody_else_does(
    ada: Boss, nex: HoldingWorker
) -> None:
    urgent = nex.holding(ada.tell(nex, text="hold", priority="critical"))
    other = agent(nex.daemon).tell(nex, priority="critical")
    new = ada.tell(nex, text="the other fire")
    assert nex.shown(2) == [urgent, new]
    nex.goes_on_until_done(urgent, other, new)
    assert nex.preempts() == [("agent:system", "applied", f"{new} was written by a person while it worked")]
    assert [shown for *_, shown in nex.history()] == [[urgent], [urgent, new], [other]]


def test_critical_mail_goes_first_and_what_a_person_said_comes_with_what_was_set_aside(
    ada: Boss, nex: HoldingWorker
) -> None:
    nex.program.does(
        'n=$(wc -l < "$D/turns" | tr -d " ")\ncp "$D/given" "$D/turn.$n"\n'
        "trap '' INT TERM\nwhile [ ! -e \"$D/go\" ]; do sleep 0.02; done\necho done"
    )
    old = ada.tell(nex)
    nex.turn(1)
    urgent = agent(nex.daemon).tell(nex, priority="critical")
    wait_until(lambda: nex.preempts())
    new = ada.tell(nex)
    nex.goes_on_until_done(old, urgent, new)
    assert [shown for *_, shown in nex.history()] == [[old], [urgent], [old, new]]


def test_a_run_that_waits_for_an_answer_is_ended_and_its_question_with_it(
    ada: Boss, open_nex: Worker
) -> None:
    open_nex.program.becomes(
        HEAD + "if 'set-aside-for' in turn['text']:\n    say('final', text='done')\nelse:\n"
        "    say('ask', id=1, text='May I?', options=['yes', 'no'])\n    hear()\n    hear()\n"
    )
    old = ada.tell(open_nex)
    wait_until(lambda: rows(open_nex.daemon, "SELECT id FROM ask WHERE state = 'open'"))
    new = ada.tell(open_nex, text="never mind")
    wait_until(lambda: all(ada.get(one)["status"] == "done" for one in (old, new)))
    assert [one["status"] for one in open_nex.runs()] == ["interrupted", "completed"]
    assert rows(open_nex.daemon, "SELECT id FROM ask WHERE state = 'open'") == []


# --- words that reach the turn -----------------------------------------------------------


def test_several_messages_reach_the_turn_in_their_order(ada: Boss, open_nex: Worker) -> None:
    ada.tell(open_nex, text="begin")
    open_nex.under_way()
    said = [ada.tell(open_nex, text=text) for text in ("one", "two", "go on")]
    wait_until(lambda: all(ada.get(one)["status"] == "done" for one in said))
    told = "\n".join(heard(open_nex))
    assert [told.index(f"envelope-id: {one}\n") for one in said] == sorted(
        told.index(f"envelope-id: {one}\n") for one in said
    )
    assert len(open_nex.runs()) == 1


def test_a_turn_that_takes_no_more_words_is_ended_for_them(ada: Boss, open_nex: Worker) -> None:
    said = "say('final', text='too early')\nsys.stdin.read()\nopen(D + '/shut', 'w')\nimport time\ntime.sleep(1000)\n"
    open_nex.program.becomes(HEAD + said)
    old = ada.tell(open_nex, text="begin")
    wait_until((open_nex.program.directory / "shut").exists)  # its standard input was closed after `final`
    open_nex.program.becomes(HEAD + "say('final', text='done')\n")
    new = ada.tell(open_nex, text="more")
    eventually(lambda: open_nex.answers_to(new), ["done"])
    assert open_nex.answers_to(old) == []
    assert [one["envelopes"] for one in open_nex.runs()] == [[old], [old, new]]
