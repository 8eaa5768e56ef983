"""Every process of a run carries its mark and ends with it, wherever it went; and no other process does."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hiboss.agents import process_control
from hiboss.agents.process_control import MARK
from tests.support.shell_agents import ESCAPES, SLEEP, Program, has_ended
from tests.support.started_programs import Hand, carriers, lines, tell, until

# Writes its pid to `hidden` when nobody may read its environment any more, like ssh-agent and gpg-agent.
HIDES = f"""setsid {shlex.quote(sys.executable)} -c '
import ctypes, os, sys, time
PR_SET_DUMPABLE = 4
assert ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
with open(sys.argv[1] + "/new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/new", sys.argv[1] + "/hidden")
time.sleep(1000)
' "$D" </dev/null >/dev/null 2>&1 &
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program")


@pytest.mark.parametrize("how", ["cancelled", "flooding", "by itself"])
def test_a_child_that_left_its_session_with_an_emptied_environment_ends_with_its_program(
    program: Program, how: str
) -> None:
    async def story() -> None:
        last = {"cancelled": SLEEP, "flooding": "exec yes flood", "by itself": "echo done"}[how]
        program.does(f'{ESCAPES}while [ ! -e "$D/go" ]; do sleep 0.01; done\n{last}')
        under_way = await Hand(program).begin()
        await until(lambda: lines(program, "escaped"))
        child = program.escaped
        try:
            assert os.getsid(child.pid) != program.pids[0] and MARK not in child.environ()
            program.let_go()
            if how == "cancelled":
                under_way.cancel()
            await asyncio.wait([under_way])
            assert has_ended(child)
        finally:
            process_control.signal_all([child.pid], signal.SIGKILL)

    tell(story())


def test_who_left_the_session_of_a_program_that_ends_by_itself_ends_too(program: Program) -> None:
    async def story() -> None:
        program.does(f"setsid {SLEEP} >/dev/null 2>&1 &\nsleep 0.2\necho done")
        assert (await Hand(program).ends()).status == 0
        assert carriers(program) == []

    tell(story())


def test_who_left_the_session_and_takes_the_mark_off_may_stay(program: Program) -> None:
    """The way to leave a server running on purpose."""

    async def story() -> None:
        program.does(
            f'HIBOSS_RUN= setsid {SLEEP} >/dev/null 2>&1 &\necho $! > "$D/server"\nsleep 0.2\necho done'
        )
        assert (await Hand(program).ends()).status == 0
        server = psutil.Process(int(lines(program, "server")[0]))
        assert not has_ended(server)
        server.kill()

    tell(story())


def test_programs_started_at_the_same_time_are_told_apart(program: Program, tmp_path: Path) -> None:
    async def story() -> None:
        others = [Program(tmp_path / f"other {number}") for number in range(6)]
        for one in (program, *others):
            one.does(f"{ESCAPES}{SLEEP}")
        hands = [Hand(one) for one in (program, *others)]
        runs = await asyncio.gather(*(hand.begin() for hand in hands))
        await until(lambda: all(lines(hand.program, "escaped") for hand in hands))
        children = [hand.program.escaped for hand in hands]
        for run, child in zip(runs, children, strict=True):
            assert not has_ended(child)
            run.cancel()
            await asyncio.wait([run])
            assert has_ended(child)

    tell(story())


def test_what_others_start_meanwhile_is_no_part_of_a_run(program: Program) -> None:
    """A mark must not be inherited by a process that an adapter starts at the same moment."""

    async def story() -> None:
        program.does(SLEEP)
        hand = Hand(program)
        starting = asyncio.create_task(hand.begin())
        strangers = []
        while not starting.done():
            strangers.append(subprocess.Popen(["/bin/sleep", "1000"], env={}))
            await asyncio.sleep(0)
        try:
            assert len(strangers) > 1
            await until(lambda: carriers(program))
            starting.result().cancel()
            await asyncio.wait([starting.result()])
            assert [one.poll() for one in strangers] == [None] * len(strangers)
        finally:
            for one in strangers:
                one.kill()
                one.wait()

    tell(story())


def test_a_process_that_hides_its_environment_carries_the_mark_too(program: Program) -> None:
    async def story() -> None:
        program.does(f"{HIDES}{SLEEP}")
        under_way = await Hand(program).begin()
        await until(lambda: lines(program, "hidden"))
        hidden = int(lines(program, "hidden")[0])
        try:
            assert hidden in carriers_seen_by(program, "--bounding-set=-all")
        finally:
            under_way.cancel()
            await asyncio.wait([under_way])

    tell(story())


def test_a_server_that_hides_its_environment_may_stay_if_it_takes_both_marks_off(program: Program) -> None:
    """Like one that writes a title over its environment, as nginx and postgres do. The way of docs/providers.md."""

    async def story() -> None:
        program.does(HIDES.replace("setsid", "HIBOSS_RUN= setsid prlimit --locks=unlimited:") + SLEEP)
        under_way = await Hand(program).begin()
        await until(lambda: lines(program, "hidden"))
        server = int(lines(program, "hidden")[0])
        try:
            found = carriers_seen_by(program, "--bounding-set=-all")
            assert found and server not in found
        finally:
            under_way.cancel()
            await asyncio.wait([under_way])
            process_control.signal_all([server], signal.SIGKILL)

    tell(story())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_a_process_of_another_user_is_not_waited_for(program: Program) -> None:
    """Nobody but root can end it: to find it would only let the end of the run take all its rounds."""

    async def story() -> None:
        program.does(f"setsid {SLEEP} &\n{SLEEP}")
        under_way = await Hand(program).begin()
        await until(lambda: len(carriers(program)) == 3)
        assert carriers_seen_by(program, "--reuid=65534", "--clear-groups") == []
        under_way.cancel()
        await asyncio.wait([under_way])

    tell(story())


def carriers_seen_by(program: Program, *rights: str) -> list[int]:
    """Return the processes that carry the mark of a program, as a process without some rights of root sees it."""
    look = "import sys; from hiboss.agents import process_control as p; print(*p.marked(frozenset(sys.argv[1:])))"
    drop = ["setpriv", *rights, "--"] if os.geteuid() == 0 else []
    found = subprocess.run(
        [*drop, sys.executable, "-c", look, f"mark of {program.directory}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in found.stdout.split()]
