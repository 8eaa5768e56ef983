"""However a program fails, its run is settled with an error text, its lane goes on, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.store.test_full_disk import disk, tiny  # noqa: F401 # fixtures
from tests.support.daemons import started
from tests.support.parties import Party
from tests.support.shell_agents import (
    ESCAPES,
    Boss,
    Program,
    Run,
    Worker,
    assert_idle,
    begin,
    end_all,
    eventually,
    has_ended,
    held,
    limits,
    rows,
    running,
)
from tests.support.sweeps import sweep
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow


def goes_on(ada: Boss, worker: Worker) -> None:
    """The next message is answered while an earlier one waits for its retry."""
    before = len(worker.runs())
    worker.program.answers("mended")
    number = ada.tell(worker, text="the next")
    eventually(lambda: worker.answers_to(number), ["mended"])
    assert worker.settled(before + 1)["status"] == "completed"
    assert_idle(worker.daemon, worker.program)


def lane_waits(ada: Boss, worker: Worker, number: str, run: Run) -> None:
    """Every turn would fail: no envelope has failed, and the lane shows why it waits."""
    assert (run["status"], run["answer"]) == ("failed", None)
    envelope = ada.get(number)
    assert (envelope["status"], envelope["attempts"]) == ("pending", 0)
    eventually(lambda: [worker.status()[one] for one in ("state", "why")], ["waiting", run["error"]])
    assert len(ada.notices_of(worker)) == 1
    assert_idle(worker.daemon, worker.program)


# --- failures of one turn ------------------------------------------------------------

FAILURES: list[tuple[Callable[[Program], None], dict[str, float], str, str]] = [
    # what the program does, the limits of its run, the kind of the error, words of its text
    (
        lambda program: program.exits(137, "KeyError: 'flour'"),
        {},
        "exit_status",
        "it ended with exit status 137: KeyError: 'flour'",
    ),
    (
        lambda program: program.does('echo "no luck with $HIBOSS_TOKEN" >&2\nexit 1'),
        {},
        "exit_status",
        "it ended with exit status 1: no luck with hbr_…",
    ),
    (lambda program: program.does("kill -SEGV $$"), {}, "signal", "it ended with signal 11"),
    (
        lambda program: program.does("""echo '{"hiboss": "error", "text": "the model is overloaded"}'"""),
        {},
        "reported",
        "it reported: the model is overloaded",
    ),
    (
        Program.hangs_with_children,
        {"idle_seconds": 0.5},
        "timed_out",
        "it gave no output for 0.5 seconds and was ended",
    ),
    (
        Program.ignores_signals,
        {"idle_seconds": 0.3},
        "timed_out",
        "it gave no output for 0.3 seconds and was ended",
    ),
    (
        lambda program: program.does("while :; do echo alive; sleep 0.02; done"),
        {"idle_seconds": 100, "total_seconds": 0.6},
        "timed_out",
        "it took longer than 0.6 seconds and was ended",
    ),
    (Program.floods, {"output_bytes": 10_000}, "too_long", "it wrote more than 10000 bytes and was ended"),
    (
        lambda program: program.does("yes word | head -c 1200000"),
        {"output_bytes": 2_000_000},
        "too_long",
        "its answer",
    ),
]


def test_a_turn_that_fails_is_told_with_its_reason_and_tried_again_alone(
    ada: Boss, daemon: RunningDaemon, tmp_path: Path
) -> None:
    with sweep() as row:
        for does, given, kind, error in FAILURES:
            with row(error):
                worker = Worker(daemon, tmp_path)
                does(worker.program)
                with limits(daemon, **given):
                    number = ada.tell(worker)
                    run = worker.settled()
                assert (run["status"], run["error_kind"], run["answer"]) == ("failed", kind, None)
                assert error in run["error"] and run["envelopes"] == [number]
                envelope = ada.get(number)
                assert (envelope["status"], envelope["attempts"] > 0) == ("pending", True)
                eventually(lambda worker=worker: worker.status()["state"], "retrying")
                goes_on(ada, worker)
    end_all(daemon)
    assert "hbr_…" in Path(daemon.home.log_file).read_text()


# --- what is not a failure -----------------------------------------------------------


NO_FAILURES: list[tuple[Callable[[Program], None], list[str], str | None]] = [
    # what the program does, its answers, the note of its run
    (
        lambda program: program.says_bytes(b"caf\xe9 \xff\x00, said she\n"),
        ["caf\ufffd \ufffd\ufffd, said she"],
        "some characters of its answer cannot be stored and were replaced",
    ),
    (Program.says_nothing, [], "not sent: the run ended without an answer"),
    (lambda program: program.leaves_children("all set"), ["all set"], None),
    (lambda program: program.becomes("#!/bin/sh\nexec <&-\necho blind\n"), ["blind"], None),
    # What follows the settling must not be kept back: the answer to a channel would lie there.
    (
        lambda program: program.does('rm "$HIBOSS_TOKEN_FILE"; mkdir "$HIBOSS_TOKEN_FILE"; echo done'),
        ["done"],
        None,
    ),
]


def test_odd_ends_that_are_no_failures(ada: Boss, worker: Worker) -> None:
    before_this = Path(worker.daemon.home.log_file).stat().st_size
    with sweep() as row:
        for does, answers, note in NO_FAILURES:
            with row(answers):
                does(worker.program)
                before = len(worker.runs())
                number = ada.tell(worker, text="x" * 900_000)
                run = worker.settled(before + 1)
                assert (run["status"], run["error"], run["note"]) == ("completed", None, note)
                eventually(lambda number=number: worker.answers_to(number), answers)
                assert ada.get(number)["status"] == "done"
                goes_on(ada, worker)
    assert not log_says(worker.daemon, "could not be settled", since=before_this)


@pytest.mark.parametrize(("how", "status"), [("ends", "completed"), ("is cancelled", "cancelled")])
def test_a_child_that_left_its_session_with_an_emptied_environment_ends_when_its_run(
    ada: Boss, worker: Worker, how: str, status: str
) -> None:
    """Also at a limit, as by a cancel: FAILURES above, and test_run_marks.py."""
    worker.program.does(f'{ESCAPES}while [ ! -e "$D/go" ]; do sleep 0.02; done\necho done')
    ada.tell(worker)
    run = worker.under_way()
    child = worker.program.escaped
    assert not has_ended(child)
    if how == "ends":
        worker.program.let_go()
    else:
        ada.call("run.cancel", id=run["id"])
    assert worker.settled()["status"] == status
    assert has_ended(child)


# --- failures of every turn ----------------------------------------------------------


def mends(ada: Boss, worker: Worker, number: str, order: str) -> None:
    """When it works again, everything that waited is delivered after one command of the boss."""
    again = ada.tell(worker, text="meanwhile")
    worker.program.answers("mended")
    address = {"address": worker.address} if order == "lane.retry" else {"name": worker.name}
    assert worker.order(order, **address)["changed"]
    eventually(lambda: [ada.get(one)["status"] for one in (number, again)], ["done", "done"])
    assert worker.answers_to(again) == ["mended"] and worker.status()["state"] == "idle"
    assert_idle(worker.daemon, worker.program)


def test_what_stops_every_turn_is_waited_for(ada: Boss, daemon: RunningDaemon, tmp_path: Path) -> None:
    with sweep() as row:
        for what, order in (
            ("missing", "agent.resume"),
            ("locked", "lane.retry"),
            ("homeless", "agent.resume"),
        ):
            with row(what):
                worker, place = Worker(daemon, tmp_path), tmp_path / f"workspace-{what}"
                path, own = worker.program.path, os.path.join(daemon.home.path, "workspaces", worker.name)
                errors = {
                    "missing": ("no_program", f"the program {path} was not found (started in {own})"),
                    "locked": ("no_program", f"the program {path} cannot be run: Permission denied"),
                    "homeless": ("no_workspace", f"its workspace {place} does not exist"),
                }
                if what == "missing":
                    worker.program.goes_away()
                elif what == "locked":
                    path.chmod(0o600)
                else:
                    worker.change(workspace=str(place))
                number = ada.tell(worker)
                run = worker.settled()
                assert (run["error_kind"], run["error"]) == errors[what]
                lane_waits(ada, worker, number, run)
                [notice] = ada.notices_of(worker)
                assert notice.endswith(f"See: hiboss agent status {worker.name}")
                place.mkdir(exist_ok=True)
                mends(ada, worker, number, order)
    end_all(daemon)


def test_a_workspace_that_goes_during_a_run_costs_the_next_one(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    worker.change(workspace=str(workspace))
    worker.program.waits()
    first = ada.tell(worker)
    worker.under_way()
    shutil.rmtree(workspace)
    second = ada.tell(worker)
    worker.program.let_go()
    run = worker.settled(2)
    assert worker.answers_to(first) == ["done"]
    assert run["error_kind"] == "no_workspace"
    lane_waits(ada, worker, second, run)
    workspace.mkdir()
    mends(ada, worker, second, "lane.retry")


def test_a_place_of_its_own_that_is_gone_is_made_again(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    assert worker.settled()["status"] == "completed"
    shutil.rmtree(os.path.join(worker.daemon.home.path, "workspaces", worker.name))
    goes_on(ada, worker)


@pytest.mark.parametrize("what", ["command", "workspace"])
def test_what_mends_a_lane_is_tried_at_once(ada: Boss, worker: Worker, tmp_path: Path, what: str) -> None:
    """Changing the setting that was wrong retries the lane at once."""

    def setting(value: str) -> dict[str, Any]:
        return {"settings": {"command": value}} if what == "command" else {what: value}

    worker.change(**setting(str(tmp_path / "gone")))
    number = ada.tell(worker)
    lane_waits(ada, worker, number, worker.settled())
    with worker.daemon.database() as database:
        hour = 3_600_000
        changed = database.execute("UPDATE lane SET wake_at = wake_at + ? WHERE state = 'waiting'", (hour,))
        database.commit()
        assert changed.rowcount == 1
    worker.change(**setting(worker.program.command if what == "command" else str(tmp_path)))
    eventually(lambda: worker.answers_to(number), ["done"])


# --- the token -----------------------------------------------------------------------


def test_revoking_tokens_ends_the_run_until_there_are_new_ones(ada: Boss, worker: Worker) -> None:
    number, _ = begin(ada, worker)
    worker.order("agent.token.revoke", name=worker.name)
    run = worker.settled()
    assert run["status"] == "cancelled"
    assert run["error"] == "its tokens were revoked; hiboss agent token rotate NAME gives it a new one"
    assert_idle(worker.daemon, worker.program)
    status = worker.status()
    assert (status["state"], status["why"]) == ("paused", run["error"])
    assert (ada.get(number)["status"], ada.get(number)["attempts"]) == ("pending", 0)
    worker.program.answers("with a new one")
    later = ada.tell(worker)
    assert worker.runs() == [run]  # it has no turns meanwhile
    worker.token = worker.order("agent.token.rotate", name=worker.name)["token"]
    eventually(lambda: worker.answers_to(later), ["with a new one"])
    assert ada.get(number)["status"] == "done"


def test_new_tokens_do_not_disturb_a_run(ada: Boss, worker: Worker) -> None:
    worker.program.waits("hiboss agent self >/dev/null && echo still known")
    number = ada.tell(worker)
    worker.under_way()
    worker.order("agent.token.rotate", name=worker.name)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["still known"])


def test_the_token_of_a_run_ends_with_it(ada: Boss, worker: Worker) -> None:
    worker.program.does("echo $HIBOSS_TOKEN")
    number = ada.tell(worker)
    worker.settled()
    [token] = worker.answers_to(number)
    assert Party(worker.daemon, worker.address, token).refusal("agent.self") == "bad_token"


# --- a defect in settling ------------------------------------------------------------


class Defects:
    """Make every change of some columns fail, as a defect of the code that writes them would."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self._daemon = daemon
        self._made: list[str] = []

    def make(self, table: str, column: str) -> None:
        raising = "BEGIN SELECT RAISE(ABORT, 'a defect'); END"
        with self._daemon.database() as database:
            database.execute(f"CREATE TRIGGER on_{column} BEFORE UPDATE OF {column} ON {table} {raising}")
        self._made.append(f"on_{column}")

    def mend(self) -> None:
        with self._daemon.database() as database:
            while self._made:
                database.execute(f"DROP TRIGGER {self._made.pop()}")


@pytest.fixture
def defects(daemon: RunningDaemon) -> Iterator[Defects]:
    made = Defects(daemon)
    yield made
    made.mend()


COMPLETING, FAILING = ("run", "final_text"), ("envelope", "attempts")


@pytest.mark.parametrize("places", [[COMPLETING], [COMPLETING, FAILING]], ids=len)
def test_a_run_that_cannot_be_settled_as_it_ended_still_ends(
    ada: Boss, worker: Worker, defects: Defects, places: list[tuple[str, str]]
) -> None:
    for place in places:
        defects.make(*place)
    number = ada.tell(worker)
    run = worker.settled()
    assert (run["status"], run["error_kind"]) == ("failed", "broke_off")
    assert_idle(worker.daemon, worker.program)
    assert len(worker.runs()) == 1  # it is not repeated at once
    assert ada.get(number)["status"] == "pending"
    defects.mend()
    goes_on(ada, worker)


# --- the disk ------------------------------------------------------------------------


def log_says(daemon: RunningDaemon, words: str, since: int = 0) -> bool:
    """Whether these words are in the log, after so many bytes."""
    return words.encode() in Path(daemon.home.log_file).read_bytes()[since:]


def test_an_answer_for_which_there_is_no_space_is_kept_in_hand_and_written_once(
    disk: Any,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with started(disk.directory) as daemon:
        ada, worker = Boss(daemon), Worker(daemon, tmp_path_factory.mktemp("elsewhere"))
        worker.program.waits("yes word | head -c 100000")
        number = ada.tell(worker)
        run = worker.under_way()
        with disk.full(daemon):
            worker.program.let_go()
            wait_until(lambda: not [pid for pid in worker.program.pids if os.path.exists(f"/proc/{pid}")])
            if disk.code == "store_full":  # nothing can be logged there either
                wait_until(lambda: running(daemon) and worker.status()["state"] == "running")
            else:
                wait_until(lambda: log_says(daemon, "A change waits for the store"))
            assert [held(daemon), running(daemon)] == [[int(number[1:])], [int(run["id"][1:])]]
        assert worker.settled()["status"] == "completed"
        assert [len(text) for text in worker.answers_to(number)] == [99_999]
        goes_on(ada, worker)
        assert rows(daemon, "SELECT count(*) AS n FROM run")[0]["n"] == 2
