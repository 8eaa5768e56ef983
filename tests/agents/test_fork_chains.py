"""Chains of processes, in which each starts the next one and ends soon: they end with their run too."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import psutil
import pytest

from hiboss.agents import left_processes, process_control, survivors
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.shell_agents import SLEEP, Program
from tests.support.started_programs import Hand, begun, cancelled, carriers, lines, mark_of
from tests.support.waits import happens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="processes are found by /proc, on Linux only"
    ),
    pytest.mark.usefixtures("quick"),
]
# It ends by itself after a while, so that a test that fails leaves nothing behind. Each process writes a line.
CHAIN = f"""{shlex.quote(sys.executable)} -I -S -c '
import os, signal, sys, time
seconds, apart, ends = float(sys.argv[2]), sys.argv[3] == "apart", time.monotonic() + 90
if apart:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
file = os.open(sys.argv[1] + "/links", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while time.monotonic() < ends:
    if os.fork():
        time.sleep(seconds)
        os._exit(0)
    if apart:
        os.setsid()
    os.write(file, b"x\\n")
' "$D" """
# Its first thread ends, and the other one goes on: Linux shows it as a zombie.
HEADLESS = f"""setsid {shlex.quote(sys.executable)} -I -S -c '
import ctypes, os, sys, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
with open(sys.argv[1] + "/new", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/new", sys.argv[1] + "/headless")
ctypes.CDLL(None).syscall(60, 0)
' "$D" </dev/null >/dev/null 2>&1 &
"""


def links(program: Program) -> int:
    return len(lines(program, "links"))


def stands_still(program: Program) -> bool:
    """Tell whether all processes of a program are stopped."""
    found = {one.status() for one in map(psutil.Process, carriers(program))}
    # A shell whose child was stopped between vfork and exec waits for that child, in the kernel.
    return psutil.STATUS_STOPPED in found <= {psutil.STATUS_STOPPED, psutil.STATUS_DISK_SLEEP}


@pytest.mark.parametrize("how", ["0.02 together", "0.005 together", "0.03 apart", "0.005 apart"])
async def test_a_chain_of_processes_that_each_start_the_next_one_and_end_stands_still_goes_on_and_is_ended(
    program: Program, how: str
) -> None:
    program.does(f"{CHAIN}{how} &\n{SLEEP}")
    hand, under_way = await begun(program)
    await happens(lambda: links(program) > 50)
    run = process_control.RunProcesses(frozenset({hand.pid}), frozenset({mark_of(program)}))
    if not how.startswith("0.005"):  # of the quicker ones some may be missed, and go on
        await asyncio.to_thread(process_control.stop, run)
        await happens(lambda: stands_still(program))
        before = links(program)
        process_control.resume(run)
        await happens(lambda: links(program) > before)
    assert await hand.process.end()
    await asyncio.wait([under_way])
    assert carriers(program) == []


async def test_a_process_whose_first_thread_has_ended_is_ended_too(program: Program) -> None:
    program.does(f"{HEADLESS}{SLEEP}")
    under_way = await Hand(program).begin()
    await happens(lambda: lines(program, "headless"))
    pid = int(lines(program, "headless")[0])
    await happens(lambda: b") Z " in Path(f"/proc/{pid}/stat").read_bytes())
    assert pid in carriers(program)
    await cancelled(under_way)
    assert carriers(program) == []
    await happens(lambda: not os.path.exists(f"/proc/{pid}/task/{pid + 1}"))


@frozen(quiet=False)
async def test_the_boss_is_told_once_of_a_run_whose_processes_may_not_all_have_ended(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("agent.set", name="nex", provider="demo")
    runner = daemon.daemon.wiring.runner
    mark = left_processes.mark(runner._store.run_marks, 1)
    survivors.note(mark)
    for number in (1, 2):
        await daemon.send("agent:nex", who="boss", text=f"apples {number}")
        query = "SELECT 1 FROM run WHERE status = 'completed' AND id = ?"
        await daemon.until(lambda query=query, number=number: bool(daemon.rows(query, number)))
    told = daemon.rows("SELECT text FROM message WHERE text LIKE '%not all its processes have ended%'")
    assert len(told) == 1
    assert told[0]["text"].startswith("r1 of agent:nex is over") and f"HIBOSS_RUN={mark} " in told[0]["text"]
    daemon.check()
