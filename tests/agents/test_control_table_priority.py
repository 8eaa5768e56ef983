"""Preempt and priority in each state, with each provider; and cancel with a program that takes orders (`open`).

They are about an envelope, mostly one of another agent that waits. A state that a provider cannot be in is in
NOT_THERE, with the reason. What an envelope itself says for or against it is in test_control_table_preempt.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.agents import control_scenes
from tests.agents.control_scenes import World
from tests.agents.test_control_table import APPLIED, CHANGES, MOST_TRIES, REFUSED, TOO_LATE, Row
from tests.agents.test_steering import HEAD
from tests.support.daemons import daemon_with, wait_until
from tests.support.shell_agents import rows

EVENTS = ("preempt", "priority")
PROVIDERS = ("command", "open", "webhook", "demo", "scripted")
SLOW = "slow " * 500  # the demo provider takes its time for it

# It ends when it is asked to, unless its message says `stubborn`; and asks if that says so.
ORDERLY = """
import select
said = turn["envelopes"][-1]["text"].split()[0]
if said == "ask":
    say("ask", id=1, text="May I?")
while not os.path.exists(D + "/go"):
    if select.select([sys.stdin], [], [], 0.02)[0]:
        order = hear()
        if order is None or (order["hiboss"] == "interrupt" and said != "stubborn"):
            open(D + "/obeyed", "w")
            sys.exit(0)
say("final", text="x")
"""


class Scene(control_scenes.Scene):
    """One of the table; also with `open`, a command that takes orders while it works."""

    def __init__(self, world: World, provider: str) -> None:
        super().__init__(world, provider)
        if provider == "open":
            self.program.becomes(HEAD + ORDERLY)

    def _settings(self) -> dict[str, Any]:
        if self.provider == "open":
            return {"command": self.program.command, "input": "open"}
        return super()._settings()

    def set(self, **fields: Any) -> None:
        if fields.get("provider") == "open":
            fields["provider"] = "command"
        super().set(**fields)

    def wait_until_running(self) -> None:
        if self.provider == "demo":  # a turn of it is short; one that is over is made again
            return wait_until(self.runs)
        super().wait_until_running()
        if self.provider in ("command", "open"):  # before, it takes no orders
            self.program.begins()

    def told(self, **params: Any) -> None:
        """Let it work on a message of the boss."""
        text = SLOW if self.provider == "demo" else "hang"
        self.envelope = self.world.boss.tell(self.agent, text=text, **params)
        self.wait_until_running()

    def is_over(self) -> bool:
        """Tell whether what it worked on has ended: it is not in its state any more."""
        return any(one["status"] != "running" for one in self.runs())

    def obeyed(self) -> bool:
        return (self.workspace / "obeyed").exists()

    def waiting(self, **params: Any) -> str:
        """Tell it something more, which does not belong to what it works on; return the envelope."""
        return self.world.other.tell(self.agent, text="more", **params)


class Cells(World):
    """Scenes of this table."""

    def scene(self, state: str, provider: str) -> Scene:
        if (state, provider) not in self._scenes:
            self._scenes[state, provider] = built = Scene(self, provider)
            STATES[state](built)
        found = self._scenes[state, provider]
        assert isinstance(found, Scene)
        return found


# --- the states ------------------------------------------------------------------------


def _starting(scene: Scene) -> None:
    if scene.provider == "demo":
        return scene.told()
    return control_scenes.STATES["starting"](scene)


def _critical(scene: Scene) -> None:
    scene.told(priority="critical")


def _kept(scene: Scene) -> None:
    """Who wrote what it works on wants no interruption."""
    scene.told(interruptible=False)


def _lane_paused(scene: Scene) -> None:
    scene.told()
    scene.world.boss.call("lane.pause", address=scene.agent.address)


def _stubborn(scene: Scene) -> None:
    """It works, and takes its time to end when it is told to."""
    if scene.provider == "command":
        scene.program.does(control_scenes.STUBBORN)
    scene.tell("stubborn")
    scene.wait_until_running()


def _ending(scene: Scene) -> None:
    _stubborn(scene)
    assert scene.control("cancel", "run")["outcome"] == APPLIED


def _lane_waiting(scene: Scene) -> None:
    if scene.provider == "open":
        scene.program.goes_away()
    control_scenes.STATES["lane waiting"](scene)


STATES: dict[str, Callable[[Any], None]] = {
    **control_scenes.STATES,
    "starting": _starting,
    "ending": _ending,
    "lane waiting": _lane_waiting,
    "critical": _critical,
    "kept": _kept,
    "lane paused": _lane_paused,
}
# What a provider cannot be in.
NOT_THERE: dict[tuple[str, str], str] = {
    **{("starting", one): "that is a moment: `programmed` stands for it" for one in ("command", "open")},
    **{("paused", one): "it has no program" for one in ("webhook", "demo", "scripted")},
    **{("asking", one): "it cannot ask" for one in ("command", "webhook", "demo")},
    **{("ending", one): "it ends at once" for one in ("webhook", "demo")},
    ("lane waiting", "demo"): "it never fails",
}


# --- the table -------------------------------------------------------------------------


class About(NamedTuple):
    """What both controls come to in a state: the outcome and words of the reason, for every provider."""

    preempt: tuple[str, str]
    priority: tuple[str, str]
    envelope: Callable[[Scene], str] = Scene.waiting


def its_own(scene: Scene) -> str:
    """What it works on, or has worked on."""
    return scene.envelope


def later(scene: Scene) -> str:
    return scene.waiting(deliver_at="+1h")  # what is there would not wait


YES = (APPLIED, "")
TABLE: dict[str, About] = {
    "idle": About((REFUSED, "is deferred"), YES, later),
    "ended": About((TOO_LATE, "is done"), (TOO_LATE, "is done"), its_own),
    "running": About(YES, YES),
    "starting": About(YES, YES),
    "critical": About(YES, YES),
    "asking": About(YES, YES),
    "kept": About((REFUSED, "wants no interruption"), YES),
    "paused": About((REFUSED, "is paused; resume it first"), YES),
    "ending": About((TOO_LATE, "is ending already"), YES),
    "background": About((REFUSED, "is a task for the background"), (TOO_LATE, "works on"), its_own),
    "lane waiting": About((TOO_LATE, "has no turn now"), YES, its_own),
    "lane paused": About((REFUSED, "is paused or waits"), YES),
    "agent paused": About((REFUSED, "is paused or waits"), YES),
    "breaker": About((TOO_LATE, "has no turn now"), YES),
}


def providers(state: str) -> list[str]:
    stand_in = ["programmed"] if state == "starting" else []
    return [one for one in PROVIDERS if (state, one) not in NOT_THERE] + stand_in


CELLS = [(event, state, one) for event in EVENTS for state in TABLE for one in providers(state)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    yield from _world(tmp_path_factory)


@pytest.fixture(scope="module")
def stopped_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    """One in which the breaker is pulled."""
    for world in _world(tmp_path_factory):
        world.boss.call("breaker.pull")
        yield world


def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    directory = tmp_path_factory.mktemp("d")
    settings = {"provider_modules": "tests.support.control_providers", "parallel_runs": 50}
    with daemon_with(directory, finish_seconds=0.1, **settings) as daemon:
        world = Cells(daemon, directory)
        yield world
        world.close()
        wait_until(lambda: not world.boss.call("run.list", status="running")["runs"])
        daemon.check()


@pytest.mark.parametrize(("event", "state", "provider"), CELLS)
def test_an_order_about_an_envelope_comes_to_what_the_table_says(
    world: Cells, stopped_world: Cells, event: str, state: str, provider: str
) -> None:
    place = stopped_world if state == "breaker" else world
    about = TABLE[state]
    wanted = about.preempt if event == "preempt" else about.priority
    is_short = provider == "demo" or state == "ending"
    for _ in range(MOST_TRIES):
        scene = place.scene(state, provider)
        number = about.envelope(scene)
        before = _seen(scene, number)
        answer = _order(place, event, number)
        if _is(answer, wanted) or not (is_short and scene.is_over()):
            break
        place.spoil(state, provider)
    assert _is(answer, wanted), answer
    [listed] = place.boss.call("control.list", agent=scene.agent.name, page_size=1)["controls"]
    assert (listed["event"], listed["outcome"]) == (f"stream.{event}", wanted[0])
    if wanted[0] != APPLIED:
        assert _seen(scene, number) == before  # nothing has happened
    elif event == "priority":
        assert _seen(scene, number) == ("high", before[1])  # a run goes on
    else:
        wait_until(lambda: _is_set_aside(scene, number))
        assert scene.obeyed() == (provider == "open")  # it was asked to end
    if wanted[0] == APPLIED or is_short:
        place.spoil(state, provider)


def _order(place: Cells, event: str, number: str) -> dict[str, Any]:
    more = {"level": "high"} if event == "priority" else {}
    answer: dict[str, Any] = place.boss.call("control.send", event=f"stream.{event}", envelope=number, **more)
    return answer


def _seen(scene: Scene, number: str) -> tuple[str, list[tuple[Any, ...]]]:
    """The priority of an envelope, and what runs were told."""
    return scene.world.boss.get(number)["priority"], _orders(scene)


def _is(answer: dict[str, Any], wanted: tuple[str, str]) -> bool:
    return bool(answer["outcome"] == wanted[0] and wanted[1] in (answer["why"] or ""))


def _orders(scene: Scene) -> list[tuple[Any, ...]]:
    """What its runs were told."""
    query = """
        SELECT r.id, r.ends_as, r.preempted_by FROM run r JOIN address a ON a.id = r.agent
        WHERE a.name = ? AND r.ends_as IS NOT NULL ORDER BY r.id
    """
    return [tuple(row) for row in rows(scene.daemon, query, scene.agent.name)]


def _is_set_aside(scene: Scene, number: str) -> bool:
    """Its run was set aside, what it was set aside for is the next turn, and the rest has not failed."""
    first, *more = scene.runs()
    ended = (first["status"], first["error_kind"]) == ("interrupted", "preempted")
    critical = scene.world.boss.get(number)["priority"] == "critical"
    return ended and critical and more[:1] != [] and more[0]["envelopes"] == [number] and _due_again(scene)


def _due_again(scene: Scene) -> bool:
    held = scene.world.boss.get(scene.envelope)
    return held["status"] in ("pending", "done") and held["attempts"] == 0


def test_every_state_and_provider_is_in_the_table_or_cannot_be() -> None:
    assert set(TABLE) == set(STATES) >= set(control_scenes.STATES)
    for event in EVENTS:
        tested = {(state, one) for what, state, one in CELLS if what == event and one in PROVIDERS}
        assert not tested & set(NOT_THERE)
        assert tested | set(NOT_THERE) == set(itertools.product(STATES, PROVIDERS))


# --- cancel, with a program that takes orders --------------------------------------------

CANCELS: dict[str, list[tuple[str, str, str]]] = {  # by state: the target, the outcome, words of the reason
    "idle": [("agent", TOO_LATE, "nothing runs")],
    "ended": [
        ("run", TOO_LATE, "has ended (completed)"),
        ("conversation", TOO_LATE, "nothing runs"),
        ("envelope", TOO_LATE, "is done"),
    ],
    "running": [(one, APPLIED, "") for one in ("run", "conversation", "envelope", "agent")],
    "critical": [("run", APPLIED, "")],
    "kept": [("run", APPLIED, "")],
    "paused": [("run", APPLIED, "")],
    "asking": [("run", APPLIED, "")],
    "ending": [("run", TOO_LATE, "is about to end")],
    "background": [("run", APPLIED, "")],
    "lane waiting": [("run", TOO_LATE, "has ended (failed)"), ("envelope", APPLIED, "")],
    "agent paused": [("agent", APPLIED, "")],
    "lane paused": [("run", APPLIED, "")],
    "breaker": [("agent", TOO_LATE, "nothing runs")],
}
ORDERS = [(state, *one) for state, found in CANCELS.items() for one in found]


@pytest.mark.parametrize(("state", "target", "outcome", "why"), ORDERS)
def test_a_program_that_takes_orders_is_asked_to_end_when_it_is_cancelled(
    world: Cells, stopped_world: Cells, state: str, target: str, outcome: str, why: str
) -> None:
    place = stopped_world if state == "breaker" else world
    for _ in range(MOST_TRIES):
        scene = place.scene(state, "open")
        answer = scene.control("cancel", target)
        if _is(answer, (outcome, why)) or state != "ending" or not scene.is_over():
            break
        place.spoil(state, "open")
    assert _is(answer, (outcome, why)), answer
    if outcome == APPLIED:
        wait_until(lambda: _is_cancelled(scene, state, target))
        # One that stands still hears nothing, and gets signals.
        assert scene.obeyed() == (state not in ("lane waiting", "paused"))
    if outcome == APPLIED or state == "ending":
        place.spoil(state, "open")


def _is_cancelled(scene: Scene, state: str, target: str) -> bool:
    if state == "lane paused":  # that stays
        return scene.status() == "cancelled" and scene.lane()["state"] == "paused"
    return CHANGES["cancel"](scene, Row("cancel", state, target, {}))


def test_cancel_of_a_program_that_takes_orders_is_in_the_table_for_every_state() -> None:
    assert {("starting", "open")} == {(one, "open") for one in STATES if one not in CANCELS} <= set(NOT_THERE)


# --- a run that the breaker ends ---------------------------------------------------------


@pytest.mark.parametrize("provider", ["command", "open", "scripted"])  # those that take their time
def test_a_run_that_the_breaker_ends_cannot_be_set_aside_and_what_waits_gets_its_priority(
    stopped_world: Cells, provider: str
) -> None:
    boss = stopped_world.boss
    for _ in range(MOST_TRIES):
        boss.call("breaker.release")
        scene = Scene(stopped_world, provider)
        _stubborn(scene)
        boss.call("breaker.pull")
        number = scene.waiting()
        before = _orders(scene)
        answer = _order(stopped_world, "preempt", number)
        if not scene.is_over():
            break
        scene.end()
    assert _is(answer, (TOO_LATE, "is ending already")), answer
    assert [one[1:] for one in before] == [("stopped", None)] and _orders(scene) == before
    raised = _order(stopped_world, "priority", number)
    assert (raised["outcome"], boss.get(number)["priority"]) == (APPLIED, "high")
    scene.end()
