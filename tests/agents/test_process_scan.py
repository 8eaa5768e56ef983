"""Looking through /proc takes as long as there are processes: it never happens on the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from hiboss.agents import process_control
from hiboss.agents.child_process import Process


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is a /proc on Linux only")
def test_the_end_of_a_program_does_not_look_through_proc_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    processes = process_control._processes

    def noted() -> list[int]:
        threads.append(threading.current_thread())
        return processes()

    monkeypatch.setattr(process_control, "_processes", noted)

    async def scenario() -> int:
        process = Process([sys.executable, "-c", "print(input())"], "/", {}, 1_000)
        await process.start()

        async def read(part: bytes) -> None:
            pass

        return (await process.run_to_end(b"hello\n", read)).status

    assert asyncio.run(scenario()) == 0
    assert threads, "nothing was looked for: this test proves nothing"
    assert threading.main_thread() not in threads
