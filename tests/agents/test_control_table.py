"""The table of controls: each control, in each state, with each provider, has its outcome, and a test of it.

A row says what a control about a target comes to; a provider that a row does not name cannot be in that
state. To add a control: a `Row` for each state in ROWS, and in CHANGES what must be true after it was applied.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.control_scenes import STATES, Scene, World
from tests.support.daemons import daemon_with, wait_until

APPLIED, TOO_LATE, REFUSED = "applied", "too-late", "refused"
PROVIDERS = ("command", "webhook", "demo", "scripted")
# `programmed` stands for a command whose process is not known yet: of a real one that is a moment.
STARTING = ("programmed", "webhook", "demo", "scripted")
ASKING = ("command", "scripted")  # the others cannot ask
SLOW_TO_END = ("command", "scripted")  # the others end at once
CAN_FAIL = ("command", "webhook", "scripted")
MOST_TRIES = 50  # with the demo provider, whose turns are short: one that ended too early is repeated


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
    yield from _world(tmp_path_factory)


@pytest.fixture(scope="module")
def stopped_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One in which the breaker is pulled."""
    for world in _world(tmp_path_factory):
        world.boss.call("breaker.pull")
        yield world


def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("d")
    settings = {"provider_modules": "tests.support.control_providers", "parallel_runs": 50}
    with daemon_with(directory, finish_seconds=0.1, **settings) as daemon:
        world = World(daemon, directory)
        yield world
        world.close()
        _wait_until_over(daemon)
        daemon.check()


def _wait_until_over(daemon: RunningDaemon) -> None:
    token = daemon.token("boss")
    wait_until(lambda: not daemon.call("run.list", token=token, status="running")["runs"])


CELLS = [(row, provider) for row in ROWS for provider in row.outcomes]


@pytest.mark.parametrize(
    ("row", "provider"),
    CELLS,
    ids=[
        f"{row.event}-{row.state}-{row.target}-{provider}-{place}"
        for place, (row, provider) in enumerate(CELLS)
    ],
)
def test_a_control_comes_to_what_the_table_says(
    world: World, stopped_world: World, row: Row, provider: str
) -> None:
    place = stopped_world if row.state == "breaker" else world
    outcome, why = row.outcomes[provider]
    for _ in range(MOST_TRIES):
        scene = place.scene(row.state, provider)
        answer = scene.control(row.event, row.target, **row.more(scene))
        if provider != "demo" or (answer["outcome"] == outcome and why in (answer["why"] or "")):
            break
        place.spoil(row.state, provider)
    assert (answer["outcome"], why in (answer["why"] or "")) == (outcome, True), answer
    [listed] = place.boss.call("control.list", agent=scene.agent.name, page_size=1)["controls"]
    assert (listed["event"], listed["outcome"]) == (f"stream.{row.event}", outcome)
    assert listed["message"] == answer["message"]
    if outcome == APPLIED:
        wait_until(lambda: CHANGES[row.event](scene, row))
        place.spoil(row.state, provider)


def test_every_state_is_in_the_table_for_every_control() -> None:
    found = {(row.event, row.state) for row in ROWS}
    assert set(itertools.product(CHANGES, STATES)) <= found
