"""kill -9 while agents take their turns, or are set aside: what was in hand comes again, and is answered once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hiboss.agents.controls import Controls
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    CONTROLLED,
    IN_GROUP,
    RUN_ANSWERED,
    RUN_BEGUN,
    RUN_SET_ASIDE,
    RUN_SETTLED,
    RUN_STARTED,
    STEER_GIVEN,
    STEER_HELD,
)
from hiboss.core.errors import DaemonUnreachable
from tests.agents.test_busy_interrupt import HOLDS_OPEN
from tests.agents.test_steering import HEAD
from tests.support.failures import seeded
from tests.support.holding_agents import HoldingWorker
from tests.support.mortals import Mortal
from tests.support.parties import agent
from tests.support.shell_agents import (
    Boss,
    Worker,
    assert_idle,
    eventually,
    held,
    left_behind,
    rows,
    running,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = {"HIBOSS_RUNS_FINISH_SECONDS": "0"}


class Story:
    """A daemon that dies, an agent with a program, and who asks it."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.ada, self.worker = Boss(daemon), Worker(daemon, directory)
        self.program = self.worker.program

    def dies_at(self, place: str) -> str:
        """Ask something, and let it die there; the envelope."""
        self.daemon.kill()
        self.daemon.start(HIBOSS_CRASH_AT=place)
        number = self.ada.tell(self.worker)
        self.daemon.wait_for_death()
        return number

    def goes_on(self, crash_at: str | None = None) -> None:
        """Start it; one that is to crash may be dead before it could say that it is ready."""
        crash = {"HIBOSS_CRASH_AT": crash_at} if crash_at else {}
        try:
            self.daemon.start(**crash)
        except DaemonUnreachable:
            if crash_at is None:
                raise

    def statuses(self) -> list[str]:
        return [run["status"] for run in self.worker.runs()]

    def is_answered_once(self, number: str, text: str = "done") -> None:
        eventually(lambda: self.worker.answers_to(number), [text])
        assert_idle(self.daemon, self.program)
        assert (self.worker.answers_to(number), self.ada.get(number)["status"]) == ([text], "done")


@pytest.fixture
def story(outlived: Mortal, tmp_path: Path) -> Story:
    return Story(outlived, tmp_path)


def test_a_run_that_had_begun_and_no_more_is_taken_again(story: Story) -> None:
    number = story.dies_at(RUN_BEGUN)
    assert (held(story.daemon), len(running(story.daemon))) == ([int(number[1:])], 1)
    assert story.program.pids == []
    story.goes_on()
    story.is_answered_once(number)
    assert (story.statuses(), len(story.program.pids)) == (["interrupted", "completed"], 1)
    assert story.ada.get(number)["redelivered"] is True


def test_a_process_that_nobody_had_noted_is_found_and_ended(story: Story) -> None:
    story.program.does("sleep 1000 &\nexec sleep 1000")
    number = story.dies_at(RUN_STARTED)
    [row] = rows(story.daemon, "SELECT pid FROM run WHERE status = 'running'")
    assert row["pid"] is None
    story.program.begins()
    wait_until(lambda: len(left_behind(story.daemon, [])) == 2)
    assert story.program.given == ""  # it had no turn
    story.program.answers("done")
    story.goes_on()
    story.is_answered_once(number)
    assert story.statuses() == ["interrupted", "completed"]


def test_an_answer_that_nobody_had_written_down_is_thought_again(story: Story) -> None:
    number = story.dies_at(RUN_ANSWERED)
    assert (story.worker.answers_to(number), left_behind(story.daemon, story.program.pids)) == ([], [])
    story.goes_on()
    story.is_answered_once(number)
    assert (story.statuses(), len(story.program.pids)) == (["interrupted", "completed"], 2)


def test_an_answer_that_was_written_down_is_not_thought_again(story: Story) -> None:
    number = story.dies_at(RUN_SETTLED)
    assert held(story.daemon) == []
    story.goes_on()
    story.is_answered_once(number)
    assert (story.statuses(), len(story.program.pids)) == (["completed"], 1)
    assert story.ada.get(number)["redelivered"] is False


def test_a_turn_in_hand_at_three_crashes_in_a_row_is_parked_and_retry_takes_it_up(story: Story) -> None:
    number = story.dies_at(RUN_ANSWERED)
    for place in (RUN_STARTED, RUN_BEGUN):
        story.goes_on(place)
        story.daemon.wait_for_death()
    story.goes_on()
    parked = story.ada.get(number)
    assert (parked["status"], parked["last_error"]["kind"]) == ("failed", "crashed")
    assert not running(story.daemon)
    found = story.daemon.call("envelope.list", token=story.daemon.token("boss"))["envelopes"]
    assert [one["from"] for one in found if f"envelope retry {number}" in one["text"]] == ["agent:system"]
    story.ada.call("envelope.retry", ids=[number])
    story.is_answered_once(number)
    assert story.statuses() == ["interrupted"] * 3 + ["completed"]


def not_in_a_row(story: Story) -> None:
    """As if the daemon had been stopped in between: else the third crash would park what is in hand."""
    with story.daemon.database() as database:
        database.execute("UPDATE envelope SET crashes = 0")
        database.commit()


@pytest.mark.parametrize("point", [IN_GROUP, AFTER_COMMIT])
def test_wherever_the_writer_dies_each_is_answered_once(story: Story, point: str) -> None:
    """Once in each of the changes that a start and two runs make."""
    story.program.waits()
    numbers = [story.ada.tell(story.worker)]
    story.program.begins()
    numbers.append(story.ada.tell(story.worker, text="and this"))
    story.daemon.kill()
    story.program.answers("done")
    deaths = 0
    while True:
        story.goes_on(f"{point}:{deaths + 1}")
        if not dies(story):
            break
        deaths += 1
        not_in_a_row(story)
    assert deaths >= 4
    story.daemon.kill()
    story.goes_on()
    wait_until(lambda: [story.ada.get(number)["status"] for number in numbers] == ["done"] * 2)
    assert_idle(story.daemon, story.program)
    answered_once(story.worker, numbers)


def dies(story: Story) -> bool:
    """Whether it dies; not, when all is answered and it lives."""
    process = story.daemon.process
    if process is None:  # before it was ready
        return True

    def over() -> bool:
        done = rows(story.daemon, "SELECT count(*) AS n FROM envelope WHERE status = 0")[0]["n"] == 0
        return process.poll() is not None or (done and not running(story.daemon))

    wait_until(over)
    return process.poll() is not None


def test_five_deaths_at_random_moments_and_each_is_answered_once(story: Story, tmp_path: Path) -> None:
    chance = seeded(17)
    workers = [story.worker, *(Worker(story.daemon, tmp_path) for _ in range(3))]
    scripts = ["echo done", "sleep 0.1; echo done", "sleep 0.3; echo done", "cat $D/given >&2; echo done"]
    for worker, script in zip(workers, scripts, strict=True):
        worker.program.does(script)
    asked: list[tuple[Worker, str]] = []
    for _ in range(5):
        asked += [(worker, story.ada.tell(worker)) for worker in chance.sample(workers, 3)]
        time.sleep(chance.uniform(0, 0.3))
        story.daemon.kill()
        not_in_a_row(story)
        story.goes_on()
    wait_until(lambda: all(story.ada.get(number)["status"] == "done" for _, number in asked))
    programs = [worker.program for worker in workers]
    assert_idle(story.daemon, *programs)
    for worker in workers:
        answered_once(worker, [number for who, number in asked if who is worker])


def answered_once(worker: Worker, numbers: list[str]) -> None:
    """Each was in one run that went well; those that came together were answered together, in a reply to the last."""
    completed = [run["envelopes"] for run in worker.runs() if run["status"] == "completed"]
    assert sorted(one for found in completed for one in found) == sorted(numbers)
    for found in completed:
        assert sorted([worker.answers_to(number) for number in found]) == [[]] * (len(found) - 1) + [["done"]]


# --- runs that are set aside: as a whole, or not at all -------------------------------------------


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
