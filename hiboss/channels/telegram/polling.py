"""Fetches updates from the Bot API and hands them over. The position that is stored with them loses none.

The offset is the last id of this batch + 1, and never the highest one that was seen: after a quiet week the
server begins to count anew, at random. Each time it does so a new era begins, which is a part of the ids that
hiboss stores, so that no new update looks like an old one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core import clock
from ...core.contracts.adapter import Take, Taken
from ...core.contracts.inbound import Update
from ...core.errors import HibossError
from . import decode
from .api_errors import ApiRefusal, CallFailed, Garbled, as_account_error
from .message_facts import Me, number

if TYPE_CHECKING:
    from .bot_client import BotClient

log = logging.getLogger(__name__)
POLL_SECONDS = 50
BATCH = 100
PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)  # seconds, while the server does not answer as it should
LONGEST_WAIT = 3600.0  # seconds that a server can name
QUICK_SECONDS = 0.5  # of a poll without updates: a server that never waits is asked less and less often
QUICK_PAUSES = (0.0, 0.2, 1.0, 5.0)
KEPT_MS = 24 * 3600 * 1000  # how long Telegram keeps updates that nobody fetches
IDLE_WRITE_MS = 10 * 60 * 1000  # so often the position is stored although nothing comes in


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Up to where updates are stored."""

    offset: int | None = None  # of the next update; None: there was none yet
    era: int = 0
    at: int | None = None  # when the server last answered, in milliseconds since 1970

    @classmethod
    def read(cls, stored: str | None) -> Position:
        """Return a stored position; what cannot be read is as if there were none."""
        try:
            found = json.loads(stored or "{}")
        except ValueError:
            found = {}
        return cls(offset=number(found, "offset"), era=number(found, "era") or 0, at=number(found, "at"))

    def __str__(self) -> str:
        return json.dumps({"offset": self.offset, "era": self.era, "at": self.at})


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What one poll brought, and what is stored with it."""

    updates: list[Update]
    position: Position
    missed: tuple[int, int] | None = None  # between these times updates may have been lost


class Poller:
    """Polls for one bot, until it is cancelled."""

    def __init__(self, client: BotClient, me: Me, stored: str | None) -> None:
        self._client = client
        self._me = me
        self._position = Position.read(stored)
        self._written_at = self._position.at  # when the position was last stored
        self._quick = 0  # polls in a row that brought nothing and did not wait
        # Seconds of the next poll. The first, and that after a failure, shows at once whether one answers.
        self._wait = 0
        self.trouble: str | None = None  # what is wrong now
        self.caught_up = False  # what came in while nobody fetched is stored

    async def run(self, take: Take, after: Callable[[list[Update], Taken], None]) -> None:
        """Hand over what comes in; `after` learns what was stored. Raises AccountError."""
        failures = 0
        while True:
            try:
                batch = await self._poll()
            except CallFailed as error:
                await self._pause(error, failures)
                failures += 1
                continue
            self._position = batch.position
            # A `take` wakes what waits: also when the server answers again, and when it has no more to give.
            is_woken = failures > 0 or (not self.caught_up and not batch.updates)
            self.caught_up = self.caught_up or not batch.updates
            failures, self.trouble = 0, None
            if is_woken or self._is_to_be_stored(batch):
                taken = await self._store(take, batch)
                self._written_at = batch.position.at
                after(batch.updates, taken)
            if not self.caught_up and len(batch.updates) < BATCH:
                self.caught_up = True
                await self._store(take, Batch(updates=[], position=batch.position))

    async def _poll(self) -> Batch:
        """Ask once; return what came in. Raises CallFailed."""
        started = asyncio.get_running_loop().time()
        offset = {} if self._position.offset is None else {"offset": self._position.offset}
        found = await self._client.call(
            "getUpdates",
            seconds=self._wait + 10,
            timeout=self._wait,
            limit=BATCH,
            allowed_updates=list(decode.ALLOWED),
            **offset,
        )
        if not isinstance(found, list):
            raise Garbled("the server answered getUpdates with something that is no list")
        waited, self._wait = self._wait, POLL_SECONDS
        is_quick = not found and bool(waited) and asyncio.get_running_loop().time() - started < QUICK_SECONDS
        if is_quick:
            await asyncio.sleep(_step(QUICK_PAUSES, self._quick))
        self._quick = self._quick + 1 if is_quick else 0
        return batch(found, self._position, self._me, clock.now())

    def _is_to_be_stored(self, batch: Batch) -> bool:
        if batch.updates or batch.missed or self._written_at is None or batch.position.at is None:
            return True
        return not 0 <= batch.position.at - self._written_at < IDLE_WRITE_MS

    async def _store(self, take: Take, batch: Batch) -> Taken:
        """Hand over a batch, again and again if it cannot be stored: nothing is fetched before."""
        missed = {} if batch.missed is None else {"missed": batch.missed}
        failures = 0
        while True:
            try:
                taken = await take(batch.updates, str(batch.position), **missed)
            except HibossError as error:
                self.trouble = f"what came in cannot be stored: {error.message}"
                log.warning("Updates are handed over again: %s", error, extra={"action": "intake"})
                await asyncio.sleep(_step(PAUSES, failures))
                failures += 1
            else:
                self.trouble = None
                return taken

    async def _pause(self, error: CallFailed, failures: int) -> None:
        """Wait after a call that failed; raise AccountError if the account cannot go on like this."""
        if isinstance(error, ApiRefusal) and (account := as_account_error(error)) is not None:
            raise account
        self.trouble = f"no updates can be fetched now, and it is tried again: {error}"
        self._wait = 0
        if failures == 0:  # hours without network are one line
            log.warning("Updates cannot be fetched: %s", error, extra={"action": "intake"})
        if isinstance(error, ApiRefusal) and error.retry_after is not None:
            await asyncio.sleep(min(error.retry_after, LONGEST_WAIT))
            return
        self._client.answered.clear()
        await asyncio.sleep(PAUSES[0])
        with suppress(TimeoutError):
            async with asyncio.timeout(_step(PAUSES, failures) - PAUSES[0]):
                await self._client.answered.wait()


def _step(pauses: tuple[float, ...], number: int) -> float:
    return pauses[min(number, len(pauses) - 1)]


def batch(found: list[Any], before: Position, me: Me, now: int) -> Batch:
    """Return what a poll brought. Raises Garbled if it cannot be confirmed."""
    ids = [known for one in found if (known := number(one, "update_id")) is not None]
    if found and not ids:
        raise Garbled("the server answered getUpdates with updates that have no id")
    missed = None if before.at is None or now - before.at <= KEPT_MS else (before.at, now)
    updates, position = [], before
    for raw in found:
        known = number(raw, "update_id")
        if known is not None:
            anew = position.offset is not None and known < position.offset
            position = replace(position, offset=known + 1, era=position.era + (1 if anew else 0))
        updates.append(decode.update(raw, position.era, me))
    return Batch(updates=updates, position=replace(position, at=now), missed=missed)
