"""Blocking calls run a few at once; those that hang take no place from others."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hiboss.channels import blocking_calls
from hiboss.channels.blocking_calls import PARALLEL, run_blocking
from hiboss.core.contracts.failures import LaneError
from tests.support.waits import happens


def test_calls_that_hang_take_no_place_from_others() -> None:
    free = threading.Event()

    async def scenario() -> list[int]:
        hanging = [
            asyncio.create_task(run_blocking(f"/hangs/{number}", free.wait)) for number in range(3 * PARALLEL)
        ]
        await asyncio.sleep(0)
        done = await asyncio.gather(
            *[run_blocking(f"/works/{number}", int, number) for number in range(3 * PARALLEL)]
        )
        free.set()
        assert all(await asyncio.gather(*hanging))
        return done

    assert asyncio.run(scenario()) == list(range(3 * PARALLEL))


def test_only_a_few_calls_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "HANGS_SECONDS", 600.0)  # on a busy machine none of them hangs
    lock, running, most = threading.Lock(), 0, 0
    gate = threading.Barrier(PARALLEL)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(timeout=60)  # passes only if PARALLEL of them are here together
        with lock:
            running -= 1

    async def scenario() -> None:
        await asyncio.gather(*[run_blocking(f"/works/{number}", work) for number in range(4 * PARALLEL)])

    asyncio.run(scenario())
    assert most == PARALLEL


async def test_a_call_that_was_cancelled_before_it_began_never_runs() -> None:
    free, ran = threading.Event(), threading.Event()
    hanging = [asyncio.create_task(run_blocking(f"/hangs/{number}", free.wait)) for number in range(PARALLEL)]
    waiting = asyncio.create_task(run_blocking("/late", ran.set))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    free.set()
    await asyncio.gather(*hanging)
    assert await run_blocking("/late", int, 1) == 1  # it does not hang
    assert not ran.is_set()


async def test_a_place_whose_call_hangs_is_not_called_again_until_it_ends() -> None:
    begun, free = threading.Event(), threading.Event()
    hanging = asyncio.create_task(run_blocking("/hangs", lambda: (begun.set(), free.wait())))
    await happens(begun.is_set)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    with pytest.raises(LaneError, match="does not answer"):
        await run_blocking("/hangs", int, 1)
    free.set()
    while True:
        try:
            assert await run_blocking("/hangs", int, 1) == 1
            return
        except LaneError:
            await asyncio.sleep(0.01)


async def test_the_error_of_a_call_is_raised_where_it_is_awaited() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_blocking("/works", lambda: 1 // 0)


async def test_threads_without_work_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "HANGS_SECONDS", 0.01)
    threads = blocking_calls._Threads()
    monkeypatch.setattr(blocking_calls, "_threads", threads)
    await asyncio.gather(*[run_blocking(f"/works/{number}", int, 1) for number in range(PARALLEL)])
    while threads._idle:
        await asyncio.sleep(0.01)
    assert await run_blocking("/works", int, 1) == 1
