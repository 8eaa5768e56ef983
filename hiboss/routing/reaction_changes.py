"""Show the reactions of agents on the platforms where their accounts see the messages."""

from __future__ import annotations

import logging
from typing import Any

from ..core import emojis
from ..core.contracts.failures import EnvelopeError
from ..core.crashpoint import REACTED, crashpoint
from ..core.quoting import storable
from ..store import breaker_holds, reaction_changes
from ..store.connection import Connection
from ..store.group_commit import Tx
from ..store.reaction_changes import Change
from ..store.store import Store
from .change_queue import ChatCalls, Failing, Job, NotNow

log = logging.getLogger(__name__)
KIND = "reaction"
CALL_SECONDS = 10.0
WHY_CHARACTERS = 500


class ReactionChanges:
    """The kind of change that puts an emoji on a message, or takes it back."""

    def __init__(self, store: Store, calls: ChatCalls) -> None:
        self._store = store
        self._calls = calls

    def stored(self, connection: Connection) -> tuple[list[Job], bool]:
        """Return the reactions that are to be shown."""
        return [Job(KIND, *one) for one in reaction_changes.left(connection)], False

    def failed(self, tx: Tx, job: Job, why: str, now: int) -> Failing | None:
        """Write that a reaction could not be shown."""
        change = reaction_changes.get(tx, job.number, job.binding)
        if change is None:
            return None
        given_up = reaction_changes.failed(tx, job.number, job.binding, change, why, now)
        return Failing(change.shown.lane if change.shown else None, change.failing_since, given_up)

    def chat(self, tx: Tx, job: Job) -> str | None:
        """Return the chat in which the message is."""
        change = reaction_changes.get(tx, job.number, job.binding)
        return change.shown.place if change is not None and change.shown is not None else None

    async def make(self, job: Job) -> None:
        """Show what the account is to show now; once more if that is something else meanwhile."""
        message, binding = job.number, job.binding
        while (change := self._store.read(lambda c: reaction_changes.get(c, message, binding))) is not None:
            try:
                await self._show(change)
            except EnvelopeError as error:
                why = storable(error.text, WHY_CHARACTERS)
                log.info("A reaction to m%d is not shown: %s", message, why, extra={"action": "change"})
                await self._store.timed_write_until_done(
                    lambda tx, now: reaction_changes.refused(tx, message, binding, change, why, now)  # noqa: B023
                )
                continue
            await self._store.write_until_done(
                lambda tx: reaction_changes.made(tx, message, binding, change.changes)
            )

    async def _show(self, change: Change) -> None:
        """Show a reaction, if the account can do that."""
        if change.shown is None:
            return
        lane = change.shown.lane
        if self._store.read(lambda c: breaker_holds.are_in(c, lane)):
            raise NotNow
        adapter: Any = self._calls.adapter(change.shown.lane)
        if "react" not in getattr(adapter, "capabilities", ()):
            return
        emoji, shown = change.emoji, change.shown
        if emoji is not None:
            emoji = emojis.taken_as(emoji, getattr(adapter, "emojis", None))
            if emoji is None:
                raise EnvelopeError("emoji_refused", f"{adapter.type} does not show this emoji")
        await self._calls.call(
            shown.lane,
            lambda: adapter.react(shown.place, shown.platform_id, emoji),
            f"A reaction in {shown.place}",
            CALL_SECONDS,
        )
        crashpoint(REACTED)
