"""Random mail, orders and answers: however runs are set aside, each envelope is settled once, and none fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.agents.test_steering import HEAD
from tests.support.daemons import variables
from tests.support.failures import seeded
from tests.support.forked_daemons import pauses
from tests.support.holding_agents import control
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, assert_idle, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

STEPS = 60
SEEDS = range(4)
# A turn takes as long as the longest of its messages says. Some take longer than a run has before a person ends it.
GATHER_SECONDS = 0.25
PAUSES = (0, 0, 0.01, 0.05, 0.3)
SLEEPS = """
sleep "$(sed -n 's/^> pause //p' "$D/given" | sort -n | tail -n 1)"
echo done
"""
WORKS = """
import re, time
time.sleep(max(map(float, re.findall("(?m)^> pause (.*)$", turn["text"]))))
say("final", text="done")
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    env = variables({"parallel_runs": 3, "finish_seconds": 0.1})
    env |= pauses({"agents.preemption.GATHER_SECONDS": GATHER_SECONDS})
    with running_daemon(tmp_path_factory.mktemp("d"), **env) as running:
        yield running
        running.check()
        # How many are set aside depends on what runs at that moment; that some are shows that the story tells it.
        assert rows(running, "SELECT count(*) FROM run WHERE ends_as = 'preempted'")[0][0] >= 1


class Story:
    """A few agents, and people and agents who write to them at random."""

    def __init__(self, daemon: RunningDaemon, directory: Path, seed: int) -> None:
        self.daemon, self.chance, self.ada = daemon, seeded(seed), Boss(daemon)
        policies = ("collect", "followup", "interrupt", "interrupt")
        self.workers = [Worker(daemon, directory, busy=busy) for busy in policies]
        for worker in self.workers[:-1]:
            worker.program.does(SLEEPS)
        self.workers[-1].change(settings={"input": "open"})  # its turns take words
        self.workers[-1].program.becomes(HEAD + WORKS)
        self.writers = [self.ada, agent(daemon), agent(daemon)]
        self.sent: list[str] = []
        self.outcomes: list[str] = []

    def step(self) -> None:
        number = self.chance.choice(self.sent) if self.sent else None
        kind = self.chance.choices(["send", "preempt", "priority", "cancel", "requeue"], [10, 3, 3, 1, 1])[0]
        if number is None or kind == "send":
            self.send()
        elif kind == "priority":
            level = self.chance.choice(["critical", "high", "normal", "low"])
            self.outcomes.append(control(self.daemon, "priority", envelope=number, level=level)[0])
        elif kind == "preempt":
            self.outcomes.append(control(self.daemon, "preempt", envelope=number)[0])
        else:
            self.outcomes.append(
                control(self.daemon, "cancel", envelope=number, requeue=kind == "requeue")[0]
            )

    def send(self) -> None:
        to, pause = self.chance.choice(self.workers), self.chance.choice(PAUSES)
        params: dict[str, Any] = {"priority": self.chance.choice(["normal"] * 4 + ["critical", "low"])}
        if self.chance.random() < 0.2:
            params["interruptible"] = False
        self.sent.append(self.chance.choice(self.writers).tell(to, text=f"pause {pause}", **params))

    def is_over(self) -> bool:
        return all(self.ada.get(one)["status"] != "pending" for one in self.sent)


@pytest.mark.timeout(400)
def test_each_envelope_is_settled_once_and_none_fails(daemon: RunningDaemon, tmp_path: Path) -> None:
    """All seeds in one test: the last check of the daemon is about them together, and workers share no daemon."""
    for seed in SEEDS:
        settles_once(daemon, tmp_path / str(seed), seed)


def settles_once(daemon: RunningDaemon, directory: Path, seed: int) -> None:
    directory.mkdir()
    story = Story(daemon, directory, seed)
    for _ in range(STEPS):
        story.step()
    wait_until(story.is_over, 60)
    assert_idle(daemon, *(worker.program for worker in story.workers))
    found = [story.ada.get(one) for one in story.sent]
    assert {one["status"] for one in found} <= {"done", "cancelled"}
    assert {one["attempts"] for one in found} == {0}
    for one in found:
        query = """
            SELECT r.status, r.ends_as FROM run_envelope x JOIN run r ON r.id = x.run WHERE x.envelope = ?
        """
        runs = [tuple(row) for row in rows(daemon, query, int(one["id"][1:]))]
        assert runs.count(("completed", None)) == (one["status"] == "done"), (one["id"], runs)
        assert {status for status, _ in runs} <= {"completed", "cancelled", "interrupted"}
    assert "applied" in story.outcomes and story.ada.notices_of(story.workers[0]) == []
