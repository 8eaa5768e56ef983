"""The scheduler: its timer job is set to the nearest time, and a lost wake is found again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hiboss.core import clock
from hiboss.core.errors import HibossError
from hiboss.routing.scheduler import RETRY_MS
from hiboss.testing.frozen_clock import NOON
from tests.support.daemons import running_daemon, set_up
from tests.support.failures import seeded
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.waits import wait_until

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
async def test_the_job_alone_wakes_at_the_time_and_not_before(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send(deliver_at="+2h")
    await daemon.ring(hours=1, minutes=59, seconds=59, milliseconds=999)
    await turns(50)
    assert daemon.arrived() == []
    await daemon.ring(milliseconds=1)
    await daemon.until(lambda: daemon.arrived() == [number])
    await daemon.settle()
    assert daemon.scheduler.next_wake is None


@frozen(heartbeat_seconds=NEVER)
async def test_a_nearer_row_moves_the_bell_and_a_farther_one_does_not(daemon: InProcessDaemon) -> None:
    for text, hours, bell in (("b", 5, 5), ("c", 9, 5), ("a", 2, 2), ("d", 12, 2)):
        await daemon.send(text=text, deliver_at=f"+{hours}h")
        assert daemon.scheduler.next_wake == START + bell * HOUR
    for wait, seen, bell in ((2, "a", 5), (3, "ab", 9), (4, "abc", 12)):
        await daemon.ring(hours=wait)
        await daemon.settle()
        assert await daemon.inbox() == list(seen) and daemon.scheduler.next_wake == START + bell * HOUR
    await daemon.ring(hours=3)
    await daemon.settle()
    assert await daemon.inbox() == list("abcd") and daemon.scheduler.next_wake is None


@frozen(heartbeat_seconds=NEVER)
async def test_every_one_of_a_chain_wakes_the_next(daemon: InProcessDaemon) -> None:
    """Each step sets the same job again, sometimes while its last run has not ended."""
    sent = []
    for step in range(60):
        sent += await daemon.send(text=f"{step}", deliver_at="+1s")
        await daemon.ring(seconds=1)
        await turns(step % 7)
    await daemon.until(lambda: daemon.arrived() == sent)


@pytest.mark.parametrize("seconds", [0, 1], ids=["overdue", "near"])
@pytest.mark.parametrize("turn", range(7))
def test_a_bell_set_while_the_last_ring_still_runs_is_not_lost(
    tmp_path: Path, turn: int, seconds: int
) -> None:
    @frozen(heartbeat_seconds=NEVER)
    async def story(daemon: InProcessDaemon) -> None:
        (first,) = await daemon.send(deliver_at="+1s")
        (second,) = await daemon.send(deliver_at="+9h")
        daemon.tick(seconds=1)
        daemon.scheduler._jobs.wakeup()
        await turns(turn)
        near = clock.now() + seconds * 1_000  # a row the loop does not know of, and its nudge
        daemon.change("UPDATE message SET deliver_at = ? WHERE deliver_at > ?", near, near)
        daemon.change("UPDATE envelope SET wait_until = ? WHERE id = ?", near, int(second[1:]))
        daemon.scheduler.nudge(near)
        if seconds:
            await daemon.until(lambda: daemon.arrived() == [first])
            await daemon.settle()
            assert daemon.scheduler.next_wake == near
            await daemon.ring(seconds=seconds)
        await daemon.until(lambda: daemon.arrived() == [first, second])

    story(tmp_path)


@frozen(heartbeat_seconds=NEVER)
async def test_a_time_that_has_passed_rings_at_once(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send(deliver_at="+1h")
    daemon.tick(days=3)  # the scheduler is not told
    (other,) = await daemon.send(deliver_at=clock.iso(clock.now() + 1))  # set by a request under way
    daemon.scheduler.nudge(START + HOUR - 1)
    await daemon.until(lambda: daemon.arrived() == [number])
    await daemon.ring(milliseconds=1)
    await daemon.until(lambda: daemon.arrived() == [number, other])


@frozen(heartbeat_seconds=NEVER)
async def test_a_thousand_nudges_in_one_turn_are_one_wake(daemon: InProcessDaemon) -> None:
    sent = await daemon.flood(["+1h"] * 10)
    await daemon.settle()  # the look at the start is over
    daemon.tick(hours=2)
    for ms in range(1_000):  # each earlier than the one before, all of them overdue
        daemon.scheduler.nudge(START + HOUR - ms)
    await daemon.until(lambda: daemon.arrived() == sent)
    for ms in range(1_000):
        daemon.scheduler.nudge(clock.now() + HOUR - ms)
    assert daemon.scheduler.next_wake == clock.now() + HOUR - 999
    assert len(daemon.scheduler._jobs.get_jobs()) == 1


# --- while the loop works ---------------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_what_is_sent_while_the_pump_works_comes_at_its_time(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    due = await daemon.flood(["+1h"] * 1_500)
    await daemon.ring(hours=1)
    sent, at_work = [], 0
    for n in range(100):
        sent += await daemon.send("agent:kai", text=f"{n}", deliver_at=clock.iso(clock.now() + 1 + n % 20))
        at_work += daemon.number_arrived() < 1_500
    assert at_work  # else this test shows nothing
    await daemon.settle()
    assert daemon.arrived() == due and daemon.scheduler.next_wake == clock.now() + 1
    for ms in range(1, 21):
        await daemon.ring(milliseconds=1)
        await daemon.until(lambda ms=ms: daemon.number_arrived() == 1_500 + 5 * ms)  # type: ignore[misc]
    by_time = sorted(range(100), key=lambda n: n % 20)
    assert daemon.arrived()[1_500:] == [sent[n] for n in by_time]


@frozen(at=None, heartbeat_seconds=NEVER)
async def test_many_senders_with_near_times_see_every_one_arrive_and_none_early(
    daemon: InProcessDaemon,
) -> None:
    """By the real clock: the timer is set and runs while others set it, in every order."""
    await daemon.register("kai", "mia")
    dice = seeded(11)

    async def sender(who: str, to: str) -> None:
        for _ in range(40):
            await daemon.send(to, who=who, deliver_at=clock.iso(clock.now() + dice.randint(0, 400)))
            await asyncio.sleep(dice.choice([0, 0, 0.001, 0.02]))

    pairs = [("nex", "agent:kai"), ("kai", "agent:mia"), ("mia", "user:boss"), ("mia", "agent:nex")]
    await asyncio.gather(*(sender(*pair) for pair in pairs * 4))
    await daemon.until(lambda: daemon.number_arrived() == 640)
    (row,) = daemon.rows("SELECT count(*) FROM message WHERE arrived_at < ifnull(deliver_at, 0)")
    assert row[0] == 0
    await daemon.settle()
    assert daemon.scheduler.next_wake is None


@frozen()
async def test_taking_back_while_the_pump_works_ends_each_once(daemon: InProcessDaemon) -> None:
    sent = await daemon.flood(["+1h"] * 1_500)
    daemon.tick(hours=1)
    daemon.scheduler.wakeup()

    async def cancel(number: str) -> int:
        changed: int = (await daemon.ask("envelope.cancel", "nex", ids=[number]))["changed"]
        return changed

    changed = 0
    for number in sent[::-15]:
        changed += await cancel(number)
        await asyncio.sleep(0)
    await daemon.settle()
    assert changed == len(sent[::-15])
    states = Counter(row["status"] for row in daemon.rows("SELECT status FROM envelopes"))
    assert states == {"cancelled": changed, "pending": 1_500 - changed}
    assert daemon.rows("SELECT 1 FROM envelopes WHERE status = 'pending' AND arrived IS NULL") == []


@frozen()
async def test_a_stop_in_the_middle_of_waking_loses_none_and_brings_none_twice(
    daemon: InProcessDaemon,
) -> None:
    sent = await daemon.flood(["+1h"] * 1_500)
    daemon.tick(hours=1)
    daemon.scheduler.wakeup()
    await daemon.until(daemon.number_arrived)
    between = daemon.number_arrived()
    await daemon.restart()
    assert between < 1_500  # else this test shows nothing
    assert daemon.arrived() == sent


# --- the heartbeat ----------------------------------------------------------------------


@frozen(at=None, heartbeat_seconds=1)
async def test_the_heartbeat_finds_a_row_nobody_was_told_of(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send(deliver_at="+9h")
    past = clock.now() - 1
    daemon.change("UPDATE message SET deliver_at = ?", past)
    daemon.change("UPDATE envelope SET wait_until = ?", past)
    await daemon.until(lambda: daemon.arrived() == [number])


@frozen(heartbeat_seconds=1)
async def test_a_clock_set_back_and_then_right_again_is_noticed_by_itself(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send(deliver_at="+1h")
    beats, beat = [], daemon.scheduler._on_heartbeat

    async def noted() -> None:
        await beat()
        beats.append(1)

    daemon.scheduler._on_heartbeat = noted
    daemon.tick(days=-1)
    await daemon.until(lambda: beats)  # after the clock went back a heartbeat sets the timer again
    daemon.tick(days=1, hours=1)
    await daemon.until(lambda: daemon.arrived() == [number])


# --- when the store cannot be used ------------------------------------------------------


@contextmanager
def refusing(daemon: InProcessDaemon) -> Iterator[None]:
    """A database that refuses what waking writes; it stands for a defect of ours."""
    daemon.change(
        "CREATE TRIGGER refuse BEFORE UPDATE OF arrived ON envelope BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    try:
        yield
    finally:
        daemon.change("DROP TRIGGER refuse")


@contextmanager
def full(daemon: InProcessDaemon) -> Iterator[None]:
    """A database that may not grow."""
    connection = daemon.daemon.wiring._store._connection
    (most,) = connection.execute("PRAGMA max_page_count").fetchone()
    connection.execute("PRAGMA max_page_count = 1")  # SQLite does not go below the present size
    try:
        yield
    finally:
        connection.execute(f"PRAGMA max_page_count = {most}")


Failure = Callable[[InProcessDaemon], AbstractContextManager[None]]
TROUBLES: list[tuple[Failure, str]] = [
    (InProcessDaemon.locked, "is locked"),
    (full, "no space is left"),
    (refusing, "it is tried again"),
]


@pytest.mark.parametrize(("trouble", "said"), TROUBLES, ids=["locked", "full", "refusing"])
def test_waking_goes_on_after_the_store_could_not_be_used(
    tmp_path: Path, trouble: Failure, said: str
) -> None:
    @frozen(heartbeat_seconds=NEVER, lock_wait_seconds=0.05, quiet=False)
    async def story(daemon: InProcessDaemon) -> None:
        sent = await daemon.flood(["+1h"] * MANY)
        with trouble(daemon):
            await daemon.ring(hours=1)
            for attempt in range(1, 4):  # it does not give up, and does not loop without pause
                await daemon.until(lambda n=attempt: len(_troubles(daemon)) == n)  # type: ignore[misc]
                assert daemon.scheduler.next_wake == clock.now() + RETRY_MS
                await daemon.ring(milliseconds=RETRY_MS)
            assert said in _troubles(daemon)[0]
            await daemon.until(lambda: len(_troubles(daemon)) == 4)
            assert daemon.arrived() == []
        await daemon.ring(milliseconds=RETRY_MS)
        await daemon.until(lambda: daemon.number_arrived() == MANY)
        assert daemon.arrived() == sent
        seqs = [row["seq"] for row in daemon.rows("SELECT seq FROM message ORDER BY id")]
        assert seqs == list(range(1, MANY + 1))

    story(tmp_path)


def _troubles(daemon: InProcessDaemon) -> list[str]:
    return [line for line in daemon.warnings() if " [wake] " in line]


@frozen(heartbeat_seconds=NEVER, lock_wait_seconds=0.05, quiet=False)
async def test_a_send_refused_while_the_store_is_locked_sets_no_bell(daemon: InProcessDaemon) -> None:
    with daemon.locked(), pytest.raises(HibossError):
        await daemon.send(deliver_at="+1h")
    assert daemon.scheduler.next_wake is None
    (number,) = await daemon.send(deliver_at="+1h")
    await daemon.ring(hours=1)
    await daemon.until(lambda: daemon.arrived() == [number])


@frozen(lock_wait_seconds=0.05, adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_stop_while_the_store_is_locked_is_a_clean_one(daemon: InProcessDaemon) -> None:
    await daemon.bind(Path(daemon.home.path).parent / "place")
    sent = await daemon.flood(["+1h"] * MANY)
    with daemon.locked():
        await daemon.ring(hours=1)
        await daemon.until(lambda: _troubles(daemon))
        supervisor = daemon.daemon.wiring.supervisor
        await daemon.close()
        assert supervisor.slots == {}  # adapters were stopped
    await daemon.open()
    await daemon.settle()
    assert daemon.arrived() == sent


# --- what the status shows --------------------------------------------------------------


@frozen()
async def test_the_status_says_when_the_next_wake_is_and_what_waits(daemon: InProcessDaemon) -> None:
    async def status() -> tuple[str | None, int, int]:
        found = await daemon.ask("daemon.status")
        return found["next_wake_at"], found["deferred"], found["due"]

    assert await status() == (None, 0, 0)
    await daemon.send(deliver_at="+2h")
    (first,) = await daemon.send(deliver_at="+1h")
    assert await status() == ("2030-06-01T13:00:00.000Z", 2, 0)
    await daemon.move(hours=1)
    assert await status() == ("2030-06-01T14:00:00.000Z", 1, 1)
    await daemon.ask("envelope.claim", "nex", lease="10m")
    assert (await status())[0] == "2030-06-01T13:10:00.000Z"
    await daemon.ask("envelope.ack", "nex", ids=[first])
    await daemon.move()
    assert await status() == ("2030-06-01T14:00:00.000Z", 1, 0)
    await daemon.move(hours=1)
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


@frozen(quiet=False, heartbeat_seconds=1)
async def test_a_defect_in_firing_schedules_stops_no_mail(daemon: InProcessDaemon) -> None:
    def breaks(tx: object, owner: int) -> None:
        raise RuntimeError("a defect")

    await daemon.ask("cron.create", "nex", every="1h", to="agent:nex", text="scheduled")
    (number,) = await daemon.send(text="deferred", deliver_at="+2h")
    right, daemon.scheduler.may_send = daemon.scheduler.may_send, breaks
    daemon.tick(hours=2)
    daemon.scheduler.wakeup()
    await daemon.until(lambda: daemon.arrived() == [number])
    await daemon.until(lambda: any("Waking failed" in line for line in daemon.warnings()))
    daemon.scheduler.may_send = right
    daemon.scheduler.wakeup()
    await daemon.settle()
    assert await daemon.inbox() == ["deferred", "scheduled"]  # it was only late


# --- a heartbeat with a defect ------------------------------------------------------------


@frozen(heartbeat_seconds=1, quiet=False)
async def test_an_exception_that_is_no_error_of_hiboss_does_not_end_the_heartbeat(
    daemon: InProcessDaemon,
) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        beats += 1
        if beats == 1:
            raise RuntimeError("a defect")

    daemon.scheduler._on_heartbeat = beat
    await daemon.until(lambda: beats == 2)
    said = "\n".join(daemon.warnings())
    assert "A task of the heartbeat failed" in said and "Traceback" in said
