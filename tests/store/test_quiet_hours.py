"""Notices in the boss's quiet hours: in his box at once, and posted later as one digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import clock
from hiboss.core.address import BOSS, Address
from hiboss.core.envelope import Lane
from hiboss.store import buttons, notices, quiet_digest
from hiboss.store.group_commit import Tx
from hiboss.store.quiet_hours import quiet_until
from tests.support.in_process_daemon import InProcessDaemon, frozen

EVENING = datetime(2030, 6, 1, 21, tzinfo=UTC)
NIGHT = datetime(2030, 6, 1, 23, 5, tzinfo=UTC)
HOURS = "22:00-07:00"
SCRIPTED: dict[str, Any] = {"adapter_modules": "hiboss.testing.scripted_adapter"}


class Boss:
    """The boss with a phone: what is posted there, and what lies in the box."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.phone = Path(daemon.home.path).parent / "phone"

    async def reached(self, **params: Any) -> Boss:
        await self.daemon.ask("boss.set", reach=(await self.daemon.bind(self.phone)), **params)
        return self

    async def told(self, text: str, **how: Any) -> str:
        """Send the boss a notice; return its envelope."""
        now = clock.now()
        store = self.daemon.daemon.wiring._store
        accepted = await store.write(lambda tx: notices.notify(tx, BOSS, text, now, **how))
        assert accepted is not None
        return f"e{accepted.envelopes[0]}"

    async def write(self, change: Callable[[Tx, int], Any]) -> Any:
        now = clock.now()
        return await self.daemon.daemon.wiring._store.write(lambda tx: change(tx, now))

    async def box(self) -> list[str]:
        return await self.daemon.inbox("boss")

    async def digests(self) -> list[str]:
        return [one for one in await self.box() if "quiet hours:" in one]

    def waiting(self) -> list[int]:
        return [row[0] for row in self.daemon.rows("SELECT envelope FROM quiet_notice ORDER BY envelope")]

    async def posts(self) -> list[str]:
        """Return what was posted to the phone, when nothing waits to be."""
        pending = "SELECT id FROM envelope WHERE binding IS NOT NULL AND status = 0"
        await self.daemon.until(lambda: not self.daemon.rows(pending))
        lines = (self.phone / "posts.jsonl").read_text().splitlines()
        return [json.loads(line)["chunk"].removeprefix("system:\n").removeprefix("nex:\n") for line in lines]

    async def set_hours(self, hours: str) -> None:
        Path(self.daemon.home.config).write_text(f'[boss]\nquiet_hours = "{hours}"\n')
        await self.daemon.ask("config.reload")
        await self.daemon.settle()


# --- the night -------------------------------------------------------------------------


@frozen(at=EVENING, quiet_hours=HOURS, **SCRIPTED)
async def test_a_notice_of_the_night_is_in_the_box_at_once_and_posted_in_the_morning_in_one_digest(
    daemon: InProcessDaemon,
) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("before the night")
    assert await boss.posts() == ["before the night"]
    await daemon.move(hours=1)
    first = await boss.told("the disk is full")
    await daemon.move(hours=8, minutes=59, seconds=59)
    second = await boss.told("somebody\nwrote")
    assert await boss.box() == ["before the night", "the disk is full", "somebody\nwrote"]
    assert len(await boss.posts()) == 1
    await daemon.move(seconds=1)
    digest = (
        "2 notices came in your quiet hours:\n"
        f'1. 22:00 {first}: "the disk is full"\n'
        f'2. 06:59 {second}: "somebody\\nwrote"\n'
        f"To read one in full: hiboss read {first}"
    )
    assert (await boss.posts())[1:] == [digest] and await boss.digests() == [digest] and boss.waiting() == []
    await boss.told("in the morning")
    assert (await boss.posts())[2:] == ["in the morning"]
    await daemon.move(hours=40)
    assert len(await boss.digests()) == 1


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_the_timer_alone_wakes_the_digest(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("a notice")
    await daemon.move(minutes=1)  # a heartbeat, which finds it and sets the timer
    assert daemon.scheduler.next_wake is not None
    await daemon.ring(hours=8)
    await daemon.settle()
    assert len(await boss.digests()) == 1


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_mail_urgent_notices_and_answers_to_commands_are_posted_at_once(
    daemon: InProcessDaemon,
) -> None:
    boss = await Boss(daemon).reached()
    await daemon.send("user:boss", text="a letter", priority="low")
    await daemon.send("user:boss", text="it burns", priority="critical")
    await boss.told("at once", urgent=True)
    await boss.write(lambda tx, now: notices.answer_command(tx, None, "done, where notices go", now))
    place = await boss.write(lambda tx, now: tx.cache.reach().place)
    await boss.write(lambda tx, now: notices.answer_command(tx, Lane(*place), "done, where he wrote", now))
    assert sorted(await boss.posts()) == sorted(
        ["a letter", "it burns", "at once", "done, where notices go", "done, where he wrote"]
    )
    assert boss.waiting() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_an_ask_comes_at_once_and_its_reminders_after_the_night(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    number = (await daemon.ask("ask.create", "nex", question="Deploy?"))["ask"]["id"]
    [post] = await boss.posts()
    assert "Deploy?" in post
    await daemon.move(hours=7, minutes=54)
    assert len(await boss.posts()) == 1 and boss.waiting() == []
    await daemon.move(minutes=1)
    assert [number in one for one in (await boss.posts())[1:]] == [True]  # all that were missed are one
    assert await boss.digests() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_a_notice_to_an_agent_knows_no_night(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.write(lambda tx, now: notices.notify(tx, Address("agent", "nex"), "yours", now))
    assert await daemon.inbox("nex") == ["yours"] and boss.waiting() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_what_is_only_for_his_box_stays_there(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("only in the box", forward=False)
    assert boss.waiting() == []
    await daemon.move(hours=9)
    assert await boss.digests() == [] and await boss.posts() == []


# --- the digest --------------------------------------------------------------------------


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_what_was_read_archived_or_acknowledged_meanwhile_is_left_out(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    read, moved, acked, left = [await boss.told(f"notice {n}") for n in range(4)]
    await daemon.ask("envelope.read", ids=[read])
    await daemon.ask("envelope.archive", ids=[moved])
    await daemon.ask("envelope.ack", ids=[acked])
    await daemon.move(hours=9)
    [digest] = await boss.digests()
    assert digest.startswith("1 notice came") and left in digest
    assert not any(one in digest for one in (read, moved, acked))


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_without_anything_left_to_tell_there_is_no_digest(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await daemon.ask("envelope.read", ids=[await boss.told("seen")])
    await daemon.move(hours=9)
    assert await boss.digests() == [] and await boss.posts() == [] and boss.waiting() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_many_notices_are_one_post_with_a_count_of_the_rest(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    for number in range(32):
        await boss.told(f"notice {number}: " + 'x"' * 2_000)
    await daemon.move(hours=9)
    [digest] = await boss.digests()
    lines = digest.splitlines()
    assert lines[0] == "32 notices came in your quiet hours:"
    assert [line.split(".")[0] for line in lines[1:21]] == [str(n + 1) for n in range(20)]
    assert lines[21] == "and 12 more, in your box: hiboss inbox --unread"
    assert all(line.endswith('…"') for line in lines[1:21])
    assert len(digest) < 4_096  # one post also in Telegram
    assert await boss.posts() == [digest]


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_what_is_to_be_decided_follows_as_it_is_and_not_if_it_was_decided(
    daemon: InProcessDaemon,
) -> None:
    boss = await Boss(daemon).reached()

    def asks(tx: Tx, now: int, text: str) -> int:
        accepted = notices.notify(tx, BOSS, text, now)
        assert accepted is not None
        buttons.add(tx, accepted.message, [("Approve", "contact.approve", "1")])
        return accepted.message

    await boss.write(lambda tx, now: asks(tx, now, "Bob wants to write"))
    decided = await boss.write(lambda tx, now: asks(tx, now, "Eve wants to write"))
    await boss.told("something else")
    daemon.change("UPDATE button SET pressed_at = 1 WHERE message = ?", decided)
    await daemon.move(hours=9)
    posts = await boss.posts()
    assert posts[0].startswith("2 notices came") and "Eve wants" in posts[0] and "Bob" not in posts[0]
    assert posts[1:] == ["Bob wants to write"]


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_without_a_chat_of_his_there_is_nothing_to_wait_for(daemon: InProcessDaemon) -> None:
    boss = Boss(daemon)
    await boss.told("in the box")
    assert boss.waiting() == []
    await boss.reached(forward="off")
    await boss.told("also")
    assert boss.waiting() == []
    await daemon.move(hours=9)
    assert await boss.box() == ["in the box", "also"] and await boss.posts() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_a_chat_that_is_his_no_more_in_the_morning_gets_no_digest(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached(forward="important")
    await boss.told("a notice")
    assert len(boss.waiting()) == 1
    await daemon.ask("boss.set", reach="")
    await daemon.move(hours=9)
    assert await boss.box() == ["a notice"] and await boss.posts() == [] and boss.waiting() == []


# --- other hours, another clock -------------------------------------------------------------


@frozen(at=NIGHT, **SCRIPTED)
async def test_hours_that_are_changed_in_the_night_count_for_what_waits(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.set_hours(HOURS)
    await boss.told("one")
    await boss.set_hours("22:00-09:00")
    await daemon.move(hours=8)  # 07:05
    assert await boss.digests() == []
    await boss.set_hours("22:00-08:00")
    await daemon.move(hours=1)
    assert len(await boss.digests()) == 1


@pytest.mark.parametrize("hours", ["", "22:00-23:00"])
def test_hours_that_are_over_after_a_change_let_go_at_once(hours: str, tmp_path: Path) -> None:
    async def story(daemon: InProcessDaemon) -> None:
        boss = await Boss(daemon).reached()
        await boss.set_hours(HOURS)
        await boss.told("one")
        await boss.set_hours(hours)
        assert len(await boss.digests()) == 1

    frozen(at=NIGHT, **SCRIPTED)(story)(tmp_path)


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_in_another_zone_of_the_boss_the_night_is_at_another_time(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("one")
    await daemon.ask("boss.set", timezone="America/New_York")  # 19:05 there
    await daemon.settle()
    assert len(await boss.digests()) == 1
    await boss.told("two")
    assert boss.waiting() == []


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_a_daemon_that_starts_after_the_night_sends_the_digest_then(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("one")
    await daemon.restart(hours=10)
    assert len(await boss.digests()) == 1
    await boss.posts()


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_a_daemon_that_starts_in_the_next_night_waits_for_its_end(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("one")
    await daemon.restart(hours=24)
    assert await boss.digests() == []
    await boss.told("two")
    await daemon.move(hours=8)
    [digest] = await boss.digests()
    assert digest.startswith("2 notices came")


@pytest.mark.parametrize(("step", "wait"), [({"hours": 6}, 2), ({"hours": -4}, 0), ({"days": -1}, 8)])
def test_a_clock_that_is_set_moves_the_end_of_the_night(
    step: dict[str, float], wait: int, tmp_path: Path
) -> None:
    async def story(daemon: InProcessDaemon) -> None:
        boss = await Boss(daemon).reached()
        await boss.told("one")
        daemon.set_clock(**step)
        daemon.scheduler.wakeup()
        await daemon.settle()
        assert len(await boss.digests()) == (0 if wait else 1)
        await daemon.move(hours=wait)
        assert len(await boss.digests()) == 1

    frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)(story)(tmp_path)


@frozen(at=NIGHT, quiet_hours=HOURS, **SCRIPTED)
async def test_a_digest_is_not_sent_if_it_is_quiet_again_when_it_is_written(daemon: InProcessDaemon) -> None:
    boss = await Boss(daemon).reached()
    await boss.told("one")
    await boss.write(quiet_digest.send)  # as if the hours had been changed after the timer rang
    assert await boss.digests() == [] and len(boss.waiting()) == 1
    assert await boss.write(lambda tx, now: quiet_until(tx, tx.settings, now)) is not None
