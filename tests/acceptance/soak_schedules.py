"""Schedules in a post office whose daemon dies: every slot is sent once, or recorded with its reason."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

from hiboss.core import clock
from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import Answered
from tests.acceptance.soak_post import Post, Row

MINUTE_MS = 60_000
LATE_MS = 10_000  # a next slot that lies so far back was forgotten
REGULAR = (
    {"every": "1s", "to": "agent:ada", "catch_up": "once"},
    {"every": "1s", "to": "channel:rough:elm", "catch_up": "all"},
    {"every": "2s", "to": "channel:folder:tray", "catch_up": "skip"},
    {"cron": "* * * * *", "to": "agent:ada", "catch_up": "all"},
    {"every": "1s", "to": "agent:ada", "overlap": "skip"},
)


class Timetable:
    """The schedules of a post office."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._once: dict[str, bool] = {}  # texts of those for one time, and whether they were answered
        for number, fields in enumerate(REGULAR):
            post.nex("cron.create", text=f"tick {number}", **{"overlap": "queue", **fields})

    def planner(self, name: str, seed: int) -> Planner:
        return Planner(self._post, name, seed, self._once)

    def end(self) -> None:
        """No more slots."""
        for row in self._post.rows("SELECT id FROM schedule WHERE enabled"):
            self._post.boss("cron.disable", id=f"s{row['id']}")

    def figures(self) -> Counter[str]:
        rows = self._post.rows("SELECT outcome, sum(number) AS number FROM schedule_slot GROUP BY outcome")
        return Counter({f"slots-{row['outcome']}": row["number"] for row in rows})

    # --- looking -------------------------------------------------------------------------

    def faults(self) -> Iterator[tuple[str, str]]:
        """Lost, double or fault, and what it is. The schedules must still be enabled."""
        now = clock.now()
        with self._post.daemon.database() as database:
            database.execute("BEGIN")  # one snapshot: they go on firing
            rows = database.execute("SELECT * FROM schedule").fetchall()
            found = database.execute("SELECT * FROM schedule_slot ORDER BY slot").fetchall()
        for row in map(dict, rows):
            slots = [dict(slot) for slot in found if slot["schedule"] == row["id"]]
            name = f"s{row['id']}"
            yield from _once_each(name, slots)
            if row["at"] is None:
                yield from _without_gaps(name, row, slots, now)
        yield from self._sent_as_recorded()
        yield from self._once_only(now)

    def _sent_as_recorded(self) -> Iterator[tuple[str, str]]:
        rows = self._post.rows(
            """
            SELECT m.text, count(*) AS sent, count(s.message) AS recorded FROM message m
            LEFT JOIN schedule_slot s ON s.message = m.id AND s.outcome = 'fired'
            WHERE m.text LIKE 'tick %' OR m.text LIKE 'once %' GROUP BY m.text
            """
        )
        for row in rows:
            if row["sent"] != row["recorded"]:
                yield "double", f"{row['text']}: {row['sent']} messages, {row['recorded']} slots"

    def _once_only(self, now: int) -> Iterator[tuple[str, str]]:
        rows = self._post.rows(
            """
            SELECT d.draft ->> 'text' AS text, d.at, count(s.slot) AS slots, d.next_at
            FROM schedule d LEFT JOIN schedule_slot s ON s.schedule = d.id WHERE d.at IS NOT NULL GROUP BY d.id
            """
        )
        found = {row["text"]: row for row in rows}
        for text, answered in self._once.items():
            row = found.get(text)
            if row is None and answered:
                yield "lost", f"{text} was answered, and there is no such schedule"
            elif row is not None and row["slots"] != 1 and row["at"] < now - LATE_MS:
                yield "lost", f"{text} was due at {clock.iso(row['at'])}, and has {row['slots']} slots"


def _once_each(name: str, slots: list[Row]) -> Iterator[tuple[str, str]]:
    last = 0
    for slot in slots:
        if slot["slot"] <= last:
            yield "double", f"{name}: slot {clock.iso(slot['slot'])} is recorded twice"
        if slot["outcome"] != "fired" and not slot["reason"]:
            yield "fault", f"{name}: slot {clock.iso(slot['slot'])} is {slot['outcome']} without a reason"
        last = max(last, slot["last_slot"])


def _without_gaps(name: str, row: Row, slots: list[Row], now: int) -> Iterator[tuple[str, str]]:
    if row["next_at"] is None or row["next_at"] < now - LATE_MS:
        yield "fault", f"{name} is not waiting for its next slot: {row['next_at']}"
        return
    step = row["every_ms"] or MINUTE_MS
    start = row["created_at"] if row["every_ms"] else row["created_at"] // MINUTE_MS * MINUTE_MS
    wanted = (row["next_at"] - start) // step - 1
    recorded = sum(slot["number"] for slot in slots)
    if recorded != wanted:
        yield "lost", f"{name} had {wanted} slots up to its next one, and {recorded} are recorded"


class Planner(threading.Thread):
    """Plans messages for one time, a moment from now, until the daemon dies."""

    def __init__(self, post: Post, name: str, seed: int, planned: dict[str, bool]) -> None:
        super().__init__()
        self._post = post
        self._name = name
        self._chance = random.Random(seed)
        self._planned = planned

    def run(self) -> None:
        for number in range(20):
            text = f"once {self._name}-{number}"
            self._planned[text] = False
            at = clock.iso(clock.now() + self._chance.randrange(200, 1_500))
            to = self._chance.choice(("agent:ada", "channel:rough:oak", "channel:folder:tray"))
            try:
                self._post.nex("cron.create", at=at, to=to, text=text)
            except DaemonUnreachable:
                return
            except Answered as error:  # so slow that its time had passed
                del self._planned[text]
                assert error.stable_code == "time_passed", error
                continue
            self._planned[text] = True
            time.sleep(self._chance.uniform(0.05, 0.3))
