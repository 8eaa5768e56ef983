"""Chats that wait because the platform failed go on when it answers again, and not before a time that it named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.routing import intake_failures
from tests.support.in_process_daemon import InProcessDaemon, frozen

MODULES = {"adapter_modules": "hiboss.testing.scripted_adapter"}
HOUR = 3600.0  # nobody waits for so long here: what comes in wakes the chats


class Platform:
    """A platform with several chats. Its faults are those of the next digestions."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.root = Path(daemon.home.database).parents[1] / "platform"

    async def open(self, *faults: dict[str, object]) -> None:
        self.root.mkdir()
        (self.root / "settings.json").write_text(json.dumps({"album_seconds": HOUR}))
        self.script = self.root / "digest.jsonl"
        self.script.write_text("".join(json.dumps(fault) + "\n" for fault in faults))
        settings = {"path": str(self.root)}
        await self.daemon.ask("agent.bind", name="nex", adapter_type="scripted", settings=settings)
        await self.daemon.until((self.root / "inbox").exists)

    def says(self, text: str, chat: str, **facts: str) -> None:
        (self.root / "new").write_text(json.dumps({"text": text, "place": chat, **facts}))
        (self.root / "new").replace(self.root / "inbox" / f"{text}.json")

    async def fails(self, text: str, chat: str, left: int = 0, **facts: str) -> None:
        """Let something come in whose digestion fails; return when so many faults are left, and it waits."""
        self.says(text, chat, **facts)
        downloads = Path(self.daemon.home.media) / ".downloads"
        await self.daemon.until(
            lambda: len(self.script.read_text().splitlines()) == left and not list(downloads.iterdir())
        )

    async def received(self, number: int) -> list[str]:
        """Return what nex got, when it is so many."""
        rows = "SELECT count(*) FROM platform_update WHERE outcome IS NOT NULL"
        await self.daemon.until(lambda: self.daemon.rows(rows)[0][0] >= number)
        return await self.daemon.inbox()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_failures, "SHORTEST_PAUSE", HOUR)
    monkeypatch.setattr(intake_failures, "LONGEST_PAUSE", HOUR)
    monkeypatch.setattr(intake_failures, "AGAIN_SECONDS", 0.0)


@frozen(**MODULES)
async def test_chats_that_wait_go_on_when_something_comes_in_at_another_chat(daemon: InProcessDaemon) -> None:
    platform = Platform(daemon)
    await platform.open({"do": "account_error"}, {"do": "account_error"}, {"do": "account_error"})
    await platform.fails("u1", "first", left=2)
    await platform.fails("u2", "second")  # the first one failed again with it
    platform.says("u3", "third")
    assert sorted(await platform.received(3)) == ["u1", "u2", "u3"]


@frozen(**MODULES)
async def test_a_chat_that_goes_on_wakes_the_others_of_its_account(daemon: InProcessDaemon) -> None:
    platform = Platform(daemon)
    fault = {"do": "account_error", "retry_after": 0.3}
    await platform.open({"do": "account_error"}, {"do": "account_error"}, fault)
    await platform.fails("u1", "first", left=2)
    await platform.fails("u2", "second")  # one of them waits for a moment, the other for an hour
    assert sorted(await platform.received(2)) == ["u1", "u2"]


@frozen(**MODULES)
async def test_nothing_wakes_a_chat_before_a_time_that_the_platform_named(daemon: InProcessDaemon) -> None:
    platform = Platform(daemon)
    await platform.open({"do": "account_error", "retry_after": HOUR})
    await platform.fails("u1", "first")
    for number, text in enumerate(("u2", "u3", "u4"), 1):
        platform.says(text, "second")
        await platform.received(number)
    assert await daemon.inbox() == ["u2", "u3", "u4"]


@frozen(**MODULES)
async def test_an_album_is_not_sealed_early_because_the_platform_failed_when_it_came(
    daemon: InProcessDaemon,
) -> None:
    """Its wait for more parts is not the wait for the platform: only that one is ended by other chats."""
    platform = Platform(daemon)
    await platform.open({"do": "account_error"})
    await platform.fails("u1", "first", album="a")
    for number, text in enumerate(("u2", "u3", "u4"), 1):
        platform.says(text, "second")
        await platform.received(number)
    assert await daemon.inbox() == ["u2", "u3", "u4"]
    platform.says("u5", "first", album="a")
    await daemon.until(lambda: not list((platform.root / "inbox").iterdir()))
    daemon.tick(seconds=HOUR)
    platform.says("u6", "first")
    assert (await platform.received(6))[3:] == ["u1\nu5", "u6"]
