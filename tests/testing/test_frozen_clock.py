"""A daemon whose clock the test moves: `hiboss.testing.frozen_clock`."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hiboss.core.errors import HibossError
from hiboss.testing.frozen_clock import frozen_daemon


def test_a_daemon_whose_clock_stands_still_is_moved_by_the_test(tmp_path: Path) -> None:
    async def story() -> None:
        place = tmp_path / "place"
        place.mkdir()
        modules = {"HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter"}
        async with frozen_daemon(tmp_path, at=datetime(2040, 1, 1, tzinfo=UTC), **modules) as daemon:
            nex, boss = daemon.token("nex"), daemon.token("boss")
            assert (await daemon.call("daemon.time"))["now"] == "2040-01-01T00:00:00.000Z"
            bound = await daemon.call(
                "agent.bind", token=boss, name="nex", adapter_type="scripted", settings={"path": str(place)}
            )
            await daemon.call("envelope.send", token=nex, to=bound["address"], text="later", deliver_at="+2h")
            await daemon.restart(hours=1)
            posts = place / "posts.jsonl"
            await daemon.until(posts.exists)
            assert posts.read_text() == ""
            await daemon.move(hours=1)
            await daemon.until(posts.read_text)
            assert json.loads(posts.read_text())["chunk"] == "later"
            with pytest.raises(HibossError):
                await daemon.call("envelope.list")

    handlers = logging.getLogger().handlers[:]
    asyncio.run(story())
    assert logging.getLogger().handlers == handlers
    assert datetime.now(UTC).year != 2040
