"""Runs that are set aside: by an order, or by critical mail. What they worked on comes back and has not failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.holding_agents import HoldingWorker, control
from tests.support.parties import agent
from tests.support.shell_agents import Boss, assert_idle, end_all, rows
from tests.support.waits import wait_until

# It ends when it is let go, or killed: so what is decided meanwhile meets a run that is ending.
STUBBORN = "trap '' INT TERM\nwhile [ ! -e \"$D/go\" ]; do sleep 0.02; done\necho done"


daemon = daemon_fixture(parallel_runs=2, finish_seconds=0.1)


@pytest.fixture
def nex(daemon: RunningDaemon, tmp_path: Path) -> Iterator[HoldingWorker]:
    made = HoldingWorker(daemon, tmp_path)
    yield made
    end_all(daemon)
    assert_idle(daemon, made.program)


def being_set_aside(ada: Boss, nex: HoldingWorker, **params: bool) -> tuple[str, str]:
    """Let critical mail set a run aside that does not end before it is let go; return both envelopes."""
    nex.program.does(STUBBORN)
    old = ada.tell(nex)
    nex.under_way()
    urgent = agent(nex.daemon).tell(nex, priority="critical", **params)
    wait_until(nex.preempts)
    return old, urgent


# --- an order ------------------------------------------------------------------------


def test_a_run_is_set_aside_for_an_envelope_and_what_it_worked_on_comes_back(
    ada: Boss, nex: HoldingWorker
) -> None:
    kai = agent(nex.daemon)
    old = ada.tell(nex, text="hold this")
    run = nex.works()
    later = [kai.tell(nex, text=f"later {number}") for number in range(2)]
    urgent = agent(nex.daemon).tell(nex, text="now")
    assert control(nex.daemon, "preempt", envelope=urgent, reason="fire") == ("applied", None)
    assert nex.shown(2) == [urgent] and "priority: critical" in nex.turn(2)
    nex.goes_on_until_done(old, *later, urgent)
    assert nex.history() == [
        ("interrupted", "preempted", [old]),
        ("completed", None, [urgent]),
        ("completed", None, [old]),
        ("completed", None, later),
    ]
    message = ada.get(urgent)["message"]
    assert f"redelivered: true\nset-aside-for: {message}\n" in nex.turn(3)
    assert [ada.get(one)["attempts"] for one in (old, *later)] == [0, 0, 0]
    assert nex.answers_to(old) == ["answer 3"]
    [row] = rows(nex.daemon, "SELECT ends_as, preempted_by, error FROM run WHERE id = ?", int(run[1:]))
    assert (row["ends_as"], f"m{row['preempted_by']}") == ("preempted", message)
    assert row["error"] == "the boss preempted it: fire"
    assert nex.preempts() == [("user:boss", "applied", "fire")]
    assert ada.notices_of(nex) == []


def test_what_the_agent_sent_before_it_was_set_aside_is_told_when_it_begins_again(
    ada: Boss, nex: HoldingWorker
) -> None:
    kai = agent(nex.daemon)
    nex.program.sends(
        kai.address, "half of it", 'n=$(wc -l < "$D/turns")\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done'
    )
    old = ada.tell(nex, text="hold this")
    wait_until(lambda: nex.program.sent)
    nex.program.does('cp "$D/given" "$D/turn.$(wc -l < "$D/turns" | tr -d " ")"\necho fine')
    urgent = kai.tell(nex, text="now")
    assert control(nex.daemon, "preempt", envelope=urgent)[0] == "applied"
    nex.all_done(old, urgent)
    assert "already-sent:\n- m" in nex.turn(3) and f'to {kai.address}: "half of it"' in nex.turn(3)


def test_the_envelope_comes_next_also_before_what_has_waited_for_long(ada: Boss, nex: HoldingWorker) -> None:
    old = nex.holding(ada.tell(nex, text="hold this"))
    waiting = [agent(nex.daemon).tell(nex, text="for long") for _ in range(3)]
    with nex.daemon.database() as database:  # as if it were a quarter of an hour later
        database.execute("UPDATE message SET arrived_at = arrived_at - 1000000")
        database.commit()
    urgent = agent(nex.daemon).tell(nex, text="now", priority="low")
    assert control(nex.daemon, "preempt", envelope=urgent)[0] == "applied" and nex.shown(2) == [urgent]
    nex.goes_on_until_done(old, *waiting)
    assert [shown for *_, shown in nex.history()][2:] == [[old], *([one] for one in waiting)]


def test_the_place_of_a_run_that_is_set_aside_is_for_what_it_was_set_aside_for(
    ada: Boss, nex: HoldingWorker, tmp_path: Path
) -> None:
    others = [HoldingWorker(nex.daemon, tmp_path) for _ in range(2)]
    ada.tell(others[0], text="hold")
    ada.tell(nex, text="hold")
    nex.works()
    others[0].works()
    ada.tell(others[1], text="wait for a place")
    urgent = agent(nex.daemon).tell(nex, text="hold too")
    assert control(nex.daemon, "preempt", envelope=urgent)[0] == "applied" and nex.shown(2) == [urgent]
    assert others[1].runs() == []


# --- what is refused, and what comes too late ------------------------------------------


def test_a_run_whose_sender_wants_no_interruption_is_not_set_aside(ada: Boss, nex: HoldingWorker) -> None:
    kept = ada.tell(nex, text="hold", interruptible=False)
    run = nex.works()
    urgent = agent(nex.daemon).tell(nex, text="now", priority="critical")
    why = f"{run} works on {kept}, whose sender wants no interruption"
    assert control(nex.daemon, "preempt", envelope=urgent) == ("refused", why)
    assert control(nex.daemon, "preempt", envelope=urgent, run=run) == ("refused", why)
    nex.goes_on_until_done(kept, urgent)
    assert [shown for *_, shown in nex.history()] == [[kept], [urgent]]


def test_an_order_that_cannot_be_carried_out_says_why(ada: Boss, nex: HoldingWorker) -> None:
    daemon, kai = nex.daemon, agent(nex.daemon)
    held = ada.tell(nex, text="hold")
    run = nex.works()
    new = kai.tell(nex, text="now")
    foreign, deferred = ada.tell(kai), ada.tell(nex, deliver_at="+1h")
    assert control(daemon, "preempt", envelope=foreign) == (
        "refused",
        f"{foreign} is for {kai.address}, who gets no turns",
    )
    assert control(daemon, "preempt", envelope=new, agent=kai.name) == (
        "refused",
        f"{new} is for {nex.address}",
    )
    assert control(daemon, "preempt", envelope=deferred) == (
        "refused",
        f"{deferred} is deferred: it is not there yet",
    )
    assert control(daemon, "preempt", envelope=held) == ("too-late", f"{run} works on {held}")
    elsewhere = ada.get(foreign)["conversation"]
    outcome, why = control(daemon, "preempt", envelope=new, conversation=elsewhere)
    assert outcome == "too-late" and why is not None and f"nothing runs in {elsewhere}" in why
    assert [one["status"] for one in nex.runs()] == ["running"]
    assert control(daemon, "pause", run=run)[0] == "applied"
    assert control(daemon, "preempt", envelope=new) == (
        "refused",
        f"{run} is paused; resume it first, or cancel it",
    )
    assert control(daemon, "resume", run=run)[0] == "applied"
    nex.goes_on_until_done(held, new)
    assert control(daemon, "preempt", envelope=new) == ("too-late", f"{new} is done")
    assert control(daemon, "preempt", envelope=ada.tell(nex, deliver_at="+1h"))[0] == "refused"


def test_a_run_that_is_ending_is_not_set_aside_a_second_time(ada: Boss, nex: HoldingWorker) -> None:
    nex.program.does(STUBBORN)
    old = ada.tell(nex)
    run = nex.under_way()["id"]
    first, second = (agent(nex.daemon).tell(nex) for _ in range(2))
    assert control(nex.daemon, "preempt", envelope=first)[0] == "applied"
    assert control(nex.daemon, "preempt", envelope=second) == ("too-late", f"{run} is ending already")
    assert control(nex.daemon, "cancel", run=run)[0] == "too-late"
    nex.goes_on_until_done(old, first, second)
    assert [shown for *_, shown in nex.history()] == [[old], [first], [old], [second]]


# --- critical mail ---------------------------------------------------------------------


def test_critical_mail_sets_a_run_aside_whoever_sends_it(ada: Boss, nex: HoldingWorker) -> None:
    kai = agent(nex.daemon)
    old = nex.holding(ada.tell(nex, text="hold"))
    high = kai.tell(nex, text="high", priority="high")
    urgent = kai.tell(nex, text="fire", priority="critical")
    assert nex.shown(2) == [urgent, high]  # of one conversation, so in one turn
    nex.goes_on_until_done(old, high, urgent)
    assert nex.history()[0] == ("interrupted", "preempted", [old])
    assert nex.preempts() == [("agent:system", "applied", f"{urgent} is critical")]


def test_critical_mail_does_not_set_a_run_aside_that_works_on_critical_mail(
    ada: Boss, nex: HoldingWorker
) -> None:
    first = nex.holding(ada.tell(nex, text="hold", priority="critical"))
    nex.goes_on_until_done(first, *[agent(nex.daemon).tell(nex, priority="critical") for _ in range(5)])
    assert [status for status, *_ in nex.history()] == ["completed"] * 6 and nex.preempts() == []


def test_many_critical_messages_at_once_set_a_run_aside_once(ada: Boss, nex: HoldingWorker) -> None:
    old = nex.holding(ada.tell(nex, text="hold"))
    nex.goes_on_until_done(old, *agent(nex.daemon).flood(nex, 25, priority="critical"))
    assert [kind for _, kind, _ in nex.history()].count("preempted") == len(nex.preempts()) == 1


def test_what_a_run_sends_to_its_own_agent_does_not_end_it(ada: Boss, nex: HoldingWorker) -> None:
    send = f"hiboss envelope send --to {nex.address} --priority critical --text note >/dev/null"
    nex.program.does(f'[ -e "$D/go" ] || {{ {send}; touch "$D/go"; }}\necho done')
    old = ada.tell(nex)
    nex.settled(2)
    assert [status for status, *_ in nex.history()] == ["completed", "completed"]
    assert nex.answers_to(old) == ["done", "done"]  # a note of its own is answered where it was written


def test_no_mail_of_an_agent_to_itself_sets_its_run_aside(ada: Boss, nex: HoldingWorker) -> None:
    """Also not with its own token, outside of the run: else it could set itself aside without an end."""
    old = nex.holding(ada.tell(nex, text="hold"))
    own = nex.tell(nex, text="note", priority="critical")
    assert agent(nex.daemon).tell(nex, text="later", priority="high")
    nex.goes_on_until_done(old, own)
    assert nex.history()[0] == ("completed", None, [old]) and nex.preempts() == []


def test_agents_set_an_envelope_aside_three_times_and_the_boss_hears_of_it_once(
    ada: Boss, nex: HoldingWorker
) -> None:
    kai = agent(nex.daemon)
    old = ada.tell(nex, text="hold")
    for number in range(3):
        nex.works(2 * number + 1)
        assert ada.notices_of(nex) == []
        last = kai.tell(nex, priority="critical")
        nex.all_done(last)
    nex.works(7)
    [notice] = ada.notices_of(nex)
    assert f"{nex.address} works on 3 times: {old}. The last was {last} of {kai.address}." in notice
    waits = [one.tell(nex, priority="critical") for one in (kai, kai, agent(nex.daemon))]
    urgent = ada.tell(nex, text="fire", priority="critical")  # that of people is not limited
    assert nex.shown(8)[0] == urgent and [kind for _, kind, _ in nex.history()].count("preempted") == 4
    nex.goes_on_until_done(old, urgent, *waits)
    assert [kind for _, kind, _ in nex.history()].count("preempted") == 4
    assert ada.notices_of(nex) == [notice]


def test_an_order_sets_aside_what_mail_of_agents_does_not_any_more_and_does_not_count(
    ada: Boss, nex: HoldingWorker
) -> None:
    kai = agent(nex.daemon)
    old = ada.tell(nex, text="hold")
    for number, ordered in enumerate((True, False, True, False, False)):
        nex.works(2 * number + 1)
        new = kai.tell(nex, priority="normal" if ordered else "critical")
        if ordered:
            assert control(nex.daemon, "preempt", envelope=new)[0] == "applied"
        nex.all_done(new)
    nex.works(11)
    assert len(ada.notices_of(nex)) == 1
    waits = kai.tell(nex, priority="critical")
    assert control(nex.daemon, "preempt", envelope=waits)[0] == "applied"
    nex.all_done(waits)
    nex.goes_on_until_done(old)
    assert len(nex.preempts()) == 6


def test_critical_mail_waits_while_a_run_is_paused_and_sets_it_aside_when_it_goes_on(
    ada: Boss, nex: HoldingWorker
) -> None:
    old = ada.tell(nex, text="hold")
    run = nex.works()
    assert control(nex.daemon, "pause", run=run)[0] == "applied"
    urgent = agent(nex.daemon).tell(nex, priority="critical")
    assert nex.preempts() == []
    assert control(nex.daemon, "resume", run=run)[0] == "applied" and nex.shown(2) == [urgent]
    nex.goes_on_until_done(old, urgent)
    assert nex.history()[0] == ("interrupted", "preempted", [old])


def test_critical_mail_for_a_paused_agent_ends_nothing(ada: Boss, nex: HoldingWorker) -> None:
    old = nex.holding(ada.tell(nex, text="hold"))
    ada.call("agent.pause", name=nex.name)
    urgent = agent(nex.daemon).tell(nex, priority="critical")
    nex.goes_on_until_done(old)
    ada.call("agent.resume", name=nex.name)
    nex.all_done(urgent)
    assert [status for status, *_ in nex.history()] == ["completed", "completed"]


def test_tasks_in_the_background_go_on_when_critical_mail_comes(ada: Boss, nex: HoldingWorker) -> None:
    task = nex.call("envelope.send", to="agent:background", text="hold")["ids"][0]
    run = nex.works()
    urgent = ada.tell(nex, text="now", priority="critical")
    assert nex.shown(2) == [urgent]
    nex.all_done(urgent)
    other = agent(nex.daemon).tell(nex, text="hold")
    nex.turn(3)
    new = ada.tell(nex)
    assert control(nex.daemon, "preempt", envelope=new, run=run) == (
        "refused",
        f"{run} is a task in the background, and {new} does not wait for it",
    )
    outcome, why = control(nex.daemon, "preempt", envelope=task)
    assert outcome == "refused" and why is not None and "background" in why
    nex.goes_on_until_done(task, other, new)
    assert "interrupted" not in {status for status, *_ in nex.history()}


# --- with limits and other changes -----------------------------------------------------


def test_runs_that_were_set_aside_do_not_count_for_the_limit_of_a_trace(
    ada: Boss, nex: HoldingWorker
) -> None:
    old = ada.tell(nex, text="hold")
    for number in range(3):
        nex.works(2 * number + 1)
        nex.all_done(agent(nex.daemon).tell(nex, priority="critical"))
    nex.goes_on_until_done(old)
    query = (
        "SELECT count(*) FROM run WHERE trace = ? AND error_scope IS NOT 'lane' AND status <> 'interrupted'"
    )
    assert rows(nex.daemon, query, ada.get(old)["trace"])[0][0] == 1
    assert [ada.get(old)[one] for one in ("attempts", "status")] == [0, "done"]


def test_what_a_run_used_before_it_was_set_aside_counts_for_the_budget(ada: Boss, nex: HoldingWorker) -> None:
    used = """echo '{"hiboss": "usage", "tokens_in": 70, "tokens_out": 5}'"""
    said = """echo '{"hiboss": "delta", "text": "well"}'"""
    nex.program.does(f'{used}\n{said}\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done\necho done')
    old = ada.tell(nex)
    run = nex.under_way()["id"]
    wait_until(lambda: ada.call("run.tail", id=run)["parts"])  # so the usage before it is known too
    urgent = agent(nex.daemon).tell(nex, priority="critical")
    nex.settled()
    nex.goes_on_until_done(old, urgent)
    assert [one["tokens_in"] for one in nex.runs()] == [70, 70, 70]
    [row] = rows(
        nex.daemon, "SELECT sum(tokens) FROM usage JOIN address ON id = agent WHERE name = ?", nex.name
    )
    assert row[0] == 225


def test_a_message_that_is_deleted_while_it_was_set_aside_does_not_come_back(
    ada: Boss, nex: HoldingWorker
) -> None:
    old, urgent = being_set_aside(ada, nex)
    ada.call("message.delete", id=ada.get(old)["message"])
    nex.goes_on_until_done(urgent)
    assert_idle(nex.daemon, nex.program)
    assert ada.get(old)["status"] == "cancelled"
    assert [shown for *_, shown in nex.history()] == [[old], [urgent]]


def test_an_envelope_that_is_cancelled_before_its_turn_leaves_the_others_in_order(
    ada: Boss, nex: HoldingWorker
) -> None:
    old, urgent = being_set_aside(ada, nex)
    ada.call("envelope.cancel", ids=[urgent])
    nex.goes_on_until_done(old)
    assert [shown for *_, shown in nex.history()] == [[old], [old]]


def test_mail_that_was_routed_elsewhere_is_not_the_next_turn_any_more(
    ada: Boss, nex: HoldingWorker, tmp_path: Path
) -> None:
    kai = HoldingWorker(nex.daemon, tmp_path)
    old, urgent = being_set_aside(ada, nex)
    assert control(nex.daemon, "route", envelope=urgent, to=kai.address)[0] == "applied"
    nex.program.let_go()
    kai.all_done(urgent)
    nex.all_done(old)
    assert [shown for *_, shown in nex.history()] == [[old], [old]]
    assert [shown for *_, shown in kai.history()] == [[urgent]]


def test_the_breaker_keeps_what_a_run_was_set_aside_for_and_it_is_the_next_turn_afterwards(
    ada: Boss, nex: HoldingWorker
) -> None:
    old, waiting = being_set_aside(ada, nex, interruptible=False)
    ada.call("breaker.pull")
    try:
        nex.program.let_go()
        nex.settled()
        assert control(nex.daemon, "preempt", envelope=waiting)[0] == "too-late" and len(nex.runs()) == 1
    finally:
        ada.call("breaker.release")
    nex.all_done(old, waiting)
    assert nex.history()[0][:2] == ("interrupted", "preempted")
    assert [shown for *_, shown in nex.history()] == [[old], [waiting], [old]]


# --- priority --------------------------------------------------------------------------


def test_another_priority_changes_the_order_of_one_delivery(ada: Boss, nex: HoldingWorker) -> None:
    old = ada.tell(nex, text="hold", interruptible=False)
    run = nex.works()
    first, second, third = (agent(nex.daemon).tell(nex) for _ in range(3))
    assert control(nex.daemon, "priority", envelope=first, level="low") == ("applied", None)
    assert control(nex.daemon, "priority", envelope=third, level="high") == ("applied", None)
    assert control(nex.daemon, "priority", envelope=old, level="low") == ("too-late", f"{run} works on {old}")
    nex.goes_on_until_done(old, first, second, third)
    assert [shown for *_, shown in nex.history()] == [[old], [third], [second], [first]]
    assert control(nex.daemon, "priority", envelope=first, level="high") == ("too-late", f"{first} is done")
    deferred = ada.tell(nex, deliver_at="+1h")
    assert control(nex.daemon, "priority", envelope=deferred, level="critical") == ("applied", None)
    assert ada.get(deferred)["priority"] == "critical"


def test_mail_that_is_made_critical_sets_the_run_aside(ada: Boss, nex: HoldingWorker) -> None:
    old = nex.holding(ada.tell(nex, text="hold"))
    waits = agent(nex.daemon).tell(nex)
    assert control(nex.daemon, "priority", envelope=waits, level="critical") == ("applied", None)
    assert nex.shown(2) == [waits]
    nex.goes_on_until_done(old, waits)
    assert nex.history()[0] == ("interrupted", "preempted", [old])
