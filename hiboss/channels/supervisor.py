"""The crew: one running adapter for each binding, looked after.

An adapter that crashes is started again after growing pauses; it takes nobody down, and
its lanes wait meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import clock
from ..core.contract import Account, Arrival, LaneError
from ..core.errors import HibossError
from ..core.events import AdapterFailed, AdapterStarted, Bus
from ..core.quoting import redact
from ..store.connection import Row
from .registry import Registry

log = logging.getLogger(__name__)
PAUSES = (1.0, 5.0, 30.0, 120.0, 300.0)
TELL_AFTER = 2  # crashes in a row: once may pass by itself
SOUND_MS = 60_000  # having run so long, an adapter's earlier crashes are forgiven
START_SECONDS = 60.0
STOP_SECONDS = 5.0
Receive = Callable[[int, str, Arrival], Awaitable[bool]]


@dataclass(slots=True)
class Berth:
    """The place of one adapter."""

    binding: int
    type: str
    account: str
    settings: Mapping[str, Any]
    adapter: Any = None  # while it runs
    state: str = "starting"  # starting, running, failed
    crashes: int = 0
    error: str | None = None
    since: int = 0
    life: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return f"{self.type}:{self.account}"


class Crew:
    def __init__(
        self,
        registry: Registry,
        bus: Bus,
        receive: Receive,
        runs: Callable[[Berth], Awaitable[None]],
        fails: Callable[[Berth], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._bus = bus
        self._receive = receive
        self._runs = runs  # it can post again: its lanes may be tried
        self._fails = fails  # it does not get to run: the boss should know
        self.berths: dict[int, Berth] = {}

    def add(self, row: Row) -> None:
        """Start an adapter for a binding, now or after a restart."""
        if row["id"] in self.berths:
            return
        berth = Berth(row["id"], row["adapter"], row["account"], json.loads(row["settings"] or "{}"))
        self.berths[berth.binding] = berth
        berth.life = asyncio.create_task(self._live(berth), name=f"adapter {berth.name}")

    async def remove(self, binding: int) -> None:
        berth = self.berths.pop(binding, None)
        if berth is not None and berth.life is not None:
            berth.life.cancel()
            await asyncio.gather(berth.life, return_exceptions=True)

    async def keep_only(self, bindings: set[int]) -> None:
        """Stop the adapters of bindings that are no more."""
        await asyncio.gather(*[self.remove(binding) for binding in set(self.berths) - bindings])

    async def close(self) -> None:
        await asyncio.gather(*[self.remove(binding) for binding in list(self.berths)])

    def kind(self, name: str) -> Any:
        """The adapter class of this type."""
        return self._registry.kind(name)

    def adapter(self, binding: int | None) -> Any:
        berth = self.berths.get(binding or 0)
        if berth is None:
            raise LaneError("unbound", "this account is not bound any more")
        if berth.adapter is None:
            raise LaneError("adapter_down", berth.error or "the adapter is still starting")
        return berth.adapter

    def is_starting(self, binding: int | None) -> bool:
        """Whether its first start has not come to an end yet."""
        berth = self.berths.get(binding or 0)
        return berth is not None and berth.state == "starting" and berth.error is None

    async def _live(self, berth: Berth) -> None:
        """Run, and run again after a crash, until cancelled."""
        while True:
            await self._run(berth)
            berth.adapter, berth.state = None, "failed"
            pause = PAUSES[min(berth.crashes, len(PAUSES) - 1)]
            berth.crashes += 1
            if berth.crashes == TELL_AFTER:
                await self._fails(berth)
            self._bus.publish(AdapterFailed(at=clock.now(), binding=berth.binding, error=berth.error or ""))
            await asyncio.sleep(pause)
            berth.state = "starting"

    async def _run(self, berth: Berth) -> None:
        """One life of an adapter; returns when it has ended, with `error` saying why."""
        adapter = None
        try:
            kind = self._registry.kind(berth.type)
            adapter = kind(Account(binding=berth.binding, name=berth.account, settings=berth.settings))
            await _start(adapter)
            await self._is_up(berth, adapter)
            await adapter.listen(lambda arrival: self._receive(berth.binding, berth.type, arrival))
            berth.error = "it stopped listening"
        except (LaneError, HibossError) as error:
            berth.error = redact(str(error))
            log.warning("%s cannot run: %s", berth.name, berth.error, extra={"action": "adapter"})
        except BaseException as error:
            if is_ours(error):
                raise
            berth.error = redact(f"{type(error).__name__}: {error}")
            log.exception("%s crashed.", berth.name, extra={"action": "adapter"})
        finally:
            if berth.since and clock.now() - berth.since > SOUND_MS:
                berth.crashes = 0
            berth.adapter, berth.since = None, 0
            await _stop(adapter, berth)

    async def _is_up(self, berth: Berth, adapter: Any) -> None:
        berth.adapter, berth.state, berth.error, berth.since = adapter, "running", None, clock.now()
        log.info("%s runs.", berth.name, extra={"action": "adapter"})
        self._bus.publish(
            AdapterStarted(at=berth.since, binding=berth.binding, address=f"channel:{berth.name}")
        )
        await self._runs(berth)


def is_ours(error: BaseException) -> bool:
    """Whether what came out of an adapter is meant for us: we are cancelled, or the person interrupts.

    A CancelledError can also come from a task of the adapter's own, and sys.exit() from a
    library it uses; neither may end the daemon, or an envelope's way.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, (KeyboardInterrupt, GeneratorExit))


async def _start(adapter: Any) -> None:
    limit = asyncio.timeout(START_SECONDS)
    try:
        async with limit:
            await adapter.start()
    except TimeoutError as error:
        if not limit.expired():
            raise  # its own, about something else
        raise LaneError("timed_out", f"it did not start within {START_SECONDS:g} seconds") from error


async def _stop(adapter: Any, berth: Berth) -> None:
    if adapter is None:
        return
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await adapter.stop()
    except BaseException as error:
        if is_ours(error):
            raise
        log.exception("%s did not stop well.", berth.name, extra={"action": "adapter"})
