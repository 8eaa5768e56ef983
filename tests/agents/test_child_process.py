"""One program (hiboss/agents/child_process.py): real programs, without a daemon."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from hiboss.agents import child_process, process_control, process_table
from hiboss.agents.child_process import Process
from tests.support.shell_agents import SLEEP, STUBBORN, Program
from tests.support.started_programs import Hand, begun, cancelled, carriers, lines
from tests.support.waits import happens

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough time to handle a signal, also on a busy machine."""
    monkeypatch.setattr(process_control, "STEP_SECONDS", 1.0)


# --- starting ------------------------------------------------------------------------


async def test_a_program_leads_a_session_and_a_group_of_its_own(program: Program) -> None:
    program.does('ps -o sid=,pgid= -p $$ >> "$D/facts"; pwd >> "$D/facts"; echo "$HIBOSS_RUN"')
    hand = Hand(program)
    ended = await hand.ends()
    assert (ended.status, ended.too_much_output) == (0, False)
    facts = lines(program, "facts")
    assert facts[0].split() == [str(hand.pid)] * 2 and facts[1] == str(program.directory)
    assert program.pids == [hand.pid]
    assert hand.output.decode() == f"mark of {program.directory}\n"
    assert program.given == "a turn\n"


async def test_when_a_process_was_started_tells_it_from_another(program: Program) -> None:
    program.hangs()
    hand, under_way = await begun(program)
    await happens(lambda: program.pids)
    began = process_control.started_at(hand.pid)
    assert began and began == process_control.started_at(hand.pid)
    assert began != process_control.started_at(os.getpid())
    await cancelled(under_way)
    await happens(lambda: process_control.started_at(hand.pid) is None)


@pytest.mark.parametrize(
    ("name", "stat"), [("a) R 1 (b", b"(a) R 1 (b)"), ("nos-serveurs2-é", b"nos-serveurs2-\xc3)")]
)
async def test_a_name_of_any_kind_breaks_no_look_at_processes(tmp_path: Path, name: str, stat: bytes) -> None:
    """In /proc/PID/stat the name stands between the other fields; Linux cuts it after 15 bytes, also in a letter."""
    odd = tmp_path / name
    odd.symlink_to("/bin/sleep")
    hand = Process([str(odd), "1000"], str(tmp_path), {}, 1000)
    pid = await hand.start()
    try:
        await happens(lambda: stat in Path(f"/proc/{pid}/stat").read_bytes())
        assert process_control.members(pid) == [pid] and process_control.members(os.getpid()) == []
        assert process_control.started_at(pid) is not None
        await hand.end()
        assert process_control.members(pid) == []
    finally:
        process_control.signal_all([pid], signal.SIGKILL)


def test_the_dead_whom_nobody_has_buried_are_no_members() -> None:
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it has ended, and is still listed
        assert psutil.Process(child).status() == psutil.STATUS_ZOMBIE
        assert process_control.members(child) == []
    finally:
        os.waitpid(child, 0)


async def test_processes_are_found_by_the_mark_they_carry(program: Program) -> None:
    program.does(f"setsid {SLEEP} &\n{SLEEP}")
    hand, under_way = await begun(program)
    await happens(lambda: len(carriers(program)) == 3)
    assert hand.pid in carriers(program)
    assert process_control.marked(frozenset({"of nobody", f"mark of {program.directory}0"})) == []
    await cancelled(under_way)


# --- ending --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "status", "output", "signals"),
    [
        ('echo "last words"; exit 3', 3, b"last words\n", ["INT"]),
        (":", -signal.SIGKILL, b"", ["INT", "TERM"]),
    ],
    ids=["it hears INT", "it will not hear"],
)
async def test_a_program_is_asked_twice_and_then_ended(
    program: Program, slow: None, then: str, status: int, output: bytes, signals: list[str]
) -> None:
    traps = "\n".join(f"trap 'echo {name} >> \"$D/signals\"; {then}' {name}" for name in ("INT", "TERM"))
    program.does(f'{traps}\ntouch "$D/ready"\nwhile :; do sleep 0.02; done')
    hand, under_way = await begun(program)
    await happens((program.directory / "ready").exists)
    await hand.process.end()
    assert ((await under_way).status, hand.output) == (status, output)
    assert lines(program, "signals") == signals and process_control.members(hand.pid) == []


GROUP = f'{sys.executable} -c "import os, time; os.setpgid(0, 0); print(1, flush=True); time.sleep(1000)"'
REBORN = f"trap '{SLEEP} & {SLEEP} &' INT TERM\n"


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize(
    ("script", "most"),
    [
        (f"{SLEEP} &\n{SLEEP}", 1),
        (f"{GROUP} &\n{SLEEP}", 1),
        (f"({SLEEP} & {STUBBORN} &)\n{SLEEP}", 1),
        (f"trap '' INT TERM\n{SLEEP} &\n{SLEEP}", 1),
        (f"{REBORN}while :; do sleep 0.02; done", 1),
        (f"trap '' INT TERM\nwhile :; do {SLEEP} & sleep 0.003; done", 20),
    ],
    ids=["children", "a group", "grandchildren", "deaf", "born when asked to end", "without an end"],
)
async def test_whatever_it_has_started_ends_with_it_also_when_it_was_stopped(
    program: Program, script: str, most: int, is_stopped: bool
) -> None:
    program.does(script)
    hand, under_way = await begun(program)
    await happens(lambda: program.pids and len(process_control.members(hand.pid)) > most)
    if is_stopped:
        process_control.signal_all(process_control.members(hand.pid), signal.SIGSTOP)
    await cancelled(under_way)
    assert under_way.cancelled() and process_control.members(hand.pid) == []


async def test_cancelled_again_and_again_it_still_ends_all(program: Program) -> None:
    program.does(f"trap '' INT TERM\n{SLEEP} &\n{SLEEP}")
    hand, under_way = await begun(program)
    await happens(lambda: len(process_control.members(hand.pid)) == 3)
    while not under_way.done():
        under_way.cancel()
        await asyncio.sleep(0.01)
    assert under_way.cancelled()
    assert process_control.members(hand.pid) == []


@pytest.mark.parametrize(
    ("name", "number"), [("TERM", signal.SIGTERM), ("KILL", signal.SIGKILL), ("SEGV", signal.SIGSEGV)]
)
async def test_a_signal_from_elsewhere_is_told_as_its_status(
    program: Program, name: str, number: int
) -> None:
    program.does(f"kill -{name} $$")
    assert (await Hand(program).ends()).status == -number


# --- input and output ----------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nexec <&-\nsleep 0.1\nexit 0\n", "#!/bin/sh\nhead -c 10 >/dev/null\n"],
    ids=["not at all", "closed", "a little"],
)
async def test_a_program_need_not_read_its_turn(program: Program, whole: str) -> None:
    program.becomes(whole)
    ended = await Hand(program, given=b"x" * 3_000_000).ends()
    assert (ended.status, ended.stderr_tail) == (0, "")


async def test_a_long_turn_comes_whole_while_it_answers(program: Program) -> None:
    """No deadlock when both pipes are full."""
    program.becomes("#!/bin/sh\nexec cat\n")
    given = os.urandom(3_000_000)
    hand = Hand(program, given=given, room=len(given))
    ended = await hand.ends()
    assert (ended.status, ended.too_much_output) == (0, False)
    assert hand.output == given


async def test_one_that_has_closed_its_output_is_waited_for(program: Program) -> None:
    program.does('exec >&- 2>&-\ntouch "$D/shut"\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done\nexit 5')
    hand, under_way = await begun(program)
    await happens((program.directory / "shut").exists)
    assert not under_way.done() and process_control.members(hand.pid)
    program.let_go()
    assert (await under_way).status == 5


@pytest.mark.parametrize("script", ["exec yes flood", "trap '' INT TERM\nyes flood & yes flood"])
async def test_a_flood_is_heard_to_its_limit_and_ended(program: Program, script: str) -> None:
    program.does(script)
    hand = Hand(program, room=50_000)
    ended = await hand.ends()
    assert ended.too_much_output and ended.status != 0
    assert hand.output == b"flood\n" * 8333 + b"fl"
    assert process_control.members(hand.pid) == []


async def test_of_complaints_the_end_is_kept_and_each_is_a_sign_of_life(program: Program) -> None:
    program.does("yes complaint | head -c 1000000 >&2\nprintf '\\351t\\351, the end\\n' >&2\nexit 1")
    hand = Hand(program, room=1000)
    ended = await hand.ends()
    assert (ended.status, ended.too_much_output) == (1, False)
    assert ended.stderr_tail.endswith("\ufffdt\ufffd, the end")
    assert len(ended.stderr_tail) <= child_process.STDERR_BYTES
    assert hand.heard and set(hand.heard) == {b""}


async def test_where_there_is_no_proc_a_group_ends_as_a_whole(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on macOS: without /proc only the process group can be found."""
    program.does("trap '' INT TERM\nsleep 1000 &\nsleep 1000 &\necho began\nwait")
    hand, under_way = await begun(program)
    await happens(lambda: b"began" in hand.output)
    born = psutil.Process(hand.pid).children()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(process_table, "PROC", str(tmp_path / "none"))
        assert process_control.members(hand.pid) == [-hand.pid]
        assert process_control.started_at(hand.pid) is None
        process_control.stop(process_control.RunProcesses(frozenset({hand.pid})))
        under_way.cancel()
        with pytest.raises(asyncio.CancelledError):
            await under_way
        await happens(
            lambda: process_control.members(hand.pid) == []
        )  # a process that ended stays until somebody waits for it
    assert len(born) == 2
    assert [one for one in born if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
