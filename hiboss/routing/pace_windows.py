"""The rates that a platform allows one account, and who may post next. Pure: the time is an argument.

A call counts from its start until a window's length after its end. The platform counts it at some moment in
between, and nobody knows when. So however long calls take, no window of the platform holds more than allowed.
"""

from __future__ import annotations

from asyncio import Future
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from math import inf

from ..core.contracts.adapter import Pace

MINUTE = 60.0
PATIENCE = 5.0  # a call that takes longer, like a large file, keeps its chat for no other topic
BUSY = 0.8  # of what an account may do in a second


class Rank(IntEnum):
    """What goes first if several wait."""

    FINAL = 0  # the answer of a run: as a post, or by the edit that makes a live post the answer
    POST = 1  # another envelope
    CHANGE = 2  # the edit of a post whose message was edited
    LIVE = 3  # a live post, and its growth

    @property
    def delivers(self) -> bool:
        """Whether it is for an envelope: the others get half of what there is, at most."""
        return self <= Rank.POST


class Window:
    """So many calls in any so many seconds."""

    def __init__(self, most: int, seconds: float, patience: float = inf) -> None:
        self._most = max(1, most)
        self._seconds = seconds
        self._patience = patience
        self._until: dict[Permit, float] = {}  # how long each call counts, as far as is known

    def used(self, now: float) -> int:
        """Return how many calls count now."""
        return len(self._times(now))

    def free_at(self, now: float) -> float:
        """Return when one more may begin, as far as is known; `now`: at once."""
        times = self._times(now)
        return now if len(times) < self._most else sorted(times)[-self._most]

    def is_over(self, share: float, now: float) -> bool:
        return self.used(now) > share * self._most

    def begin(self, permit: Permit, now: float) -> None:
        self._until[permit] = now + self._patience

    def end(self, permit: Permit, now: float) -> None:
        self._until[permit] = now + self._seconds

    def count(self, number: int, now: float) -> None:
        """Count calls that nobody asked a permit for."""
        self._until |= {Permit(): now + self._seconds for _ in range(number)}

    def forget(self, permit: Permit) -> None:
        self._until.pop(permit, None)

    def _times(self, now: float) -> list[float]:
        times = [until for until in self._until.values() if until > now]
        if len(times) < len(self._until):
            self._until = {permit: until for permit, until in self._until.items() if until > now}
        return times


class Permit:
    """One post or edit may go. Use it as a context around the call, or end it."""

    def __init__(self, windows: Iterable[Window] = (), ended: Callable[[Permit], None] | None = None) -> None:
        """Without windows it is one where there are no limits."""
        self.windows = tuple(windows)
        self.given_back = False
        self._ended = ended

    def end(self) -> None:
        """Note that the call has ended, in whatever way."""
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(self)

    def give_back(self) -> None:
        """Let others have it: nothing was called."""
        self.given_back = True
        self.end()

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


class Chat:
    """What may go to one chat, with all its topics."""

    def __init__(self, pace: Pace, *, group: bool) -> None:
        self._each = Window(1, pace.chat_seconds, pace.chat_seconds + PATIENCE)
        self._minute = Window(pace.group_each_minute, MINUTE)
        self._all = (self._each, self._minute) if group else (self._each,)
        self._rest = (Window(pace.group_each_minute // 2, MINUTE),) if group else ()
        self.waiting = 0

    def windows(self, rank: Rank) -> tuple[Window, ...]:
        return self._all if rank.delivers else self._all + self._rest

    def count_parts(self, number: int, now: float) -> None:
        """Count the other parts of an album, which was one call: a group counts each, as people report."""
        self._minute.count(number, now)

    def is_quiet(self, now: float) -> bool:
        return not self.waiting and not any(window.used(now) for window in self._all)


class Waiter:
    """Somebody who waits for a permit."""

    def __init__(self, order: tuple[int, int], chat: Chat | None, given: Future[Permit | None]) -> None:
        self.order = order  # by rank, and in a rank by who came first
        self.chat = chat
        self.given = given  # cancelled: he is gone; None: there will be none

    @property
    def rank(self) -> Rank:
        return Rank(self.order[0])

    def __lt__(self, other: Waiter) -> bool:
        return self.order < other.order


class AccountPace:
    """What one account may do: its windows, its chats, and all who wait."""

    def __init__(self, pace: Pace, at_once: Callable[[], int], ended: Callable[[Permit], None]) -> None:
        self._pace = pace
        self._at_once = at_once  # so many envelopes may be on their way
        self._ended = ended  # called when a permit has ended: look again
        self._second = Window(pace.account_each_second, 1.0)
        # What is no envelope gets half, and never keeps one waiting for more than a call.
        self._rest = Window(pace.account_each_second // 2, 1.0)
        self._deliveries: set[Permit] = set()  # on their way
        self._chats: dict[int, Chat] = {}
        self._waiting: list[Waiter] = []  # in order
        self._came = 0
        self._sweep_at = 0.0

    # --- asking --------------------------------------------------------------------------

    def chat(self, number: int | None, now: float, *, group: bool) -> Chat | None:
        """Return a chat by its number; None for None."""
        if number is None:
            return None
        if now >= self._sweep_at:
            self._chats = {one: chat for one, chat in self._chats.items() if not chat.is_quiet(now)}
            self._sweep_at = now + MINUTE
        if number not in self._chats:
            self._chats[number] = Chat(self._pace, group=group)
        return self._chats[number]

    def wait(self, chat: Chat | None, rank: Rank, given: Future[Permit | None]) -> None:
        """Put somebody into the line; `next` gives the permits. Cancel `given` to leave it."""
        self._came += 1
        waiter = Waiter((rank, self._came), chat, given)
        insort(self._waiting, waiter)
        if chat is not None:
            chat.waiting += 1

    def try_one(self, chat: Chat | None, rank: Rank, now: float) -> Permit | None:
        """Return a permit if there is one now and nobody waits for this chat."""
        if (chat is not None and chat.waiting) or self._free_at(chat, rank, now) > now:
            return None
        return self._take(chat, rank, now)

    def is_busy(self, now: float) -> bool:
        return self._second.is_over(BUSY, now)

    def is_quiet(self, now: float) -> bool:
        return (
            not self._waiting
            and not self._second.used(now)
            and all(chat.is_quiet(now) for chat in self._chats.values())
        )

    # --- giving --------------------------------------------------------------------------

    def next(self, now: float) -> float:
        """Give permits to all who may go; return when to look again, at the latest (inf: after an event).

        Those who wait for their own chat hold up nobody behind them. They are few, or the whole account would
        be what they wait for, and that ends the look.
        """
        look_at, at = inf, 0
        while at < len(self._waiting):
            waiter = self._waiting[at]
            if waiter.given.cancelled():
                self._leave(at)
                continue
            free_at = self._free_at(waiter.chat, waiter.rank, now)
            if free_at <= now:
                self._leave(at)
                waiter.given.set_result(self._take(waiter.chat, waiter.rank, now))
                continue
            look_at = min(look_at, free_at)
            if (account_free_at := self._account_free_at(waiter.rank, now)) > now:
                return min(look_at, account_free_at)  # nobody behind may go before
            at += 1
        return look_at

    def stop(self) -> None:
        """Send all away who wait."""
        for waiter in self._waiting:
            if not waiter.given.done():
                waiter.given.set_result(None)
        self._waiting.clear()

    def end(self, permit: Permit, now: float) -> None:
        """Note that a call has ended, or that there was none."""
        self._deliveries.discard(permit)
        for window in permit.windows:
            if permit.given_back:
                window.forget(permit)
            else:
                window.end(permit, now)

    def _leave(self, at: int) -> None:
        if (chat := self._waiting.pop(at).chat) is not None:
            chat.waiting -= 1

    def _windows(self, rank: Rank) -> Sequence[Window]:
        return (self._second,) if rank.delivers else (self._second, self._rest)

    def _account_free_at(self, rank: Rank, now: float) -> float:
        return max(window.free_at(now) for window in self._windows(rank))

    def _free_at(self, chat: Chat | None, rank: Rank, now: float) -> float:
        if rank.delivers and len(self._deliveries) >= self._at_once():
            return inf  # until one of them has ended
        own = () if chat is None else chat.windows(rank)
        return max([self._account_free_at(rank, now), *(window.free_at(now) for window in own)])

    def _take(self, chat: Chat | None, rank: Rank, now: float) -> Permit:
        own = () if chat is None else chat.windows(rank)
        permit = Permit((*self._windows(rank), *own), self._ended)
        for window in permit.windows:
            window.begin(permit, now)
        if rank.delivers:
            self._deliveries.add(permit)
        return permit
