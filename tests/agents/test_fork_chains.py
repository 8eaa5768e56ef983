"""Chains of processes, in which each starts the next one and ends soon: they end with their run too."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.agents import left_processes, process_control, survivors
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.shell_agents import SLEEP, Program
from tests.support.started_programs import Hand, carriers, lines, tell, until

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are found by /proc, on Linux only"
)
# It ends by itself after a while, so that a test that fails leaves nothing behind. Each process writes a line.
CHAIN = f"""{shlex.quote(sys.executable)} -I -S -c '
import os, signal, sys, time
seconds, apart, ends = float(sys.argv[2]), sys.argv[3] == "apart", time.monotonic() + 20
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


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "program")
    yield made
    process_control.chase(
        process_control.RunProcesses(marks=frozenset({f"mark of {made.directory}"})), signal.SIGKILL
    )


async def grows(program: Program) -> bool:
    """Tell whether the chain has more links after a while."""
    before = len(lines(program, "links"))
    await asyncio.sleep(0.2)
    return len(lines(program, "links")) > before


@pytest.mark.parametrize("how", ["0.02 together", "0.005 together", "0.03 apart", "0.005 apart"])
def test_a_chain_of_processes_that_each_start_the_next_one_and_end_is_ended(
    program: Program, how: str
) -> None:
    async def story() -> None:
        program.does(f"{CHAIN}{how} &\n{SLEEP}")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: len(lines(program, "links")) > 50)
        assert await hand.process.end()
        await asyncio.wait([under_way])
        assert carriers(program) == [] and not await grows(program)

    tell(story())


@pytest.mark.parametrize("how", ["0.02 together", "0.03 apart"])
def test_a_chain_stands_still_while_its_run_is_paused_and_goes_on(program: Program, how: str) -> None:
    async def story() -> None:
        program.does(f"{CHAIN}{how} &\n{SLEEP}")
        hand = Hand(program)
        under_way = await hand.begin()
        await until(lambda: len(lines(program, "links")) > 50)
        run = process_control.RunProcesses(frozenset({hand.pid}), frozenset({f"mark of {program.directory}"}))
        await asyncio.to_thread(process_control.stop, run)
        assert not await grows(program)
        process_control.resume(run)
        assert await grows(program)
        assert await hand.process.end()
        await asyncio.wait([under_way])
        assert not await grows(program)

    tell(story())


def test_a_process_whose_first_thread_has_ended_is_ended_too(program: Program) -> None:
    async def story() -> None:
        program.does(f"{HEADLESS}{SLEEP}")
        under_way = await Hand(program).begin()
        await until(lambda: lines(program, "headless"))
        pid = int(lines(program, "headless")[0])
        await until(lambda: b") Z " in Path(f"/proc/{pid}/stat").read_bytes())
        assert pid in carriers(program)
        under_way.cancel()
        await asyncio.wait([under_way])
        assert carriers(program) == []
        await until(lambda: not os.path.exists(f"/proc/{pid}/task/{pid + 1}"))

    tell(story())


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
