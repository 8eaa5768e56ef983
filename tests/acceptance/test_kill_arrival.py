"""kill -9 while deferred mail arrives, somebody has claimed, or a slot of a schedule comes: once, in order, labelled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hiboss.api import leases
from hiboss.core import clock
from hiboss.core.crashpoint import AFTER_COMMIT, ARRIVED, ARRIVING, BEFORE_WRITE, IN_GROUP
from hiboss.core.errors import DaemonUnreachable
from hiboss.routing.scheduler import Scheduler
from hiboss.testing.running_daemon import RunningDaemon
from tests.acceptance.soak_clients import Asked, ask_again
from tests.acceptance.soak_post import Post
from tests.support.crash_groups import groups_of
from tests.support.daemons import line, set_up
from tests.support.failures import seeded
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

PIGEON = "channel:scripted:pigeon"
MANY = 1_100  # two chunks of waking, and a bit


def time_passes(post: Post) -> None:
    """Let an hour pass for what waits for a time, while no daemon runs."""
    with post.daemon.database() as database:
        database.execute("UPDATE message SET deliver_at = deliver_at - 3600000 WHERE seq IS NULL")
        database.execute("UPDATE envelope SET wait_until = wait_until - 3600000 WHERE waits IS NOT NULL")
        database.commit()


def defer(post: Post) -> list[str]:
    """Many for one instant, every hundredth for a channel; the daemon is killed, and then it comes."""
    at = clock.iso(clock.now() + 3_600_000)
    places = ["agent:ada" if n % 100 else PIGEON for n in range(MANY)]
    send = {"token": post.daemon.token("nex"), "deliver_at": at}
    asked = [Asked(key=f"{n}", params={**send, "to": to, "text": f"{n}"}) for n, to in enumerate(places)]
    numbers = [str(answer["result"]["ids"][0]) for answer in ask_again(post.daemon, asked)]
    assert not set(numbers) & set(post.kill().arrived)
    time_passes(post)
    return numbers


def test_deferred_mail_arrives_once_and_in_order_wherever_the_daemon_dies(post: Post) -> None:
    numbers = defer(post)
    for crash_at, arrived in (
        (ARRIVING, 0),
        (ARRIVED, 500),
        (f"{ARRIVING}:2", 1_000),
        (ARRIVED, MANY),
    ):
        post.start(crash_at)
        death = post.die()
        assert len(set(numbers) & set(death.arrived)) == arrived, crash_at
    post.start()
    post.quiet()
    post.daemon.check()
    rows = post.rows("SELECT 'e' || id AS id FROM envelope WHERE arrived IS NOT NULL ORDER BY arrived")
    assert [row["id"] for row in rows if row["id"] in set(numbers)] == numbers
    places = [number for n, number in enumerate(numbers) if n % 100 == 0]
    assert [number for number, _ in post.posted() if number in places] == places
    fetched = post.empty_box()
    assert [one["id"] for one in fetched] == [number for number in numbers if number not in places]
    assert not any(one["redelivered"] for one in fetched)


def test_a_claim_nobody_was_told_of_ends_with_its_lease(post: Post) -> None:
    numbers = [post.send("agent:ada", f"{n}") for n in range(12)]
    post.daemon.stop()
    post.start(f"{AFTER_COMMIT}:5", **groups_of(leases.claim))
    told: list[str] = []
    with pytest.raises(DaemonUnreachable):
        while True:
            (one,) = post.ada("envelope.claim", limit=1, lease="1h")["envelopes"]
            told.append(one["id"])
    post.die()
    claimed = [
        row["id"] for row in post.rows("SELECT 'e' || id AS id FROM envelope WHERE waits = 2 ORDER BY id")
    ]
    assert (told, claimed) == (numbers[:4], numbers[:5])  # she was not told of the last one
    time_passes(post)
    post.start()
    fetched = post.empty_box()
    assert [one["id"] for one in fetched] == numbers
    assert [one["id"] for one in fetched if one["redelivered"]] == claimed
    post.daemon.check()


# --- schedules ------------------------------------------------------------------------


MANY_SLOTS = 1_200  # 250 are fired in one transaction
DEATHS = [  # and how many have been fired then
    (ARRIVING, 0),
    (BEFORE_WRITE, 0),
    (IN_GROUP, 0),
    (AFTER_COMMIT, 250),
    (ARRIVED, 500),
    (f"{IN_GROUP}:2", 750),
    (f"{ARRIVING}:2", 1_000),
]
KINDS = [(catch_up, overlap) for catch_up in ("skip", "once", "all") for overlap in ("queue", "skip")]


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(set_up(tmp_path_factory.mktemp("k")))
    daemon.start()
    yield daemon
    daemon.stop()


def settled(daemon: RunningDaemon) -> bool:
    """Whether no schedule is due."""
    with daemon.database() as database:
        (due,) = database.execute(
            "SELECT count(*) FROM schedule WHERE next_at <= ?", (clock.now(),)
        ).fetchone()
    return not due


def have_fired(daemon: RunningDaemon) -> set[str]:
    """The schedules that have fired. On a busy machine a daemon may be killed before any of them is due."""
    with daemon.database() as database:
        rows = database.execute("SELECT DISTINCT schedule FROM schedule_slot WHERE outcome = 'fired'")
        return {f"s{row[0]}" for row in rows}


def fired(daemon: RunningDaemon) -> Counter[str]:
    """How often each text was sent; never more or less than there are slots that say so."""
    daemon.check()
    with daemon.database() as database:
        sent = Counter(row[0] for row in database.execute("SELECT text FROM message"))
        noted = Counter(
            row[0]
            for row in database.execute(
                """
                SELECT s.draft ->> '$.text' FROM schedule_slot l JOIN schedule s ON s.id = l.schedule
                JOIN message m ON m.id = l.message AND m.text = s.draft ->> '$.text'
                WHERE l.outcome = 'fired'
                """
            )
        )
    assert sent == noted
    return sent


def test_each_slot_sends_once_wherever_the_daemon_dies(daemon: RunningDaemon) -> None:
    facts = {"token": daemon.token("boss"), "to": "agent:nex", "at": "+1h"}  # no quota for the boss
    for start in range(0, MANY_SLOTS, 100):
        lines = [line("cron.create", n, text=f"{n}", **facts) for n in range(start, start + 100)]
        answers = daemon.exchange(b"".join(lines).rstrip(), answers=100)
        assert all("result" in answer for answer in answers)
    daemon.kill()
    with daemon.database() as database:  # their hour passes while no daemon runs
        database.execute("UPDATE schedule SET at = at - 3600000, next_at = next_at - 3600000")
        database.commit()
    for crash_at, number in DEATHS:
        with suppress(DaemonUnreachable):  # it may be dead before it could say that it is ready
            daemon.start(HIBOSS_CRASH_AT=crash_at, **groups_of(Scheduler.catch_up))
            assert daemon.wait_for_death() == -9
        assert sorted(fired(daemon).values()) == [1] * number, crash_at
    daemon.start()
    wait_until(lambda: settled(daemon))
    assert fired(daemon) == {f"{n}": 1 for n in range(MANY_SLOTS)}
    with daemon.database() as database:
        rows = database.execute("SELECT count(*), sum(number) FROM schedule_slot").fetchone()
    assert tuple(rows) == (MANY_SLOTS, MANY_SLOTS)


def test_no_slot_of_an_interval_is_lost_or_doubled_by_sudden_deaths(daemon: RunningDaemon) -> None:
    numbers = {}
    for catch_up, overlap in KINDS:
        made = daemon.call(
            "cron.create",
            token=daemon.token("nex"),
            every="1s",
            to="user:boss" if overlap == "queue" else "agent:nex",
            text=f"{catch_up} {overlap}",
            catch_up=catch_up,
            overlap=overlap,
        )
        numbers[made["id"]] = f"{catch_up} {overlap}"
    chance = seeded(5)
    for _ in range(4):
        time.sleep(chance.uniform(0.1, 1.1))
        daemon.kill()
        daemon.start()
    wait_until(lambda: settled(daemon) and have_fired(daemon) >= set(numbers))
    daemon.kill()
    sent = fired(daemon)
    for number, text in numbers.items():
        with daemon.database() as database:
            key = int(number[1:])
            row = database.execute("SELECT created_at, next_at FROM schedule WHERE id = ?", (key,)).fetchone()
            rows = database.execute(
                "SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY slot", (key,)
            ).fetchall()
        found = [slot for one in rows for slot in range(one["slot"], one["last_slot"] + 1, 1_000)]
        assert len(found) == sum(one["number"] for one in rows)
        assert found == list(range(row["created_at"] + 1_000, row["next_at"], 1_000)), text
        assert sent[text] == sum(one["outcome"] == "fired" for one in rows) >= 1
    daemon.start()
