"""Pacing: no window of a platform is ever exceeded, nobody waits without a reason, final texts go first.

The clock of the loop jumps, so a minute takes no time, and every time is exact.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiboss.core.contracts.adapter import Pace
from hiboss.routing.pace_windows import PATIENCE, Permit, Rank
from hiboss.routing.pacing import Pacer

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would sleep until its next timer, time passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class _QuickLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_in_quick_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; its loop's time begins at 0. Take fractions of a second like 1/8: they are exact."""
    with asyncio.Runner(loop_factory=_QuickLoop) as runner:
        return runner.run(work)


SMALL = Pace(chat_seconds=1.0, group_each_minute=4, account_each_second=3)
PLATFORM = Pace(chat_seconds=1.0, group_each_minute=20, account_each_second=30)
ACCOUNT = 1
GROUPS = (2, 3)  # chats 0 and 1 are private


def pacer(at_once: int = 100) -> Pacer:
    return Pacer(lambda: at_once)


def now() -> float:
    return asyncio.get_running_loop().time()


async def ask(one: Pacer, chat: int, rank: Rank = Rank.FINAL, pace: Pace = PLATFORM) -> Permit:
    """Wait for a permit."""
    permit = await one.permit(ACCOUNT, pace, chat, group=chat in GROUPS, rank=rank)
    assert permit is not None
    return permit


def ask_at_once(one: Pacer, chat: int, rank: Rank = Rank.LIVE, pace: Pace = PLATFORM) -> Permit | None:
    return one.try_permit(ACCOUNT, pace, chat, group=chat in GROUPS, rank=rank)


# --- whatever comes, in whatever order ------------------------------------------------


@dataclass(eq=False)
class Call:
    """Somebody who wants to post, and what became of it. Times are in seconds."""

    at: float
    chat: int
    rank: Rank
    takes: float
    counted_after: float  # when the platform counts it, between its start and its end
    patience: float | None  # after so long it is cancelled, if it still waits
    unused: bool  # the permit is given back
    began: float | None = None
    ended: float = 0.0
    gone: float = 0.0  # when it had a permit, was refused or was cancelled
    came: int = 0  # its number among all that asked

    @property
    def counted_at(self) -> float:
        assert self.began is not None
        return self.began + self.counted_after

    @property
    def is_group(self) -> bool:
        return self.chat in GROUPS

    def counts(self, moment: float, seconds: float) -> bool:
        """Tell whether this call takes a place of a window of so many seconds at a moment."""
        if self.began is None or moment < self.began:
            return False
        return moment <= self.ended if self.unused else moment < self.ended + seconds


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Eighths of a second; live posts between them, so that none comes in the moment of a cancellation."""
    rank = draw(st.sampled_from([Rank.FINAL, Rank.POST, Rank.CHANGE, Rank.LIVE]))
    at = draw(st.integers(0, 24) | st.integers(0, 800)) / 8 + (1 / 16 if rank is Rank.LIVE else 0)
    takes = draw(st.integers(0, 16))
    return Call(
        at=at,
        chat=draw(st.integers(0, 3)),
        rank=rank,
        takes=takes / 8,
        counted_after=draw(st.integers(0, takes)) / 8,
        patience=draw(st.none() | st.integers(0, 100).map(lambda eighths: eighths / 8)),
        unused=draw(st.sampled_from([False, False, False, True])),
    )


async def act(one: Pacer, call: Call, number: Iterator[int]) -> None:
    await asyncio.sleep(call.at)
    call.came = next(number)
    if call.rank is Rank.LIVE:
        permit = ask_at_once(one, call.chat, pace=SMALL)
    else:
        waits = asyncio.ensure_future(ask(one, call.chat, call.rank, SMALL))
        if call.patience is not None:
            asyncio.get_running_loop().call_later(call.patience, waits.cancel)
        permit = None
        with suppress(asyncio.CancelledError):
            permit = await waits
    call.gone = now()
    if permit is None:
        return
    call.began = call.gone
    await asyncio.sleep(call.takes)
    call.ended = now()
    if call.unused:
        permit.give_back()
    else:
        permit.end()


def play(plan: Sequence[Call]) -> None:
    async def all_of_them() -> None:
        one, number = pacer(), count()
        await asyncio.gather(*[act(one, call, number) for call in plan])

    run_in_quick_time(all_of_them())


MANY = st.lists(calls(), min_size=1, max_size=40)


@pytest.mark.slow
@given(MANY)
def test_the_platform_never_counts_more_than_it_allows(plan: list[Call]) -> None:
    play(plan)
    posted = [call for call in plan if call.began is not None and not call.unused]
    rest = [call for call in posted if not call.rank.delivers]
    assert most_in(posted, 1.0) <= 3
    assert most_in(rest, 1.0) <= 1
    for chat in range(4):
        here = [call for call in posted if call.chat == chat]
        assert most_in(here, 1.0) <= 1
        if chat in GROUPS:
            assert most_in(here, 60.0) <= 4
            assert most_in([call for call in here if not call.rank.delivers], 60.0) <= 2


def most_in(posted: list[Call], seconds: float) -> int:
    """Return how many calls the platform counted in its fullest window of so many seconds."""
    times = [call.counted_at for call in posted]
    return max((sum(begin <= time < begin + seconds for time in times) for begin in times), default=0)


@pytest.mark.slow
@given(MANY)
def test_nobody_waits_or_is_refused_without_a_reason(plan: list[Call]) -> None:
    play(plan)
    moments = {call.at for call in plan}
    for call in plan:
        if call.began is not None:
            moments |= {call.began, call.ended, call.ended + 1.0, call.ended + 60.0}
    for call in plan:
        waited = {moment for moment in moments if call.at <= moment < call.gone}
        if call.began is None and call.rank is Rank.LIVE:
            waited.add(call.at)
        for moment in waited:
            assert is_full(plan, call, moment) or is_held_up(plan, call, moment), (call, moment)


def is_full(plan: list[Call], call: Call, moment: float) -> bool:
    """Tell whether the account can do no more of this kind."""
    others = [one for one in plan if one is not call and one.counts(moment, 1.0)]
    rest = [one for one in others if not one.rank.delivers]
    return len(others) >= 3 or (not call.rank.delivers and len(rest) >= 1)


def is_held_up(plan: list[Call], call: Call, moment: float, but: Call | None = None) -> bool:
    """Tell whether the chat of a call can take no more of this kind."""
    others = [one for one in plan if one not in (call, but) and one.chat == call.chat]
    if any(one.counts(moment, 1.0) for one in others):
        return True
    minute = [one for one in others if call.is_group and one.counts(moment, 60.0)]
    rest = [one for one in minute if not one.rank.delivers]
    return len(minute) >= 4 or (not call.rank.delivers and len(rest) >= 2)


@pytest.mark.slow
@given(MANY)
def test_nobody_is_overtaken_unless_the_own_chat_holds_them_up(plan: list[Call]) -> None:
    play(plan)
    for call in plan:
        for other in plan:
            if other.began is None or not call.at < other.began < call.gone:
                continue
            if (other.rank, other.came) > (call.rank, call.came):
                assert is_held_up(plan, call, other.began, other), (call, other)


# --- single rules ---------------------------------------------------------------------


async def post(one: Pacer, chat: int, rank: Rank, posted: list[tuple[float, int, Rank]]) -> None:
    with await ask(one, chat, rank):
        posted.append((now(), chat, rank))
        await asyncio.sleep(1 / 8)


def test_chats_with_much_to_post_take_turns() -> None:
    async def lane(one: Pacer, chat: int, posted: list[tuple[float, int, Rank]]) -> None:
        for _ in range(4):
            await post(one, chat, Rank.FINAL, posted)

    async def story() -> list[int]:
        one, posted = pacer(), list[tuple[float, int, Rank]]()
        await asyncio.gather(*[lane(one, chat, posted) for chat in range(100, 190)])
        return [chat for _, chat, _ in posted]

    posted = run_in_quick_time(story())
    assert [sorted(posted[begin : begin + 90]) for begin in range(0, 360, 90)] == [[*range(100, 190)]] * 4


def test_a_growing_answer_leaves_a_group_half_of_its_minute() -> None:
    async def story() -> None:
        one, group, shown = pacer(), GROUPS[0], 0
        while now() < 50.0:
            if (permit := ask_at_once(one, group)) is not None:
                shown += 1
                permit.end()
            await asyncio.sleep(1.5)
        assert shown == 10
        for _ in range(10):  # the answer, in many chunks: none waits for more than its second
            before = now()
            (await ask(one, group)).end()
            assert now() - before <= 1.0

    run_in_quick_time(story())


def test_a_growing_answer_waits_for_nothing_and_steps_back_for_who_waits() -> None:
    async def story() -> None:
        one = pacer()
        first = await ask(one, 0)
        second = asyncio.ensure_future(ask(one, 0))
        await asyncio.sleep(1.5)
        assert ask_at_once(one, 0) is None  # the first post is not answered yet
        first.end()
        await asyncio.sleep(0.5)
        assert ask_at_once(one, 0) is None
        (await second).end()
        assert now() == 2.5
        await asyncio.sleep(1.0)
        assert ask_at_once(one, 0) is not None

    run_in_quick_time(story())


def test_a_slow_upload_holds_up_other_topics_for_some_seconds_only() -> None:
    async def story() -> None:
        one = pacer()
        upload = await ask(one, 0)
        (await ask(one, 0)).end()
        assert now() == 1.0 + PATIENCE
        await asyncio.sleep(30.0)
        upload.end()  # now, at the latest, the platform has counted it
        began = now()
        await ask(one, 0)
        assert now() == began + 1.0

    run_in_quick_time(story())


def test_the_parts_of_an_album_count_in_a_group() -> None:
    async def story() -> None:
        one, group = pacer(), GROUPS[0]
        for chat in (group, 0):
            with await ask(one, chat):
                one.count_parts(ACCOUNT, PLATFORM, chat, group=chat in GROUPS, number=9)
        assert now() == 0.0
        for _ in range(10):
            (await ask(one, group)).end()
        assert now() == 10.0
        (await ask(one, 0)).end()
        assert now() == 10.0  # in a private chat it was one
        await ask(one, group)
        assert now() == 60.0

    run_in_quick_time(story())


def test_no_more_final_texts_are_on_their_way_than_lanes_may_deliver() -> None:
    async def story() -> None:
        one = pacer(at_once=2)
        first, _ = await ask(one, 100), await ask(one, 101)
        third = asyncio.ensure_future(ask(one, 102))
        await asyncio.sleep(20.0)
        assert not third.done()
        assert ask_at_once(one, 103) is not None  # this one is no delivery
        assert ask_at_once(one, 102) is None  # and here somebody waits
        first.end()
        await third
        assert now() == 20.0

    run_in_quick_time(story())


def test_an_account_that_does_nearly_all_it_may_is_busy() -> None:
    async def story() -> None:
        one = pacer()
        assert not one.is_busy(ACCOUNT)
        permits = [await ask(one, chat) for chat in range(100, 124)]
        assert not one.is_busy(ACCOUNT)
        permits.append(await ask(one, 124))
        assert one.is_busy(ACCOUNT) and not one.is_busy(ACCOUNT + 1)
        for permit in permits:
            permit.end()
        await asyncio.sleep(1.0)
        assert not one.is_busy(ACCOUNT)

    run_in_quick_time(story())


def test_accounts_do_not_wait_for_each_other() -> None:
    async def story() -> None:
        one = pacer()
        for account in (1, 2):
            for chat in range(30):
                assert await one.permit(account, PLATFORM, chat, group=False, rank=Rank.FINAL)
        assert now() == 0.0

    run_in_quick_time(story())


def test_whoever_waits_at_the_stop_gets_no_permit() -> None:
    async def story() -> None:
        one = pacer()
        (await ask(one, 0)).end()
        waits = asyncio.ensure_future(one.permit(ACCOUNT, PLATFORM, 0, group=False, rank=Rank.FINAL))
        await asyncio.sleep(0.5)
        one.close()
        assert await waits is None
        assert await one.permit(ACCOUNT, PLATFORM, 5, group=False, rank=Rank.FINAL) is None
        assert ask_at_once(one, 5) is None
        assert now() == 0.5

    run_in_quick_time(story())


def test_quiet_chats_and_accounts_are_forgotten() -> None:
    async def story() -> None:
        one = pacer()
        for chat in range(1_000, 2_000):
            (await ask(one, chat)).end()
        await asyncio.sleep(61.0)
        (await ask(one, 0)).end()
        assert len(one._accounts[ACCOUNT]._chats) == 1
        await asyncio.sleep(61.0)
        assert await one.permit(ACCOUNT + 1, PLATFORM, 0, group=False, rank=Rank.FINAL)
        assert [*one._accounts] == [ACCOUNT + 1]

    run_in_quick_time(story())
