"""One program (hiboss/agents/child_process.py): real programs, without a daemon."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hiboss.agents import child_process, process_control, process_table
from hiboss.agents.child_process import Process
from tests.support.shell_agents import SLEEP, STUBBORN, Program
from tests.support.started_programs import Hand, carriers, lines, tell, until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough time to handle a signal, also on a busy machine."""
    monkeypatch.setattr(process_control, "STEP_SECONDS", 1.0)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "program")
    yield made
    for pid in made.pids:  # of a test that failed
        process_control.signal_all(process_control.members(pid), signal.SIGKILL)
    process_control.signal_all(carriers(made), signal.SIGKILL)


# --- starting ------------------------------------------------------------------------


def test_a_program_leads_a_session_and_a_group_of_its_own(program: Program) -> None:
    async def story() -> None:
        program.does('ps -o sid=,pgid= -p $$ >> "$D/facts"; pwd >> "$D/facts"; echo "$HIBOSS_RUN"')
        hand = Hand(program)
        ended = await hand.ends()
        assert (ended.status, ended.too_much_output) == (0, False)
        facts = lines(program, "facts")
        assert facts[0].split() == [str(hand.pid)] * 2
        assert facts[1] == str(program.directory)
        assert program.pids == [hand.pid]
        assert hand.output.decode() == f"mark of {program.directory}\n"
        assert program.given == "a turn\n"

    tell(story())


def test_when_a_process_was_started_tells_it_from_another(program: Program) -> None:
    async def story() -> None:
        program.hangs()
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: program.pids)
        began = process_control.started_at(hand.pid)
        assert began
        assert began == process_control.started_at(hand.pid)
        assert began != process_control.started_at(os.getpid())
        under_way.cancel()
        await asyncio.wait([under_way])
        await until(lambda: process_control.started_at(hand.pid) is None)

    tell(story())


def test_a_name_with_brackets_and_blanks_is_read_rightly(tmp_path: Path) -> None:
    """In /proc/PID/stat the name of the program, which may be anything, stands between the other fields."""

    async def story() -> None:
        odd = tmp_path / "a) R 1 (b"
        odd.symlink_to("/bin/sleep")
        hand = Process([str(odd), "1000"], str(tmp_path), {}, 1000)
        pid = await hand.start()
        assert process_control.members(pid) == [pid]
        await hand.end()
        assert process_control.members(pid) == []

    tell(story())


def test_a_name_that_is_no_utf_8_breaks_no_look_at_processes(tmp_path: Path) -> None:
    """Linux cuts a name after 15 bytes, also in the middle of a letter."""

    async def story() -> None:
        cut = tmp_path / "nos-serveurs2-é"
        cut.symlink_to("/bin/sleep")
        hand = Process([str(cut), "1000"], str(tmp_path), {}, 1000)
        pid = await hand.start()
        try:
            await until(lambda: b"nos-serveurs2-\xc3)" in Path(f"/proc/{pid}/stat").read_bytes())
            assert process_control.members(pid) == [pid]
            assert process_control.members(os.getpid()) == []
            assert process_control.started_at(pid) is not None
            await hand.end()
            assert process_control.members(pid) == []
        finally:
            process_control.signal_all([pid], signal.SIGKILL)

    tell(story())


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


def test_processes_are_found_by_the_mark_they_carry(program: Program) -> None:
    async def story() -> None:
        program.does(f"setsid {SLEEP} &\n{SLEEP}")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: len(carriers(program)) == 3)
        assert hand.pid in carriers(program)
        assert process_control.marked(frozenset({"of nobody", f"mark of {program.directory}0"})) == []
        under_way.cancel()
        await asyncio.wait([under_way])

    tell(story())


# --- ending --------------------------------------------------------------------------


def test_a_program_that_hears_int_ends_by_it_alone_and_may_say_last_words(
    program: Program, slow: None
) -> None:
    async def story() -> None:
        note = "echo {0} >> \"$D/signals\"; echo 'last words'; exit 3"
        traps = "\n".join(f"trap '{note.format(name)}' {name}" for name in ("INT", "TERM")).replace(
            "'last words'", '"last words"'
        )
        program.does(f'{traps}\ntouch "$D/ready"\nwhile :; do sleep 0.02; done')
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: (program.directory / "ready").exists())
        await hand.process.end()
        ended = await under_way
        assert (ended.status, hand.output) == (3, b"last words\n")
        assert lines(program, "signals") == ["INT"]

    tell(story())


def test_one_that_will_not_hear_is_asked_twice_and_then_ended(program: Program, slow: None) -> None:
    async def story() -> None:
        traps = "\n".join(f"trap 'echo {name} >> \"$D/signals\"' {name}" for name in ("INT", "TERM"))
        program.does(f'{traps}\ntouch "$D/ready"\nwhile :; do sleep 0.02; done')
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: (program.directory / "ready").exists())
        await hand.process.end()
        ended = await under_way
        assert lines(program, "signals") == ["INT", "TERM"]
        assert ended.status == -signal.SIGKILL
        assert process_control.members(hand.pid) == []

    tell(story())


@pytest.mark.parametrize("script", [SLEEP, f"{STUBBORN}", f"trap '' INT TERM\n{SLEEP} &\n{SLEEP}"])
def test_one_that_is_stopped_can_be_ended(program: Program, script: str) -> None:
    async def story() -> None:
        program.does(f'touch "$D/ready"\n{script}')
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: (program.directory / "ready").exists())
        await until(lambda: len(process_control.members(hand.pid)) > 1)
        process_control.signal_all(process_control.members(hand.pid), signal.SIGSTOP)
        under_way.cancel()
        await asyncio.wait([under_way])
        assert process_control.members(hand.pid) == []

    tell(story())


GROUP = f'{sys.executable} -c "import os, time; os.setpgid(0, 0); print(1, flush=True); time.sleep(1000)"'
REBORN = f"trap '{SLEEP} & {SLEEP} &' INT TERM\n"


@pytest.mark.parametrize(
    "script",
    [
        f"{SLEEP} &\n{SLEEP}",
        f"{GROUP} &\n{SLEEP}",
        f"({SLEEP} & {STUBBORN} &)\n{SLEEP}",
        f"{REBORN}while :; do sleep 0.02; done",
    ],
    ids=["children", "in a group of their own", "grandchildren", "born when asked to end"],
)
def test_whatever_it_has_started_ends_with_it(program: Program, script: str) -> None:
    async def story() -> None:
        program.does(f'touch "$D/ready"\n{script}')
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: (program.directory / "ready").exists())
        await until(lambda: len(process_control.members(hand.pid)) > 1)
        under_way.cancel()
        await asyncio.wait([under_way])
        assert under_way.cancelled()
        assert process_control.members(hand.pid) == []

    tell(story())


def test_one_that_starts_others_without_an_end_is_ended_with_the_last_of_them(program: Program) -> None:
    async def story() -> None:
        program.does(f"trap '' INT TERM\nwhile :; do {SLEEP} & sleep 0.003; done")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: len(process_control.members(hand.pid)) > 20)
        under_way.cancel()
        await asyncio.wait([under_way])
        assert process_control.members(hand.pid) == []

    tell(story())


@pytest.mark.parametrize("how", ["cancelled", "flooding"])
def test_who_left_the_session_of_a_program_that_must_be_ended_ends_too(program: Program, how: str) -> None:
    """Many tools start each command in a session of its own; none may go on after the run."""

    async def story() -> None:
        last = "exec yes flood" if how == "flooding" else SLEEP
        program.does(f"setsid {SLEEP} >/dev/null 2>&1 &\nsleep 0.2\n{last}")
        hand = Hand(program)
        under_way = await hand.begin()
        if how == "cancelled":
            await until(lambda: len(carriers(program)) == 3)
            under_way.cancel()
        await asyncio.wait([under_way])
        assert carriers(program) == []

    tell(story())


def test_cancelled_again_and_again_it_still_ends_all(program: Program) -> None:
    async def story() -> None:
        program.does(f"trap '' INT TERM\n{SLEEP} &\n{SLEEP}")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: len(process_control.members(hand.pid)) == 3)
        while not under_way.done():
            under_way.cancel()
            await asyncio.sleep(0.01)
        assert under_way.cancelled()
        assert process_control.members(hand.pid) == []

    tell(story())


@pytest.mark.parametrize(
    ("name", "number"), [("TERM", signal.SIGTERM), ("KILL", signal.SIGKILL), ("SEGV", signal.SIGSEGV)]
)
def test_a_signal_from_elsewhere_is_told_as_its_status(program: Program, name: str, number: int) -> None:
    async def story() -> None:
        program.does(f"kill -{name} $$")
        assert (await Hand(program).ends()).status == -number

    tell(story())


# --- input and output ----------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nexec <&-\nsleep 0.1\nexit 0\n", "#!/bin/sh\nhead -c 10 >/dev/null\n"],
    ids=["not at all", "closed", "a little"],
)
def test_a_program_need_not_read_its_turn(program: Program, whole: str) -> None:
    async def story() -> None:
        program.becomes(whole)
        ended = await Hand(program, given=b"x" * 3_000_000).ends()
        assert (ended.status, ended.stderr_tail) == (0, "")

    tell(story())


def test_a_long_turn_comes_whole_while_it_answers(program: Program) -> None:
    """No deadlock when both pipes are full."""

    async def story() -> None:
        program.becomes("#!/bin/sh\nexec cat\n")
        given = os.urandom(3_000_000)
        hand = Hand(program, given=given, room=len(given))
        ended = await hand.ends()
        assert (ended.status, ended.too_much_output) == (0, False)
        assert hand.output == given

    tell(story())


def test_one_that_has_closed_its_output_is_waited_for(program: Program) -> None:
    async def story() -> None:
        program.does('exec >&- 2>&-\nwhile [ ! -e "$D/go" ]; do sleep 0.02; done\nexit 5')
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: program.pids)
        await asyncio.sleep(0.05)
        assert not under_way.done()
        program.let_go()
        assert (await under_way).status == 5

    tell(story())


@pytest.mark.parametrize("script", ["exec yes flood", "trap '' INT TERM\nyes flood & yes flood"])
def test_a_flood_is_heard_to_its_limit_and_ended(program: Program, script: str) -> None:
    async def story() -> None:
        program.does(script)
        hand = Hand(program, room=50_000)
        ended = await hand.ends()
        assert ended.too_much_output
        assert ended.status != 0
        assert hand.output == b"flood\n" * 8333 + b"fl"
        assert process_control.members(hand.pid) == []

    tell(story())


def test_of_complaints_the_end_is_kept_and_each_is_a_sign_of_life(program: Program) -> None:
    async def story() -> None:
        program.does("yes complaint | head -c 1000000 >&2\nprintf '\\351t\\351, the end\\n' >&2\nexit 1")
        hand = Hand(program, room=1000)
        ended = await hand.ends()
        assert (ended.status, ended.too_much_output) == (1, False)
        assert ended.stderr_tail.endswith("\ufffdt\ufffd, the end")
        assert len(ended.stderr_tail) <= child_process.STDERR_BYTES
        assert hand.heard
        assert set(hand.heard) == {b""}

    tell(story())


def test_where_there_is_no_proc_a_group_ends_as_a_whole(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on macOS: without /proc only the process group can be found."""

    async def story() -> None:
        program.does("trap '' INT TERM\nsleep 1000 &\nsleep 1000 &\necho began\nwait")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: b"began" in hand.output)
        born = psutil.Process(hand.pid).children()
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(process_table, "PROC", str(tmp_path / "none"))
            assert process_control.members(hand.pid) == [-hand.pid]
            assert process_control.started_at(hand.pid) is None
            process_control.stop(process_control.RunProcesses(frozenset({hand.pid})))
            under_way.cancel()
            with pytest.raises(asyncio.CancelledError):
                await under_way
            await until(
                lambda: process_control.members(hand.pid) == []
            )  # a process that ended stays until somebody waits for it
        assert len(born) == 2
        assert [one for one in born if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []

    tell(story())
