"""kill -9 while agents take their turns: what was in hand comes again, and is answered once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, IN_GROUP, RUN_ANSWERED, RUN_BEGUN, RUN_SETTLED, RUN_STARTED
from hiboss.core.errors import DaemonUnreachable
from tests.support.failures import seeded
from tests.support.mortals import Mortal
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
        assert self.worker.answers_to(number) == [text]
        assert self.ada.get(number)["status"] == "done"


@pytest.fixture
def story(outlived: Mortal, tmp_path: Path) -> Story:
    return Story(outlived, tmp_path)


def test_a_run_that_had_begun_and_no_more_is_taken_again(story: Story) -> None:
    number = story.dies_at(RUN_BEGUN)
    assert (held(story.daemon), len(running(story.daemon))) == ([int(number[1:])], 1)
    assert story.program.pids == []
    story.goes_on()
    story.is_answered_once(number)
    assert story.statuses() == ["interrupted", "completed"]
    assert len(story.program.pids) == 1
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
    assert story.worker.answers_to(number) == []
    assert left_behind(story.daemon, story.program.pids) == []
    story.goes_on()
    story.is_answered_once(number)
    assert story.statuses() == ["interrupted", "completed"]
    assert len(story.program.pids) == 2


def test_an_answer_that_was_written_down_is_not_thought_again(story: Story) -> None:
    number = story.dies_at(RUN_SETTLED)
    assert held(story.daemon) == []
    story.goes_on()
    story.is_answered_once(number)
    assert story.statuses() == ["completed"]
    assert len(story.program.pids) == 1
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
        answers = [worker.answers_to(number) for number in found]
        assert sorted(answers) == [[]] * (len(found) - 1) + [["done"]]
