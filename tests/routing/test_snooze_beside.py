"""Snoozed mail and everything else that can happen to it: other marks, its sender, routes, restarts, clocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.core.crashpoint import ARRIVED, ARRIVING
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.mortals import Mortal
from tests.support.parties import agent, boss
from tests.support.python_agents import QUIET, hire, idle_after
from tests.support.snoozing import (
    BACK,
    HIDDEN,
    claimed,
    control,
    has,
    mark,
    polled,
    sent,
    snooze,
    snoozed,
    unread,
)
from tests.support.waits import wait_until

# --- with everything else ------------------------------------------------------------------


ENDS = {  # what ends a snooze, who does it, and what the envelope is then
    "archive": ("nex", {"box": "archived", "waits": None, "snoozed_until": None, "status": "done"}),
    "trash": ("nex", {"box": "trash", "waits": None, "snoozed_until": None, "status": "done"}),
    "restore": ("nex", BACK | {"status": "pending"}),
    "ack": ("nex", BACK | {"status": "done"}),
    "cancel": ("boss", BACK | {"status": "cancelled"}),
}


@frozen()
async def test_other_marks_end_a_snooze_and_nothing_happens_at_its_time(daemon: InProcessDaemon) -> None:
    numbers = {verb: await snoozed(daemon, verb) for verb in ENDS}
    for verb, (who, wanted) in ENDS.items():
        assert await mark(daemon, verb, numbers[verb], who=who) == 1
        assert has(await daemon.get(numbers[verb]), wanted), verb
    before = [await daemon.get(number) for number in numbers.values()]
    assert before[3]["acked_at"] and before[3]["read_at"]
    await daemon.move(hours=2)
    assert [await daemon.get(number) for number in numbers.values()] == before
    assert await unread(daemon) == (1, 1) and await claimed(daemon) == ["restore"]
    for verb, who in (("archive", "nex"), ("trash", "nex"), ("cancel", "boss")):
        assert await mark(daemon, "retry" if verb == "cancel" else "restore", numbers[verb], who=who) == 1
        assert has(await daemon.get(numbers[verb]), BACK), verb
    await daemon.ring()  # the retry has set the timer to now


@frozen()
async def test_reading_snoozed_mail_leaves_it_snoozed_and_it_wakes_unread(daemon: InProcessDaemon) -> None:
    number = await snoozed(daemon)
    assert await mark(daemon, "read", number) == 1 and has(await daemon.get(number), HIDDEN)
    await daemon.move(hours=1)
    assert has(await daemon.get(number), BACK | {"read_at": None}) and await unread(daemon) == (1, 1)


@frozen()
async def test_acknowledging_or_reading_all_leaves_snoozed_mail_alone(daemon: InProcessDaemon) -> None:
    number = await snoozed(daemon)
    await sent(daemon, "now")
    assert (await daemon.ask("envelope.read", "nex", all=True))["changed"] == 1
    assert (await daemon.ask("envelope.ack", "nex", all=True))["changed"] == 1
    assert has(await daemon.get(number), HIDDEN | {"status": "pending", "read_at": None, "acked_at": None})


@frozen()
async def test_a_deleted_message_wakes_nobody(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    first, second = await daemon.send("agent:nex", "agent:kai", who="boss", text="secret")
    await snooze(daemon, first)
    await mark(daemon, "ack", second, who="kai")
    await snooze(daemon, second, who="kai")
    await daemon.ask("message.delete", id=first)
    assert has(await daemon.get(first), BACK | {"status": "cancelled", "deleted": True})
    assert has(await daemon.get(second), BACK | {"status": "done", "deleted": True})
    await daemon.move(hours=2)
    assert await polled(daemon) == await claimed(daemon) == await polled(daemon, "kai") == []


@frozen()
async def test_the_mail_of_a_deleted_agent_wakes_nobody(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    pending, done = await sent(daemon, to="agent:kai"), await sent(daemon, to="agent:kai")
    await mark(daemon, "ack", done, who="kai")
    await snooze(daemon, pending, done, who="kai")
    await daemon.ask("agent.delete", name="kai")
    assert has(await daemon.get(pending), {"status": "failed", "waits": None})
    await daemon.register("kai")
    await daemon.move(hours=2)
    assert await polled(daemon, "kai") == [] and await daemon.inbox("kai") == []


@frozen()
async def test_an_envelope_that_is_routed_is_not_snoozed_any_more(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    number = await snoozed(daemon)
    await control(daemon, "route", envelope=number, to="agent:kai")
    assert has(await daemon.get(number), BACK | {"to": "agent:kai", "status": "pending"})
    assert await claimed(daemon, "kai") == ["hello"]
    await daemon.move(hours=2)
    assert await polled(daemon) == []


@frozen()
async def test_what_wakes_after_a_handoff_goes_to_who_has_the_conversation(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    number = await snoozed(daemon)
    where = (await daemon.get(number))["conversation"]
    await control(daemon, "handoff", conversation=where, agent="nex", to="agent:kai")
    await daemon.move(hours=1)
    assert has(await daemon.get(number), BACK | {"to": "agent:kai", "status": "pending"})
    assert await claimed(daemon) == [] and "hello" in await claimed(daemon, "kai")


# --- time ------------------------------------------------------------------------------------


@frozen()
async def test_a_snooze_outlives_restarts_and_ends_at_the_same_time(daemon: InProcessDaemon) -> None:
    number = await snoozed(daemon)
    await daemon.restart(minutes=30)
    assert has(await daemon.get(number), HIDDEN)
    await daemon.restart(minutes=29, seconds=59, milliseconds=999)
    assert await polled(daemon) == []
    await daemon.move(milliseconds=1)
    assert await polled(daemon) == ["hello"]


@frozen()
async def test_what_should_have_woken_while_no_daemon_ran_wakes_at_the_next_start(
    daemon: InProcessDaemon,
) -> None:
    kai = await hire(daemon, "kai", QUIET)
    await daemon.ask("agent.pause", name="kai")
    number, other = await snoozed(daemon), await sent(daemon, "late", to="agent:kai")
    await snooze(daemon, other, who="kai")
    await daemon.ask("agent.resume", name="kai")
    await daemon.restart(days=3)
    assert has(await daemon.get(number), BACK | {"read_at": None}) and await polled(daemon) == ["hello"]
    await daemon.until(kai.turns)
    await idle_after(daemon)
    assert len(kai.turns()) == 1 and "late" in kai.turns()[0]


@frozen()
async def test_a_snooze_is_until_a_time_of_the_clock_however_that_is_set(daemon: InProcessDaemon) -> None:
    number = await snoozed(daemon)
    daemon.set_clock(hours=-3)
    daemon.scheduler.wakeup()
    await daemon.settle()
    await daemon.move(hours=3, minutes=59)
    assert has(await daemon.get(number), HIDDEN)
    daemon.set_clock(minutes=1)  # forward: its time has come
    daemon.scheduler.wakeup()
    await daemon.settle()
    assert has(await daemon.get(number), BACK) and await polled(daemon) == ["hello"]
    await daemon.move(days=-1)
    await daemon.move(days=1)  # the same time once more
    assert await polled(daemon) == []


@frozen()
async def test_many_wake_at_once_in_the_order_of_their_times_each_once(daemon: InProcessDaemon) -> None:
    numbers = await daemon.flood(["-1s"] * 1_200)
    for start in range(0, 1_200, 100):
        await snooze(daemon, *numbers[start : start + 100], until=f"+{60 - start // 100}m")
    assert await unread(daemon) == (0, 0)
    await daemon.move(hours=1)
    (row,) = daemon.rows("SELECT count(*), count(DISTINCT arrived) FROM envelope WHERE unread = 1")
    assert tuple(row) == (1_200, 1_200)
    assert daemon.arrived()[:100] == sorted(numbers[1_100:], key=lambda one: int(one[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("point", [ARRIVING, ARRIVED])
def test_after_a_crash_while_it_wakes_it_has_woken_once(tmp_path: Path, point: str) -> None:
    daemon = Mortal(tmp_path)
    daemon.start()
    try:
        kai = agent(daemon)
        number = boss(daemon).tell(kai)
        assert kai.call("envelope.poll")["envelopes"]
        # Armed before: nothing but a wake passes there. It may die before it answers.
        daemon.dies_of(daemon.dies_at(point), lambda: kai.call("envelope.snooze", ids=[number], until="+1s"))
        daemon.check()
        daemon.start()
        wait_until(lambda: kai.get(number)["box"] == "inbox")
        polls = [kai.call("envelope.poll")["envelopes"] for _ in range(2)]
        assert [[one["id"] for one in found] for found in polls] == [[number], []]
        daemon.check()
    finally:
        daemon.stop()


@frozen()
async def test_what_is_snoozed_goes_along_when_all_mail_of_an_agent_is_routed(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "max")
    (number,) = await daemon.send("agent:kai", text="later")
    await daemon.ask("envelope.snooze", "kai", ids=[number], until="+1h")
    await daemon.ask("control.send", event="stream.route", agent="kai", to="agent:max")
    assert await daemon.inbox("max") == ["later"] and await daemon.inbox("kai", box="snoozed") == []
