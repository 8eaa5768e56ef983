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
from tests.support.shell_agents import ESCAPES, SLEEP, Program, has_ended
from tests.support.started_programs import Hand, cancelled, carriers, lines
from tests.support.waits import happens

pytestmark = pytest.mark.usefixtures("quick")

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


async def test_who_left_the_session_and_takes_the_mark_off_may_stay(program: Program) -> None:
    """The way to leave a server running on purpose."""
    program.does(f"""HIBOSS_RUN= setsid sh -c 'echo $$ > "$0/new"; mv "$0/new" "$0/server"; exec {SLEEP}' "$D" >/dev/null 2>&1 &
while [ ! -e "$D/server" ]; do sleep 0.01; done""")
    assert (await Hand(program).ends()).status == 0
    server = psutil.Process(int(lines(program, "server")[0]))
    assert not has_ended(server)
    server.kill()


async def test_programs_started_at_the_same_time_are_told_apart(program: Program, tmp_path: Path) -> None:
    others = [Program(tmp_path / f"other {number}") for number in range(6)]
    for one in (program, *others):
        one.does(f"{ESCAPES}{SLEEP}")
    hands = [Hand(one) for one in (program, *others)]
    runs = await asyncio.gather(*(hand.begin() for hand in hands))
    await happens(lambda: all(lines(hand.program, "escaped") for hand in hands))
    children = [hand.program.escaped for hand in hands]
    for run, child in zip(runs, children, strict=True):
        assert not has_ended(child)
        run.cancel()
        await asyncio.wait([run])
        assert has_ended(child)


async def test_what_others_start_meanwhile_is_no_part_of_a_run(program: Program) -> None:
    """A mark must not be inherited by a process that an adapter starts at the same moment."""
    program.does(SLEEP)
    starting = asyncio.create_task(Hand(program).begin())
    strangers = []
    while not starting.done():
        strangers.append(subprocess.Popen(["/bin/sleep", "1000"], env={}))
        await asyncio.sleep(0)
    try:
        assert len(strangers) > 1
        await happens(lambda: carriers(program))
        starting.result().cancel()
        await asyncio.wait([starting.result()])
        assert [one.poll() for one in strangers] == [None] * len(strangers)
    finally:
        for one in strangers:
            one.kill()
            one.wait()


async def test_a_process_that_hides_its_environment_carries_the_mark_too(program: Program) -> None:
    program.does(f"{HIDES}{SLEEP}")
    under_way = await Hand(program).begin()
    await happens(lambda: lines(program, "hidden"))
    hidden = int(lines(program, "hidden")[0])
    try:
        assert hidden in carriers_seen_by(program, "--bounding-set=-all")
    finally:
        await cancelled(under_way)


async def test_a_server_that_hides_its_environment_may_stay_if_it_takes_both_marks_off(
    program: Program,
) -> None:
    """Like one that writes a title over its environment, as nginx and postgres do. The way of docs/providers.md."""
    program.does(HIDES.replace("setsid", "HIBOSS_RUN= setsid prlimit --locks=unlimited:") + SLEEP)
    under_way = await Hand(program).begin()
    await happens(lambda: lines(program, "hidden"))
    server = int(lines(program, "hidden")[0])
    try:
        found = carriers_seen_by(program, "--bounding-set=-all")
        assert found and server not in found
    finally:
        await cancelled(under_way)
        process_control.signal_all([server], signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
async def test_a_process_of_another_user_is_not_waited_for(program: Program) -> None:
    """Nobody but root can end it: to find it would only let the end of the run take all its rounds."""
    program.does(f"setsid {SLEEP} &\n{SLEEP}")
    under_way = await Hand(program).begin()
    await happens(lambda: len(carriers(program)) == 3)
    assert carriers_seen_by(program, "--reuid=65534", "--clear-groups") == []
    await cancelled(under_way)


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
