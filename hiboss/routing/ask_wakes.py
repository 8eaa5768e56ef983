"""Wake asks whose time has come: remind of them, or end them. Each at its own risk."""

from __future__ import annotations

import logging

from ..core.crashpoint import ASK_WOKEN, crashpoint
from ..core.errors import HibossError
from ..store import ask_times
from ..store.store import Store
from .intake_failures import is_of_the_store

log = logging.getLogger(__name__)


async def wake(store: Store, now: int) -> None:
    """Look at the asks whose time has come, some at once. Raise if the store cannot be used now."""
    for number in store.read(lambda c: ask_times.due(c, now)):
        try:
            await store.write(lambda tx: ask_times.wake(tx, number, now))  # noqa: B023 - awaited here
            crashpoint(ASK_WOKEN)
        except Exception as error:
            if isinstance(error, HibossError) and is_of_the_store(error):
                raise
            # A defect: the others go on.
            log.exception("q%d is looked at later.", number, extra={"action": "wake"})
            await store.write(lambda tx: ask_times.postpone(tx, number, now))  # noqa: B023 - awaited here
