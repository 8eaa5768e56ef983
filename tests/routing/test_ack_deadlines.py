"""Deadlines for acknowledging: who is told when one passes, once, and what ends one. The test moves the clock."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import clock
from hiboss.core.crashpoint import ARRIVED, ARRIVING
from hiboss.core.errors import BadDuration, InvalidParams
from hiboss.testing.frozen_clock import NOON
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up, wait_until
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import agents, boss
from tests.support.python_agents import QUIET, hire, idle_after, notices

START = clock.to_ms(NOON)
MINUTE = 60_000
NEVER = 3600  # a heartbeat so rare that it finds nothing here


async def asked(daemon: InProcessDaemon, *to: str, who: str = "nex", **more: Any) -> list[str]:
    """Send something that is to be acknowledged in half an hour, to kai unless told; return the envelopes."""
    return await daemon.send(*(to or ["agent:kai"]), who=who, **{"ack_by": "30m", **more})


async def told(daemon: InProcessDaemon, who: str = "boss") -> list[str]:
    """Return the ids of the envelopes of which somebody was told that they are overdue, in that order."""
    found = await notices(daemon, who)
    return [text.split()[0] for text in found if "was not acknowledged" in text]


async def mark(daemon: InProcessDaemon, verb: str, *ids: str, who: str = "kai", **more: Any) -> int:
    return int((await daemon.ask(f"envelope.{verb}", who, ids=list(ids), **more))["changed"])


def deadlines(daemon: InProcessDaemon) -> list[tuple[str, int]]:
    """Return the deadlines that there are: the envelope, and in how many minutes from the start."""
    rows = daemon.rows("SELECT envelope, at FROM ack_deadline WHERE told_at IS NULL ORDER BY envelope")
    return [(f"e{row['envelope']}", (row["at"] - START) // MINUTE) for row in rows]


# --- telling ---------------------------------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_at_the_deadline_the_sender_and_the_boss_are_told_once(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    listener = Listener(daemon.daemon.wiring.facts, "envelope.overdue")
    (number,) = await asked(daemon, text="please look")
    assert (await daemon.get(number))["ack_by"] == clock.iso(START + 30 * MINUTE)
    await daemon.ring(minutes=29, seconds=59, milliseconds=999)
    await daemon.settle()
    assert await told(daemon) == await told(daemon, "nex") == []
    await daemon.ring(milliseconds=1)  # by the timer job alone
    await daemon.settle()
    assert await told(daemon) == await told(daemon, "nex") == [number]
    fact = await listener.hear()
    assert (fact["topic"], fact["envelope"]) == ("envelope.overdue", number)
    (text,) = await notices(daemon)
    assert f"{number} from agent:nex was not acknowledged by agent:kai" in text
    assert '"please look"' in text and f"hiboss trace {number}" in text
    await daemon.move(days=1)
    await daemon.restart()
    assert await told(daemon) == await told(daemon, "nex") == [number]
    assert await told(daemon, "kai") == []


@frozen()
async def test_what_is_overdue_can_still_be_acknowledged_and_says_until_when_it_was(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    await daemon.move(hours=1)
    got = await daemon.get(number)
    assert (got["status"], got["ack_by"]) == ("pending", clock.iso(START + 30 * MINUTE))
    assert await mark(daemon, "ack", number) == 1 and deadlines(daemon) == []


@frozen()
async def test_the_boss_who_sent_it_is_told_once_and_not_twice(daemon: InProcessDaemon) -> None:
    (number,) = await asked(daemon, "agent:nex", who="boss")
    await daemon.move(minutes=30)
    assert await told(daemon) == [number] and await told(daemon, "nex") == []


@frozen()
async def test_a_person_acknowledges_too_and_only_that_ends_it(daemon: InProcessDaemon) -> None:
    first, second = (await asked(daemon, "user:boss"))[0], (await asked(daemon, "user:boss"))[0]
    await mark(daemon, "read", first, second, who="boss")
    await mark(daemon, "ack", second, who="boss")
    await daemon.move(minutes=30)
    assert await told(daemon) == await told(daemon, "nex") == [first]


# --- what ends a deadline ----------------------------------------------------------------------


@frozen()
async def test_who_has_acknowledged_it_before_is_left_in_peace(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    await mark(daemon, "ack", number)
    assert deadlines(daemon) == []
    await daemon.move(hours=1)
    assert await told(daemon) == await told(daemon, "nex") == []


@pytest.mark.parametrize("verb", ["archive", "trash"])
def test_putting_it_away_is_no_acknowledgement(tmp_path: Path, verb: str) -> None:
    @frozen()
    async def story(daemon: InProcessDaemon) -> None:
        await daemon.register("kai")
        (number,) = await asked(daemon)
        await mark(daemon, verb, number)
        await daemon.move(hours=1)
        assert await told(daemon) == await told(daemon, "nex") == [number]

    story(tmp_path)


@frozen()
async def test_reading_and_claiming_are_no_acknowledgement(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    first, second = (await asked(daemon))[0], (await asked(daemon))[0]
    await mark(daemon, "read", first)
    await daemon.ask("envelope.claim", "kai", lease="1h")
    await daemon.move(minutes=30)
    assert await told(daemon) == [first, second]


@frozen()
async def test_what_a_run_has_settled_is_not_overdue(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", QUIET)
    (number,) = await asked(daemon)
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))
    await idle_after(daemon)
    assert (await daemon.get(number))["status"] == "done" and deadlines(daemon) == []
    await daemon.move(hours=1)
    assert await told(daemon) == []


@frozen()
async def test_what_was_cancelled_or_deleted_is_not_overdue(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    cancelled, deleted = (await asked(daemon))[0], (await asked(daemon))[0]
    (for_person,) = await asked(daemon, "user:boss")
    await mark(daemon, "cancel", cancelled, who="nex")
    await daemon.ask("message.delete", "nex", id=deleted)
    await daemon.ask("message.delete", "nex", id=for_person)
    await daemon.move(hours=1)
    assert await told(daemon) == await told(daemon, "nex") == [] and deadlines(daemon) == []


@frozen()
async def test_what_failed_with_its_recipient_was_acknowledged_by_nobody(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    await daemon.ask("agent.delete", name="kai")
    assert (await daemon.get(number))["status"] == "failed"
    await daemon.move(hours=1)
    assert await told(daemon) == await told(daemon, "nex") == [number]


@frozen()
async def test_nobody_of_the_same_name_is_told_in_place_of_a_sender_who_was_deleted(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "eve")
    (number,) = await asked(daemon, who="eve", text="a secret")
    await daemon.ask("agent.delete", name="eve")
    await daemon.register("eve")
    await daemon.move(minutes=30)
    assert await told(daemon) == [number]
    assert await notices(daemon, "eve") == []


# --- restarts and clocks -------------------------------------------------------------------------


@frozen()
async def test_a_deadline_outlives_restarts_and_is_told_late_if_no_daemon_ran(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    await daemon.restart(minutes=29)
    assert await told(daemon) == []
    await daemon.restart(days=2)
    assert await told(daemon) == await told(daemon, "nex") == [number]
    await daemon.restart(days=2)
    assert await told(daemon) == await told(daemon, "nex") == [number]


@frozen()
async def test_a_deadline_is_a_length_of_time_so_a_clock_that_is_set_moves_it(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    for step in (-180, 300):
        daemon.set_clock(minutes=step)
        daemon.scheduler.wakeup()
        await daemon.settle()
        assert await told(daemon) == []
    await daemon.move(minutes=29)
    assert await told(daemon) == []
    await daemon.move(minutes=1)
    assert await told(daemon) == [number]


@frozen()
async def test_deferred_mail_has_its_deadline_after_its_arrival(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    first, second = await asked(daemon, "agent:kai", "user:boss", deliver_at="+2h")
    assert deadlines(daemon) == [] and (await daemon.get(first))["ack_by"] is None
    await daemon.move(hours=2)
    assert deadlines(daemon) == [(first, 150), (second, 150)]
    await daemon.restart(days=1)
    assert await told(daemon) == [first, second]


@frozen()
async def test_deferred_mail_that_arrived_late_has_all_its_time(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon, deliver_at="+1h")
    await daemon.restart(hours=5)
    assert deadlines(daemon) == [(number, 330)] and await told(daemon) == []


# --- with other rules ------------------------------------------------------------------------------


@frozen()
async def test_snoozed_mail_still_has_its_deadline(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await asked(daemon)
    await mark(daemon, "snooze", number, until="+5h")
    await daemon.move(minutes=30)
    assert await told(daemon) == [number]
    assert (await daemon.get(number))["waits"] == "snooze"


@frozen()
async def test_in_a_group_each_member_that_must_act_has_a_deadline(daemon: InProcessDaemon) -> None:
    await daemon.register("kai", "max", "eve")
    await daemon.ask(
        "conversation.create", name="core", participants=["agent:nex", "agent:kai", "agent:max", "agent:eve"]
    )
    (number,) = await asked(daemon, "group:core", text="@kai and @max: look")
    due = daemon.rows(
        """
        SELECT a.name FROM ack_deadline d JOIN envelope e ON e.id = d.envelope
        JOIN address a ON a.id = e.recipient ORDER BY a.name
        """
    )
    assert [row["name"] for row in due] == ["boss", "kai", "max"]
    assert (await daemon.get(number))["to"] == "group:core"
    own = {one["to"]: one["id"] for one in (await daemon.ask("envelope.list", box="all"))["envelopes"]}
    await mark(daemon, "ack", own["agent:max"], who="max")
    await daemon.move(minutes=30)
    assert await told(daemon, "nex") == sorted([own["user:boss"], own["agent:kai"]], key=lambda n: int(n[1:]))


@frozen()
async def test_a_deferred_message_of_a_group_gives_each_member_that_must_act_its_time(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "max")
    await daemon.ask("conversation.create", "nex", name="core", participants=["agent:kai", "agent:max"])
    await asked(daemon, "group:core", text="@kai look", deliver_at="+1h")
    await daemon.move(hours=1)
    assert [minutes for _, minutes in deadlines(daemon)] == [90]
    await daemon.move(minutes=30)
    (number,) = await told(daemon)
    assert (await daemon.get(number))["to"] == "agent:kai"


@frozen()
async def test_who_only_reads_a_reply_along_has_no_deadline(daemon: InProcessDaemon) -> None:
    await daemon.register("kai", "max")
    await daemon.send("agent:kai", "agent:max", who="nex", text="who?")
    (got,) = (await daemon.ask("envelope.list", "kai"))["envelopes"]
    await daemon.ask("envelope.send", "kai", text="you", reply_to=got["id"], ack_by="30m")
    await daemon.move(minutes=30)
    (number,) = await told(daemon)
    assert (await daemon.get(number))["to"] == "agent:nex"


@frozen()
async def test_an_offer_that_nobody_took_in_time_is_told_and_one_who_took_it_has_the_deadline(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "max")
    await daemon.ask(
        "conversation.create", "nex", name="core", participants=["agent:kai", "agent:max"], respond="claim"
    )
    await asked(daemon, "group:core", text="first")
    assert len(deadlines(daemon)) == 2
    taken = (await daemon.ask("envelope.claim", "kai", lease="10m"))["envelopes"][0]["id"]
    assert [number for number, _ in deadlines(daemon)] == [taken]
    await daemon.move(minutes=10)  # the lease ends: both have it again
    assert len(deadlines(daemon)) == 2
    await daemon.move(minutes=20)
    assert len(await told(daemon)) == len(set(await told(daemon))) == 2


@frozen(adapter_modules="hiboss.testing.scripted_adapter")
async def test_for_channels_alone_a_deadline_is_refused_and_nothing_is_stored(
    daemon: InProcessDaemon,
) -> None:
    place = await daemon.bind(Path(daemon.home.path).parent / "place")
    with pytest.raises(InvalidParams, match="acknowledge"):
        await asked(daemon, place)
    assert daemon.rows("SELECT 1 FROM message") == [] and deadlines(daemon) == []
    await daemon.register("kai")
    numbers = await asked(daemon, place, "agent:kai")
    assert [number for number, _ in deadlines(daemon)] == numbers[1:]


@frozen()
async def test_where_all_only_read_along_a_deadline_is_refused(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    await daemon.ask("conversation.create", "nex", name="core", participants=["agent:kai"])
    with pytest.raises(InvalidParams, match="acknowledge"):
        await asked(daemon, "group:core", text="nobody in particular")
    assert daemon.rows("SELECT 1 FROM message") == []


@pytest.mark.parametrize("given", ["", "soon", "0s", "-5m", "99999h"])
def test_a_deadline_that_is_no_length_of_time_is_refused(tmp_path: Path, given: str) -> None:
    @frozen()
    async def story(daemon: InProcessDaemon) -> None:
        with pytest.raises(BadDuration):
            await asked(daemon, "user:boss", ack_by=given)
        assert daemon.rows("SELECT 1 FROM message") == []

    story(tmp_path)


@pytest.mark.parametrize("to", ["agent:max", "user:boss"])
def test_who_gets_it_in_the_place_of_another_one_has_the_deadline(tmp_path: Path, to: str) -> None:
    @frozen()
    async def story(daemon: InProcessDaemon) -> None:
        await daemon.register("kai", "max")
        (number,) = await asked(daemon)
        await daemon.move(minutes=10)
        sent = await daemon.get(number)
        event = "route" if to == "agent:max" else "handoff"
        target = (
            {"envelope": number}
            if event == "route"
            else {"conversation": sent["conversation"], "agent": "kai"}
        )
        done = await daemon.ask("control.send", event=f"stream.{event}", to=to, **target)
        assert done["outcome"] == "applied", done
        assert (await daemon.get(number))["to"] == to and deadlines(daemon) == [(number, 30)]
        await daemon.move(minutes=20)
        assert await told(daemon, "nex") == [number]
        text = next(one for one in await notices(daemon, "nex") if "was not acknowledged" in one)
        assert f"by {to}" in text

    story(tmp_path)


@frozen()
async def test_the_new_holder_ends_the_deadline(daemon: InProcessDaemon) -> None:
    await daemon.register("kai", "max")
    (number,) = await asked(daemon)
    await daemon.ask("control.send", event="stream.route", to="agent:max", envelope=number)
    await mark(daemon, "ack", number, who="max")
    await daemon.move(hours=1)
    assert await told(daemon) == []


@frozen()
async def test_five_hundred_deadlines_at_once_are_each_told_once(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    numbers = [one for (one,) in await asyncio.gather(*(asked(daemon, text=f"{i}") for i in range(500)))]
    await daemon.move(minutes=30)
    rows = daemon.rows(
        """
        SELECT a.name, substr(m.text, 1, instr(m.text, ' ') - 1) AS number FROM message m
        JOIN envelope e ON e.message = m.id JOIN address a ON a.id = e.recipient
        WHERE m.text LIKE '%was not acknowledged%'
        """
    )
    for name in ("boss", "nex"):
        assert sorted(row["number"] for row in rows if row["name"] == name) == sorted(numbers)
    assert deadlines(daemon) == []


@frozen()
async def test_notices_reach_the_boss_also_in_an_archived_conversation(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (first,) = await asked(daemon)
    await daemon.move(minutes=30)
    (notice,) = (await daemon.ask("envelope.list"))["envelopes"]
    await daemon.ask("conversation.archive", conversation=notice["conversation"])
    (second,) = await asked(daemon)
    await daemon.move(minutes=30)
    assert await told(daemon) == [first, second]


@pytest.mark.parametrize("place", [ARRIVING, ARRIVED])
def test_after_a_crash_at_the_deadline_sender_and_boss_are_told_once(tmp_path: Path, place: str) -> None:
    daemon = RunningDaemon(set_up(tmp_path))
    daemon.start()
    try:
        ada, bob = agents(daemon, 2)
        daemon.kill()
        armed = tmp_path / "armed"
        daemon.start(HIBOSS_CRASH_AT=f"{place}@{armed}")
        number = ada.tell(bob, ack_by="1s")
        armed.touch()
        daemon.wait_for_death()
        daemon.start()
        wait_until(lambda: boss(daemon).list())
        wait_until(lambda: ada.list())
        daemon.stop()
        daemon.start()
        for one in (ada, boss(daemon)):
            assert [found["text"].split()[0] for found in one.list()] == [number]
        daemon.check()
    finally:
        daemon.stop()


@frozen()
async def test_what_is_retried_has_its_deadline_again(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await daemon.send("agent:kai", text="soon", ack_by="30m")
    await daemon.ask("envelope.cancel", "nex", ids=[number])
    await daemon.ask("envelope.retry", "nex", ids=[number])
    await daemon.move(minutes=30)
    assert await told(daemon) == await told(daemon, "nex") == [number]
    await daemon.ask("envelope.cancel", "nex", ids=[number])
    await daemon.ask("envelope.retry", "nex", ids=[number])
    await daemon.move(hours=2)
    assert await told(daemon) == [number]  # once


@frozen()
async def test_what_was_deleted_over_its_deadline_is_told_when_it_is_restored(
    daemon: InProcessDaemon,
) -> None:
    (number,) = await asked(daemon, "user:boss")
    await daemon.ask("message.delete", "nex", id=number)
    await daemon.move(hours=1)
    assert await told(daemon, "nex") == []
    await daemon.ask("message.restore", "nex", id=number)
    await daemon.move(minutes=1)
    assert await told(daemon, "nex") == [number]
