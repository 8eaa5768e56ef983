"""Notes in chats that what was written there waits for a run: of each run, at most so many."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

from hiboss.routing import queue_notes
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.live_places import LivePlace
from tests.support.python_agents import hire

GROWS = 'print("well"); sys.stdout.flush(); wait_for("{name}.go"); print("done")'


class Office:
    """Agents that write an answer in one chat until they may end, and have another chat where people wait."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.directory = Path(daemon.home.path).parent

    async def place(self, agent: str) -> LivePlace:
        place = LivePlace(self.directory)
        bind = {"name": agent, "adapter_type": "scripted", "settings": {"path": str(place.root)}}
        await self.daemon.ask("agent.bind", **bind)
        return place

    async def busy(self, agent: str) -> tuple[LivePlace, LivePlace]:
        await hire(self.daemon, agent, GROWS.format(name=agent))
        own, other = await self.place(agent), await self.place(agent)
        own.put_in_inbox("1", text="first", message="1")
        await self.daemon.until(lambda: "well" in own.seen())
        other.put_in_inbox("1", text="me too", message="1")
        return own, other

    async def goes_on(self, agent: str, place: LivePlace) -> None:
        (self.directory / f"{agent}.go").touch()
        await self.daemon.until(lambda: place.seen() == ["well\ndone"])


@frozen(at=None, adapter_modules="hiboss.testing.scripted_adapter", delivery_live_seconds="0.02", quiet=False)
async def test_notes_about_one_run_leave_room_for_those_about_another(daemon: InProcessDaemon) -> None:
    office = Office(daemon)
    with patch.object(queue_notes, "CHATS", 1), patch.object(queue_notes, "SECONDS", 0.3):
        kai, waits = await office.busy("kai")
        await daemon.until(lambda: any("Queued behind r1:" in text for text in waits.seen()))
        zoe, waits_too = await office.busy("zoe")
        await daemon.until(lambda: any("Queued behind r2:" in text for text in waits_too.seen()))
    changed = daemon.daemon.wiring.queue_notes._live._next_change
    assert len(changed) == 2
    await daemon.until(lambda: asyncio.get_running_loop().time() > max(changed.values()))
    await office.goes_on("kai", kai)
    await office.goes_on("zoe", zoe)
    await daemon.until(lambda: waits.seen() == waits_too.seen() == ["well\ndone"])
    live = daemon.daemon.wiring.queue_notes._live
    assert len(live._next_change) < 4  # those of chats that are quiet are forgotten
