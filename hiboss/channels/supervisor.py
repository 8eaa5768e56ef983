"""The supervisor keeps one adapter running for each binding.

An adapter that crashes is restarted after growing pauses (PAUSES). The other adapters and the
daemon go on; its own lanes wait meanwhile. An adapter that does not end when it should is left
behind: it can hand over nothing any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..core import bounded_calls, clock
from ..core.contracts.adapter import Account, AdapterSettings, Taken
from ..core.contracts.failures import ERROR_CHARACTERS, AccountError, LaneError, Refused, named_seconds
from ..core.contracts.inbound import Update
from ..core.errors import HibossError
from ..core.events import AdapterFailed, AdapterRunning, Fact
from ..core.option_models import load
from ..core.paths import Home
from ..core.quoting import storable
from ..store.connection import Row
from .registry import Registry

log = logging.getLogger(__name__)
PAUSES = (1.0, 5.0, 30.0, 120.0, 300.0)  # seconds
UNREACHABLE_SECONDS = 30.0  # the longest pause while the platform or the account does not let it start
TELL_AFTER = 2  # crashes in a row before the boss is told: a single one often passes
STABLE_MS = 60_000  # an adapter that ran so long starts with no crashes counted
START_SECONDS = 60.0
STOP_SECONDS = 5.0
END_SECONDS = STOP_SECONDS + 3 * bounded_calls.GRACE_SECONDS  # to end listening, and then to stop
Take = Callable[[int, str, Sequence[Update], str | None, tuple[int, int] | None], Awaitable[Taken]]


@dataclass(slots=True)
class Slot:
    """One binding and the adapter that runs for it."""

    binding: int
    type: str
    account: str
    settings: Mapping[str, Any]  # without secrets
    secrets: str | None = None  # the name of the file that has them
    adapter: Any = None  # while it runs
    state: str = "starting"  # starting, running, failed
    crashes: int = 0  # in a row
    error: str | None = None  # the last one
    refusal: LaneError | None = None  # the last error, if the platform did not let it start
    since: int = 0  # when it began to run; 0: it does not run
    task: asyncio.Task[None] | None = None  # keeps it running
    retry: asyncio.Event = field(default_factory=asyncio.Event)  # ends its pause after a crash

    @property
    def name(self) -> str:
        return f"{self.type}:{self.account}"

    @property
    def trouble(self) -> str | None:
        """What is wrong with it now: its last error, or what the adapter says while it goes on trying."""
        said = self.error or getattr(self.adapter, "trouble", None)
        return storable(said, ERROR_CHARACTERS) if said else None


class Supervisor:
    """Starts, restarts and stops adapters; `slots` shows their states."""

    def __init__(
        self,
        registry: Registry,
        tell: Callable[[Fact], None],
        take: Take,
        on_running: Callable[[Slot], Awaitable[None]],
        on_failing: Callable[[Slot], Awaitable[None]],
        position: Callable[[int], str | None],
        home: Home,
    ) -> None:
        self._registry = registry
        self._publish = tell
        self._take = take
        self._on_running = on_running  # it can post (again): its lanes may be tried
        self._position = position  # up to where the updates of a binding are stored
        self._home = home
        self._on_failing = on_failing  # it crashed TELL_AFTER times: the boss should know
        self.slots: dict[int, Slot] = {}

    def add(self, row: Row) -> None:
        """Start the adapter of a binding; nothing happens when it is there already."""
        if row["id"] in self.slots:
            return
        settings = json.loads(row["settings"] or "{}")
        slot = Slot(row["id"], row["adapter"], row["account"], settings, row["secrets"])
        self.slots[slot.binding] = slot
        slot.task = asyncio.create_task(self._keep_running(slot), name=f"adapter {slot.name}")

    async def remove(self, binding: int) -> None:
        """Stop the adapter of a binding. One that ignores this is left behind."""
        slot = self.slots.pop(binding, None)
        if slot is not None and slot.task is not None:
            await bounded_calls.end([slot.task], f"The adapter of {slot.name}", END_SECONDS)

    def retry(self, binding: int | None) -> bool:
        """Start an adapter now that pauses after a crash; return whether it paused."""
        slot = self.slots.get(binding or 0)
        if slot is None or slot.state != "failed":
            return False
        slot.retry.set()
        return True

    async def close(self) -> None:
        await asyncio.gather(*[self.remove(binding) for binding in list(self.slots)])

    def kind(self, name: str) -> Any:
        """Return the adapter class of this type."""
        return self._registry.kind(name)

    def kinds(self) -> list[Any]:
        """Return all adapter classes, sorted by type."""
        return [self._registry.kinds[name] for name in sorted(self._registry.kinds)]

    def threads(self) -> dict[str, bool]:
        """Return for each type of adapter whether its chats can have topics."""
        return {one.type: "threads" in getattr(one, "capabilities", ()) for one in self.kinds()}

    def closed(self) -> dict[str, bool]:
        """Return for each type of adapter whether what strangers write is held."""
        return {one.type: not getattr(one, "open_to_all", False) for one in self.kinds()}

    def adapter(self, binding: int | None) -> Any:
        """Return the running adapter of a binding. Raises AccountError when there is none."""
        slot = self.slots.get(binding or 0)
        if slot is None:
            raise AccountError("unbound", "this account is no longer bound")
        if slot.adapter is None:
            raise AccountError("adapter_down", slot.error or "the adapter is still starting")
        return slot.adapter

    def is_starting(self, binding: int | None) -> bool:
        """Return whether its first start is still going on."""
        slot = self.slots.get(binding or 0)
        return slot is not None and slot.state == "starting" and slot.error is None

    async def _keep_running(self, slot: Slot) -> None:
        """Run the adapter, and restart it after each crash, until cancelled."""
        while True:
            try:
                await self._run(slot)
            except Exception as error:  # a defect: the adapter must come back all the same
                slot.error = f"hiboss failed to run it: {type(error).__name__}"
                log.exception("%s was not run.", slot.name, extra={"action": "adapter"})
            pause = pause_after(slot)
            slot.adapter, slot.state, slot.crashes = None, "failed", slot.crashes + 1
            await self._tell(slot)
            await _sleep(pause, slot.retry)
            slot.state = "starting"

    async def _tell(self, slot: Slot) -> None:
        """Tell those who should know that an adapter has failed."""
        try:
            self._publish(AdapterFailed(clock.now(), slot.binding, slot.name, slot.error or ""))
            if slot.crashes == TELL_AFTER:
                await self._on_failing(slot)
        except Exception:  # a defect: the adapter must come back all the same
            log.exception("Nobody was told that %s failed.", slot.name, extra={"action": "adapter"})

    async def _run(self, slot: Slot) -> None:
        """Run the adapter once. Returns when it has ended; `slot.error` says why."""
        adapter, slot.refusal = None, None
        try:
            kind = self._registry.kind(slot.type)
            adapter = kind(self._account(slot, kind))
            await _start(adapter, slot)
            await self._set_running(slot, adapter)
            take = partial(self._take_from, slot, adapter)
            await bounded_calls.call(adapter.listen(take), f"The listening of {slot.name}")
            slot.error = "it stopped listening"
        except (LaneError, HibossError) as error:
            slot.refusal = error if isinstance(error, LaneError) and not slot.since else None
            slot.error = storable(error, ERROR_CHARACTERS)
            log.warning("%s cannot run: %s", slot.name, slot.error, extra={"action": "adapter"})
        except BaseException as error:
            if bounded_calls.is_our_cancellation(error):
                raise
            slot.error = f"{type(error).__name__}: {storable(error, ERROR_CHARACTERS)}"
            log.exception("%s crashed.", slot.name, extra={"action": "adapter"})
        finally:
            if slot.since and clock.now() - slot.since > STABLE_MS:
                slot.crashes = 0
            slot.adapter, slot.since = None, 0
            await _stop(adapter, slot)

    async def _set_running(self, slot: Slot, adapter: Any) -> None:
        slot.adapter, slot.state, slot.error, slot.since = adapter, "running", None, clock.now()
        log.info("%s is running.", slot.name, extra={"action": "adapter"})
        self._publish(AdapterRunning(slot.since, slot.binding, slot.name))
        await self._on_running(slot)

    def _account(self, slot: Slot, kind: Any) -> Account:
        try:
            secrets = self._home.needed_secrets(slot.secrets)
            settings = load(getattr(kind, "Settings", AdapterSettings), slot.settings, secrets)
        except OSError as error:
            again = f"bind it again with them (hiboss agent bind AGENT --adapter-type {slot.type} …)"
            raise AccountError(
                "no_secret", f"its secrets cannot be read ({error.strerror}); {again}"
            ) from None
        except Refused as refusal:  # a new version of the adapter wants other settings
            raise AccountError("settings", f"its settings do not fit: {refusal.why}") from None
        return Account(
            binding=slot.binding,
            name=slot.account,
            settings=settings,
            home=self._home.path,
            position=self._position(slot.binding),
        )

    async def _take_from(
        self,
        slot: Slot,
        adapter: Any,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Taken:
        """Take updates from an adapter that runs; not from one that was left behind."""
        if slot.adapter is not adapter or self.slots.get(slot.binding) is not slot:
            raise LaneError("stopped", "this adapter was stopped")
        return await self._take(slot.binding, slot.type, updates, position, missed)


def pause_after(slot: Slot) -> float:
    """Return the seconds until an adapter that has crashed is started again."""
    usual = PAUSES[min(slot.crashes, len(PAUSES) - 1)]
    if slot.refusal is None:
        return usual
    named = named_seconds(slot.refusal.retry_after)
    return min(usual, UNREACHABLE_SECONDS) if named is None else named


async def _sleep(seconds: float, end: asyncio.Event) -> None:
    """Sleep, at most until the event."""
    end.clear()
    try:
        async with asyncio.timeout(seconds):
            await end.wait()
    except TimeoutError:
        pass


async def _start(adapter: Any, slot: Slot) -> None:
    try:
        await bounded_calls.call(adapter.start(), f"The start of {slot.name}", START_SECONDS)
    except bounded_calls.TookTooLong as error:
        text = f"it did not start within {START_SECONDS:g} seconds"
        raise AccountError("timed_out", text) from error


async def _stop(adapter: Any, slot: Slot) -> None:
    if adapter is None:
        return
    try:
        await bounded_calls.call(adapter.stop(), f"The stop of {slot.name}", STOP_SECONDS)
    except BaseException as error:
        if bounded_calls.is_our_cancellation(error):
            raise
        log.exception("%s failed to stop.", slot.name, extra={"action": "adapter"})
