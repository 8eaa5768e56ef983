"""The writer's rule for groups: who writes at the same time shares a COMMIT, and who is alone waits for nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.errors import Busy
from hiboss.store import agents
from hiboss.store.group_commit import LINGER_SECONDS, Tx, Writer
from hiboss.store.planned_writes import settle
from tests.store.chat_scene import NEX
from tests.store.written_house import Operation, WrittenHouse

KAI, MAX = Address("agent", "kai"), Address("agent", "max")


@pytest.fixture
def house(written: WrittenHouse) -> WrittenHouse:
    return written


class Counted:
    """The writer of a house, whose groups are counted, and can be held before their COMMIT."""

    def __init__(self, house: WrittenHouse) -> None:
        self.house = house
        self.writer: Writer = house.writer
        self.writer.before_commit = self._before_commit
        self.committing = 0  # the number of the group that is written now
        self.slow = False
        self._held, self._let_go = threading.Event(), threading.Event()

    def _before_commit(self, tx: Tx) -> None:
        self.committing += 1
        if self.slow:
            self._held.set()
            assert self._let_go.wait(30)
            self._let_go.clear()

    def in_group(self, tx: Tx) -> int:
        """An operation: its result is the number of its group."""
        return self.committing

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            async with asyncio.timeout(30):  # an answer that is lost would be waited for without end
                return await work()

        return self.house.loop.run_until_complete(whole())

    async def held(self) -> None:
        """Wait until a group is held."""
        assert await asyncio.to_thread(self._held.wait, 30)
        self._held.clear()

    def let_go(self) -> None:
        self._let_go.set()

    async def commit_slowly(self) -> None:
        """Let the loop turn many times between the beginning of each group and its COMMIT."""
        while True:
            await self.held()
            for _ in range(50):
                await asyncio.sleep(0)
            self.let_go()

    def catch_timers(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Any, asyncio.TimerHandle]]:
        """Let the loop's time stand still: return the timers that are set, which never fire by themselves."""
        timers: list[tuple[float, Any, asyncio.TimerHandle]] = []
        call_later = self.house.loop.call_later

        def later(delay: float, callback: Any, *args: Any) -> asyncio.TimerHandle:
            handle = call_later(3_600, callback, *args)
            timers.append((delay, callback, handle))
            return handle

        monkeypatch.setattr(self.house.loop, "call_later", later)
        return timers


@pytest.fixture
def counted(house: WrittenHouse) -> Iterator[Counted]:
    found = Counted(house)
    yield found
    found.slow = False
    found.let_go()


# --- alone ---------------------------------------------------------------------------------


def test_a_single_caller_never_waits_for_others(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = counted.catch_timers(monkeypatch)

    async def work() -> list[int]:
        found = []
        for _ in range(50):
            waiting = counted.writer.submit(counted.in_group)
            assert counted.writer._handed_over == 1  # not even for a turn of the loop
            found.append(await waiting)
        return found

    assert counted.run(work) == list(range(50))
    assert timers == []


def test_one_who_is_left_alone_waits_once_and_then_no_more(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        submit = counted.writer.submit
        await asyncio.gather(*(submit(counted.in_group) for _ in range(3)))
        await asyncio.gather(*(submit(counted.in_group) for _ in range(3)))
        timers = counted.catch_timers(monkeypatch)
        alone = submit(counted.in_group)
        for _ in range(20):
            await asyncio.sleep(0)
        assert counted.writer.waiting == 1 and not alone.done()
        ((delay, fire, _),) = timers
        assert delay == LINGER_SECONDS
        fire()
        await alone
        for _ in range(10):
            await submit(counted.in_group)
        assert len(timers) == 1

    counted.run(work)


def test_when_all_have_come_who_were_expected_the_timer_is_not_waited_for(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        submit = counted.writer.submit
        for _ in range(2):
            await asyncio.gather(*(submit(counted.in_group) for _ in range(3)))
        timers = counted.catch_timers(monkeypatch)
        first = submit(counted.in_group)
        await asyncio.sleep(0)
        assert len(set(await asyncio.gather(first, *[submit(counted.in_group) for _ in range(2)]))) == 1
        ((_, _, handle),) = timers
        assert handle.cancelled()

    counted.run(work)


# --- together --------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [False, True], ids=["quick commit", "slow commit"])
@pytest.mark.parametrize("callers", [2, 7, 32])
def test_all_who_write_in_a_loop_share_every_group_after_a_few_rounds(
    counted: Counted, callers: int, slow: bool
) -> None:
    counted.slow = slow

    async def caller(found: list[int]) -> None:
        for _ in range(12):
            found.append(await counted.writer.submit(counted.in_group))

    async def work() -> list[list[int]]:
        clerk = asyncio.create_task(counted.commit_slowly()) if slow else None
        found: list[list[int]] = [[] for _ in range(callers)]
        await asyncio.gather(*map(caller, found))
        if clerk is not None:
            clerk.cancel()
            counted._held.set()  # for its thread
        return found

    found = counted.run(work)
    sizes = Counter(number for one in found for number in one)
    # The first comes alone; from then on nobody is missing, but for the last group, which is what is left.
    middle = sorted(sizes)[3:-2]
    assert len(middle) >= 5 and [sizes[one] for one in middle] == [callers] * len(middle)


def test_what_comes_while_a_group_is_written_is_the_next_group(counted: Counted) -> None:
    async def work() -> list[int]:
        counted.slow = True
        first = counted.writer.submit(counted.in_group)
        await counted.held()
        others = []
        for _ in range(5):
            others.append(counted.writer.submit(counted.in_group))
            await asyncio.sleep(0)
        assert counted.writer.waiting == 5  # in no group yet
        counted.slow = False
        counted.let_go()
        return list(await asyncio.gather(first, *others))

    assert counted.run(work) == [0, 1, 1, 1, 1, 1]


def test_closing_leaves_nothing_behind_that_came_while_a_group_was_written(
    house: WrittenHouse, counted: Counted
) -> None:
    def note(name: str) -> Operation:
        return lambda tx: (
            tx.execute("INSERT INTO config (key, value) VALUES (?, '')", (f"note {name}",)) and name
        )

    async def work() -> list[str]:
        counted.slow = True
        waiting = [counted.writer.submit(note("first"))]
        await counted.held()
        waiting += [counted.writer.submit(note(f"{number}")) for number in range(5)]
        counted.slow = False
        closing = asyncio.create_task(counted.writer.close())
        await asyncio.sleep(0)
        counted.let_go()
        await closing
        return list(await asyncio.gather(*waiting))

    assert counted.run(work) == ["first", "0", "1", "2", "3", "4"] and not counted.writer.is_alive
    assert len(house.execute("SELECT 1 FROM config WHERE key LIKE 'note %'")) == 6


def test_closing_writes_what_waits_for_others_who_never_come(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> int:
        for _ in range(2):
            await asyncio.gather(*(counted.writer.submit(counted.in_group) for _ in range(3)))
        timers = counted.catch_timers(monkeypatch)
        alone = counted.writer.submit(counted.in_group)
        assert len(timers) == 1
        await counted.writer.close()
        assert timers[0][2].cancelled()
        return await alone

    assert counted.run(work) > 0


# --- those of one group ----------------------------------------------------------------------


def test_a_caller_that_cannot_be_told_keeps_no_answer_from_the_others(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(result: Any, error: BaseException | None) -> None:
        raise ValueError("the caller is broken")

    async def work() -> list[int]:
        counted.slow = True
        first = counted.writer.submit(counted.in_group)
        await counted.held()
        counted.slow = False
        before = counted.writer.submit(counted.in_group)
        counted.writer.enqueue(counted.in_group, broken)
        after = counted.writer.submit(counted.in_group)
        counted.let_go()
        found = list(await asyncio.gather(first, before, after))
        return [*found, await counted.writer.submit(counted.in_group)]

    with caplog.at_level(logging.ERROR, "hiboss.store.group_commit"):
        assert counted.run(work)[:3] == [0, 1, 1]
    (record,) = caplog.records
    assert record.getMessage() == "A caller could not be told." and record.exc_info is not None
    assert str(record.exc_info[1]) == "the caller is broken"


@pytest.mark.parametrize("more", [0, 1, 2])
def test_the_numbers_of_a_group_are_kept_when_an_operation_fails_that_had_written_them(
    house: WrittenHouse, more: int
) -> None:
    """To delete an agent flushes the numbers of the group; that is undone with it."""

    def deletes(tx: Tx) -> None:
        house.sending(NEX, MAX, text="lost")(tx)
        tx.cache.flush()
        agents.delete(tx, "max", house.now)
        raise ValueError("after its work")

    sends = [house.sending(NEX, KAI, text=f"{number}") for number in range(2 + more)]
    house.group(*sends[:2], deletes, *sends[2:])
    (talk,) = house.execute("SELECT id, last_seq FROM conversation WHERE id > 2")
    assert talk["last_seq"] == 2 + more
    (arrived,) = house.execute("SELECT value FROM counter WHERE name = 'arrived'")
    assert house.execute("SELECT max(arrived) AS last FROM envelope") == [{"last": arrived["value"]}]


# --- too many --------------------------------------------------------------------------------


def test_over_the_limit_a_caller_is_refused_and_not_told_twice(counted: Counted) -> None:
    told: list[Any] = []

    def done(result: Any, error: BaseException | None) -> None:
        told.append((result, error))

    async def work() -> None:
        limit = counted.writer._settings.writer_queue
        counted.slow = True
        first = counted.writer.submit(counted.in_group)
        await counted.held()
        counted.slow = False
        last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        for _ in range(limit - 1):
            counted.writer.enqueue(counted.in_group, done)
        counted.writer.enqueue(counted.in_group, partial(settle, last))
        for _ in range(3):
            with pytest.raises(Busy):
                counted.writer.enqueue(counted.in_group, lambda result, error: told.append("refused"))
            with pytest.raises(Busy):
                counted.writer.submit(counted.in_group)
        counted.let_go()
        await first
        await last
        assert len(told) == limit - 1 and "refused" not in told and all(error is None for _, error in told)
        assert await counted.writer.submit(counted.in_group) > 0  # room again

    counted.run(work)
