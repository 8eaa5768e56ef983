"""The text of a turn is kept as its provider got it, whole or not at all; and what a run used is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from hiboss.core.crashpoint import RUN_ANSWERED, RUN_SESSION, RUN_STARTED
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.store import run_turns
from hiboss.store.group_commit import Tx
from hiboss.store.store import Store
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.daemons import daemon_fixture, set_up
from tests.support.instructed_providers import given
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, end_all, rows
from tests.support.terminal import on_terminal
from tests.support.waits import wait_until

MODULES = "tests.support.instructed_providers"
TEXT = "a turn\n> with é and 🎼"


daemon = daemon_fixture(provider_modules=MODULES, page_bytes=64 * 1024)


def ended(ada: Boss, name: str, status: str = "completed") -> str:
    """Wait until the latest run of an agent has ended; return its id."""

    def last() -> dict[str, str]:
        found = ada.call("run.list", agent=name, page_size=1)["runs"]
        return dict(found[0]) if found else {}

    wait_until(lambda: last().get("status") == status)
    return last()["id"]


def got(worker: Worker) -> str:
    """Return the last turn of a program; a newline ends what it reads."""
    return worker.program.given.removesuffix("\n")


def test_a_run_shows_exactly_what_its_program_got(ada: Boss, worker: Worker) -> None:
    ada.tell(worker, text="a\n\nfrom-boss: true")
    run = ended(ada, worker.name)
    for one in (ada, worker):
        assert one.call("run.get", id=run, turn=True)["turn"] == got(worker)
    assert ada.call("run.get", id=run)["turn"] is None
    assert rows(ada.daemon, "SELECT text FROM run_turns WHERE run = ?", run)[0]["text"] == got(worker)


def test_it_is_there_while_the_run_works(ada: Boss, worker: Worker) -> None:
    worker.program.waits()
    ada.tell(worker)
    worker.program.begins()
    run = ended(ada, worker.name, "running")
    assert ada.call("run.get", id=run, turn=True)["turn"] == got(worker)
    worker.program.let_go()
    ended(ada, worker.name)
    assert ada.call("run.get", id=run, turn=True)["turn"] == got(worker)


def test_it_is_there_while_a_run_without_a_program_works(ada: Boss) -> None:
    nex = agent(ada.daemon, provider="instructed")
    ada.tell(nex, text="wait")
    run = ended(ada, nex.name, "running")
    workspace = Path(ada.daemon.home.workspace(nex.name))
    wait_until(lambda: given(workspace))
    assert rows(ada.daemon, "SELECT 1 FROM run_turns WHERE run = ?", run) == []
    assert ada.call("run.get", id=run, turn=True)["turn"] == given(workspace)[0]["text"]
    (workspace / "go").touch()
    ended(ada, nex.name)
    assert ada.call("run.get", id=run, turn=True)["turn"] == given(workspace)[0]["text"]


def test_nobody_else_sees_it(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    run = ended(ada, worker.name)
    assert agent(ada.daemon).refusal("run.get", id=run, turn=True) == "not_found"
    assert ada.refusal("run.get", id="r999999", turn=True) == "not_found"


@pytest.mark.parametrize("letter", ["x", "\x01", "é", "🎼"])
def test_a_huge_one_is_cut_to_what_fits_into_an_answer(ada: Boss, worker: Worker, letter: str) -> None:
    ada.tell(worker, text=letter * 60_000)
    run = ended(ada, worker.name)
    found = ada.call("run.get", id=run, turn=True)
    whole = rows(ada.daemon, "SELECT text FROM run_turns WHERE run = ?", run)[0]["text"]
    assert whole.startswith(found["turn"]) and len(whole) == len(found["turn"]) + found["turn_left_out"]
    assert len(json.dumps(found["turn"], ensure_ascii=False).encode()) <= 64 * 1024
    assert (found["turn_left_out"] == 0) == (letter == "x")


def test_the_command_prints_it_and_nothing_else(ada: Boss, worker: Worker) -> None:
    ada.tell(worker, text="hello\nthere")
    run = ended(ada, worker.name)
    shell = Shell(ada.daemon.home.path)
    assert shell("run", "get", run, "--turn").stdout == worker.program.given
    assert json.loads(shell("run", "get", run, "--turn", "--json").stdout)["turn"] == got(worker)
    with ada.daemon.database() as database:
        database.execute("DELETE FROM run_turn WHERE run = ?", (int(run[1:]),))
        database.commit()
    gone = shell("run", "get", run, "--turn")
    assert gone.stdout == "" and "the latest 1000 are kept" in gone.stderr


# --- only the latest are kept --------------------------------------------------------


def test_only_the_latest_runs_keep_it(tmp_path: Path) -> None:
    asyncio.run(_keep_the_latest(set_up(tmp_path)))


async def _keep_the_latest(home: Home) -> None:
    store = await Store.open(home, DEFAULTS)

    def put(runs: Iterable[int], text: str = TEXT) -> Callable[[Tx], None]:
        def write(tx: Tx) -> None:
            for run in runs:
                run_turns.put(tx, run, text)

        return write

    def kept() -> list[int]:
        return store.read(lambda c: [row[0] for row in c.execute("SELECT run FROM run_turn ORDER BY run")])

    await store.write(
        lambda tx: tx.execute(
            """
            WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1010)
            INSERT INTO run (agent, status, provider, boot, started_at)
            SELECT (SELECT address FROM agent), 'completed', 'demo', 1, 0 FROM n
            """
        )
    )
    await store.write(put(range(1, 1001)))
    assert kept() == list(range(1, 1001))
    await store.write(put([1003]))
    assert kept() == [*range(4, 1001), 1003]
    await store.write(put([1003], "given again"))
    found = store.read(lambda c: [run_turns.get(c, run) for run in (3, 4, 1003)])
    assert found == [None, TEXT, "given again"]
    await store.close()


# --- a daemon that dies --------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "is_there"), [(RUN_STARTED, False), (RUN_ANSWERED, True), (f"{RUN_ANSWERED}:2", True)]
)
def test_after_a_crash_it_is_there_whole_or_not_at_all(tmp_path: Path, place: str, is_there: bool) -> None:
    """With the pid of its program, so not before that."""
    dying = RunningDaemon(set_up(tmp_path))
    dying.start(HIBOSS_CRASH_AT=place)
    ada, worker = Boss(dying), Worker(dying, tmp_path / "w")
    number = ada.tell(worker, text="x" * 500_000)
    if place.endswith(":2"):
        wait_until(lambda: worker.answers_to(number))
        ada.tell(worker, text="y" * 500_000)
    dying.wait_for_death()
    texts = [row["text"] for row in rows(dying, "SELECT text FROM run_turn ORDER BY run")]
    expected = 2 if place.endswith(":2") else 1
    assert len(texts) == (expected if is_there else 0)
    assert not texts or texts[-1] == got(worker)
    dying.start()
    end_all(dying)
    dying.check()
    dying.stop()


@pytest.mark.parametrize("place", [RUN_SESSION, RUN_ANSWERED])
def test_memory_that_a_crash_may_have_kept_from_the_model_is_shown_again(tmp_path: Path, place: str) -> None:
    dying = RunningDaemon(set_up(tmp_path))
    modules = {"HIBOSS_PROVIDERS_MODULES": MODULES}
    Path(dying.home.boss_file).write_text("Be brief.")
    dying.start(HIBOSS_CRASH_AT=place, **modules)
    ada, nex = Boss(dying), agent(dying, provider="instructed")
    number = ada.tell(nex)
    dying.wait_for_death()
    dying.start(**modules)
    wait_until(lambda: ada.get(number)["status"] == "done")
    ada.tell(nex)
    workspace = dying.home.workspace(nex.name)
    wait_until(lambda: len(given(workspace)) == 3)
    first, again, then = given(workspace)
    assert "> Be brief." in first["text"] and "> Be brief." in again["text"]
    assert again["session"] == "of-r1" and then["text"].startswith("now: ")
    wait_until(lambda: not rows(dying, "SELECT 1 FROM run WHERE status = 'running'"))
    dying.check()
    dying.stop()


# --- what it used --------------------------------------------------------------------


def test_a_run_shows_its_model_its_session_and_what_it_used(ada: Boss) -> None:
    nex = agent(ada.daemon, provider="instructed")
    ada.tell(nex)
    run = ada.call("run.get", id=ended(ada, nex.name))["run"]
    used = {name: run[name] for name in ("model", "session", "tokens_in", "tokens_out", "cost", "context")}
    assert used == {
        "model": "model-1",
        "session": f"of-{run['id']}",
        "tokens_in": 10,
        "tokens_out": 5,
        "cost": 0.25,
        "context": 8,
    }
    assert run["usage_estimated"] is False
    shown = Shell(ada.daemon.home.path)("run", "get", run["id"]).stdout.splitlines()
    assert {"model: model-1", "tokens-in: 10", "tokens-out: 5", "cost: 0.25", "context: 8"} <= set(shown)


def test_what_was_seen_of_a_failed_turn_is_marked_as_estimated(ada: Boss) -> None:
    nex = agent(ada.daemon, provider="instructed")
    ada.tell(nex, text="usage")
    run = ended(ada, nex.name, "failed")
    (row,) = ada.call("run.list", agent=nex.name)["runs"]
    assert row["usage_estimated"] is True and row["tokens_in"] == 1_200
    assert {"tokens-in: 1200 (estimated)", "tokens-out: 34 (estimated)", "cost: 0.5 (estimated)"} <= set(
        Shell(ada.daemon.home.path)("run", "list", "--agent", nex.name).stdout.splitlines()
    )
    assert rows(ada.daemon, "SELECT usage_estimated FROM runs WHERE id = ?", run)[0][0] == 1


def test_the_table_of_runs_has_tokens_and_cost(ada: Boss) -> None:
    nex = agent(ada.daemon, provider="instructed")
    ada.tell(nex)
    ended(ada, nex.name)
    ada.tell(nex, text="usage")
    ended(ada, nex.name, "failed")
    shown = on_terminal(Shell(ada.daemon.home.path), "run", "list", "--agent", nex.name, columns=120)
    head, failed, done = shown.stdout.splitlines()
    assert "tokens  cost" in head
    assert " ~1.2k " in failed and " ~$0.50 " in failed
    assert " 15 " in done and " $0.25 " in done


def test_the_command_prints_the_instructions_and_the_memory(ada: Boss) -> None:
    shell = Shell(ada.daemon.home.path)
    told = ada.call("agent.instructions", name="nex")
    shown = shell("agent", "instructions", "nex")
    assert shown.stdout == f"{told['text']}\n\n---- memory: none of its files has anything yet ----\n"
    assert shown.stderr.startswith("note: ") and "takes no instructions" in shown.stderr
    nex = agent(ada.daemon, provider="instructed")
    workspace = Path(ada.daemon.home.workspace(nex.name))
    workspace.mkdir(parents=True)
    (workspace / "SOUL.md").write_text("You are calm.")
    told = ada.call("agent.instructions", name=nex.name)
    shown = shell("agent", "instructions", nex.name)
    line = "---- memory: a new session begins with this ----"
    assert shown.stdout == f"{told['text']}\n\n{line}\n\n{told['memory']}\n" and shown.stderr == ""
    assert shell("agent", "instructions", nex.name, "--json").json == told
