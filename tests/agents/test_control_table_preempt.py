"""What preempt and priority come to, for each state of an envelope and each target that an order can name.

All states of an agent, with all providers: test_control_table.py. What is decided here is about the envelope and the
target, before the provider is asked; so an agent without a program stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.holding_agents import control
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all, rows
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

Made = tuple[str, dict[str, Any]]  # an envelope, and what else the order names

daemon = daemon_fixture(finish_seconds=0.1, provider_modules="tests.support.extra_providers")


class Scene(Worker):
    """An agent that works until a file `go` is there."""

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        super().__init__(daemon, directory)
        self.directory = self.program.directory
        self.change(provider="late", workspace=str(self.directory))
        self.ada = Boss(daemon)
        self.held = ""

    def works(self) -> str:
        """Let it work on a message of the boss; return the run."""
        self.held = self.ada.tell(self)
        return self.run()

    def run(self) -> str:
        """Wait until it has a run under way, and return that."""
        wait_until(lambda: any(one["status"] == "running" for one in self.runs()))
        return str([one["id"] for one in self.runs() if one["status"] == "running"][-1])

    def new(self) -> str:
        return agent(self.daemon).tell(self)


def its_run_is_named(scene: Scene) -> Made:
    run = scene.works()
    return scene.new(), {"run": run}


def its_agent_is_named(scene: Scene) -> Made:
    scene.works()
    return scene.new(), {"agent": scene.name}


def its_conversation_is_named(scene: Scene) -> Made:
    scene.works()
    return scene.new(), {"conversation": scene.ada.get(scene.held)["conversation"]}


def a_task_in_the_background(scene: Scene) -> Made:
    scene.call("envelope.send", to="agent:background", text="x")
    run = scene.run()
    scene.works()
    return scene.new(), {"run": run}


def a_run_of_another_agent(scene: Scene) -> Made:
    run = scene.works()
    other = Scene(scene.daemon, scene.directory)
    other.works()
    return other.new(), {"run": run}


def nothing_runs(scene: Scene) -> Made:
    scene.ada.call("lane.pause", address=scene.address)
    return scene.new(), {}


def the_run_has_ended(scene: Scene) -> Made:
    run = scene.works()
    (scene.directory / "go").touch()
    scene.settled()
    (scene.directory / "go").unlink()
    scene.works()
    return scene.new(), {"run": run}


def it_is_cancelled(scene: Scene) -> Made:
    scene.works()
    number = scene.new()
    scene.ada.call("envelope.cancel", ids=[number])
    return number, {}


def it_is_for_a_person(scene: Scene) -> Made:
    scene.works()
    return scene.tell(scene.ada), {}


def it_is_for_an_agent_that_pulls(scene: Scene) -> Made:
    scene.works()
    return scene.tell(agent(scene.daemon)), {}


def it_is_claimed(scene: Scene) -> Made:
    scene.works()
    number = scene.new()
    assert [one["id"] for one in scene.call("envelope.claim")["envelopes"]] == [number]
    return number, {}


def it_is_a_notice(scene: Scene) -> Made:
    """It is told that what it sent to another agent is cancelled."""
    other = Scene(scene.daemon, scene.directory)
    scene.tell(other)
    other.run()
    scene.works()
    assert control(scene.daemon, "cancel", agent=other.name) == ("applied", None)
    other.settled()
    [number] = [one["id"] for one in scene.list() if one["from"] == "agent:system"]
    return number, {}


CELLS: list[tuple[Callable[[Scene], Made], str, str]] = [
    # the state, what preempt comes to there, what priority comes to
    (its_run_is_named, "applied", ""),
    (its_agent_is_named, "applied", ""),
    (its_conversation_is_named, "applied", ""),
    (a_task_in_the_background, "refused", ""),
    (a_run_of_another_agent, "refused", ""),
    (nothing_runs, "too-late", "applied"),
    (the_run_has_ended, "too-late", ""),
    (it_is_cancelled, "too-late", "too-late"),
    (it_is_a_notice, "refused", "refused"),
    (it_is_for_a_person, "refused", "too-late"),
    (it_is_for_an_agent_that_pulls, "refused", "applied"),
    (it_is_claimed, "too-late", "too-late"),
]


def test_preempt_and_priority_come_to_what_the_table_says(daemon: RunningDaemon, tmp_path: Path) -> None:
    with sweep() as row:
        for made, preempt, priority in CELLS:
            with row(made.__name__):
                scene = Scene(daemon, tmp_path)
                number, named = made(scene)
                before = _running(scene), scene.ada.get(number)["priority"]
                came_to, why = control(daemon, "preempt", envelope=number, **named)
                assert (came_to, why is None) == (preempt, preempt == "applied")
                if preempt == "applied":
                    _is_set_aside(scene, number)
                else:
                    assert (
                        _running(scene),
                        scene.ada.get(number)["priority"],
                    ) == before  # nothing has happened
                if priority:
                    came_to, why = control(daemon, "priority", envelope=number, level="high")
                    assert (came_to, why is None) == (priority, priority == "applied")
                    assert scene.ada.get(number)["priority"] == (
                        "high" if priority == "applied" else before[1]
                    )
            end_all(daemon)


def _is_set_aside(scene: Scene, number: str) -> None:
    wait_until(lambda: [one["envelopes"] for one in scene.runs()] == [[scene.held], [number]])
    assert [one["error_kind"] for one in scene.runs()] == ["preempted", None]
    (scene.directory / "go").touch()
    wait_until(lambda: {scene.ada.get(one)["status"] for one in (scene.held, number)} == {"done"})
    assert [one["envelopes"] for one in scene.runs()] == [[scene.held], [number], [scene.held]]


def _running(scene: Scene) -> list[Any]:
    query = "SELECT id, ends_as, preempted_by FROM run WHERE status = 'running' ORDER BY id"
    return [tuple(row) for row in rows(scene.daemon, query)]
