"""What preempt and priority come to, for each state of an envelope and each target, with kinds of providers.

All states of an agent, with all providers: test_control_table_priority.py. What is decided here is about the
envelope and the target, before the provider is asked; so three kinds stand for all: a program that gets
signals, one that is asked to end, and one without a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.test_steering import HEAD
from tests.support.daemons import daemon_with, wait_until
from tests.support.holding_agents import control
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all, rows

# It looks for orders while it works, and ends when it is asked to.
OBEYS = """
import select
while not os.path.exists(D + "/go"):
    if select.select([sys.stdin], [], [], 0.01)[0]:
        open(D + "/obeyed", "w")
        sys.exit(0)
say("final", text="x")
"""
Made = tuple[str, dict[str, Any]]  # an envelope, and what else the order names


class Scene(Worker):
    """An agent that works until a file `go` is there, by one kind of provider."""

    def __init__(self, daemon: RunningDaemon, directory: Path, provider: str) -> None:
        super().__init__(daemon, directory)
        self.provider, self.directory = provider, self.program.directory
        if provider == "late":  # it has no program
            self.change(provider="late", workspace=str(self.directory))
        elif provider == "open":  # its program takes orders: it is asked to end before it gets a signal
            self.change(settings={"input": "open"})
            self.program.becomes(HEAD + OBEYS)
        else:
            self.program.waits()
        self.ada = Boss(daemon)
        self.held = ""

    def works(self, **params: Any) -> str:
        """Let it work on a message of the boss; return the run."""
        self.held = self.ada.tell(self, **params)
        return self.run()

    def run(self) -> str:
        """Wait until it has a run under way, and return that."""
        wait_until(lambda: any(one["status"] == "running" for one in self.runs()))
        if self.provider != "late":  # before, its program takes no orders
            self.program.begins(len(self.runs()))
        return str([one["id"] for one in self.runs() if one["status"] == "running"][-1])

    def new(self, **params: Any) -> str:
        return agent(self.daemon).tell(self, **params)


def a_turn(scene: Scene) -> Made:
    scene.works()
    return scene.new(), {}


def its_run_is_named(scene: Scene) -> Made:
    run = scene.works()
    return scene.new(), {"run": run}


def its_agent_is_named(scene: Scene) -> Made:
    scene.works()
    return scene.new(), {"agent": scene.name}


def its_conversation_is_named(scene: Scene) -> Made:
    scene.works()
    return scene.new(), {"conversation": scene.ada.get(scene.held)["conversation"]}


def a_turn_on_critical_mail(scene: Scene) -> Made:
    scene.works(priority="critical")
    return scene.new(), {}


def no_interruption_is_wanted(scene: Scene) -> Made:
    scene.works(interruptible=False)
    return scene.new(), {}


def the_agent_is_paused(scene: Scene) -> Made:
    scene.works()
    scene.ada.call("agent.pause", name=scene.name)
    return scene.new(), {}


def the_lane_is_paused(scene: Scene) -> Made:
    scene.works()
    scene.ada.call("lane.pause", address=scene.address)
    return scene.new(), {}


def a_task_in_the_background(scene: Scene) -> Made:
    scene.call("envelope.send", to="agent:background", text="x")
    run = scene.run()
    scene.works()
    return scene.new(), {"run": run}


def a_run_of_another_agent(scene: Scene) -> Made:
    run = scene.works()
    other = Scene(scene.daemon, scene.directory, "command")
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


def it_is_in_the_run(scene: Scene) -> Made:
    scene.works()
    return scene.held, {}


def it_is_done(scene: Scene) -> Made:
    scene.works()
    (scene.directory / "go").touch()
    scene.settled()
    return scene.held, {}


def it_is_cancelled(scene: Scene) -> Made:
    scene.works()
    number = scene.new()
    scene.ada.call("envelope.cancel", ids=[number])
    return number, {}


def it_is_deferred(scene: Scene) -> Made:
    scene.works()
    return scene.new(deliver_at="+1h"), {}


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
    other = Scene(scene.daemon, scene.directory, "command")
    scene.tell(other)
    other.run()
    scene.works()
    assert control(scene.daemon, "cancel", agent=other.name) == ("applied", None)
    other.settled()
    [number] = [one["id"] for one in scene.list() if one["from"] == "agent:system"]
    return number, {}


CELLS: list[tuple[Callable[[Scene], Made], str, str]] = [
    # the state, what preempt comes to there, what priority comes to
    (a_turn, "applied", "applied"),
    (its_run_is_named, "applied", ""),
    (its_agent_is_named, "applied", ""),
    (its_conversation_is_named, "applied", ""),
    (a_turn_on_critical_mail, "applied", "applied"),
    (no_interruption_is_wanted, "refused", "applied"),
    (the_agent_is_paused, "refused", "applied"),
    (the_lane_is_paused, "refused", "applied"),
    (a_task_in_the_background, "refused", ""),
    (a_run_of_another_agent, "refused", ""),
    (nothing_runs, "too-late", "applied"),
    (the_run_has_ended, "too-late", ""),
    (it_is_in_the_run, "too-late", "too-late"),
    (it_is_done, "too-late", "too-late"),
    (it_is_cancelled, "too-late", "too-late"),
    (it_is_deferred, "refused", "applied"),
    (it_is_a_notice, "refused", "refused"),
    (it_is_for_a_person, "refused", "too-late"),
    (it_is_for_an_agent_that_pulls, "refused", "applied"),
    (it_is_claimed, "too-late", "too-late"),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    modules = "tests.support.extra_providers"
    with daemon_with(tmp_path_factory.mktemp("d"), finish_seconds=0.1, provider_modules=modules) as running:
        yield running
        running.check()


@pytest.fixture(params=["command", "open", "late"])
def scene(daemon: RunningDaemon, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    yield Scene(daemon, tmp_path, request.param)
    end_all(daemon)


@pytest.mark.parametrize(("made", "outcome"), [(made, outcome) for made, outcome, _ in CELLS])
def test_preempt_comes_to(scene: Scene, made: Callable[[Scene], Made], outcome: str) -> None:
    number, named = made(scene)
    before = _running(scene)
    came_to, why = control(scene.daemon, "preempt", envelope=number, **named)
    assert (came_to, why is None) == (outcome, outcome == "applied")
    if outcome != "applied":
        assert _running(scene) == before  # and nothing has happened
        return
    wait_until(lambda: [one["envelopes"] for one in scene.runs()] == [[scene.held], [number]])
    assert [one["error_kind"] for one in scene.runs()] == ["preempted", None]
    assert (scene.directory / "obeyed").exists() == (scene.provider == "open")  # it was asked to end
    (scene.directory / "go").touch()
    wait_until(lambda: {scene.ada.get(one)["status"] for one in (scene.held, number)} == {"done"})
    assert [one["envelopes"] for one in scene.runs()] == [[scene.held], [number], [scene.held]]


@pytest.mark.parametrize(("made", "outcome"), [(made, outcome) for made, _, outcome in CELLS if outcome])
def test_priority_comes_to(scene: Scene, made: Callable[[Scene], Made], outcome: str) -> None:
    number, _ = made(scene)
    before = scene.ada.get(number)["priority"]
    came_to, why = control(scene.daemon, "priority", envelope=number, level="high")
    assert (came_to, why is None) == (outcome, outcome == "applied")
    assert scene.ada.get(number)["priority"] == ("high" if outcome == "applied" else before)


def _running(scene: Scene) -> list[Any]:
    query = "SELECT id, ends_as, preempted_by FROM run WHERE status = 'running' ORDER BY id"
    return [tuple(row) for row in rows(scene.daemon, query)]
