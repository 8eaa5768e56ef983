"""Changes on platforms that are stored until they are made: when they are tried, and when again.

What is to be changed is said by kinds (post_changes.py, reaction_changes.py). It is looked for after each
edit, deletion and reaction, when an adapter runs, when an envelope is settled, and at each heartbeat. Many
changes are made at once, and each by one at a time. A LaneError is tried again later, and a time that the
platform names holds the chat, as one for a post does. Waits are not stored: the next daemon tries at once,
but not before a time that was named.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from ..channels.supervisor import Supervisor
from ..core import backoff, bounded_calls, clock
from ..core.contracts.failures import ChatMoved, Failure, LaneError
from ..core.envelope import Lane
from ..core.errors import HibossError
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import chat_moves, chat_pacing, lanes
from ..store.connection import Connection
from ..store.group_commit import Tx
from ..store.store import Store
from .pace_windows import Rank
from .pacing import Pacing

log = logging.getLogger(__name__)
LOOK_SECONDS = 15.0  # between looks at what cannot be done now, like in a lane that is paused
EAGER_SECONDS = 5.0  # new activity tries again what waits, at most this often
AT_ONCE = 4  # changes of one account
PERMIT_SECONDS = 2.0  # to wait until an account may do one more; it may take a minute in a group
T = TypeVar("T")


class Job(NamedTuple):
    """One change that is to be made."""

    kind: str
    number: int  # of the envelope or the message that it is about
    binding: int  # the account that can make it; 0: it is not bound any more


class Failing(NamedTuple):
    """What was written about a change that failed."""

    lane: Lane | None  # where; None: nowhere any more
    since: int | None  # when it failed first; None: now
    given_up: bool  # it failed for a day


class Later(NamedTuple):
    """When a change is tried again."""

    timer: asyncio.TimerHandle
    tried: float  # when it was tried last, on the loop's clock


class Kind(Protocol):
    """One kind of change."""

    def stored(self, connection: Connection) -> tuple[list[Job], bool]:
        """Return what can be done now, and whether there is more that cannot."""

    async def make(self, job: Job) -> None:
        """Make a change. Raise LaneError if it must be tried again later, or NotNow."""

    def failed(self, tx: Tx, job: Job, why: str, now: int) -> Failing | None:
        """Write that a change failed; None: it is not stored any more."""

    def chat(self, tx: Tx, job: Job) -> str | None:
        """Return the platform's id of the chat that a change is made in; None: it is not stored any more."""


class NotNow(Exception):
    """It cannot be done now, and nothing has failed: look again after so many seconds."""

    def __init__(self, seconds: float = LOOK_SECONDS) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class ChatCalls:
    """Calls of adapters that change something in a chat."""

    def __init__(self, store: Store, supervisor: Supervisor, pacing: Pacing) -> None:
        self._store = store
        self._supervisor = supervisor
        self._pacing = pacing

    def adapter(self, lane: Lane) -> Any:
        """Return the adapter of a lane in which something may be changed now; raise NotNow if it may not."""
        slot = self._supervisor.slots.get(lane.binding or 0)
        if slot is None or slot.adapter is None:
            raise NotNow  # when it runs, it is looked at
        paused, until = self._store.read(lambda c: (lanes.is_paused(c, lane), lanes.told_until(c, lane)))
        wait = (until - clock.now()) / 1000
        if paused or wait > 0:
            raise NotNow(min(wait, LOOK_SECONDS) if not paused else LOOK_SECONDS)
        return slot.adapter

    async def call(
        self, lane: Lane, call: Callable[[], Coroutine[Any, Any, T]], what: str, seconds: float
    ) -> T:
        """Call an adapter for what platforms do not count: deletions and reactions."""
        return await bounded_calls.call(call(), what, seconds)

    async def call_paced(
        self, lane: Lane, call: Callable[[], Coroutine[Any, Any, T]], what: str, seconds: float
    ) -> T:
        """Call an adapter for an edit or a post, when the account may do one more; final texts go before.

        Raise NotNow if that takes longer: changes in other chats wait for this one.
        """
        try:
            async with asyncio.timeout(PERMIT_SECONDS):
                permit = await self._pacing.permit(lane, Rank.CHANGE)
        except TimeoutError:
            raise NotNow from None
        if permit is None:
            raise NotNow
        with permit:
            try:
                self.adapter(lane)  # it may be paused meanwhile
            except NotNow:
                permit.give_back()
                raise
            return await bounded_calls.call(call(), what, seconds)


class ChangeQueue:
    """Makes the changes that are stored. Use it on the event loop's thread only."""

    def __init__(
        self, store: Store, settings: Settings, supervisor: Supervisor, kinds: Mapping[str, Kind]
    ) -> None:
        self._store = store
        self._settings = settings
        self._supervisor = supervisor
        self._kinds = kinds
        self._queue: WorkQueue[Job] = WorkQueue(lambda: AT_ONCE, self._work, group=lambda job: job.binding)
        self._later: dict[Job, Later] = {}  # what is tried again at a time
        self._some = True  # something may be stored: only then the store is asked
        self.nudge: Callable[[int], None]  # the scheduler's, set in hiboss/daemon/wiring.py
        self.moved: Callable[[int], None]  # a chat of a binding has another id; set there too

    def added(self) -> None:
        """Begin with what was stored just now. Never waits."""
        self._some = True
        self._look(None, EAGER_SECONDS)

    def settled(self, binding: int | None) -> None:
        """Begin with what waits for envelopes of an account to be posted. Never waits."""
        self._look(binding, EAGER_SECONDS)

    def look(self, binding: int | None = None, *, again: bool = False) -> None:
        """Begin with what can be done: by one account, or by all. Never waits.

        `again`: also with what is to be tried later, since what was in its way may be over.
        """
        self._look(binding, 0.0 if again else None)

    def _look(self, binding: int | None, again_after: float | None) -> None:
        """Begin with what can be done; also with what is to be tried later, if it was tried so long ago."""
        if not self._some or self._queue.closed:
            return
        try:
            found = self._store.read(lambda c: [one.stored(c) for one in self._kinds.values()])
        except HibossError as error:
            log.error("Changes of posts are looked for later: %s", error, extra={"action": "change"})
            return
        self._some = any(jobs or more for jobs, more in found)
        now = asyncio.get_running_loop().time()
        for job in [job for jobs, _ in found for job in jobs]:
            later = self._later.get(job)
            now_too = later is None or (again_after is not None and now - later.tried >= again_after)
            if (binding in (None, job.binding) or not job.binding) and now_too:
                self._begin(job)

    def _begin(self, job: Job) -> None:
        if later := self._later.pop(job, None):
            later.timer.cancel()
        if not self._supervisor.is_starting(job.binding):  # when it runs, it is looked at
            self._queue.wake(job)

    def _try_later(self, job: Job, seconds: float) -> None:
        if later := self._later.pop(job, None):
            later.timer.cancel()
        if not self._queue.closed:
            loop = asyncio.get_running_loop()
            self._later[job] = Later(loop.call_later(seconds, self._begin, job), loop.time())

    async def close(self) -> None:
        """Let changes finish for a limited time. The others are made after the next start."""
        for later in self._later.values():
            later.timer.cancel()
        self._later.clear()
        tasks = self._queue.close()
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        await bounded_calls.end(tasks, "A change of a post")

    # --- working -------------------------------------------------------------------------

    async def _work(self, job: Job, eager: bool) -> None:
        try:
            await self._kinds[job.kind].make(job)
        except NotNow as wait:
            self._try_later(job, wait.seconds)
        except ChatMoved as error:
            await self._moved(job, error)
        except LaneError as error:
            await self._failed(job, Failure.reported(error.kind, error.text), error.retry_after)
        except (bounded_calls.TookTooLong, TimeoutError):
            await self._failed(job, Failure("timed_out", "no answer in time"))
        except HibossError as error:  # the store cannot be used now
            log.error("A change is made later: %s", error, extra={"action": "change"})
            self._try_later(job, LOOK_SECONDS)
        except BaseException as error:  # a defect of an adapter, also SystemExit
            if bounded_calls.is_our_cancellation(error):
                raise
            log.exception("A change failed.", extra={"action": "change"})
            await self._failed(job, Failure("adapter_failed", f"the adapter failed: {type(error).__name__}"))

    async def _moved(self, job: Job, error: ChatMoved) -> None:
        """Give a chat its new id, as when something is posted there, and look again."""

        def write(tx: Tx, now: int) -> bool:
            chat = self._kinds[job.kind].chat(tx, job)
            return chat is not None and chat_moves.moved(tx, job.binding, chat, str(error.chat), now)

        if await self._store.timed_write_until_done(write):
            self.moved(job.binding)
        else:
            await self._failed(job, Failure.reported(error.kind, error.text))

    async def _failed(self, job: Job, failure: Failure, retry_after: object = None) -> None:
        """Try a change again later; at once, to finish it, if it was given up after a day."""
        log.warning("The %s of %d waits: %s", job.kind, job.number, failure.text, extra={"action": "change"})

        def write(tx: Tx, now: int) -> tuple[float, int | None] | None:
            failing = self._kinds[job.kind].failed(tx, job, failure.text, now)
            if failing is None:
                return None
            since = now if failing.since is None else failing.since
            seconds, named = backoff.next_wait(max(0.0, (now - since) / 1000), retry_after)
            if not named or failing.lane is None:
                return 0.0 if failing.given_up else seconds, None
            until = now + int(seconds * 1000)
            chat_pacing.hold(tx, failing.lane, failure, until, now, itself=True)
            return 0.0 if failing.given_up else seconds, until

        written = await self._store.timed_write_until_done(write)
        if written is None:
            return
        seconds, until = written
        if until is not None:
            self.nudge(until)
        self._try_later(job, seconds)
