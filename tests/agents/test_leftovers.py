"""What a program leaves behind ends with it, whatever it is and however the program ends; and nothing leaks here.

On each way by which the end of a program and what it left are found: with and without pidfds, by the numbers of
processes and by a look at all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shlex
import sys
import threading
from pathlib import Path

import psutil
import pytest

from hiboss.agents import process_control, process_exit, process_table, recent_processes
from hiboss.agents.child_process import Process
from hiboss.agents.process_control import MARK, RunProcesses
from hiboss.agents.process_table import Table
from tests.support.shell_agents import ESCAPES, SLEEP, STUBBORN, Program, has_ended
from tests.support.started_programs import Hand, begun, carriers, lines
from tests.support.sweeps import sweep
from tests.support.waits import happens

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it is about what Linux has"),
    pytest.mark.usefixtures("quick"),
]

# As daemons do it: a session of its own, a second fork, another directory, no open files. Its pid is in `left`.
DAEMON = f"""{shlex.quote(sys.executable)} -c '
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
os.closerange(0, 100)
with open(sys.argv[1] + "/new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/new", sys.argv[1] + "/left")
time.sleep(1000)
' "$D"
while [ ! -e "$D/left" ]; do sleep 0.01; done
"""
KEPT = 'echo $! > "$D/left"\n'
LEAVES = {
    "a child": f"{SLEEP} >/dev/null 2>&1 &\n{KEPT}",
    "one that has its pipes": f"{SLEEP} &\n{KEPT}",
    "one that does not hear": f"{STUBBORN} >/dev/null 2>&1 &\n{KEPT}",
    "one in another session": f"setsid {SLEEP} >/dev/null 2>&1 &\n{KEPT}",
    "a daemon": DAEMON,
    "one without an environment": f'{ESCAPES}cp "$D/escaped" "$D/left"\n',
}


@pytest.fixture(params=["by its number", "by a look at all", "without pidfds"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    if name == "by a look at all":
        monkeypatch.setattr(recent_processes, "MOST", -1)
    else:
        monkeypatch.setattr(recent_processes, "FASTEST", 100)  # a busy machine is slow
    if name == "without pidfds":
        monkeypatch.delattr(os, "pidfd_open")
    return name


LASTS = {
    "by itself": "exit 0",
    "by a signal": "kill -KILL $$",
    "cancelled": SLEEP,
    "flooding": "exec yes flood",
}


@pytest.mark.slow
async def test_what_a_program_leaves_ends_with_it(tmp_path: Path, way: str) -> None:
    with sweep() as row:
        for (leaves, script), (how, last) in itertools.product(LEAVES.items(), LASTS.items()):
            with row(f"{leaves}, {how}"):
                program = Program(tmp_path / f"{leaves} {how}")
                program.does(f"{script}{last}")
                under_way = await Hand(program).begin()
                await happens(lambda program=program: lines(program, "left"))
                left = int(lines(program, "left")[0])
                if how == "cancelled":
                    assert left in carriers(program)
                    under_way.cancel()
                await asyncio.wait([under_way])
                assert carriers(program) == []
                assert not psutil.pid_exists(left) or has_ended(psutil.Process(left))


async def test_many_programs_leave_no_file_no_thread_and_no_dead_process_here(program: Program) -> None:
    program.becomes("#!/bin/sh\nread turn\necho $turn\n")

    def here() -> tuple[int, int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(psutil.Process().children())

    assert (await Hand(program).ends()).status == 0
    before = here()
    for number in range(200):
        hand = Hand(program, given=b"%d\n" % number)
        assert (await hand.ends()).status == 0 and hand.output == b"%d\n" % number
    after = here()
    assert all(now <= was for now, was in zip(after, before, strict=True)), (
        before,
        after,
    )  # a thread of before may end


async def test_a_program_that_others_reap_too_takes_no_child_of_theirs(program: Program, way: str) -> None:
    """Only the program itself is reaped: what another part of the daemon has started is its own."""
    child = os.fork()
    if child == 0:
        os._exit(7)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    program.does("exit 5")
    assert (await Hand(program).ends()).status == 5
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


async def test_without_pidfds_a_thread_sees_the_end_of_a_program(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    program.waits("exit 4")
    before = threading.active_count()
    under_way = await Hand(program).begin()
    assert threading.active_count() == before + 1
    assert process_exit.watch(os.getpid(), lambda: None) is process_exit.not_watched
    program.let_go()
    assert (await under_way).status == 4
    await happens(lambda: threading.active_count() == before)


# A child of it traces it, and does not wait for it; the child ends when it may, or alone after a while.
TRACED = f"""#!{sys.executable}
import ctypes, os, pathlib, time
here, program = pathlib.Path(__file__).parent, os.getpid()
if os.fork():
    while not (here / "traced").exists(): time.sleep(0.01)
    os._exit(6)
os.setsid()
assert ctypes.CDLL(None).ptrace(0x4206, program, None, None) == 0  # PTRACE_SEIZE
(here / "traced").touch()
for _ in range(9000):
    if (here / "go").exists(): os._exit(0)
    time.sleep(0.01)
(here / "alone").touch()
"""


async def test_a_program_that_ends_while_it_is_traced_does_not_stop_the_event_loop(program: Program) -> None:
    """It cannot be reaped before the one that traces it has let it go."""
    program.becomes(TRACED)
    hand, under_way = await begun(program)
    await happens(lambda: has_ended(psutil.Process(hand.pid)))
    program.let_go()
    assert (await under_way).status == 6
    assert not (program.directory / "alone").exists()


async def test_standard_input_is_a_pipe_that_can_be_opened_by_its_name(program: Program) -> None:
    program.becomes("#!/bin/sh\nexec cat /dev/stdin\n")
    hand = Hand(program)
    assert (await hand.ends()).status == 0 and hand.output == b"a turn\n"


# --- by the numbers of processes -----------------------------------------------------


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> tuple[int, RunProcesses]:
    """The number of a program that has ended, and how its processes would be recognised."""
    monkeypatch.setattr(recent_processes, "MOST", 10_000)
    child = os.fork()
    if child == 0:
        os._exit(0)
    since = int(process_control.started_at(child) or 0)
    os.waitpid(child, 0)
    return child, RunProcesses(frozenset({child}), frozenset({"mark of nobody"}), since)


def say_last(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the machine say that these numbers were given last, one after the other."""
    said = iter(numbers)
    monkeypatch.setattr(recent_processes, "_last_number", lambda: next(said))


def test_where_no_number_was_given_since_nothing_is_left(
    ended: tuple[int, RunProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    number, run = ended
    say_last(monkeypatch, number)
    assert recent_processes.is_none_left(run, number, 0.01)


@pytest.mark.parametrize("last", [0, -5, 10_001], ids=["not known", "begun anew", "too many"])
def test_it_is_not_sure_that_nothing_is_left_if_the_numbers_do_not_tell(
    ended: tuple[int, RunProcesses], monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    number, run = ended
    say_last(monkeypatch, *[number + last if last else 0] * recent_processes.PASSES)
    assert not recent_processes.is_none_left(run, number, 0.01)


def test_the_numbers_of_another_file_system_do_not_tell(
    ended: tuple[int, RunProcesses], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a container with lxcfs these are the numbers of its host."""
    number, run = ended
    monkeypatch.setattr(recent_processes, "_numbers", lambda: 32_768)
    monkeypatch.setattr(process_table, "read_file", lambda name: f"0.1 0.1 0.1 1/99 {number}".encode())
    assert recent_processes.is_none_left(run, number, 0.01)
    (tmp_path / "loadavg").symlink_to("/proc/loadavg")
    monkeypatch.setattr(process_table, "PROC", str(tmp_path))
    assert not recent_processes.is_none_left(run, number, 0.01)


def test_it_is_not_sure_after_a_time_in_which_all_numbers_can_have_been_given(
    ended: tuple[int, RunProcesses],
) -> None:
    number, run = ended
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert not recent_processes.is_none_left(run, number, most / recent_processes.FASTEST + 1)


def test_what_was_started_during_a_pass_is_looked_at_in_the_next_one(
    ended: tuple[int, RunProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    number, run = ended
    looked_at: list[int] = []

    def noted(one: int, since: int) -> None:
        looked_at.append(one)

    monkeypatch.setattr(process_table, "process", noted)
    say_last(monkeypatch, number + 2, number + 4, number + 4)
    assert recent_processes.is_none_left(run, number, 0.01)
    assert looked_at == [number + 1, number + 2, number + 3, number + 4]
    say_last(monkeypatch, *range(number + 1, number + 100))
    assert not recent_processes.is_none_left(run, number, 0.01)  # others are started all the time


async def test_a_process_of_another_run_among_the_numbers_is_no_leftover(
    program: Program, tmp_path: Path
) -> None:
    first = Program(tmp_path / "first")
    first.waits()
    ends = await Hand(first).begin()
    program.does(SLEEP)
    other = Hand(program)
    goes_on = await other.begin()
    first.let_go()
    assert (await ends).status == 0
    assert not has_ended(psutil.Process(other.pid))
    goes_on.cancel()
    await asyncio.wait([goes_on])


async def test_a_program_that_cannot_be_started_leaves_no_open_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        await Process([str(tmp_path / "none")], str(tmp_path), {}, 1_000).start()
    assert len(os.listdir("/proc/self/fd")) == before


# --- a look through /proc takes as long as there are processes: never on the event loop ----


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads on which all processes were looked at."""
    threads: list[threading.Thread] = []
    processes = process_table.processes

    def noted() -> list[int]:
        threads.append(threading.current_thread())
        return processes()

    monkeypatch.setattr(process_table, "processes", noted)
    return threads


async def status_of(*arguments: str, given: bytes = b"") -> int:
    """Run a program to its end; return its exit status."""
    process = Process(arguments, "/", {MARK: "mark of a scan"}, 1_000)
    await process.start()

    async def read(part: bytes) -> None:
        pass

    return (await process.run_to_end(given, read)).status


def test_the_end_of_a_program_does_not_look_through_proc_on_the_loop(looks: list[threading.Thread]) -> None:
    leaves = "import subprocess; subprocess.Popen(['sleep', '1000'], stdin=0); print(input())"
    assert asyncio.run(status_of(sys.executable, "-c", leaves, given=b"hello\n")) == 0
    assert looks, "nothing was looked for: this test proves nothing"
    assert threading.main_thread() not in looks


def test_the_end_of_a_program_that_started_nothing_needs_no_look_at_all_processes(
    looks: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_processes, "MOST", 10_000)  # others start processes too
    monkeypatch.setattr(recent_processes, "FASTEST", 100)  # a busy machine is slow
    for _ in range(20):
        assert asyncio.run(status_of("/bin/cat", given=b"hello\n")) == 0
    # All are looked at when the numbers begin anew, and when others start processes faster than they are read.
    assert len(looks) < 10


async def test_all_who_look_at_the_same_time_share_a_look_and_none_gets_an_older_one_than_its_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, going, may_go_on = 0, threading.Event(), threading.Event()
    read = process_table.read

    def noted(since: int) -> Table:
        nonlocal looks
        looks += 1
        found = read(since)
        going.set()
        assert may_go_on.wait(60)
        return found

    monkeypatch.setattr(process_table, "read", noted)
    first = asyncio.create_task(process_table.look())
    await asyncio.to_thread(going.wait, 60)
    child = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
    try:
        later = [asyncio.create_task(process_table.look()) for _ in range(50)]
        await asyncio.sleep(0)
        may_go_on.set()
        assert child.pid not in (await first).sessions
        tables = await asyncio.gather(*later)
        assert all(table.sessions[child.pid] == [child.pid] for table in tables)
    finally:
        child.kill()
        await child.wait()
    assert looks == 2


async def test_a_look_that_fails_fails_for_all_who_share_it_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes = process_table.processes

    def broken() -> list[int]:
        monkeypatch.setattr(process_table, "processes", processes)
        raise OSError("no /proc now")

    monkeypatch.setattr(process_table, "processes", broken)
    results = await asyncio.gather(*[process_table.look() for _ in range(3)], return_exceptions=True)
    assert [type(one) for one in results] == [OSError] * 3
    assert (await process_table.look()).all
