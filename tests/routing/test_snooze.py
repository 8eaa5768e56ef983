"""Snoozed mail: hidden until its time, and then new again, whatever happens meanwhile. The test moves the clock."""

from __future__ import annotations

import asyncio

import pytest

from hiboss.core import clock
from hiboss.core.errors import (
    BadTime,
    BossOnly,
    HibossError,
    InvalidParams,
    NotFound,
    OtherBox,
    TooFar,
    TooLate,
)
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import QUIET, hire, idle_after, runs_of
from tests.support.snoozing import (
    BACK,
    HIDDEN,
    MINUTE,
    START,
    claimed,
    has,
    mark,
    polled,
    sent,
    snooze,
    snoozed,
    unread,
    unsnooze,
    waited,
)

NEVER = 3600  # a heartbeat so rare that it finds nothing here

# --- hidden ------------------------------------------------------------------------------


@frozen()
async def test_snoozed_mail_is_hidden_from_the_inbox_from_waiting_polling_and_claiming(
    daemon: InProcessDaemon,
) -> None:
    await snoozed(daemon, "later")
    other = await sent(daemon, "now")
    assert await daemon.inbox() == await daemon.inbox(unread=True) == ["now"]
    assert await waited(daemon) == await polled(daemon) == await claimed(daemon) == ["now"]
    assert await daemon.inbox(box="snoozed") == await daemon.inbox(snoozed=True) == ["later"]
    assert await daemon.inbox(status="pending") == ["now"]
    await mark(daemon, "ack", other)
    await daemon.move(minutes=59)
    assert await polled(daemon) == await claimed(daemon) == []


@frozen()
async def test_snoozed_mail_shows_until_when_and_is_not_unread(daemon: InProcessDaemon) -> None:
    number = await sent(daemon)
    assert (await daemon.get(number))["snoozed_until"] is None and await unread(daemon) == (1, 1)
    answer = await daemon.ask("envelope.snooze", "nex", ids=[number], until="+1h")
    at = clock.iso(START + 60 * MINUTE)
    assert (answer["changed"], answer["until"]) == (1, at)
    assert has(await daemon.get(number), HIDDEN | {"snoozed_until": at, "status": "pending", "read_at": None})
    assert await unread(daemon) == (0, 0)
    (listed,) = (await daemon.ask("envelope.list", "nex", box="snoozed"))["envelopes"]
    assert listed["snoozed_until"] == at


@frozen(heartbeat_seconds=NEVER)
async def test_at_its_time_snoozed_mail_arrives_again_as_the_last_and_unread(daemon: InProcessDaemon) -> None:
    number = await sent(daemon, "put off")
    await mark(daemon, "read", number)
    first_read = (await daemon.get(number))["read_at"]
    await snooze(daemon, number)
    await sent(daemon, "came later")
    before = daemon.rows("SELECT arrived FROM envelope WHERE id = ?", int(number[1:]))[0][0]
    await daemon.ring(minutes=59, seconds=59, milliseconds=999)
    await daemon.settle()
    assert has(await daemon.get(number), HIDDEN)
    await daemon.ring(milliseconds=1)  # by the timer job alone
    await daemon.settle()
    got = await daemon.get(number)
    assert has(got, BACK | {"status": "pending", "read_at": None})
    assert await daemon.inbox() == ["came later", "put off"]
    (row,) = daemon.rows("SELECT arrived, due_again FROM envelope WHERE id = ?", int(number[1:]))
    assert row["arrived"] > before and row["due_again"] is None
    assert [one["address"] for one in got["read_by"]] == ["agent:nex"]  # who had read it is still known
    assert await unread(daemon) == (2, 2)
    await mark(daemon, "read", number)
    assert (await daemon.get(number))["read_at"] == first_read


@frozen()
async def test_waking_mail_is_told_to_a_poll_that_knew_it_and_wakes_who_waits(
    daemon: InProcessDaemon,
) -> None:
    number = await sent(daemon, "again")
    assert await polled(daemon) == ["again"] and await polled(daemon) == []
    await snooze(daemon, number)
    waiting = asyncio.create_task(waited(daemon, timeout="55s"))
    polling = asyncio.create_task(daemon.ask("envelope.poll", "nex", wait="55s", session="two"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done() and not polling.done()
    await daemon.move(hours=1)
    assert await waiting == [one["text"] for one in (await polling)["envelopes"]] == ["again"]
    assert await polled(daemon) == ["again"] and await polled(daemon) == []
    assert await claimed(daemon) == ["again"]


@frozen()
async def test_waking_mail_starts_a_turn_and_snoozed_mail_is_in_none(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", QUIET)
    await daemon.ask("agent.pause", name="kai")
    number = await sent(daemon, "much later", to="agent:kai")
    await snooze(daemon, number, who="boss", address="agent:kai")
    await daemon.ask("agent.resume", name="kai")
    await sent(daemon, "now", to="agent:kai")
    await daemon.until(kai.turns)
    await idle_after(daemon)
    assert len(kai.turns()) == 1 and "much later" not in kai.turns()[0]
    await daemon.move(hours=1)
    await daemon.until(lambda: len(kai.turns()) == 2)
    await idle_after(daemon)
    assert "much later" in kai.turns()[1]
    assert (await daemon.get(number))["status"] == "done" and len(await runs_of(daemon, "kai")) == 2


@frozen()
async def test_done_mail_wakes_unread_and_is_not_to_be_done_again(daemon: InProcessDaemon) -> None:
    for who, verb in (("boss", "read"), ("nex", "ack")):  # the mail of people is done at once
        (number,) = await daemon.send("user:boss" if who == "boss" else "agent:nex", text="done")
        await mark(daemon, verb, number, who=who)
        await snooze(daemon, number, who=who)
        assert has(await daemon.get(number), HIDDEN | {"status": "done"})
        assert await daemon.inbox(who) == [] and await unread(daemon, who) == (0, 0)
        await daemon.move(hours=1)
        assert has(await daemon.get(number), BACK | {"status": "done", "read_at": None})
        assert await daemon.inbox(who, unread=True) == ["done"] and await unread(daemon, who) == (1, 1)
    assert await waited(daemon, "boss") == ["done"] and await claimed(daemon) == []


# --- unsnooze, and snoozing again ---------------------------------------------------------


@frozen()
async def test_unsnooze_brings_it_back_now_as_new(daemon: InProcessDaemon) -> None:
    number = await sent(daemon, "back")
    assert await polled(daemon) == ["back"]
    await mark(daemon, "read", number)
    await snooze(daemon, number)
    waiting = asyncio.create_task(waited(daemon, timeout="55s"))
    await asyncio.sleep(0)
    assert await unsnooze(daemon, number) == 1 and await unsnooze(daemon, number) == 0
    assert await waiting == ["back"]
    assert has(await daemon.get(number), BACK | {"read_at": None})
    assert await polled(daemon) == ["back"] and await unread(daemon) == (1, 1)
    arrived = daemon.arrived()
    await daemon.move(hours=2)  # nothing happens at its old time
    assert daemon.arrived() == arrived and await polled(daemon) == []


@frozen()
async def test_snoozing_again_moves_the_time_earlier_or_later(daemon: InProcessDaemon) -> None:
    number = await sent(daemon)
    assert await unsnooze(daemon, number) == 0 and await snooze(daemon, number) == 1
    assert await snooze(daemon, number, until="+1h") == 0  # the same time
    assert await snooze(daemon, number, until="+3h") == 1
    await daemon.move(hours=2)
    assert has(await daemon.get(number), HIDDEN)
    assert await snooze(daemon, number, until="+30m") == 1
    assert daemon.scheduler.next_wake == START + 150 * MINUTE
    await daemon.move(minutes=30)
    assert has(await daemon.get(number), BACK)
    assert await snooze(daemon, number) == 1  # and once more
    await daemon.move(hours=1)
    assert has(await daemon.get(number), BACK)


@frozen()
async def test_snoozing_and_waking_are_told(daemon: InProcessDaemon) -> None:
    listener = Listener(daemon.daemon.wiring.facts, "envelope.snoozed", "envelope.due")
    number = await snoozed(daemon)
    put_off = await listener.hear()
    await daemon.move(hours=1)
    due = await listener.hear()
    await snooze(daemon, number, until="+2h")
    again = await listener.hear()
    await unsnooze(daemon, number)
    woken = await listener.hear()
    assert [one["topic"] for one in (put_off, due, again, woken)] == ["envelope.snoozed", "envelope.due"] * 2
    assert {one["envelope"] for one in (put_off, due, again, woken)} == {number}
    assert put_off["until"] == due["at"] == clock.iso(START + 60 * MINUTE)


# --- refusals ------------------------------------------------------------------------------


@frozen()
async def test_a_time_that_is_past_or_none_is_refused(daemon: InProcessDaemon) -> None:
    number = await sent(daemon)
    for until, error in (
        ("-1h", InvalidParams),
        ("2030-06-01T11:59:59Z", InvalidParams),
        ("+0s", InvalidParams),
        ("soon", BadTime),
        ("", BadTime),
        ("+900Y", TooFar),
    ):
        with pytest.raises(HibossError) as caught:
            await snooze(daemon, number, until=until)
        assert isinstance(caught.value, error), (until, caught.value)
    assert (await daemon.get(number))["box"] == "inbox"


@frozen()
async def test_with_one_wrong_id_none_is_snoozed_and_anothers_is_not_found(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    own, other, later = [
        await sent(daemon),
        await sent(daemon, to="agent:kai"),
        await sent(daemon, deliver_at="+2h"),
    ]
    for wrong in (other, "e999", later):
        for verb, more in (("snooze", {"until": "+1h"}), ("unsnooze", {})):
            with pytest.raises(NotFound):
                await mark(daemon, verb, own, wrong, **more)
    assert [(await daemon.get(one))["box"] for one in (own, other)] == ["inbox", "inbox"]
    assert (await daemon.get(later))["waits"] == "deferred"
    with pytest.raises(BossOnly):
        await snooze(daemon, other, address="agent:kai")


@frozen()
async def test_the_boss_acts_in_the_box_of_another_one_only_by_naming_it(daemon: InProcessDaemon) -> None:
    number = await sent(daemon)
    with pytest.raises(OtherBox):  # though he is its sender
        await snooze(daemon, number, who="boss")
    assert await snooze(daemon, number, who="boss", address="agent:nex") == 1
    assert await unsnooze(daemon, number, who="boss", address="nex") == 1
    assert has(await daemon.get(number), BACK)


@frozen(quiet=False)
async def test_what_somebody_has_in_hand_or_was_cancelled_cannot_be_snoozed(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", 'wait_for("go"); print("NO_REPLY")')
    claim, cancel, hold = await sent(daemon), await sent(daemon), await sent(daemon, to="agent:kai")
    await mark(daemon, "cancel", cancel, who="boss")
    assert await claimed(daemon, lease="10m") == ["hello"]
    await daemon.until(kai.turns)
    for number, who, why in (
        (claim, "nex", "claimed"),
        (cancel, "nex", "cancelled"),
        (hold, "kai", "being delivered"),
    ):
        with pytest.raises(TooLate, match=why):
            await snooze(daemon, number, who=who)
    await daemon.ask("envelope.release", "nex", ids=[claim])
    (kai.path.parent / "go").touch()
    await idle_after(daemon)
    assert await snooze(daemon, claim) == await snooze(daemon, hold, who="kai") == 1
