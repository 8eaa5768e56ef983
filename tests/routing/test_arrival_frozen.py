"""Deferred mail arrives at its time and not before: a clock set by hand, everything else real."""

from __future__ import annotations

import json
import random
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from hiboss.core import clock, rendering
from hiboss.core.errors import NotFound, TooLate
from hiboss.core.events import EnvelopesArrived
from hiboss.store.wakeups import CHUNK
from hiboss.testing.frozen_clock import NOON
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.clockwork import Office, frozen
from tests.support.daemons import started, wait_until

START = clock.to_ms(NOON)
HOUR, DAY = 3_600_000, 86_400_000


def at(ms: int) -> str:
    """So many milliseconds after noon, as a sender writes it."""
    return clock.iso(START + ms)


@frozen()
async def test_mail_for_in_two_hours_comes_at_two_hours_and_not_a_millisecond_before(office: Office) -> None:
    (number,) = await office.send(deliver_at="+2h")
    await office.move(hours=1, minutes=59, seconds=59, milliseconds=999)
    assert await office.inbox() == [] and office.arrived() == []
    assert (await office.get(number))["seq"] is None
    await office.move(milliseconds=1)
    assert await office.inbox() == ["hello"]
    envelope = await office.get(number)
    assert (envelope["seq"], envelope["status"], envelope["waits"]) == (1, "pending", None)
    (row,) = office.rows("SELECT arrived_at, deliver_at FROM message")
    assert tuple(row) == (START + 2 * HOUR, START + 2 * HOUR)


@frozen()
async def test_a_thousand_at_one_instant_arrive_in_the_order_accepted_and_in_chunks(office: Office) -> None:
    await office.register("kai", "mia")
    expected: list[str] = []
    for _ in range(10):  # three conversations, taking turns
        expected += await office.flood(["+2h"] * 50, "agent:kai")
        expected += await office.flood(["+2h"] * 30, "agent:mia", who="kai")
        expected += await office.flood(["+2h"] * 20, "user:boss", who="mia")
    with office.daemon.wiring.bus.subscribe(EnvelopesArrived) as watching:
        await office.move(hours=1, minutes=59, seconds=59, milliseconds=999)
        assert office.arrived() == []
        await office.move(milliseconds=1)
        told: list[int] = []
        while len(told) < 1_000:
            event = await anext(watching)
            assert isinstance(event, EnvelopesArrived) and len(event.envelopes) <= CHUNK
            told += event.envelopes
    assert [f"e{number}" for number in told] == expected == office.arrived()
    numbers = [row[0] for row in office.rows("SELECT arrived FROM envelope ORDER BY arrived")]
    assert numbers == list(range(numbers[0], numbers[0] + 1_000))
    for row in office.rows("SELECT id, last_seq FROM conversation"):
        seqs = office.rows("SELECT seq FROM message WHERE conversation = ? ORDER BY id", row["id"])
        assert [one["seq"] for one in seqs] == list(range(1, row["last_seq"] + 1))
    office.check()


@frozen()
async def test_what_is_overdue_together_arrives_by_its_time_and_then_as_accepted(office: Office) -> None:
    times = [n // 3 * 1_000 for n in range(1, 1_201)]
    random.Random(4).shuffle(times)
    sent = await office.flood([at(1_000 + ms) for ms in times])
    await office.move(hours=1)
    expected = [number for _, _, number in sorted(zip(times, range(len(sent)), sent, strict=True))]
    assert office.arrived() == expected
    seqs = office.rows("SELECT id FROM envelopes ORDER BY seq")
    assert [row["id"] for row in seqs] == expected


@frozen()
async def test_all_recipients_of_a_message_get_it_together_also_where_a_chunk_ends(office: Office) -> None:
    names = ["a1", "a2", "a3", "a4"]
    await office.register(*names)
    await office.flood(["+1h"] * (CHUNK - 2))
    group = await office.send(*(f"agent:{name}" for name in names), "user:boss", deliver_at="+1h")
    last = await office.send(deliver_at="+1h")
    with office.daemon.wiring.bus.subscribe(EnvelopesArrived) as watching:
        await office.move(hours=1)
        chunk = await anext(watching)
    assert isinstance(chunk, EnvelopesArrived)
    assert [f"e{number}" for number in chunk.envelopes][-5:] == group
    assert office.arrived()[-6:] == group + last
    found = [await office.get(number) for number in group]
    assert {one["seq"] for one in found} == {1} and len({one["message"] for one in found}) == 1
    (row,) = office.rows(
        "SELECT count(DISTINCT arrived) FROM envelopes WHERE message = ?", found[0]["message"]
    )
    assert row[0] == 5


@frozen()
async def test_a_restart_before_its_time_changes_nothing(office: Office) -> None:
    (number,) = await office.send(deliver_at="+2h")
    await office.restart(hours=1)
    await office.move(minutes=59, seconds=59, milliseconds=999)
    assert office.arrived() == []
    await office.restart()
    assert office.arrived() == []
    await office.ring(milliseconds=1)
    await office.settle()
    assert office.arrived() == [number]
    await office.restart(hours=1)
    assert office.arrived() == [number]
    assert (await office.get(number))["late_seconds"] is None


@frozen()
async def test_what_became_due_while_no_daemon_ran_arrives_at_once_and_is_called_late(office: Office) -> None:
    (late,) = await office.send(text="late", deliver_at="+2h")
    (little,) = await office.send(text="half a second late", deliver_at=at(4 * HOUR - 500))
    (sharp,) = await office.send(text="in time", deliver_at="+4h")
    (now,) = await office.send(text="not deferred")
    await office.restart(hours=4)
    assert await office.inbox() == ["not deferred", "late", "half a second late", "in time"]
    assert office.arrived() == [now, late, little, sharp]
    found = {number: await office.get(number) for number in (late, little, sharp, now)}
    assert [found[number]["late_seconds"] for number in (late, little, sharp, now)] == [
        7200,
        None,
        None,
        None,
    ]
    assert "\nlate: 2h\n" in rendering.envelope(found[late], UTC)
    for number in (little, sharp, now):
        assert "late:" not in rendering.envelope(found[number], UTC)
    preview = await office.ask("turn.preview", address="agent:nex")
    assert "late: 2h" in str(preview)


@frozen()
async def test_a_clock_set_back_brings_nothing_twice_and_nothing_early(office: Office) -> None:
    (first,) = await office.send(text="first", deliver_at="+1h")
    (second,) = await office.send(text="second", deliver_at="+3h")
    await office.move(hours=1)
    before = (
        office.rows("SELECT * FROM envelope ORDER BY id"),
        office.rows("SELECT * FROM message ORDER BY id"),
    )
    await office.move(hours=-5)
    for _ in range(6):  # up to the same hour as before
        await office.move(minutes=50)
    after = (
        office.rows("SELECT * FROM envelope ORDER BY id"),
        office.rows("SELECT * FROM message ORDER BY id"),
    )
    assert [[tuple(row) for row in table] for table in after] == [
        [tuple(row) for row in table] for table in before
    ]
    (third,) = await office.send(text="third", deliver_at="+10m")
    await office.move(minutes=10)
    assert office.arrived() == [first, third]
    await office.move(milliseconds=START + 3 * HOUR - clock.now() - 1)
    assert office.arrived() == [first, third]
    await office.move(milliseconds=1)  # the hour it was for, by the clock as it is now
    assert office.arrived() == [first, third, second]
    office.check()


@frozen()
async def test_a_day_asleep_over_five_thousand_loses_none_and_keeps_their_order(office: Office) -> None:
    minutes = [n * 7919 % 1440 + 1 for n in range(5_000)]  # every minute of the day, in no order
    sent = await office.flood([f"+{one}m" for one in minutes])
    await office.ring(days=1, minutes=1)
    await office.settle()
    expected = sorted(zip(minutes, range(5_000), sent, strict=True))
    assert office.arrived() == [number for _, _, number in expected]
    (row,) = office.rows("SELECT count(*) FROM message WHERE arrived_at < deliver_at")
    assert row[0] == 0
    assert office.scheduler.next_wake is None


@frozen()
async def test_mail_for_in_a_hundred_years_waits_and_holds_nobody_up(office: Office) -> None:
    (far,) = await office.send(text="far", deliver_at="+100Y")
    assert office.scheduler.next_wake == clock.to_ms(NOON.replace(year=2130))
    (near,) = await office.send(text="near", deliver_at="+1s")
    await office.ring(seconds=1)
    await office.settle()
    assert office.arrived() == [near]
    assert office.scheduler.next_wake == clock.to_ms(NOON.replace(year=2130))
    await office.restart()
    status = await office.ask("daemon.status")
    assert status["next_wake_at"] == "2130-06-01T12:00:00.000Z" and status["deferred"] == 1
    assert (await office.get(far))["waits"] == "deferred"


@frozen()
async def test_a_century_passed_at_once_is_a_wake_like_any_other(office: Office) -> None:
    (far,) = await office.send(deliver_at="+100Y")
    days = (NOON.replace(year=2130) - NOON) // timedelta(days=1)
    await office.move(days=days, milliseconds=-1)
    assert office.arrived() == []
    await office.move(milliseconds=1)
    assert office.arrived() == [far] and (await office.get(far))["late_seconds"] is None


@frozen()
async def test_what_was_taken_back_before_its_time_never_comes_and_leaves_no_gap(office: Office) -> None:
    await office.register("kai")
    (before,) = await office.send(text="before", deliver_at="+1h")
    (gone,) = await office.send(text="gone", deliver_at="+1h")
    half, other = await office.send("agent:kai", "user:boss", text="half", deliver_at="+1h")
    (after,) = await office.send(text="after", deliver_at="+1h")
    assert await office.ask("envelope.cancel", "nex", ids=[gone, half]) == {"changed": 2}
    await office.move(hours=1)
    assert office.arrived() == [before, other, after]
    assert [(await office.get(one))["seq"] for one in (before, after)] == [1, 2]
    assert [(await office.get(one))["seq"] for one in (gone, other)] == [None, 1]
    assert await office.inbox("kai") == []
    with pytest.raises(NotFound):
        await office.ask("envelope.get", "kai", id=half)
    with pytest.raises(TooLate):  # it is in the box of a person, and done
        await office.ask("envelope.cancel", "nex", ids=[other])
    await office.move(days=1)
    assert (await office.get(gone))["status"] == "cancelled"


@frozen()
async def test_mail_on_its_way_to_somebody_deleted_has_failed_and_no_namesake_gets_it(office: Office) -> None:
    await office.register("kai")
    lost, boss = await office.send("agent:kai", "user:boss", deliver_at="+1h")
    (alone,) = await office.send("agent:kai", deliver_at="+1h")
    (other,) = await office.send(deliver_at="+1h")
    await office.ask("agent.delete", name="kai")
    await office.register("kai")
    await office.move(hours=1)
    assert office.arrived() == [boss, other]
    assert await office.inbox("kai") == []
    for number in (lost, alone):
        envelope = await office.get(number)
        assert (envelope["status"], envelope["last_error"]["kind"]) == ("failed", "recipient_deleted")
        with pytest.raises(TooLate):
            await office.ask("envelope.retry", "nex", ids=[number])
    await office.move(days=1)
    assert office.arrived() == [boss, other]


@frozen()
async def test_a_person_has_it_as_done_when_it_arrives_and_an_agent_as_pending(office: Office) -> None:
    person, agent = await office.send("user:boss", "agent:nex", deliver_at="+1h")
    assert (await office.get(person))["done_at"] is None
    await office.move(hours=1)
    found = await office.get(person)
    assert (found["status"], found["done_at"], found["read_at"]) == ("done", at(HOUR), None)
    found = await office.get(agent)
    assert (found["status"], found["done_at"]) == ("pending", None)
    assert await office.inbox("boss", unread=True) == ["hello"]


@frozen()
async def test_what_arrives_at_one_instant_is_claimed_by_priority_and_then_arrival(office: Office) -> None:
    for text in ("low", "normal", "high", "critical", "normal again"):
        await office.send(text=text, priority=text.split()[0], deliver_at="+1h")
    await office.move(hours=1)
    taken = await office.ask("envelope.claim", "nex")
    texts = [one["text"] for one in taken["envelopes"]]
    assert texts == ["critical", "high", "normal", "normal again", "low"]


@frozen()
async def test_waiting_before_arrival_does_not_count_as_waiting_to_be_taken(office: Office) -> None:
    """The fifteen minutes after which anything counts as critical begin with the arrival."""
    await office.send(text="low", priority="low", deliver_at="+1h")
    await office.move(hours=1)
    await office.send(text="normal")
    taken = await office.ask("envelope.claim", "nex", lease="1s")
    assert [one["text"] for one in taken["envelopes"]] == ["normal", "low"]
    await office.move(minutes=15)
    await office.send(text="high", priority="high")
    taken = await office.ask("envelope.claim", "nex", limit=1)
    assert [one["text"] for one in taken["envelopes"]] == ["low"]


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_deferred_post_leaves_at_its_time_and_a_failed_one_can_be_tried_again(office: Office) -> None:
    place = Path(office.home.path).parent / "place"
    address = await office.bind(place, json.dumps({"do": "envelope_error", "text": "too big"}))

    def posts() -> list[str]:
        return [json.loads(line)["id"] for line in (place / "posts.jsonl").read_text().splitlines()]

    bad, good = [(await office.send(address, text=text, deliver_at="+2h"))[0] for text in ("bad", "good")]
    await office.move(hours=1, minutes=59, seconds=59, milliseconds=999)
    assert (await office.get(good))["status"] == "pending" and posts() == []
    await office.move(milliseconds=1)
    await office.until(lambda: posts() == [good])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    failed = await office.get(bad)
    assert (failed["status"], failed["last_error"]["text"], failed["seq"]) == ("failed", "too big", 1)
    assert await office.ask("envelope.retry", "nex", ids=[bad]) == {"changed": 1}
    await office.until(lambda: posts() == [good, bad])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    again = await office.get(bad)
    assert (again["status"], again["seq"], again["attempts"]) == ("done", 1, 1)


def _texts(daemon: RunningDaemon) -> list[str]:
    found = daemon.call("envelope.list", token=daemon.token("nex"), oldest_first=True)["envelopes"]
    return [one["text"] for one in found]


def test_a_daemon_like_any_other_brings_mail_at_its_second_also_after_a_kill(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        send = {"token": daemon.token("nex"), "to": "agent:nex"}
        daemon.call("envelope.send", text="awake", deliver_at="+1s", **send)
        wait_until(lambda: _texts(daemon) == ["awake"])
        daemon.call("envelope.send", text="killed", deliver_at="+1h", **send)
        daemon.kill()
        with daemon.database() as database:  # its time passes while nobody is there
            database.execute("UPDATE message SET deliver_at = deliver_at - 3605000 WHERE seq IS NULL")
            database.execute("UPDATE envelope SET wake_at = wake_at - 3605000 WHERE arrived IS NULL")
            database.commit()
        daemon.start()
        wait_until(lambda: _texts(daemon) == ["awake", "killed"])
        found = daemon.call("envelope.list", token=daemon.token("nex"), page_size=1)["envelopes"]
        assert found[0]["late_seconds"] >= 5
        with daemon.database() as database:
            early = database.execute("SELECT count(*) FROM message WHERE arrived_at < deliver_at").fetchone()
        assert early[0] == 0
        daemon.check()
