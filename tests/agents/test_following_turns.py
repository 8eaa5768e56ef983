"""The next turn of an agent is started with the outcome of the one before, in one transaction, unless others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.runner import Runner
from hiboss.core.crashpoint import AFTER_COMMIT, IN_GROUP, RUN_BEGUN, RUN_SETTLED
from hiboss.store import run_pauses, run_start
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.shell_agents import Boss, Worker, assert_idle, end_all, rows
from tests.support.waits import wait_until

WAITING = 4  # messages for an agent that is paused


async def work_through(daemon: InProcessDaemon, *names: str) -> list[tuple[Any, ...]]:
    """Let agents work through mail that waits for them; return the agent, the start and the end of each run."""
    for name in names:
        await daemon.ask("agent.set", name=name, provider="demo", busy="followup")
        await daemon.ask("agent.pause", name=name)
    for number in range(WAITING):
        for name in names:
            await daemon.send(f"agent:{name}", who="boss", text=f"apples {number}")
    for name in names:
        await daemon.ask("agent.resume", name=name)
    ended = "SELECT 1 FROM run WHERE status = 'completed'"
    await daemon.until(lambda: len(daemon.rows(ended)) == WAITING * len(names))
    daemon.check()
    query = (
        "SELECT a.name, r.started_at, r.ended_at FROM run r JOIN address a ON a.id = r.agent ORDER BY r.id"
    )
    return [tuple(row) for row in daemon.rows(query)]


@frozen(at=None)
async def test_a_turn_begins_at_the_moment_at_which_the_one_before_is_settled(
    daemon: InProcessDaemon,
) -> None:
    runs = await work_through(daemon, "nex")
    assert [started for _, started, _ in runs[1:]] == [ended for _, _, ended in runs[:-1]]


@frozen(parallel_runs=1)
async def test_an_agent_with_more_mail_lets_others_go_before_its_next_turn(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    runs = await work_through(daemon, "nex", "kai")
    assert [name for name, _, _ in runs] == ["nex", "kai"] * WAITING


@frozen(quiet=False)
async def test_a_defect_in_the_start_of_a_turn_does_not_fail_the_one_before(daemon: InProcessDaemon) -> None:
    begin, calls = run_start.begin, 0

    def broken(*given: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        turn = begin(*given, **more)
        if turn is not None and calls in (2, 3):  # the writer tries it again, with a savepoint
            raise RuntimeError("a defect of the store")
        return turn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_start, "begin", broken)
        runs = await work_through(daemon, "nex")
    assert calls > 3
    assert len(runs) == WAITING
    assert not daemon.rows("SELECT 1 FROM run WHERE status <> 'completed'")
    told = daemon.rows("SELECT text FROM message WHERE sender = 2 ORDER BY id")
    assert ["apples" in row["text"] for row in told] == [True] * WAITING


@frozen()
async def test_an_agent_that_is_paused_during_a_turn_gets_no_other_one(daemon: InProcessDaemon) -> None:
    begin, paused = run_start.begin, False

    def then_pause(tx: Any, agent: int, *given: Any, **more: Any) -> Any:
        nonlocal paused
        turn = begin(tx, agent, *given, **more)
        if turn is not None and not paused:
            paused = True
            tx.execute("UPDATE agent SET paused_at = 1 WHERE address = ?", (agent,))
        return turn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_start, "begin", then_pause)
        await daemon.ask("agent.set", name="nex", provider="demo", busy="followup")
        for number in range(2):
            await daemon.send("agent:nex", who="boss", text=f"apples {number}")
        await daemon.until(lambda: bool(daemon.rows("SELECT 1 FROM run WHERE status = 'completed'")))
        await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    assert len(daemon.rows("SELECT 1 FROM run")) == 1


@frozen()
async def test_a_run_that_is_paused_before_it_is_settled_starts_no_other_one(daemon: InProcessDaemon) -> None:
    """Another run may have its place; the next turn waits for a free one."""
    runner = daemon.daemon.wiring.runner
    following, offered = Runner._following, list[Any]()

    def note(self: Runner, *given: Any) -> Any:
        offered.append(following(self, *given))
        return offered[-1]

    def paused_once(tx: Any, run: int) -> bool:
        if paused:
            return stands_still(tx, run)
        paused.append(run)
        loop.call_soon_threadsafe(lambda: runner.execution(run).release())  # type: ignore[union-attr]
        return True

    stands_still, paused, loop = run_pauses.stands_still, list[int](), asyncio.get_running_loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "_following", note)
        patch.setattr(run_pauses, "stands_still", paused_once)
        runs = await work_through(daemon, "nex")
    assert len(runs) == WAITING and len(paused) == 1
    assert offered[0] is not None and offered[0].turn is None


# --- a defect of another part that is told that a run begins or ends ------------------


def defect(*given: Any) -> None:
    raise NameError("a defect of ours")


async def answered(daemon: InProcessDaemon, text: str) -> Callable[[], bool]:
    """Send nex a message; return whether all its runs are over and this one was answered."""
    await daemon.send("agent:nex", who="boss", text=text)

    def over() -> bool:
        running = daemon.rows("SELECT 1 FROM run WHERE status = 'running'")
        said = daemon.rows("SELECT 1 FROM message WHERE text = ?", f"You said: {text}")
        return len(said) == 1 and not running

    return over


@frozen(quiet=False)
async def test_a_run_is_settled_once_whatever_the_parts_do_that_are_told(daemon: InProcessDaemon) -> None:
    await daemon.ask("agent.set", name="nex", provider="demo")
    runner = daemon.daemon.wiring.runner
    for hook in ("on_begun", "on_ended", "on_token_ended", "accepted", "nudge"):
        setattr(runner, hook, defect)
        await daemon.until(await answered(daemon, f"apples {hook}"))
    assert {row["status"] for row in daemon.rows("SELECT status FROM run")} == {"completed"}
    assert len([line for line in daemon.warnings() if "What follows r" in line]) >= 5
    daemon.check()


@frozen(quiet=False)
async def test_a_defect_in_running_fails_the_turn_and_the_next_one_is_answered(
    daemon: InProcessDaemon,
) -> None:
    runner = daemon.daemon.wiring.runner
    begins, runner._execute = runner._execute, defect  # type: ignore[method-assign,assignment]
    await daemon.ask("agent.set", name="nex", provider="demo")
    await daemon.send("agent:nex", who="boss", text="lost?")
    await daemon.until(lambda: bool(daemon.rows("SELECT 1 FROM run WHERE error_kind = 'broke_off'")))
    assert not daemon.rows("SELECT 1 FROM run WHERE status = 'running'")
    runner._execute = begins  # type: ignore[method-assign]
    await daemon.until(await answered(daemon, "the next"))
    await daemon.move(hours=1)
    await daemon.until(lambda: bool(daemon.rows("SELECT 1 FROM message WHERE text = 'You said: lost?'")))
    daemon.check()


# --- a daemon that dies --------------------------------------------------------------


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(set_up(tmp_path))
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("place", [RUN_SETTLED, f"{RUN_BEGUN}:2", f"{RUN_SETTLED}:2"])
def test_after_a_crash_between_two_turns_each_message_is_answered_once(
    mortal: RunningDaemon, tmp_path: Path, place: str
) -> None:
    ada, worker, numbers = two_waiting(mortal, tmp_path)
    mortal.kill()
    mortal.start(HIBOSS_CRASH_AT=place)
    ada.call("agent.resume", name=worker.name)
    mortal.wait_for_death()
    second = place == f"{RUN_SETTLED}:2"
    [first] = rows(mortal, "SELECT status FROM run ORDER BY id LIMIT 1")
    assert first["status"] == "completed"
    statuses = [row["status"] for row in rows(mortal, "SELECT status FROM run ORDER BY id")]
    assert statuses == ["completed", "completed" if second else "running"]
    mortal.start()
    each_answered_once(mortal, worker, numbers)


@pytest.mark.parametrize("point", [IN_GROUP, AFTER_COMMIT])
def test_wherever_the_writer_dies_in_turns_that_follow_each_other_each_is_answered_once(
    mortal: RunningDaemon, tmp_path: Path, point: str
) -> None:
    """Once in each of the changes from the first start to the last outcome."""
    ada, worker, numbers = two_waiting(mortal, tmp_path)
    deaths = 0
    while True:
        mortal.kill()
        mortal.start(HIBOSS_CRASH_AT=f"{point}:{deaths + 1}@{tmp_path / 'armed'}")
        resume(ada, worker, tmp_path / "armed")
        if not dies(mortal):
            break
        deaths += 1
        (tmp_path / "armed").unlink()
        with mortal.database() as database:  # as if it had been stopped in between
            database.execute("UPDATE envelope SET crashes = 0")
            database.execute("UPDATE agent SET paused_at = 1 WHERE mode = 'run'")
            database.commit()
    assert deaths >= 3
    mortal.kill()
    mortal.start()
    each_answered_once(mortal, worker, numbers)


def two_waiting(daemon: RunningDaemon, directory: Path) -> tuple[Boss, Worker, list[str]]:
    """An agent that is paused, and two messages that wait for it, each for a turn of its own."""
    ada, worker = Boss(daemon), Worker(daemon, directory / "w")
    ada.call("agent.set", name=worker.name, busy="followup")
    ada.call("agent.pause", name=worker.name)
    return ada, worker, [ada.tell(worker), ada.tell(worker, text="and this")]


def resume(ada: Boss, worker: Worker, arms: Path) -> None:
    arms.touch()
    try:
        ada.call("agent.resume", name=worker.name)
    except Exception:  # noqa: BLE001 - it died before it could answer, in whatever way that is seen
        pass


def dies(daemon: RunningDaemon) -> bool:
    """Whether it dies; not, when all is answered and it lives."""
    process = daemon.process
    assert process is not None

    def over() -> bool:
        left = "SELECT 1 FROM envelope WHERE status = 0 UNION ALL SELECT 1 FROM run WHERE status = 'running'"
        return process.poll() is not None or not rows(daemon, left)

    wait_until(over)
    return process.poll() is not None


def each_answered_once(daemon: RunningDaemon, worker: Worker, numbers: list[str]) -> None:
    wait_until(lambda: all(worker.answers_to(one) for one in numbers))
    assert_idle(daemon, worker.program)
    assert [worker.answers_to(one) for one in numbers] == [["done"], ["done"]]
    daemon.check()
    end_all(daemon)
