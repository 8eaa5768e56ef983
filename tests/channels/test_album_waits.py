"""How long the intake waits for more parts of an album: from the moment when its last part was stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.inbound import NotYet, Update
from tests.support.in_process_daemon import InProcessDaemon, frozen

MODULES = {"adapter_modules": "hiboss.testing.scripted_adapter"}
SECONDS = 60.0  # nobody waits for so long here: the test moves the clock


class Group:
    """A group whose albums end a minute after their last part."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.root = Path(daemon.home.database).parents[1] / "group"

    async def open(self) -> None:
        self.root.mkdir()
        (self.root / "settings.json").write_text(json.dumps({"album_seconds": SECONDS}))
        settings = {"path": str(self.root)}
        await self.daemon.ask("agent.bind", name="nex", adapter_type="scripted", settings=settings)
        await self.daemon.until((self.root / "inbox").exists)

    async def comes_in(self, update: str, **facts: Any) -> None:
        """Let something come in; return when it is stored."""
        (self.root / f"{update}.part").write_text(json.dumps({"text": update, **facts}))
        (self.root / f"{update}.part").replace(self.root / "inbox" / f"{update}.json")
        await self.daemon.until(lambda: not (self.root / "inbox" / f"{update}.json").exists())

    async def received(self) -> list[str]:
        """Return what nex got when everything is digested."""
        waits = "SELECT 1 FROM platform_update WHERE outcome IS NULL"
        await self.daemon.until(lambda: not self.daemon.rows(waits))
        return await self.daemon.inbox()


@frozen(**MODULES)
async def test_an_album_comes_in_time_although_others_go_on_writing(daemon: InProcessDaemon) -> None:
    group = Group(daemon)
    await group.open()
    await group.comes_in("u1", album="a")
    daemon.tick(seconds=40)
    await group.comes_in("u2", album="a")
    daemon.tick(seconds=40)
    await group.comes_in("u3")  # somebody else; the album waits for 20 seconds more
    assert await daemon.inbox() == []
    daemon.tick(seconds=21)
    await group.comes_in("u4")
    assert await group.received() == ["u1\nu2", "u3", "u4"]


@frozen(**MODULES)
async def test_albums_that_were_stored_long_before_do_not_wait_after_a_start(daemon: InProcessDaemon) -> None:
    group = Group(daemon)
    await group.open()
    for update, album in (("u1", "a"), ("u2", "a"), ("u3", "b"), ("u4", "b")):
        await group.comes_in(update, album=album)
    assert await daemon.inbox() == []
    await daemon.restart(seconds=SECONDS + 1)
    assert await group.received() == ["u1\nu2", "u3\nu4"]


def test_the_time_counts_from_an_update_that_digest_was_given() -> None:
    given = [Update(id=number, chat="c", raw={}) for number in "123"]
    assert NotYet(1).counts_from(given) == 0
    assert NotYet(1, last=given[1]).counts_from(given) == 1
    for last in (Update(id="9", chat="c", raw={}), "1"):
        with pytest.raises(ValueError, match="the last of NotYet must be an update that digest was given"):
            NotYet(1, last=last).counts_from(given)  # type: ignore[arg-type]
