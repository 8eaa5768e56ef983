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
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.mortals import Mortal
from tests.support.parties import agents, boss
from tests.support.python_agents import QUIET, hire, idle_after, notices
from tests.support.waits import wait_until

START = clock.to_ms(NOON)
MINUTE = 60_000
NEVER = 3600  # a heartbeat so rare that it finds nothing here


async def asked(daemon: InProcessDaemon, *to: str, who: str = "nex", **more: Any) -> list[str]:
    """Send something that is to be acknowledged in half an hour, to kai unless told; return the envelopes."""
    return await daemon.send(*(to or ["agent:kai"]), who=who, **{"ack_by": "30m", **more})


async def told(daemon: InProcessDaemon, who: str = "boss") -> list[str]:
    """Return the ids of the envelopes of which somebody was told that they are overdue, in that order."""
    return [text.split()[0] for text in (await notices(daemon, who)) if "was not acknowledged" in text]


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
async def test_the_boss_who_sent_it_is_told_once_and_not_twice(daemon: InProcessDaemon) -> None:
    (number,) = await asked(daemon, "agent:nex", who="boss")
    await daemon.move(minutes=30)
    assert await told(daemon) == [number] and await told(daemon, "nex") == []


# --- what ends a deadline ----------------------------------------------------------------------

Act = tuple[str, str, dict[str, Any]]  # an operation, who calls it, and its parameters besides the envelope
ENDS: dict[str, tuple[str, Act]] = {
    "acknowledged": ("agent:kai", ("envelope.ack", "kai", {})),
    "acknowledged by a person": ("user:boss", ("envelope.ack", "boss", {})),
    "cancelled": ("agent:kai", ("envelope.cancel", "nex", {})),
    "deleted": ("agent:kai", ("message.delete", "nex", {})),
    "deleted, for a person": ("user:boss", ("message.delete", "nex", {})),
}
STAYS: dict[str, tuple[str, Act]] = {
    "nothing": ("agent:kai", ("envelope.get", "kai", {})),
    "read": ("agent:kai", ("envelope.read", "kai", {})),
    "read by a person": ("user:boss", ("envelope.read", "boss", {})),
    "claimed": ("agent:max", ("envelope.claim", "max", {"lease": "1h"})),
    "archived": ("agent:kai", ("envelope.archive", "kai", {})),
    "put into the trash": ("agent:kai", ("envelope.trash", "kai", {})),
    "snoozed": ("agent:kai", ("envelope.snooze", "kai", {"until": "+5h"})),
    "failed with its recipient": ("agent:eve", ("agent.delete", "boss", {"name": "eve"})),
}


async def does(daemon: InProcessDaemon, act: Act, number: str) -> None:
    """Do this with an envelope."""
    operation, who, more = act
    one = {"id": number} if operation in ("message.delete", "envelope.get") else {"ids": [number]}
    named = {} if operation in ("agent.delete", "envelope.claim") else one
    await daemon.ask(operation, who, **named, **more)


@frozen()
async def test_only_who_has_acknowledged_it_in_time_or_does_not_have_it_any_more_is_left_in_peace(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "max", "eve")
    sent = {name: (await asked(daemon, to))[0] for name, (to, _) in (ENDS | STAYS).items()}
    for name, (_, act) in (ENDS | STAYS).items():
        await does(daemon, act, sent[name])
    overdue = [sent[name] for name in STAYS]
    await daemon.move(minutes=30)
    assert await told(daemon) == await told(daemon, "nex") == overdue
    late = await daemon.get(sent["nothing"])  # it can still be acknowledged, and says until when it was
    assert (late["status"], late["ack_by"]) == ("pending", clock.iso(START + 30 * MINUTE))
    assert await mark(daemon, "ack", late["id"]) == 1 and deadlines(daemon) == []
    assert (await daemon.get(sent["snoozed"]))["waits"] == "snooze"


@frozen()
async def test_what_a_run_has_settled_is_not_overdue(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", QUIET)
    (number,) = await asked(daemon)
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))
    await idle_after(daemon)
    assert (await daemon.get(number))["status"] == "done" and deadlines(daemon) == []


@frozen()
async def test_nobody_of_the_same_name_is_told_in_place_of_a_sender_who_was_deleted(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "eve")
    (number,) = await asked(daemon, who="eve", text="a secret")
    await daemon.ask("agent.delete", name="eve")
    await daemon.register("eve")
    await daemon.move(minutes=30)
    assert await told(daemon) == [number] and await notices(daemon, "eve") == []


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
async def test_deferred_mail_has_all_its_time_after_its_arrival_however_late_that_is(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    first, second = await asked(daemon, "agent:kai", "user:boss", deliver_at="+2h")
    (late,) = await asked(daemon, deliver_at="+3h")
    assert deadlines(daemon) == [] and (await daemon.get(first))["ack_by"] is None
    await daemon.move(hours=2)
    assert deadlines(daemon) == [(first, 150), (second, 150)]
    await daemon.restart(hours=5)
    assert deadlines(daemon) == [(late, 450)] and await told(daemon) == [first, second]


# --- with other rules ------------------------------------------------------------------------------


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
async def test_a_deadline_that_nobody_can_keep_is_refused_and_nothing_is_stored(
    daemon: InProcessDaemon,
) -> None:
    place = await daemon.bind(Path(daemon.home.path).parent / "place")
    await daemon.register("kai")
    await daemon.ask("conversation.create", "nex", name="core", participants=["agent:kai"])
    for to, ack_by, error in (
        (place, "30m", InvalidParams),
        ("group:core", "30m", InvalidParams),  # where all only read along
        *[("user:boss", wrong, BadDuration) for wrong in ("", "soon", "0s", "-5m", "99999h")],
    ):
        with pytest.raises(error, match="acknowledge" if error is InvalidParams else None):
            await asked(daemon, to, text="nobody in particular", ack_by=ack_by)
    assert daemon.rows("SELECT 1 FROM message WHERE NOT auto") == [] and deadlines(daemon) == []
    numbers = await asked(daemon, place, "agent:kai")
    assert [number for number, _ in deadlines(daemon)] == numbers[1:]


@frozen()
async def test_who_gets_it_in_the_place_of_another_one_has_the_deadline_and_ends_it(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "max")
    routed, kept, ended = [(await asked(daemon))[0] for _ in range(3)]
    await daemon.move(minutes=10)
    conversation = (await daemon.get(routed))["conversation"]
    for event, to, target in (
        ("route", "agent:max", {"envelope": routed}),
        ("route", "agent:max", {"envelope": ended}),
        ("handoff", "user:boss", {"conversation": conversation, "agent": "kai"}),
    ):
        done = await daemon.ask("control.send", event=f"stream.{event}", to=to, **target)
        assert done["outcome"] == "applied", done
    await mark(daemon, "ack", ended, who="max")
    assert [(await daemon.get(one))["to"] for one in (routed, kept)] == ["agent:max", "user:boss"]
    assert deadlines(daemon) == [(routed, 30), (kept, 30)]
    await daemon.move(minutes=20)
    assert await told(daemon, "nex") == [routed, kept]
    late = [one for one in await notices(daemon, "nex") if "was not acknowledged" in one]
    assert ["by agent:max" in late[0], "by user:boss" in late[1]] == [True, True]


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


@pytest.mark.slow
@pytest.mark.parametrize("point", [ARRIVING, ARRIVED])
def test_after_a_crash_at_the_deadline_sender_and_boss_are_told_once(tmp_path: Path, point: str) -> None:
    daemon = Mortal(tmp_path)
    daemon.start()
    try:
        ada, bob = agents(daemon, 2)
        # Armed before it is sent: mail that is not deferred does not pass there. It may die before it answers.
        daemon.dies_of(daemon.dies_at(point), lambda: ada.tell(bob, ack_by="1s"))
        daemon.start()
        [number] = bob.ids()
        wait_until(lambda: boss(daemon).list() and ada.list())
        daemon.restart()
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
