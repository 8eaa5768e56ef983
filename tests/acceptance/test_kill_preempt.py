"""kill -9 around a run that is set aside: afterwards it was, as a whole, or nothing has happened to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.agents.controls import Controls
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    CONTROLLED,
    IN_GROUP,
    RUN_ANSWERED,
    RUN_SET_ASIDE,
    RUN_SETTLED,
    STEER_GIVEN,
    STEER_HELD,
)
from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.holding_agents import HoldingWorker
from tests.support.mortals import Mortal
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, assert_idle, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = {"HIBOSS_RUNS_FINISH_SECONDS": "0"}


@pytest.fixture
def ada(outlived: Mortal) -> Boss:
    return Boss(outlived)


def outcome(daemon: Mortal, old: str) -> tuple[str | None, str | None]:
    """Return what is stored: how the first run with an envelope ends, and for what the envelope was set aside."""
    query = """
        SELECT r.ends_as, r.preempted_by, e.preempted_by AS aside,
               (SELECT count(*) FROM control WHERE event = 'preempt' AND outcome = 'applied' AND agent = r.agent) AS n
        FROM run_envelope x JOIN run r ON r.id = x.run JOIN envelope e ON e.id = x.envelope
        WHERE x.envelope = ? ORDER BY r.id LIMIT 1
    """
    [row] = rows(daemon, query, int(old[1:]))
    assert (row["ends_as"] is None) == (row["n"] == 0)  # with its record, or not at all
    assert (row["ends_as"] is None) == (row["preempted_by"] is None)
    return row["ends_as"], row["aside"]


ORDERED = [
    (CONTROLLED, True),
    (RUN_ANSWERED, True),
    (RUN_SETTLED, True),
    (IN_GROUP, False),
    (AFTER_COMMIT, True),
]


@pytest.mark.parametrize(("place", "applied"), ORDERED, ids=[place for place, _ in ORDERED])
def test_an_order_to_set_a_run_aside_holds_as_a_whole_or_not_at_all(
    daemon: Mortal, ada: Boss, tmp_path: Path, place: str, applied: bool
) -> None:
    armed = daemon.dies_at(place, of=Controls.carry_out)
    nex, kai = HoldingWorker(daemon, tmp_path), agent(daemon)
    old = ada.tell(nex, text="hold")
    nex.works()
    new = kai.tell(nex, text="hold too")
    daemon.dies_of(armed, lambda: ada.call("control.send", event="stream.preempt", envelope=new))
    assert (outcome(daemon, old)[0] == "preempted") is applied
    nex.program.let_go()
    daemon.start()
    nex.all_done(old, new)
    assert_idle(daemon, nex.program)
    assert [ada.get(one)["attempts"] for one in (old, new)] == [0, 0]
    assert len(nex.answers_to(old)) == len(nex.answers_to(new)) == 1
    shown = [envelopes for *_, envelopes in nex.history()]
    if applied:
        assert shown[:2] == [[old], [new]] and shown[-1] == [old]
        assert nex.history()[0][:2] == ("interrupted", "preempted")
    else:
        assert shown == [[old], [old], [new]]


def test_critical_mail_that_set_a_run_aside_is_the_next_turn_after_a_crash(
    daemon: Mortal, ada: Boss, tmp_path: Path
) -> None:
    armed = daemon.dies_at(RUN_SET_ASIDE)
    nex = HoldingWorker(daemon, tmp_path)
    old = ada.tell(nex, text="hold")
    nex.works()
    waiting = agent(daemon).tell(nex)
    armed.touch()
    urgent = agent(daemon).tell(nex, priority="critical")
    daemon.wait_for_death()
    assert outcome(daemon, old)[0] == "preempted"
    nex.program.let_go()
    daemon.start()
    nex.all_done(old, urgent, waiting)
    assert [envelopes for *_, envelopes in nex.history()] == [[old], [urgent], [old], [waiting]]
    assert [one["status"] for one in nex.runs()] == ["interrupted", *["completed"] * 3]
    assert ada.notices_of(nex) == []  # nobody is told that hiboss was restarted during this work


@pytest.mark.parametrize("place", [STEER_HELD, STEER_GIVEN])
@pytest.mark.parametrize("busy", ["interrupt", "steer"])
def test_words_for_a_turn_are_not_lost_when_the_daemon_dies_while_it_gives_them(
    daemon: Mortal, ada: Boss, tmp_path: Path, place: str, busy: str
) -> None:
    daemon.dies_at(place).touch()
    nex = Worker(daemon, tmp_path)
    nex.change(settings={"input": "open"}, busy=busy)
    nex.program.becomes(HEAD + HOLDS_OPEN.replace("go on", "never"))
    old = ada.tell(nex, text="begin")
    nex.under_way()
    new = ada.tell(nex, text="more")
    daemon.wait_for_death()
    nex.program.becomes(HEAD + "say('final', text='done')\n")
    daemon.start()
    wait_until(lambda: all(ada.get(one)["status"] == "done" for one in (old, new)))
    assert_idle(daemon, nex.program)
    assert [(one["status"], one["envelopes"]) for one in nex.runs()] == [
        ("interrupted", [old]),
        ("completed", [old, new]),
    ]
    assert ada.get(new)["attempts"] == 0 and nex.answers_to(new) == ["done"]
