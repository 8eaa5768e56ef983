"""kill -9 around a run that is set aside: afterwards it was, as a whole, or nothing has happened to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.daemons import set_up, wait_until
from tests.support.holding_agents import HoldingWorker
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, assert_idle, end_all, rows

LIMITS = {"HIBOSS_RUNS_FINISH_SECONDS": "0"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    mortal = RunningDaemon(set_up(tmp_path_factory.mktemp("d")))
    mortal.start()
    yield mortal
    mortal.stop()


@pytest.fixture
def ada(daemon: RunningDaemon) -> Iterator[Boss]:
    yield Boss(daemon)
    if daemon.process is None:
        daemon.start(**LIMITS)
    end_all(daemon)


def armed(daemon: RunningDaemon, place: str, tmp_path: Path) -> Path:
    """Start the daemon so that it dies at this place, from the moment that the file exists."""
    file = tmp_path / "armed"
    daemon.stop()
    daemon.start(HIBOSS_CRASH_AT=f"{place}@{file}", **LIMITS)
    return file


def tried(method: Any, *args: Any, **params: Any) -> None:
    """Call something that the daemon may not answer any more."""
    try:
        method(*args, **params)
    except (DaemonUnreachable, OSError, ConnectionError):
        pass


def outcome(daemon: RunningDaemon, old: str) -> tuple[str | None, str | None]:
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
    daemon: RunningDaemon, ada: Boss, tmp_path: Path, place: str, applied: bool
) -> None:
    file = armed(daemon, place, tmp_path)
    nex, kai = HoldingWorker(daemon, tmp_path), agent(daemon)
    old, new = ada.tell(nex, text="hold"), None
    nex.works()
    new = kai.tell(nex, text="hold too")
    file.touch()
    tried(daemon.call, "control.send", token=ada.token, event="stream.preempt", envelope=new)
    daemon.wait_for_death()
    assert (outcome(daemon, old)[0] == "preempted") is applied
    nex.program.let_go()
    daemon.start(**LIMITS)
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
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    file = armed(daemon, RUN_SET_ASIDE, tmp_path)
    nex = HoldingWorker(daemon, tmp_path)
    old = ada.tell(nex, text="hold")
    nex.works()
    waiting = agent(daemon).tell(nex)
    file.touch()
    urgent = agent(daemon).tell(nex, priority="critical")
    daemon.wait_for_death()
    assert outcome(daemon, old)[0] == "preempted"
    nex.program.let_go()
    daemon.start(**LIMITS)
    nex.all_done(old, urgent, waiting)
    assert [envelopes for *_, envelopes in nex.history()] == [[old], [urgent], [old], [waiting]]
    assert [one["status"] for one in nex.runs()] == ["interrupted", *["completed"] * 3]
    assert ada.notices_of(nex) == []  # nobody is told that hiboss was restarted during this work


@pytest.mark.parametrize("place", [STEER_HELD, STEER_GIVEN])
@pytest.mark.parametrize("busy", ["interrupt", "steer"])
def test_words_for_a_turn_are_not_lost_when_the_daemon_dies_while_it_gives_them(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path, place: str, busy: str
) -> None:
    armed(daemon, place, tmp_path).touch()
    nex = Worker(daemon, tmp_path)
    nex.change(settings={"input": "open"}, busy=busy)
    nex.program.becomes(HEAD + HOLDS_OPEN.replace("go on", "never"))
    old = ada.tell(nex, text="begin")
    nex.under_way()
    new = ada.tell(nex, text="more")
    daemon.wait_for_death()
    nex.program.becomes(HEAD + "say('final', text='done')\n")
    daemon.start(**LIMITS)
    wait_until(lambda: all(ada.get(one)["status"] == "done" for one in (old, new)))
    assert_idle(daemon, nex.program)
    assert [(one["status"], one["envelopes"]) for one in nex.runs()] == [
        ("interrupted", [old]),
        ("completed", [old, new]),
    ]
    assert ada.get(new)["attempts"] == 0 and nex.answers_to(new) == ["done"]
