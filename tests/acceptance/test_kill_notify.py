"""kill -9 around the end of a run that somebody waits for: told exactly once, with the end and never without."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.agents.runner import Runner
from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, RUN_ANSWERED, RUN_SETTLED
from tests.support.mortals import Mortal
from tests.support.parties import Party, agent
from tests.support.shell_agents import Boss, Worker, assert_idle, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

POINTS = [RUN_ANSWERED, BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, RUN_SETTLED]
STORED = (AFTER_COMMIT, RUN_SETTLED)  # the end is on disk


class Story:
    """A run that dies with its daemon when it has its answer, and who wants to be told of its end."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.ada, self.worker = Boss(daemon), Worker(daemon, directory)
        self.watcher = agent(daemon)

    def watched(self, *states: str) -> None:
        for who in (self.ada, self.watcher):
            for state in states:
                told = who.call("agent.notify", name=self.worker.name, when=state)["told"]
                assert told is False, "it must be busy, or the state an end"

    def dies_at(self, point: str, script: str) -> str:
        """Let the run begin, watch it, and let the daemon die at the first pass after its program has ended."""
        armed = self.daemon.dies_at(point, of=Runner._write_outcome)
        self.worker.program.waits(f"touch {armed}; {script}")
        number = self.ada.tell(self.worker)
        self.worker.under_way()
        self.watched("finished", "failed", "idle")
        self.worker.program.let_go()
        self.daemon.wait_for_death()
        return number

    def told(self, party: Party) -> list[str]:
        found = rows(
            self.daemon,
            """SELECT text FROM envelopes WHERE "to" = ? AND "from" = 'agent:system' ORDER BY arrived""",
            party.address,
        )
        return [str(row["text"]).splitlines()[0] for row in found if self.worker.address in row["text"]]

    def left(self) -> list[str]:
        query = "SELECT DISTINCT w.state FROM state_watch w JOIN address a ON a.id = w.agent WHERE a.name = ?"
        return sorted(row["state"] for row in rows(self.daemon, query, self.worker.name))


@pytest.fixture
def story(outlived: Mortal, tmp_path: Path) -> Story:
    return Story(outlived, tmp_path)


@pytest.mark.parametrize("point", POINTS)
def test_whoever_waits_for_the_end_of_a_run_is_told_once(story: Story, point: str) -> None:
    number = story.dies_at(point, "echo done")
    name = story.worker.address
    both = [f"{name} has finished.", f"{name} is idle: nothing runs, and no mail waits for it."]
    # Told with the end, or neither: never the one without the other.
    [run] = rows(story.daemon, "SELECT status FROM runs WHERE agent = ?", story.worker.address)
    assert (run["status"] == "completed") is (point in STORED)
    assert story.told(story.ada) == (both if point in STORED else [])
    story.daemon.start()
    wait_until(lambda: story.ada.get(number)["status"] == "done" and story.left() == ["failed"])
    assert_idle(story.daemon, story.worker.program)
    for who in (story.ada, story.watcher):
        assert story.told(who) == both
    assert story.left() == ["failed"]  # nothing failed: the death of the daemon is no end of the work
    story.daemon.check()


@pytest.mark.parametrize("point", [IN_GROUP, AFTER_COMMIT])
def test_a_failure_is_told_once_too(story: Story, point: str) -> None:
    story.dies_at(point, "exit 3")
    story.daemon.start()
    wait_until(lambda: story.told(story.ada))
    wait_until(lambda: "failed" not in story.left())
    for who in (story.ada, story.watcher):
        assert [one.split(".")[0] for one in story.told(who) if "has failed" in one] == [
            f"{story.worker.address} has failed"
        ]
    story.daemon.check()
