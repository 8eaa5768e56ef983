"""Deferred mail arrives at its time and not before: a clock moved by the test, everything else real."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

import pytest

from hiboss.core import clock, rendering
from hiboss.core.errors import NotFound, TooLate
from hiboss.core.events import Arrival, EnvelopesArrived, Fact
from hiboss.store.overdue import CHUNK
from hiboss.testing.frozen_clock import NOON
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import started
from tests.support.failures import seeded
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.waits import wait_until

START = clock.to_ms(NOON)
HOUR, DAY = 3_600_000, 86_400_000


def at(ms: int) -> str:
    """Return a time so many milliseconds after noon, as a sender writes it."""
    return clock.iso(START + ms)


def arrivals(facts: list[Fact]) -> list[Arrival]:
    return [one for fact in facts if isinstance(fact, EnvelopesArrived) for one in fact.envelopes]


@frozen()
async def test_mail_for_in_two_hours_comes_at_two_hours_and_not_a_millisecond_before(
    daemon: InProcessDaemon,
) -> None:
    (number,) = await daemon.send(deliver_at="+2h")
    await daemon.move(hours=1, minutes=59, seconds=59, milliseconds=999)
    assert await daemon.inbox() == [] and daemon.arrived() == [] and (await daemon.get(number))["seq"] is None
    await daemon.move(milliseconds=1)
    assert await daemon.inbox() == ["hello"]
    envelope = await daemon.get(number)
    assert (envelope["seq"], envelope["status"], envelope["waits"]) == (1, "pending", None)
    (row,) = daemon.rows("SELECT arrived_at, deliver_at FROM message")
    assert tuple(row) == (START + 2 * HOUR, START + 2 * HOUR)


@frozen()
async def test_a_thousand_at_one_instant_arrive_in_the_order_accepted_and_in_chunks(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai", "mia")
    expected: list[str] = []
    for _ in range(10):  # three conversations in turn
        expected += await daemon.flood(["+2h"] * 50, "agent:kai")
        expected += await daemon.flood(["+2h"] * 30, "agent:mia", who="kai")
        expected += await daemon.flood(["+2h"] * 20, "user:boss", who="mia")
    groups: list[list[Fact]] = []  # of each COMMIT
    daemon.daemon.wiring._store.tell_facts(groups.append)
    await daemon.move(hours=1, minutes=59, seconds=59, milliseconds=999)
    assert daemon.arrived() == []
    await daemon.move(milliseconds=1)
    await daemon.until(lambda: sum(map(len, groups)) == 1_000)
    assert all(len(group) <= CHUNK for group in groups)
    told = [one.envelope for group in groups for one in arrivals(group)]
    assert [f"e{number}" for number in told] == expected == daemon.arrived()
    numbers = [row[0] for row in daemon.rows("SELECT arrived FROM envelope ORDER BY arrived")]
    assert numbers == list(range(numbers[0], numbers[0] + 1_000))
    for row in daemon.rows("SELECT id, last_seq FROM conversation"):
        seqs = daemon.rows("SELECT seq FROM message WHERE conversation = ? ORDER BY id", row["id"])
        assert [one["seq"] for one in seqs] == list(range(1, row["last_seq"] + 1))
    daemon.check()


@frozen()
async def test_what_is_overdue_together_arrives_by_its_time_and_then_as_accepted(
    daemon: InProcessDaemon,
) -> None:
    times = [n // 3 * 1_000 for n in range(1, 1_201)]
    seeded(4).shuffle(times)
    sent = await daemon.flood([at(1_000 + ms) for ms in times])
    await daemon.move(hours=1)
    expected = [number for _, _, number in sorted(zip(times, range(len(sent)), sent, strict=True))]
    assert daemon.arrived() == expected
    assert [row["id"] for row in daemon.rows("SELECT id FROM envelopes ORDER BY seq")] == expected


@frozen()
async def test_all_recipients_of_a_message_get_it_together_also_where_a_chunk_ends(
    daemon: InProcessDaemon,
) -> None:
    names = ["a1", "a2", "a3", "a4"]
    await daemon.register(*names)
    await daemon.flood(["+1h"] * (CHUNK - 2))
    group = await daemon.send(*(f"agent:{name}" for name in names), "user:boss", deliver_at="+1h")
    last = await daemon.send(deliver_at="+1h")
    chunks: list[list[Fact]] = []
    daemon.daemon.wiring._store.tell_facts(chunks.append)
    await daemon.move(hours=1)
    await daemon.until(lambda: sum(map(len, chunks)) == CHUNK)
    assert [f"e{one.envelope}" for one in arrivals(chunks[0])][-5:] == group
    assert daemon.arrived()[-6:] == group + last
    found = [await daemon.get(number) for number in group]
    assert {one["seq"] for one in found} == {1} and len({one["message"] for one in found}) == 1
    (row,) = daemon.rows(
        "SELECT count(DISTINCT arrived) FROM envelopes WHERE message = ?", found[0]["message"]
    )
    assert row[0] == 5


@frozen()
async def test_what_became_due_while_no_daemon_ran_arrives_at_once_and_is_called_late(
    daemon: InProcessDaemon,
) -> None:
    (late,) = await daemon.send(text="late", deliver_at="+2h")
    (little,) = await daemon.send(text="half a second late", deliver_at=at(4 * HOUR - 500))
    (sharp,) = await daemon.send(text="in time", deliver_at="+4h")
    (now,) = await daemon.send(text="not deferred")
    await daemon.restart(hours=4)
    assert await daemon.inbox() == ["not deferred", "late", "half a second late", "in time"]
    assert daemon.arrived() == [now, late, little, sharp]
    found = {number: await daemon.get(number) for number in (late, little, sharp, now)}
    assert [found[number]["late_seconds"] for number in (late, little, sharp, now)] == [
        7200,
        None,
        None,
        None,
    ]
    assert "\nlate: 2h\n" in rendering.envelope(found[late], UTC)
    for number in (little, sharp, now):
        assert "late:" not in rendering.envelope(found[number], UTC)
    assert "late: 2h" in str(await daemon.ask("turn.preview", address="agent:nex"))


@frozen()
async def test_a_clock_set_back_brings_nothing_twice_and_nothing_early(daemon: InProcessDaemon) -> None:
    (first,) = await daemon.send(text="first", deliver_at="+1h")
    (second,) = await daemon.send(text="second", deliver_at="+3h")
    await daemon.move(hours=1)
    before = (
        daemon.rows("SELECT * FROM envelope ORDER BY id"),
        daemon.rows("SELECT * FROM message ORDER BY id"),
    )
    await daemon.move(hours=-5)
    for _ in range(6):  # up to the same hour as before
        await daemon.move(minutes=50)
    after = (
        daemon.rows("SELECT * FROM envelope ORDER BY id"),
        daemon.rows("SELECT * FROM message ORDER BY id"),
    )
    assert [[tuple(row) for row in table] for table in after] == [
        [tuple(row) for row in table] for table in before
    ]
    (third,) = await daemon.send(text="third", deliver_at="+10m")
    await daemon.move(minutes=10)
    assert daemon.arrived() == [first, third]
    await daemon.move(milliseconds=START + 3 * HOUR - clock.now() - 1)
    assert daemon.arrived() == [first, third]
    await daemon.move(milliseconds=1)  # the hour it was for, by the new clock
    assert daemon.arrived() == [first, third, second]
    daemon.check()


@frozen()
async def test_a_day_asleep_over_fifteen_hundred_loses_none_and_keeps_their_order(
    daemon: InProcessDaemon,
) -> None:
    minutes = [n * 7919 % 1440 + 1 for n in range(1_500)]  # every minute of the day, in random order
    sent = await daemon.flood([f"+{one}m" for one in minutes])
    await daemon.ring(days=1, minutes=1)
    await daemon.settle()
    expected = sorted(zip(minutes, range(1_500), sent, strict=True))
    assert daemon.arrived() == [number for _, _, number in expected]
    (row,) = daemon.rows("SELECT count(*) FROM message WHERE arrived_at < deliver_at")
    assert row[0] == 0
    assert daemon.scheduler.next_wake is None


@frozen()
async def test_mail_for_in_a_hundred_years_waits_and_holds_nobody_up(daemon: InProcessDaemon) -> None:
    (far,) = await daemon.send(text="far", deliver_at="+100Y")
    assert daemon.scheduler.next_wake == clock.to_ms(NOON.replace(year=2130))
    (near,) = await daemon.send(text="near", deliver_at="+1s")
    await daemon.ring(seconds=1)
    await daemon.settle()
    assert daemon.arrived() == [near] and daemon.scheduler.next_wake == clock.to_ms(NOON.replace(year=2130))
    await daemon.restart()
    status = await daemon.ask("daemon.status")
    assert status["next_wake_at"] == "2130-06-01T12:00:00.000Z" and status["deferred"] == 1
    assert (await daemon.get(far))["waits"] == "deferred"


@frozen()
async def test_what_was_taken_back_before_its_time_never_comes_and_leaves_no_gap(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    (before,) = await daemon.send(text="before", deliver_at="+1h")
    (gone,) = await daemon.send(text="gone", deliver_at="+1h")
    half, other = await daemon.send("agent:kai", "user:boss", text="half", deliver_at="+1h")
    (after,) = await daemon.send(text="after", deliver_at="+1h")
    assert (await daemon.ask("envelope.cancel", "nex", ids=[gone, half]))["changed"] == 2
    await daemon.move(hours=1)
    assert daemon.arrived() == [before, other, after]
    assert [(await daemon.get(one))["seq"] for one in (before, after)] == [1, 2]
    assert [(await daemon.get(one))["seq"] for one in (gone, other)] == [None, 1]
    assert await daemon.inbox("kai") == []
    with pytest.raises(NotFound):
        await daemon.ask("envelope.get", "kai", id=half)
    with pytest.raises(TooLate):  # in the box of a person it is done
        await daemon.ask("envelope.cancel", "nex", ids=[other])
    await daemon.move(days=1)
    assert (await daemon.get(gone))["status"] == "cancelled"


@frozen()
async def test_mail_on_its_way_to_somebody_deleted_has_failed_and_no_namesake_gets_it(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    lost, boss = await daemon.send("agent:kai", "user:boss", deliver_at="+1h")
    (alone,) = await daemon.send("agent:kai", deliver_at="+1h")
    (other,) = await daemon.send(deliver_at="+1h")
    await daemon.ask("agent.delete", name="kai")
    await daemon.register("kai")
    await daemon.move(hours=1)
    assert daemon.arrived() == [boss, other] and await daemon.inbox("kai") == []
    for number in (lost, alone):
        envelope = await daemon.get(number)
        assert (envelope["status"], envelope["last_error"]["kind"]) == ("failed", "recipient_deleted")
        with pytest.raises(TooLate):
            await daemon.ask("envelope.retry", "nex", ids=[number])
    await daemon.move(days=1)
    assert daemon.arrived() == [boss, other]


@frozen()
async def test_a_person_has_it_as_done_when_it_arrives_and_an_agent_as_pending(
    daemon: InProcessDaemon,
) -> None:
    person, agent = await daemon.send("user:boss", "agent:nex", deliver_at="+1h")
    assert (await daemon.get(person))["done_at"] is None
    await daemon.move(hours=1)
    found = await daemon.get(person)
    assert (found["status"], found["done_at"], found["read_at"]) == ("done", at(HOUR), None)
    found = await daemon.get(agent)
    assert (found["status"], found["done_at"]) == ("pending", None)
    assert await daemon.inbox("boss", unread=True) == ["hello"]


@frozen()
async def test_what_arrives_at_one_instant_is_claimed_by_priority_and_then_arrival(
    daemon: InProcessDaemon,
) -> None:
    for text in ("low", "normal", "high", "critical", "normal again"):
        await daemon.send(text=text, priority=text.split()[0], deliver_at="+1h")
    await daemon.move(hours=1)
    texts = [one["text"] for one in (await daemon.ask("envelope.claim", "nex"))["envelopes"]]
    assert texts == ["critical", "high", "normal", "normal again", "low"]


@frozen()
async def test_waiting_before_arrival_does_not_count_as_waiting_to_be_taken(daemon: InProcessDaemon) -> None:
    """After 15 minutes of waiting everything counts as critical; the time starts with the arrival."""
    await daemon.send(text="low", priority="low", deliver_at="+1h")
    await daemon.move(hours=1)
    await daemon.send(text="normal")
    taken = await daemon.ask("envelope.claim", "nex", lease="1s")
    assert [one["text"] for one in taken["envelopes"]] == ["normal", "low"]
    await daemon.move(minutes=15)
    await daemon.send(text="high", priority="high")
    taken = await daemon.ask("envelope.claim", "nex", limit=1)
    assert [one["text"] for one in taken["envelopes"]] == ["low"]


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_deferred_post_leaves_at_its_time_and_a_failed_one_can_be_tried_again(
    daemon: InProcessDaemon,
) -> None:
    place = Path(daemon.home.path).parent / "place"
    address = await daemon.bind(place, json.dumps({"do": "envelope_error", "text": "too big"}))

    def posts() -> list[str]:
        return [json.loads(line)["id"] for line in (place / "posts.jsonl").read_text().splitlines()]

    bad, good = [(await daemon.send(address, text=text, deliver_at="+2h"))[0] for text in ("bad", "good")]
    await daemon.move(hours=1, minutes=59, seconds=59, milliseconds=999)
    assert (await daemon.get(good))["status"] == "pending" and posts() == []
    await daemon.move(milliseconds=1)
    await daemon.until(lambda: posts() == [good])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    failed = await daemon.get(bad)
    assert (failed["status"], failed["last_error"]["text"], failed["seq"]) == ("failed", "too big", 1)
    assert await daemon.ask("envelope.retry", "nex", ids=[bad]) == {"changed": 1}
    await daemon.until(lambda: posts() == [good, bad])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    again = await daemon.get(bad)
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
        with daemon.database() as database:  # its time passes while no daemon runs
            database.execute("UPDATE message SET deliver_at = deliver_at - 3605000 WHERE seq IS NULL")
            database.execute("UPDATE envelope SET wait_until = wait_until - 3605000 WHERE arrived IS NULL")
            database.commit()
        daemon.start()
        wait_until(lambda: _texts(daemon) == ["awake", "killed"])
        found = daemon.call("envelope.list", token=daemon.token("nex"), page_size=1)["envelopes"]
        assert found[0]["late_seconds"] >= 5
        with daemon.database() as database:
            early = database.execute("SELECT count(*) FROM message WHERE arrived_at < deliver_at").fetchone()
        assert early[0] == 0
        daemon.check()
