"""Pacing: accounts post no faster than their platform allows (`Adapter.pace`), final texts first.

Whoever posts or edits asks for a permit before, and ends it after. The rates, and who is next, are in
`pace_windows`; here are the loop's clock and its timers, and which chat a lane belongs to. All is in memory:
after a restart the platform may refuse something, and the lane waits as it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ..channels.supervisor import Supervisor
from ..core.contracts.adapter import Pace
from ..core.contracts.failures import LaneError
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.settings import Settings
from ..store import chat_pacing
from ..store.store import Store
from .pace_windows import AccountPace, Permit, Rank


class Pacer:
    """Gives permits to accounts, on the event loop's thread. It knows nothing of lanes and the store."""

    def __init__(self, at_once: Callable[[], int]) -> None:
        self._at_once = at_once  # so many final texts of one account may be on their way
        self._accounts: dict[int, AccountPace] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._closed = False

    async def permit(
        self, account: int, pace: Pace, chat: int | None, *, group: bool, rank: Rank
    ) -> Permit | None:
        """Wait until one more may go, and return the permit for it. None: the daemon stops.

        `chat`: which of the account; None if that is not known.
        """
        if self._closed:
            return None
        now = asyncio.get_running_loop().time()
        one = self._account(account, pace)
        given: asyncio.Future[Permit | None] = asyncio.get_running_loop().create_future()
        one.wait(one.chat(chat, now, group=group), rank, given)
        self._look(account)
        try:
            return await given
        except asyncio.CancelledError:
            if not given.cancelled() and (permit := given.result()) is not None:  # in the same moment
                permit.give_back()
            raise

    def try_permit(
        self, account: int, pace: Pace, chat: int | None, *, group: bool, rank: Rank
    ) -> Permit | None:
        """Return a permit if there is one at once; else None."""
        if self._closed:
            return None
        one = self._account(account, pace)
        self._look(account)  # a timer may be late, and those who wait come first
        now = asyncio.get_running_loop().time()
        return one.try_one(one.chat(chat, now, group=group), rank, now)

    def count_parts(self, account: int, pace: Pace, chat: int | None, *, group: bool, number: int) -> None:
        """Count so many further parts of what was posted by one call."""
        now = asyncio.get_running_loop().time()
        if (known := self._account(account, pace).chat(chat, now, group=group)) is not None:
            known.count_parts(number, now)

    def is_busy(self, account: int) -> bool:
        """Tell whether an account does nearly all that it may do in a second."""
        one = self._accounts.get(account)
        return one is not None and one.is_busy(asyncio.get_running_loop().time())

    def close(self) -> None:
        """Give no more permits: whoever waits gets None."""
        self._closed = True
        for one in self._accounts.values():
            one.stop()
        for timer in self._timers.values():
            timer.cancel()

    def _account(self, account: int, pace: Pace) -> AccountPace:
        if account not in self._accounts:
            now = asyncio.get_running_loop().time()
            self._accounts = {key: one for key, one in self._accounts.items() if not one.is_quiet(now)}
            self._accounts[account] = AccountPace(pace, self._at_once, partial(self._ended, account))
        return self._accounts[account]

    def _ended(self, account: int, permit: Permit) -> None:
        one = self._accounts.get(account)
        if one is not None:
            one.end(permit, asyncio.get_running_loop().time())
            self._look(account)

    def _look(self, account: int) -> None:
        """Give the permits there are, and look again when there may be more."""
        if (timer := self._timers.pop(account, None)) is not None:
            timer.cancel()
        if self._closed or account not in self._accounts:
            return
        loop = asyncio.get_running_loop()
        at = self._accounts[account].next(loop.time())
        if at < float("inf"):
            self._timers[account] = loop.call_at(at, self._look, account)


class Pacing:
    """Gives lanes permits to post."""

    def __init__(self, store: Store, settings: Settings, supervisor: Supervisor) -> None:
        self._store = store
        self._settings = settings
        self._supervisor = supervisor
        self._pacer = Pacer(lambda: settings.parallel_lanes)

    def applies(self, lane: Lane) -> bool:
        """Tell whether there are limits for a lane now: not if its adapter does not run."""
        return self._pace(lane) is not None

    async def permit(self, lane: Lane, rank: Rank) -> Permit | None:
        """Wait until one more may go in a lane, and return the permit for it. None: the daemon stops.

        Look again afterwards whether it still should: that may take a minute.
        """
        pace = self._pace(lane)
        if pace is None:
            return Permit()
        chat, group = self._chat(lane)
        return await self._pacer.permit(lane.binding or 0, pace, chat, group=group, rank=rank)

    def try_permit(self, lane: Lane, rank: Rank) -> Permit | None:
        """Return a permit if one more may go now, and nobody waits; else None."""
        pace = self._pace(lane)
        if pace is None:
            return Permit()
        chat, group = self._chat(lane)
        return self._pacer.try_permit(lane.binding or 0, pace, chat, group=group, rank=rank)

    def posted(self, lane: Lane, parts: int) -> None:
        """Note that one call made so many posts: an album. Call it before its permit ends."""
        pace = self._pace(lane) if parts > 1 else None
        if pace is not None:
            chat, group = self._chat(lane)
            self._pacer.count_parts(lane.binding or 0, pace, chat, group=group, number=parts - 1)

    def is_busy(self, binding: int | None) -> bool:
        """Tell whether an account posts nearly as much as it may: then it shows no signs."""
        return self._pacer.is_busy(binding or 0)

    def close(self) -> None:
        """Give no more permits: whoever waits gets None."""
        self._pacer.close()

    def _pace(self, lane: Lane) -> Pace | None:
        if self._settings.pacing == "off":
            return None
        try:
            adapter = self._supervisor.adapter(lane.binding)
        except LaneError:
            return None  # nothing can be posted
        pace: Pace | None = getattr(adapter, "pace", None)
        return pace

    def _chat(self, lane: Lane) -> tuple[int | None, bool]:
        """Return the chat of a lane, and whether it is a group. Read each time: chats become one."""
        try:
            return self._store.read(lambda c: chat_pacing.chat_of(c, lane))
        except HibossError:
            return None, False
