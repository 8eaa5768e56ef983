"""The table of controls: each control, in each state, with each provider, has its outcome, and is tested.

A row says what a control about a target comes to; a provider that a row does not name cannot be in that
state. To add a control: a `Row` for each state in ROWS, and in CHANGES what must be true after it was applied.
Preempt and priority are about an envelope, mostly one of another agent that waits: they have a table of their own,
and what an envelope itself says for or against them is in test_control_table_preempt.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.agents import control_scenes
from tests.agents.control_scenes import MOST_TRIES, OF_ENVELOPES, STATES, Scene, World
from tests.support.shell_agents import rows
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

APPLIED, TOO_LATE, REFUSED = "applied", "too-late", "refused"
PROVIDERS = ("command", "webhook", "demo", "scripted")
# `programmed` stands for a command whose process is not known yet: of a real one that is a moment.
STARTING = ("programmed", "webhook", "demo", "scripted")
ASKING = ("command", "scripted")  # the others cannot ask
SLOW_TO_END = ("command", "scripted")  # the others end at once
CAN_FAIL = ("command", "webhook", "scripted")


class Row(NamedTuple):
    event: str
    state: str
    target: str  # agent, run, conversation, envelope
    outcomes: dict[str, tuple[str, str]]  # by provider: the outcome, and words of the reason
    more: Callable[[Scene], dict[str, Any]] = lambda scene: {}  # other parameters


def all_of(providers: tuple[str, ...], outcome: str, why: str = "") -> dict[str, tuple[str, str]]:
    return dict.fromkeys(providers, (outcome, why))


def with_program(
    programs: tuple[str, ...], others: tuple[str, ...], outcome: tuple[str, str] = (APPLIED, "")
) -> dict[str, tuple[str, str]]:
    """Only what has a program can be stopped."""
    return dict.fromkeys(programs, outcome) | all_of(others, REFUSED, "no program of its own")


def to_other(scene: Scene) -> dict[str, Any]:
    return {"to": scene.world.other.address}


# States in which nothing waits for the agent: it has all that there is in hand, or nothing.
HANDS_FULL: dict[str, tuple[str, ...]] = {
    "idle": PROVIDERS,
    "ended": PROVIDERS,
    "running": PROVIDERS,
    "starting": STARTING,
    "paused": ("command",),
    "asking": ASKING,
    "ending": SLOW_TO_END,
    "background": PROVIDERS,
    "agent paused": PROVIDERS,
    "breaker": PROVIDERS,
}
REST = ("webhook", "demo", "scripted")
RUNS = ("run", "conversation", "envelope")
ROWS = [
    # --- nothing works
    Row("pause", "idle", "agent", all_of(PROVIDERS, APPLIED)),
    Row("resume", "idle", "agent", all_of(PROVIDERS, REFUSED, "is not paused")),
    Row("cancel", "idle", "agent", all_of(PROVIDERS, TOO_LATE, "nothing runs")),
    Row("cancel", "ended", "envelope", all_of(PROVIDERS, TOO_LATE, "is done")),
    *(Row(event, "ended", "run", all_of(PROVIDERS, TOO_LATE, "has ended (completed)"))
      for event in ("pause", "resume", "cancel")),
    *(Row(event, "ended", "conversation", all_of(PROVIDERS, TOO_LATE, "nothing runs"))
      for event in ("pause", "resume", "cancel")),
    # --- something works
    *(Row("pause", "running", kind, with_program(("command",), REST)) for kind in RUNS),
    Row("pause", "running", "agent", all_of(PROVIDERS, APPLIED)),
    *(Row("resume", "running", kind, all_of(PROVIDERS, REFUSED, "is not paused")) for kind in (*RUNS, "agent")),
    *(Row("cancel", "running", kind, all_of(PROVIDERS, APPLIED)) for kind in (*RUNS, "agent")),
    Row("cancel", "running", "run", all_of(PROVIDERS, APPLIED), lambda scene: {"requeue": True}),
    Row("pause", "starting", "run", with_program(("programmed",), REST)),
    Row("resume", "starting", "run", all_of(STARTING, REFUSED, "is not paused")),
    Row("cancel", "starting", "run", all_of(STARTING, APPLIED)),
    # --- it is paused; what has no program cannot be
    *(Row("pause", "paused", kind, all_of(("command",), REFUSED, "is paused already")) for kind in RUNS),
    Row("pause", "paused", "agent", all_of(("command",), APPLIED)),
    *(Row("resume", "paused", kind, all_of(("command",), APPLIED)) for kind in (*RUNS, "agent")),
    *(Row("cancel", "paused", kind, all_of(("command",), APPLIED)) for kind in (*RUNS, "agent")),
    # --- it waits for a person
    Row("pause", "asking", "run", with_program(("command",), ("scripted",))),
    Row("resume", "asking", "run", all_of(ASKING, REFUSED, "is not paused")),
    Row("cancel", "asking", "run", all_of(ASKING, APPLIED)),
    # --- it was told to end
    *(Row(event, "ending", "run", all_of(SLOW_TO_END, TOO_LATE, "is about to end"))
      for event in ("pause", "resume", "cancel")),
    # --- beside its turns
    Row("pause", "background", "run", with_program(("command",), REST)),
    Row("resume", "background", "run", all_of(PROVIDERS, REFUSED, "is not paused")),
    Row("cancel", "background", "run", all_of(PROVIDERS, APPLIED)),
    # --- it failed, and is tried again later
    Row("pause", "lane waiting", "agent", all_of(CAN_FAIL, APPLIED)),
    Row("resume", "lane waiting", "agent", all_of(CAN_FAIL, APPLIED)),
    Row("cancel", "lane waiting", "agent", all_of(CAN_FAIL, TOO_LATE, "nothing runs")),
    Row("cancel", "lane waiting", "envelope", all_of(CAN_FAIL, APPLIED)),
    *(Row(event, "lane waiting", "run", all_of(CAN_FAIL, TOO_LATE, "has ended (failed)"))
      for event in ("pause", "resume", "cancel")),
    # --- it gets no turns, and works on what it had
    Row("pause", "agent paused", "agent", with_program(("command",), REST)),
    Row("pause", "agent paused", "run", with_program(("command",), REST)),
    Row("resume", "agent paused", "agent", all_of(PROVIDERS, APPLIED)),
    Row("resume", "agent paused", "run", all_of(PROVIDERS, REFUSED, "is not paused")),
    Row("cancel", "agent paused", "agent", all_of(PROVIDERS, APPLIED)),
    # --- mail that waits can go to another agent, and what is in hand cannot
    *(Row("route", state, "agent", all_of(providers, TOO_LATE, "nothing waits there"), to_other)
      for state, providers in HANDS_FULL.items()),
    Row("route", "running", "envelope", all_of(PROVIDERS, TOO_LATE, "is in hand"), to_other),
    Row("route", "lane waiting", "agent", all_of(CAN_FAIL, APPLIED), to_other),
    Row("route", "lane waiting", "envelope", all_of(CAN_FAIL, APPLIED), to_other),
    # --- a conversation can be handed over whatever its agent does; a run goes on
    *(Row("handoff", state, "conversation", all_of(providers, APPLIED), to_other)
      for state, providers in {**HANDS_FULL, "lane waiting": CAN_FAIL}.items()),
    # --- the breaker is pulled: nothing works
    Row("pause", "breaker", "agent", all_of(PROVIDERS, APPLIED)),
    Row("resume", "breaker", "agent", all_of(PROVIDERS, REFUSED, "is not paused")),
    Row("cancel", "breaker", "agent", all_of(PROVIDERS, TOO_LATE, "nothing runs")),
]  # fmt: skip


def _paused(scene: Scene, row: Row) -> bool:
    """Its run stands still, and its agent gets no other turn."""
    run = scene.runs()[-1] if scene.runs() else None
    held = scene.lane()["paused_run"] is not None
    if row.target == "agent":
        paused = scene.world.boss.call("agent.list")["agents"]
        held = any(one["paused"] for one in paused if one["name"] == scene.agent.name)
    stands = run is None or run["paused"] or run["status"] != "running" or scene.provider in REST
    return bool(stands and (held or row.state == "background"))


def _resumed(scene: Scene, row: Row) -> bool:
    """Nothing is paused any more."""
    return scene.lane()["state"] != "paused" and not any(one["paused"] for one in scene.runs())


def _cancelled(scene: Scene, row: Row) -> bool:
    """What it worked on is cancelled; or is due again, if that was wanted."""
    if row.more(scene).get("requeue"):
        return scene.runs()[0]["status"] == "cancelled" and scene.status() in ("pending", "done")
    ended = row.target == "envelope" or scene.runs()[-1]["status"] in ("cancelled", "failed")
    return ended and scene.status() == "cancelled" and scene.lane()["state"] != "paused"


def _routed(scene: Scene, row: Row) -> bool:
    """The envelope is in the box of the other one."""
    return bool(scene.world.other.get(scene.envelope)["to"] == scene.world.other.address)


def _handed_over(scene: Scene, row: Row) -> bool:
    """The other one gets what is said there from now on."""
    if row.state == "background":  # it is the conversation of the agent with its tasks
        return True
    said = scene.world.boss.tell(scene.agent, text="to whom is this?")
    return bool(scene.world.boss.get(said)["to"] == scene.world.other.address)


# What becomes true when a control was applied.
CHANGES: dict[str, Callable[[Scene, Row], bool]] = {
    "pause": _paused,
    "resume": _resumed,
    "cancel": _cancelled,
    "route": _routed,
    "handoff": _handed_over,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with control_scenes.world(tmp_path_factory.mktemp("d")) as made:
        yield made


@pytest.fixture(scope="module")
def stopped_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One in which the breaker is pulled."""
    with control_scenes.world(tmp_path_factory.mktemp("d")) as made:
        made.boss.call("breaker.pull")
        yield made


def is_listed(scene: Scene, event: str, answer: dict[str, Any]) -> bool:
    """Tell whether the last control about an agent is the one that was answered so."""
    [listed] = scene.world.boss.call("control.list", agent=scene.agent.name, page_size=1)["controls"]
    told = (listed["event"], listed["outcome"], listed["message"])
    return told == (f"stream.{event}", answer["outcome"], answer["message"])


def _is(answer: dict[str, Any], outcome: str, why: str) -> bool:
    return bool(answer["outcome"] == outcome and why in (answer["why"] or ""))


@pytest.mark.parametrize("event", CHANGES)
def test_a_control_comes_to_what_the_table_says(world: World, stopped_world: World, event: str) -> None:
    with sweep() as row:
        for cell, provider in [(one, name) for one in ROWS if one.event == event for name in one.outcomes]:
            place = stopped_world if cell.state == "breaker" else world
            outcome, why = cell.outcomes[provider]
            with (
                row(f"{cell.state}, {cell.target}, {provider}"),
                place.order(
                    cell.state,
                    provider,
                    lambda scene, cell=cell: scene.control(event, cell.target, **cell.more(scene)),
                    outcome == APPLIED,
                ) as (scene, answer),
            ):
                assert _is(answer, outcome, why), answer
                assert is_listed(scene, event, answer)
                if outcome == APPLIED:
                    wait_until(lambda scene=scene, cell=cell: CHANGES[event](scene, cell))


def test_every_state_is_in_the_table_for_every_control() -> None:
    found = {(row.event, row.state) for row in ROWS}
    assert set(itertools.product(CHANGES, set(STATES) - OF_ENVELOPES)) <= found


# --- preempt and priority --------------------------------------------------------------

EVENTS = ("preempt", "priority")
WITH_OPEN = ("command", "open", "webhook", "demo", "scripted")
# What a provider cannot be in.
NOT_THERE: dict[tuple[str, str], str] = {
    **{("starting", one): "that is a moment: `programmed` stands for it" for one in ("command", "open")},
    **{("paused", one): "it has no program" for one in ("webhook", "demo", "scripted")},
    **{("asking", one): "it cannot ask" for one in ("command", "webhook", "demo")},
    **{("ending", one): "it ends at once" for one in ("webhook", "demo")},
    ("lane waiting", "demo"): "it never fails",
}


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
    return [one for one in WITH_OPEN if (state, one) not in NOT_THERE] + stand_in


CELLS = [(event, state, one) for event in EVENTS for state in TABLE for one in providers(state)]


@pytest.mark.parametrize("event", EVENTS)
def test_an_order_about_an_envelope_comes_to_what_the_table_says(
    world: World, stopped_world: World, event: str
) -> None:
    def give(scene: Scene, about: About) -> tuple[str, Any, dict[str, Any]]:
        number = about.envelope(scene)
        return number, _seen(scene, number), _order(scene.world, event, number)

    with sweep() as row:
        for _, state, provider in (cell for cell in CELLS if cell[0] == event):
            place, about = stopped_world if state == "breaker" else world, TABLE[state]
            outcome, why = about.preempt if event == "preempt" else about.priority
            changes = outcome == APPLIED or about.envelope is not its_own  # there is more mail now
            with (
                row(f"{state}, {provider}"),
                place.order(state, provider, lambda scene, about=about: give(scene, about), changes) as (
                    scene,
                    (number, before, answer),
                ),
            ):
                assert _is(answer, outcome, why), answer
                assert is_listed(scene, event, answer)
                if outcome != APPLIED:
                    assert _seen(scene, number) == before  # nothing has happened
                elif event == "priority":
                    assert _seen(scene, number) == ("high", before[1])  # a run goes on
                else:
                    wait_until(lambda scene=scene, number=number: _is_set_aside(scene, number))
                    assert scene.obeyed() == (provider == "open")  # it was asked to end


def _order(place: World, event: str, number: str) -> dict[str, Any]:
    more = {"level": "high"} if event == "priority" else {}
    return place.boss.call("control.send", event=f"stream.{event}", envelope=number, **more)


def _seen(scene: Scene, number: str) -> tuple[str, list[tuple[Any, ...]]]:
    """The priority of an envelope, and what runs were told."""
    return scene.world.boss.get(number)["priority"], _orders(scene)


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
    assert set(TABLE) == set(STATES)
    for event in EVENTS:
        tested = {(state, one) for what, state, one in CELLS if what == event and one in WITH_OPEN}
        assert not tested & set(NOT_THERE)
        assert tested | set(NOT_THERE) == set(itertools.product(STATES, WITH_OPEN))


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


def test_a_program_that_takes_orders_is_asked_to_end_when_it_is_cancelled(
    world: World, stopped_world: World
) -> None:
    with sweep() as row:
        for state, (target, outcome, why) in (
            (state, one) for state, found in CANCELS.items() for one in found
        ):
            place = stopped_world if state == "breaker" else world
            with (
                row(f"{state}, {target}"),
                place.order(
                    state,
                    "open",
                    lambda scene, target=target: scene.control("cancel", target),
                    outcome == APPLIED,
                ) as (scene, answer),
            ):
                assert _is(answer, outcome, why), answer
                if outcome == APPLIED:
                    wait_until(
                        lambda scene=scene, state=state, target=target: _is_cancelled(scene, state, target)
                    )
                    # One that stands still hears nothing, and gets signals.
                    assert scene.obeyed() == (state not in ("lane waiting", "paused"))


def _is_cancelled(scene: Scene, state: str, target: str) -> bool:
    if state == "lane paused":  # that stays
        return scene.status() == "cancelled" and scene.lane()["state"] == "paused"
    return CHANGES["cancel"](scene, Row("cancel", state, target, {}))


def test_cancel_of_a_program_that_takes_orders_is_in_the_table_for_every_state() -> None:
    assert {("starting", "open")} == {(one, "open") for one in STATES if one not in CANCELS} <= set(NOT_THERE)


# --- a run that the breaker ends ---------------------------------------------------------


def test_a_run_that_the_breaker_ends_cannot_be_set_aside_and_what_waits_gets_its_priority(
    stopped_world: World,
) -> None:
    boss = stopped_world.boss
    with sweep() as row:
        for provider in ("command", "open", "scripted"):  # those that take their time
            with row(provider):
                for _ in range(MOST_TRIES):  # until one has not ended before the order came
                    boss.call("breaker.release")
                    scene = Scene(stopped_world, provider)
                    control_scenes.stubborn(scene)
                    boss.call("breaker.pull")
                    number = scene.waiting()
                    before = _orders(scene)
                    answer = _order(stopped_world, "preempt", number)
                    if not scene.is_over():
                        break
                    scene.end()
                assert _is(answer, TOO_LATE, "is ending already"), answer
                assert [one[1:] for one in before] == [("stopped", None)] and _orders(scene) == before
                raised = _order(stopped_world, "priority", number)
                assert (raised["outcome"], boss.get(number)["priority"]) == (APPLIED, "high")
                scene.end()
