"""However a program fails, its run is settled with an error text, its lane goes on, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.store.test_full_disk import DISKS, FileLimit
from tests.support.daemons import can_mount, mount, started, unmount, wait_until
from tests.support.parties import Party
from tests.support.shell_agents import (
    ESCAPES,
    Boss,
    Run,
    Worker,
    assert_idle,
    end_all,
    eventually,
    has_ended,
    held,
    limits,
    rows,
    running,
)


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    yield Worker(daemon, tmp_path)
    end_all(daemon)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def goes_on(ada: Boss, worker: Worker) -> None:
    """The next message is answered while an earlier one waits for its retry."""
    before = len(worker.runs())
    worker.program.answers("mended")
    number = ada.tell(worker, text="the next")
    eventually(lambda: worker.answers_to(number), ["mended"])
    assert worker.settled(before + 1)["status"] == "completed"
    assert_idle(worker.daemon, worker.program)


def failed_alone(ada: Boss, worker: Worker, number: str, run: Run) -> None:
    """Only the turn failed: its envelope is retried."""
    assert (run["status"], run["envelopes"], run["answer"]) == ("failed", [number], None)
    envelope = ada.get(number)
    assert (envelope["status"], envelope["attempts"]) == ("pending", 1)
    assert worker.status()["state"] == "retrying"
    assert_idle(worker.daemon, worker.program)


def lane_waits(ada: Boss, worker: Worker, number: str, run: Run) -> None:
    """Every turn would fail: no envelope has failed, and the lane shows why it waits."""
    assert (run["status"], run["answer"]) == ("failed", None)
    envelope = ada.get(number)
    assert (envelope["status"], envelope["attempts"]) == ("pending", 0)
    status = worker.status()
    assert (status["state"], status["why"]) == ("waiting", run["error"])
    assert len(ada.notices_of(worker)) == 1
    assert_idle(worker.daemon, worker.program)


# --- failures of one turn ------------------------------------------------------------


@pytest.mark.parametrize("status", [1, 137])
def test_an_exit_status_is_told_with_the_last_line_of_stderr(ada: Boss, worker: Worker, status: int) -> None:
    worker.program.exits(status, "KeyError: 'flour'")
    number = ada.tell(worker)
    run = worker.settled()
    assert run["error"] == f"it ended with exit status {status}: KeyError: 'flour'"
    assert run["error_kind"] == "exit_status"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_no_token_that_a_program_complains_of_is_shown(ada: Boss, worker: Worker) -> None:
    worker.program.does('echo "no luck with $HIBOSS_TOKEN" >&2\nexit 1')
    number = ada.tell(worker)
    run = worker.settled()
    assert run["error"] == "it ended with exit status 1: no luck with hbr_…"
    failed_alone(ada, worker, number, run)
    assert "hbr_…" in Path(worker.daemon.home.log_file).read_text()


def test_a_signal_from_elsewhere_is_told(ada: Boss, worker: Worker) -> None:
    worker.program.does("kill -SEGV $$")
    number = ada.tell(worker)
    run = worker.settled()
    assert run["error"] == "it ended with signal 11"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_what_a_program_reports_is_told(ada: Boss, worker: Worker) -> None:
    worker.program.does("""echo '{"hiboss": "error", "text": "the model is overloaded"}'""")
    number = ada.tell(worker)
    run = worker.settled()
    assert (run["error_kind"], run["error"]) == ("reported", "it reported: the model is overloaded")
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_one_that_gives_no_output_is_ended(ada: Boss, worker: Worker) -> None:
    worker.program.hangs_with_children()
    with limits(worker.daemon, idle_seconds=0.5):
        number = ada.tell(worker)
        run = worker.settled()
    assert run["error_kind"] == "timed_out"
    assert run["error"] == "it gave no output for 0.5 seconds and was ended"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_one_that_goes_on_for_ever_is_ended_however_lively(ada: Boss, worker: Worker) -> None:
    worker.program.does("while :; do echo alive; sleep 0.02; done")
    with limits(worker.daemon, idle_seconds=100, total_seconds=0.6):
        number = ada.tell(worker)
        run = worker.settled()
    assert run["error"] == "it took longer than 0.6 seconds and was ended"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_any_output_is_a_sign_of_life(ada: Boss, daemon: RunningDaemon, tmp_path: Path) -> None:
    """Each runs longer than the idle limit."""
    signs = ["echo alive", "echo alive >&2", """echo '{"hiboss": "tool"}'""", "printf x"]
    workers = [Worker(daemon, tmp_path) for _ in signs]
    with limits(daemon, idle_seconds=1.5):
        for worker, sign in zip(workers, signs, strict=True):
            worker.program.does(
                f"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do {sign}; sleep 0.1; done"
            )
            ada.tell(worker)
        assert [worker.settled()["status"] for worker in workers] == ["completed"] * 4
    assert_idle(daemon, *(worker.program for worker in workers))


def test_one_that_hears_no_signal_is_ended_all_the_same(ada: Boss, worker: Worker) -> None:
    worker.program.ignores_signals()
    with limits(worker.daemon, idle_seconds=0.3):
        number = ada.tell(worker)
        run = worker.settled()
    assert run["error_kind"] == "timed_out"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_a_flood_is_ended_at_its_limit(ada: Boss, worker: Worker) -> None:
    worker.program.floods()
    with limits(worker.daemon, output_bytes=10_000):
        number = ada.tell(worker)
        run = worker.settled()
    assert (run["error_kind"], run["text"]) == ("too_long", None)
    assert run["error"] == "it wrote more than 10000 bytes and was ended"
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


def test_an_answer_longer_than_a_message_may_be_is_refused(ada: Boss, worker: Worker) -> None:
    worker.program.does("yes word | head -c 1200000")
    with limits(worker.daemon, output_bytes=2_000_000):
        number = ada.tell(worker)
        run = worker.settled()
    assert run["error_kind"] == "too_long"
    assert "its answer" in run["error"]
    failed_alone(ada, worker, number, run)
    goes_on(ada, worker)


# --- what is not a failure -----------------------------------------------------------


def test_what_is_no_text_is_replaced_and_noted(ada: Boss, worker: Worker) -> None:
    worker.program.says_bytes(b"caf\xe9 \xff\x00, said she\n")
    number = ada.tell(worker)
    run = worker.settled()
    assert run["status"] == "completed"
    assert run["note"] == "some characters of its answer cannot be stored and were replaced"
    assert worker.answers_to(number) == ["caf\ufffd \ufffd\ufffd, said she"]
    goes_on(ada, worker)


def test_one_that_says_nothing_has_done_its_turn(ada: Boss, worker: Worker) -> None:
    worker.program.says_nothing()
    number = ada.tell(worker)
    run = worker.settled()
    assert (run["status"], run["error"], run["text"]) == ("completed", None, "")
    assert run["note"] == "not sent: the run ended without an answer"
    assert ada.get(number)["status"] == "done"
    assert worker.answers_to(number) == []
    goes_on(ada, worker)


def test_children_left_behind_end_with_their_run(ada: Boss, worker: Worker) -> None:
    worker.program.leaves_children("all set")
    number = ada.tell(worker)
    assert worker.settled()["status"] == "completed"
    assert worker.answers_to(number) == ["all set"]
    assert_idle(worker.daemon, worker.program)
    goes_on(ada, worker)


@pytest.mark.parametrize("how", ["ends", "is cancelled", "reaches its limit"])
def test_a_child_that_left_its_session_with_an_emptied_environment_ends_when_its_run(
    ada: Boss, worker: Worker, how: str
) -> None:
    worker.program.does(f'{ESCAPES}while [ ! -e "$D/go" ]; do sleep 0.02; done\necho done')
    idle = 0.5 if how == "reaches its limit" else 100
    with limits(worker.daemon, idle_seconds=idle):
        ada.tell(worker)
        run = worker.under_way()
        child = worker.program.escaped
        if how == "ends":
            assert not has_ended(child)
            worker.program.let_go()
        if how == "is cancelled":
            ada.call("run.cancel", id=run["id"])
        ended = worker.settled()
    wanted = {"ends": "completed", "is cancelled": "cancelled", "reaches its limit": "failed"}
    assert ended["status"] == wanted[how]
    assert has_ended(child)
    assert_idle(worker.daemon, worker.program)


def test_a_program_that_does_not_read_its_turn_may_answer(ada: Boss, worker: Worker) -> None:
    worker.program.becomes("#!/bin/sh\nexec <&-\necho blind\n")
    number = ada.tell(worker, text="x" * 900_000)
    assert worker.settled()["status"] == "completed"
    assert worker.answers_to(number) == ["blind"]
    goes_on(ada, worker)


# --- failures of every turn ----------------------------------------------------------


def mends(ada: Boss, worker: Worker, number: str, order: str) -> None:
    """When it works again, everything that waited is delivered after one command of the boss."""
    again = ada.tell(worker, text="meanwhile")
    worker.program.answers("mended")
    address = {"address": worker.address} if order == "lane.retry" else {"name": worker.name}
    assert worker.order(order, **address)["changed"]
    eventually(lambda: [ada.get(one)["status"] for one in (number, again)], ["done", "done"])
    assert worker.answers_to(again) == ["mended"]
    assert worker.status()["state"] == "idle"
    assert_idle(worker.daemon, worker.program)


def test_a_program_that_is_missing_is_waited_for(ada: Boss, worker: Worker) -> None:
    worker.program.goes_away()
    number = ada.tell(worker)
    run = worker.settled()
    assert run["error_kind"] == "no_program"
    workspace = os.path.join(worker.daemon.home.path, "workspaces", worker.name)
    assert run["error"] == f"the program {worker.program.path} was not found (started in {workspace})"
    lane_waits(ada, worker, number, run)
    [notice] = ada.notices_of(worker)
    assert notice.endswith(f"See: hiboss agent status {worker.name}")
    mends(ada, worker, number, "agent.resume")


def test_a_program_that_cannot_be_run_is_waited_for(ada: Boss, worker: Worker) -> None:
    worker.program.path.chmod(0o600)
    number = ada.tell(worker)
    run = worker.settled()
    assert run["error"] == f"the program {worker.program.path} cannot be run: Permission denied"
    lane_waits(ada, worker, number, run)
    mends(ada, worker, number, "lane.retry")


def test_a_workspace_that_is_gone_is_waited_for(ada: Boss, worker: Worker, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    worker.change(workspace=str(workspace))
    number = ada.tell(worker)
    run = worker.settled()
    assert (run["error_kind"], run["error"]) == ("no_workspace", f"its workspace {workspace} does not exist")
    lane_waits(ada, worker, number, run)
    workspace.mkdir()
    mends(ada, worker, number, "agent.resume")


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
    assert_idle(worker.daemon, worker.program)


# --- the token -----------------------------------------------------------------------


def test_revoking_tokens_ends_the_run_until_there_are_new_ones(ada: Boss, worker: Worker) -> None:
    worker.program.hangs()
    number = ada.tell(worker)
    worker.under_way()
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
    assert_idle(worker.daemon, worker.program)


def test_new_tokens_do_not_disturb_a_run(ada: Boss, worker: Worker) -> None:
    worker.program.waits("hiboss agent self >/dev/null && echo still known")
    number = ada.tell(worker)
    worker.under_way()
    worker.order("agent.token.rotate", name=worker.name)
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["still known"])
    assert_idle(worker.daemon, worker.program)


def test_the_token_of_a_run_ends_with_it(ada: Boss, worker: Worker) -> None:
    worker.program.does("echo $HIBOSS_TOKEN")
    number = ada.tell(worker)
    worker.settled()
    [token] = worker.answers_to(number)
    former = Party(worker.daemon, worker.address, token)
    assert former.refusal("agent.self") == "bad_token"
    assert_idle(worker.daemon, worker.program)


def test_a_program_may_spoil_its_token_file_and_its_answer_is_sent_all_the_same(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    """What follows the settling must not be kept back: the answer to a channel would lie there."""
    worker.program.does('rm "$HIBOSS_TOKEN_FILE"; mkdir "$HIBOSS_TOKEN_FILE"; echo done')
    number = ada.tell(worker)
    assert worker.settled()["status"] == "completed"
    eventually(lambda: worker.answers_to(number), ["done"])
    assert not log_says(worker.daemon, "could not be settled")
    goes_on(ada, worker)


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


@pytest.fixture(params=DISKS, ids=lambda kind: kind.__name__)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param is FileLimit:
        yield FileLimit(tmp_path)
        return
    assert can_mount()
    assert mount(tmp_path)
    try:
        yield request.param(tmp_path)
    finally:
        unmount(tmp_path)


def log_says(daemon: RunningDaemon, words: str) -> bool:
    return words in Path(daemon.home.log_file).read_text()


def test_an_answer_for_which_there_is_no_space_is_kept_in_hand_and_written_once(
    disk: Any, tmp_path_factory: pytest.TempPathFactory
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
