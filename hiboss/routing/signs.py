"""Signs: what is shown in a chat for a moment, like `typing` or a draft.

A sign is dropped when it cannot go now: while its lane waits or is paused, while another one of the
same kind is on its way, after an error. It is never queued, and an error of it changes no lane. A
platform that names a wait gets no more signs and no changes of live posts in that chat until then.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ..channels.supervisor import Supervisor
from ..core import bounded_calls, clock
from ..core.backoff import LONGEST_SECONDS, named_seconds
from ..core.contracts.adapter import METHOD_OF
from ..core.contracts.failures import LaneError
from ..core.errors import HibossError
from ..store import lanes
from ..store.live_posts import Target
from ..store.store import Store
from ..store.turn_origins import Origin
from .pacing import Pacing

log = logging.getLogger(__name__)
TYPING_SECONDS = 4.0  # platforms show it for about five
SIGN_SECONDS = 5.0  # for one sign to be sent
HEARD = "👌"  # on a command


class Signs:
    """Sends signs, and knows in which chats nothing may be shown now."""

    def __init__(self, store: Store, supervisor: Supervisor, pacing: Pacing) -> None:
        self._store = store
        self._supervisor = supervisor
        self._pacing = pacing
        self._held: dict[int, float] = {}  # by chat: until when, on the loop's clock
        self._going: dict[tuple[Target, str, tuple[Any, ...]], asyncio.Task[BaseException | None]] = {}

    def show(self, target: Target, sign: str, *arguments: Any) -> asyncio.Task[BaseException | None] | None:
        """Show a sign (the capability that it needs) in a place, or drop it. Never waits.

        Return the task that sends it, whose result is why it was dropped; None: it was dropped at once.
        """
        adapter = self.adapter(target, sign)
        key = (target, sign, arguments)
        busy = self._pacing.is_busy(target.lane.binding)  # what it may still do is for posts
        if adapter is None or busy or key in self._going or not self.may_go(target):
            return None
        task = asyncio.get_running_loop().create_task(self._send(adapter, target, sign, arguments))
        self._going[key] = task
        task.add_done_callback(lambda task: self._going.pop(key, None))
        return task

    def acknowledge(self, command: Origin) -> None:
        """Show that a command was heard."""
        self.show(command.target, "react", command.platform_id, HEARD)

    def adapter(self, target: Target, *capabilities: str) -> Any:
        """Return the adapter of a place if it runs and can do all this; else None."""
        try:
            adapter = self._supervisor.adapter(target.lane.binding)
        except LaneError:
            return None
        return adapter if {*capabilities} <= getattr(adapter, "capabilities", frozenset()) else None

    def may_go(self, target: Target) -> bool:
        """Tell whether something may be shown in a place now."""
        if self._held.get(target.chat, 0.0) > asyncio.get_running_loop().time():
            return False
        try:
            return self._store.read(lambda c: lanes.is_open(c, target.lane, clock.now()))
        except HibossError:
            return False

    def hold(self, target: Target, error: BaseException) -> bool:
        """Show nothing in a chat before the time that the platform named; return whether it named one."""
        seconds = named_seconds(error.retry_after) if isinstance(error, LaneError) else None
        if seconds is None:
            return False
        now = asyncio.get_running_loop().time()
        self._held = {chat: until for chat, until in self._held.items() if until > now}
        self._held[target.chat] = max(self._held.get(target.chat, 0.0), now + min(seconds, LONGEST_SECONDS))
        return True

    async def close(self) -> None:
        await bounded_calls.end(list(self._going.values()), "A sign")

    async def _send(
        self, adapter: Any, target: Target, sign: str, arguments: tuple[Any, ...]
    ) -> BaseException | None:
        what = f"The sign {sign} in {target.place}"
        method = getattr(adapter, METHOD_OF.get(sign) or sign)
        try:
            await bounded_calls.call(method(target.place, *arguments), what, SIGN_SECONDS)
        except BaseException as error:  # whatever an adapter raises: it is only a sign
            if bounded_calls.is_our_cancellation(error):
                raise
            self.hold(target, error)
            log.info("%s was dropped: %r", what, error, extra={"action": "sign"})
            return error
        return None
