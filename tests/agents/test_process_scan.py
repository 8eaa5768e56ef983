"""Looking through /proc takes as long as there are processes: it never happens on the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from hiboss.agents import process_table, recent_processes
from hiboss.agents.child_process import Process
from hiboss.agents.process_control import MARK
from hiboss.agents.process_table import Table


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a /proc on Linux only")
def test_the_end_of_a_program_does_not_look_through_proc_on_the_loop(looks: list[threading.Thread]) -> None:
    leaves = "import subprocess; subprocess.Popen(['sleep', '1000'], stdin=0); print(input())"
    assert asyncio.run(status_of(sys.executable, "-c", leaves, given=b"hello\n")) == 0
    assert looks, "nothing was looked for: this test proves nothing"
    assert threading.main_thread() not in looks


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a /proc on Linux only")
def test_the_end_of_a_program_that_started_nothing_needs_no_look_at_all_processes(
    looks: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_processes, "MOST", 10_000)  # others start processes too
    monkeypatch.setattr(recent_processes, "FASTEST", 100)  # a busy machine is slow
    for _ in range(20):
        assert asyncio.run(status_of("/bin/cat", given=b"hello\n")) == 0
    # All are looked at when the numbers begin anew, and when others start processes faster than they are read.
    assert len(looks) < 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a /proc on Linux only")
def test_all_who_look_at_the_same_time_share_a_look_and_none_gets_an_older_one_than_its_question(
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

    async def scenario() -> None:
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

    asyncio.run(scenario())
    assert looks == 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a /proc on Linux only")
def test_a_look_that_fails_fails_for_all_who_share_it_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes = process_table.processes

    def broken() -> list[int]:
        monkeypatch.setattr(process_table, "processes", processes)
        raise OSError("no /proc now")

    monkeypatch.setattr(process_table, "processes", broken)

    async def scenario() -> None:
        results = await asyncio.gather(*[process_table.look() for _ in range(3)], return_exceptions=True)
        assert [type(one) for one in results] == [OSError] * 3
        assert (await process_table.look()).all

    asyncio.run(scenario())
