"""The one job and the pump: set to the nearest time, never late for good, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hiboss.core import clock
from hiboss.core.errors import HibossError
from hiboss.routing.scheduler import AGAIN_MS
from hiboss.testing.frozen_clock import NOON
from tests.support.clockwork import Office, frozen
from tests.support.daemons import running_daemon, set_up, wait_until

START = clock.to_ms(NOON)
HOUR = 3_600_000
# Long enough that nothing here is found by the heartbeat.
NEVER = 3600
MANY = 1_200  # more than two chunks


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


# --- the job --------------------------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_the_job_alone_wakes_at_the_time_and_not_before(office: Office) -> None:
    (number,) = await office.send(deliver_at="+2h")
    await office.ring(hours=1, minutes=59, seconds=59, milliseconds=999)
    await turns(50)
    assert office.arrived() == []
    await office.ring(milliseconds=1)
    await office.until(lambda: office.arrived() == [number])
    assert office.scheduler.next_wake is None


@frozen(heartbeat_seconds=NEVER)
async def test_a_nearer_row_moves_the_bell_and_a_farther_one_does_not(office: Office) -> None:
    for text, hours, bell in (("b", 5, 5), ("c", 9, 5), ("a", 2, 2), ("d", 12, 2)):
        await office.send(text=text, deliver_at=f"+{hours}h")
        assert office.scheduler.next_wake == START + bell * HOUR
    for wait, seen, bell in ((2, "a", 5), (3, "ab", 9), (4, "abc", 12)):
        await office.ring(hours=wait)
        await office.settle()
        assert await office.inbox() == list(seen)
        assert office.scheduler.next_wake == START + bell * HOUR
    await office.ring(hours=3)
    await office.settle()
    assert await office.inbox() == list("abcd") and office.scheduler.next_wake is None


@frozen(heartbeat_seconds=NEVER)
async def test_every_one_of_a_chain_wakes_the_next(office: Office) -> None:
    """Each step sets the same job again, some while its last run has not ended."""
    sent = []
    for step in range(60):
        sent += await office.send(text=f"{step}", deliver_at="+1s")
        await office.ring(seconds=1)
        await turns(step % 7)
    await office.until(lambda: office.arrived() == sent)


@pytest.mark.parametrize("seconds", [0, 1], ids=["overdue", "near"])
@pytest.mark.parametrize("turn", range(7))
def test_a_bell_set_while_the_last_ring_still_runs_is_not_lost(
    tmp_path: Path, turn: int, seconds: int
) -> None:
    @frozen(heartbeat_seconds=NEVER)
    async def story(office: Office) -> None:
        (first,) = await office.send(deliver_at="+1s")
        (second,) = await office.send(deliver_at="+9h")
        office.tick(seconds=1)
        office.scheduler._jobs.wakeup()
        await turns(turn)
        near = clock.now() + seconds * 1_000  # a row the pump cannot know of, and its nudge
        office.change("UPDATE message SET deliver_at = ? WHERE deliver_at > ?", near, near)
        office.change("UPDATE envelope SET wake_at = ? WHERE id = ?", near, int(second[1:]))
        office.scheduler.nudge(near)
        if seconds:
            await office.until(lambda: office.arrived() == [first])
            await office.settle()
            assert office.scheduler.next_wake == near
            await office.ring(seconds=seconds)
        await office.until(lambda: office.arrived() == [first, second])

    story(tmp_path)


@frozen(heartbeat_seconds=NEVER)
async def test_a_time_that_has_passed_rings_at_once(office: Office) -> None:
    (number,) = await office.send(deliver_at="+1h")
    office.tick(days=3)  # nobody is told
    (other,) = await office.send(deliver_at=clock.iso(clock.now() + 1))  # set by a request under way
    office.scheduler.nudge(START + HOUR - 1)
    await office.until(lambda: office.arrived() == [number])
    await office.ring(milliseconds=1)
    await office.until(lambda: office.arrived() == [number, other])


@frozen(heartbeat_seconds=NEVER)
async def test_a_thousand_nudges_in_one_turn_are_one_wake(office: Office) -> None:
    sent = await office.flood(["+1h"] * 10)
    office.tick(hours=2)
    for ms in range(1_000):  # each earlier than the one before, all of them overdue
        office.scheduler.nudge(START + HOUR - ms)
    await office.until(lambda: office.arrived() == sent)
    for ms in range(1_000):
        office.scheduler.nudge(clock.now() + HOUR - ms)
    assert office.scheduler.next_wake == clock.now() + HOUR - 999
    assert len(office.scheduler._jobs.get_jobs()) == 1


# --- while the pump is at work ----------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_what_is_sent_while_the_pump_works_comes_at_its_time(office: Office) -> None:
    await office.register("kai")
    due = await office.flood(["+1h"] * 3_000)
    await office.ring(hours=1)
    sent, at_work = [], 0
    for n in range(100):
        sent += await office.send("agent:kai", text=f"{n}", deliver_at=clock.iso(clock.now() + 1 + n % 20))
        at_work += office.number_arrived() < 3_000
    assert at_work  # or this test shows nothing
    await office.settle()
    assert office.arrived() == due
    assert office.scheduler.next_wake == clock.now() + 1
    for ms in range(1, 21):
        await office.ring(milliseconds=1)
        await office.until(lambda ms=ms: office.number_arrived() == 3_000 + 5 * ms)  # type: ignore[misc]
    by_time = sorted(range(100), key=lambda n: n % 20)
    assert office.arrived()[3_000:] == [sent[n] for n in by_time]


@frozen(at=None, heartbeat_seconds=NEVER)
async def test_many_senders_with_near_times_see_every_one_arrive_and_none_early(office: Office) -> None:
    """By the real clock: bells are set and rung while others are set, in every order."""
    await office.register("kai", "mia")
    dice = random.Random(11)

    async def sender(who: str, to: str) -> None:
        for _ in range(40):
            await office.send(to, who=who, deliver_at=clock.iso(clock.now() + dice.randint(0, 400)))
            await asyncio.sleep(dice.choice([0, 0, 0.001, 0.02]))

    pairs = [("nex", "agent:kai"), ("kai", "agent:mia"), ("mia", "user:boss"), ("mia", "agent:nex")]
    await asyncio.gather(*(sender(*pair) for pair in pairs * 4))
    await office.until(lambda: office.number_arrived() == 640)
    (row,) = office.rows("SELECT count(*) FROM message WHERE arrived_at < ifnull(deliver_at, 0)")
    assert row[0] == 0
    await office.settle()
    assert office.scheduler.next_wake is None


@frozen()
async def test_taking_back_while_the_pump_works_ends_each_once(office: Office) -> None:
    sent = await office.flood(["+1h"] * 1_500)
    office.tick(hours=1)
    office.scheduler.wakeup()

    async def cancel(number: str) -> int:
        changed: int = (await office.ask("envelope.cancel", "nex", ids=[number]))["changed"]
        return changed

    changed = 0
    for number in sent[::-15]:
        changed += await cancel(number)
        await asyncio.sleep(0)
    await office.settle()
    assert changed == len(sent[::-15])
    states = Counter(row["status"] for row in office.rows("SELECT status FROM envelopes"))
    assert states == {"cancelled": changed, "pending": 1_500 - changed}
    assert office.rows("SELECT 1 FROM envelopes WHERE status = 'pending' AND arrived IS NULL") == []


@frozen()
async def test_a_stop_in_the_middle_of_waking_loses_none_and_brings_none_twice(office: Office) -> None:
    sent = await office.flood(["+1h"] * 3_000)
    office.tick(hours=1)
    office.scheduler.wakeup()
    await office.until(office.number_arrived)
    between = office.number_arrived()
    await office.restart()
    assert between < 3_000  # or this test shows nothing
    assert office.arrived() == sent


# --- the heartbeat ----------------------------------------------------------------------


@frozen(at=None, heartbeat_seconds=1)
async def test_the_heartbeat_finds_a_row_nobody_was_told_of(office: Office) -> None:
    (number,) = await office.send(deliver_at="+9h")
    past = clock.now() - 1
    office.change("UPDATE message SET deliver_at = ?", past)
    office.change("UPDATE envelope SET wake_at = ?", past)
    await office.until(lambda: office.arrived() == [number])


@frozen(heartbeat_seconds=1)
async def test_a_clock_set_back_and_then_right_again_is_noticed_by_itself(office: Office) -> None:
    (number,) = await office.send(deliver_at="+1h")
    office.tick(days=-1)
    await asyncio.sleep(1.2)  # a heartbeat in the past sets the timers anew
    office.tick(days=1, hours=1)
    await office.until(lambda: office.arrived() == [number])


@frozen(heartbeat_seconds=1)
async def test_a_year_asleep_is_noticed_by_itself(office: Office) -> None:
    (number,) = await office.send(deliver_at="+300D")
    office.tick(days=365)
    await office.until(lambda: office.arrived() == [number])
    assert (await office.get(number))["late_seconds"] == 65 * 86_400


# --- when the store cannot be used ------------------------------------------------------


@contextmanager
def refusing(office: Office) -> Iterator[None]:
    """A database that refuses what waking writes: stands for a defect of ours."""
    office.change(
        "CREATE TRIGGER refuse BEFORE UPDATE OF arrived ON envelope BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    try:
        yield
    finally:
        office.change("DROP TRIGGER refuse")


@contextmanager
def full(office: Office) -> Iterator[None]:
    """A database that may not grow."""
    connection = office.daemon.wiring._store._connection
    (most,) = connection.execute("PRAGMA max_page_count").fetchone()
    connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the size there is for the least
    try:
        yield
    finally:
        connection.execute(f"PRAGMA max_page_count = {most}")


Failure = Callable[[Office], AbstractContextManager[None]]
TROUBLES: list[tuple[Failure, str]] = [
    (Office.locked, "is locked"),
    (full, "no space is left"),
    (refusing, "it is tried again"),
]


@pytest.mark.parametrize(("trouble", "said"), TROUBLES, ids=["locked", "full", "refusing"])
def test_waking_goes_on_after_the_store_could_not_be_used(
    tmp_path: Path, trouble: Failure, said: str
) -> None:
    @frozen(heartbeat_seconds=NEVER, lock_wait_seconds=0.05, quiet=False)
    async def story(office: Office) -> None:
        sent = await office.flood(["+1h"] * MANY)
        with trouble(office):
            await office.ring(hours=1)
            for attempt in range(1, 4):  # it does not give up, and does not turn in circles
                await office.until(lambda n=attempt: len(_troubles(office)) == n)  # type: ignore[misc]
                assert office.scheduler.next_wake == clock.now() + AGAIN_MS
                await office.ring(milliseconds=AGAIN_MS)
            assert said in _troubles(office)[0]
            await office.until(lambda: len(_troubles(office)) == 4)
            assert office.arrived() == []
        await office.ring(milliseconds=AGAIN_MS)
        await office.until(lambda: office.number_arrived() == MANY)
        assert office.arrived() == sent
        seqs = [row["seq"] for row in office.rows("SELECT seq FROM message ORDER BY id")]
        assert seqs == list(range(1, MANY + 1))

    story(tmp_path)


def _troubles(office: Office) -> list[str]:
    return [line for line in office.noise() if " [wake] " in line]


@frozen(heartbeat_seconds=NEVER, lock_wait_seconds=0.05, quiet=False)
async def test_a_send_refused_while_the_store_is_locked_sets_no_bell(office: Office) -> None:
    with office.locked(), pytest.raises(HibossError):
        await office.send(deliver_at="+1h")
    assert office.scheduler.next_wake is None
    (number,) = await office.send(deliver_at="+1h")
    await office.ring(hours=1)
    await office.until(lambda: office.arrived() == [number])


@frozen(lock_wait_seconds=0.05, adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_stop_while_the_store_is_locked_is_a_clean_one(office: Office) -> None:
    await office.bind(Path(office.home.path).parent / "place")
    sent = await office.flood(["+1h"] * MANY)
    with office.locked():
        await office.ring(hours=1)
        await office.until(lambda: _troubles(office))
        supervisor = office.daemon.wiring.supervisor
        await office.close()
        assert supervisor.slots == {}  # adapters were told
    await office.open()
    await office.settle()
    assert office.arrived() == sent


# --- what is said of it -----------------------------------------------------------------


@frozen()
async def test_the_status_says_when_the_next_wake_is_and_what_waits(office: Office) -> None:
    async def status() -> tuple[str | None, int, int]:
        found = await office.ask("daemon.status")
        return found["next_wake_at"], found["deferred"], found["due"]

    assert await status() == (None, 0, 0)
    await office.send(deliver_at="+2h")
    (first,) = await office.send(deliver_at="+1h")
    assert await status() == ("2030-06-01T13:00:00.000Z", 2, 0)
    await office.move(hours=1)
    assert await status() == ("2030-06-01T14:00:00.000Z", 1, 1)
    await office.ask("envelope.claim", "nex", lease="10m")
    assert (await status())[0] == "2030-06-01T13:10:00.000Z"
    await office.ask("envelope.ack", "nex", ids=[first])
    await office.move()
    assert await status() == ("2030-06-01T14:00:00.000Z", 1, 0)
    await office.move(hours=1)
    assert await status() == (None, 0, 1)


def test_a_machine_with_a_zone_that_does_not_exist_defers_mail_all_the_same(tmp_path: Path) -> None:
    set_up(tmp_path)
    with running_daemon(tmp_path, set_up=False, TZ="Nowhere/Land") as daemon:
        token = daemon.token("nex")
        soon = (datetime.now(UTC) + timedelta(milliseconds=300)).isoformat()
        daemon.call("envelope.send", token=token, to="agent:nex", text="soon", deliver_at=soon)
        wait_until(lambda: daemon.call("envelope.list", token=token)["envelopes"])
        log = Path(daemon.home.log_file).read_text()
        assert " error " not in log and " warning " not in log and "apscheduler" not in log
