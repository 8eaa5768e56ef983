"""Everything at once: mail to channels and boxes, now and later; claims; files; and the daemon dies.

Each round of `Office` lets it die (at a crash point, or at a random moment; sometimes once
more while it recovers), starts it again, waits until all is quiet, and closes the books.
`at_work`: agents take their turns meanwhile (soak_turns.py). `rough`: there is also a platform with
rules of its own (soak_rough.py), and schedules (soak_schedules.py).
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hiboss.core import clock
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    ARRIVED,
    ARRIVING,
    BEFORE_WRITE,
    CLAIMED,
    FOLDER_RECEIVED,
    FOLDER_TAKEN,
    IN_GROUP,
    POSTED,
    RUN_ANSWERED,
    RUN_BEGUN,
    RUN_SETTLED,
    RUN_STARTED,
    SETTLED,
)
from tests.acceptance.soak_books import Books
from tests.acceptance.soak_clients import Asked, Client, ask_again
from tests.acceptance.soak_post import MODULES, PLACES, Death, Post, ignoring_death
from tests.acceptance.soak_rough import SENDERS as ROUGH_SENDERS
from tests.acceptance.soak_rough import Rough
from tests.acceptance.soak_schedules import Timetable
from tests.acceptance.soak_turns import ASKERS, Workshop

SENDERS = 4
MOST_PASSES = {
    BEFORE_WRITE: 150,
    IN_GROUP: 150,
    AFTER_COMMIT: 150,
    CLAIMED: 80,
    POSTED: 80,
    SETTLED: 80,
    ARRIVING: 15,
    ARRIVED: 15,
    FOLDER_TAKEN: 2,
    FOLDER_RECEIVED: 12,
}
OF_RUNS = dict.fromkeys((RUN_BEGUN, RUN_STARTED, RUN_ANSWERED, RUN_SETTLED), 12)
POINTS = tuple(MOST_PASSES)
ROUGH = {
    "HIBOSS_ADAPTERS_MODULES": f"{MODULES['HIBOSS_ADAPTERS_MODULES']},tests.acceptance.soak_adapter",
    "PYTHONPATH": str(Path(__file__).parents[2]),
    "HIBOSS_DELIVERY_POST_SECONDS": "1.5",  # its platform hangs on purpose
}
NOTICES = (
    "Delivery to ",
    "The account ",
    "The adapter ",
)  # of agent:system; the same words may come more than once


class Sender(Client):
    """Sends to channels and boxes, to be delivered at once or a moment later."""

    def __init__(self, post: Post, name: str, seed: int) -> None:
        super().__init__(post.daemon, name, seed, agents=("nex",))

    def next(self, number: int) -> Asked:
        chance = self._chance
        if chance.random() < 0.7:
            time.sleep(chance.uniform(0, 0.01))
        key = f"{self.name}-{number}"
        text = f"{key} " + "x" * chance.choice((1, 30, 100))
        params: dict[str, Any] = {"token": self._token, "key": key, "text": text}
        where = [f"channel:scripted:{place}" for place in PLACES]
        params["to"] = chance.choice([*where, *where, "channel:folder:tray", "agent:ada", "agent:ada"])
        if chance.random() < 0.1:
            params["to"] = [chance.choice(where), "agent:ada", "user:boss"]
        if chance.random() < 0.25:
            params["deliver_at"] = clock.iso(clock.now() + chance.randrange(10, 700))
        return Asked(key=key, params=params)


class Fetcher(threading.Thread):
    """Ada: claims, and acknowledges, gives back or forgets."""

    def __init__(self, post: Post, seed: int) -> None:
        super().__init__()
        self.acked: set[str] = set()
        self.claimed: list[dict[str, Any]] = []
        self._post = post
        self._chance = random.Random(seed)

    def run(self) -> None:
        while answer := ignoring_death(self._post, "envelope.claim", limit=4, lease="0.4s"):
            for envelope in answer["envelopes"]:
                self.claimed.append(envelope)
                self._deal_with(envelope["id"])
            time.sleep(0.01)

    def _deal_with(self, number: str) -> None:
        what = self._chance.random()
        if what < 0.6:
            answer = ignoring_death(self._post, "envelope.ack", ids=[number])
            if answer is not None and "error" not in answer:
                self.acked.add(number)
        elif what < 0.8:
            ignoring_death(self._post, "envelope.release", ids=[number])  # too late if the lease has ended


class Dropper(threading.Thread):
    """Puts files into the folder and updates onto the platforms, good and broken ones."""

    def __init__(self, post: Post, name: str, seed: int, rough: Rough | None) -> None:
        super().__init__()
        self._rough = rough
        self.files: dict[str, str] = {}  # what the message must say, and where it came from
        self.broken: list[str] = []
        self.over = threading.Event()
        self._post = post
        self._name = name
        self._chance = random.Random(seed)

    def run(self) -> None:
        number = 0
        while not self.over.is_set() and number < 40:
            number += 1
            self._drop(f"{self._name}-{number}")
            if self._rough is not None and self._chance.random() < 0.3:
                self._rough.platform.came_in(f"update {self._name}-{number}")
            self.over.wait(self._chance.uniform(0.005, 0.05))

    def _drop(self, name: str) -> None:
        kind = self._chance.choice(("txt", "md", "json", "bin", "broken", "update"))
        if kind == "broken":
            self._post.drop(f"{name}.json", '{"text": ')
            self.broken.append(f"{name}.json")
        elif kind == "update":
            inbox = self._post.pigeon / "inbox"
            (inbox / f"{name}.tmp").write_text(json.dumps({"text": name}))
            (inbox / f"{name}.tmp").rename(inbox / f"{name}.json")
            self.files[name] = "scripted:pigeon"
        else:
            self._post.drop(f"{name}.{kind}", json.dumps({"text": name}) if kind == "json" else name)
            self.files[f"{name}.bin" if kind == "bin" else name] = "folder:tray"


class Office:
    """A post office through many deaths of its daemon."""

    def __init__(self, directory: Path, seed: int, *, at_work: bool = False, rough: bool = False) -> None:
        self.chance = random.Random(seed)
        self.post = Post(directory, **(ROUGH if rough else {}))
        self.books = Books()
        self.rough = Rough(self.post, directory, self.chance.randrange(2**32)) if rough else None
        self.timetable = Timetable(self.post) if rough else None
        self.workshop = Workshop(self.post, directory / "workshop") if at_work else None
        self.deaths: list[Death] = []
        self._rounds = 0
        self._acked: set[str] = set()
        self._claimed: set[str] = set()
        self._files: dict[str, str] = {}
        self._broken: list[str] = []

    def round(self, crash_at: str | None = None, *, most_seconds: float = 0.9) -> None:
        """Let it die under load, start it again, and look."""
        self._rounds += 1
        kills = self.books.kills
        self.post.script(*self._script())
        if self.rough is not None:
            self.rough.platform.next_round()
        if crash_at is not None:
            self.post.daemon.stop()
            self.post.start(crash_at)
        asked = self._traffic(crash_at, most_seconds)
        # And once more, while it recovers; always after a clean stop, so that each round has its kill.
        while self.books.kills == kills or self.chance.random() < 0.2:
            self.post.start()
            time.sleep(self.chance.uniform(0, 0.2))
            self._dies(self._killed(), "recovering")
        self.post.start()
        self._ask_again(asked)
        self._quiet()
        self._look()

    def finish(self) -> None:
        """Ada fetches all that is left; each exactly once, and labelled if she had it before."""
        if self.timetable is not None:
            self._note(self.timetable.faults())
            self.timetable.end()
        if self.rough is not None:
            self.rough.drain()
        for envelope in self.post.empty_box():
            self._is_claimed(envelope)
            if envelope["id"] in self._acked:
                self.books.fault(f"{envelope['id']} came again after it was acknowledged")
        left = self.post.rows(
            """
            SELECT e.id FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE a.name = 'ada' AND (e.status <> 1 OR e.handovers = 0)
            """
        )
        if left:
            self.books.fault(f"ada never got {left}")
        self._quiet(to_the_end=True)
        self._look(to_the_end=True)

    def close(self) -> None:
        self.post.daemon.stop()
        if self.rough is not None:
            self.rough.platform.close()

    def _quiet(self, *, to_the_end: bool = False) -> None:
        if self.workshop is not None:
            self.workshop.quiet(to_the_end=to_the_end)
        self.post.quiet()

    def _script(self) -> list[dict[str, Any]]:
        """Some errors for the next posts, which succeed otherwise."""
        lane = {"do": "lane_error", "retry_after": 0.05}
        steps = [*[{"do": "ok"}] * 12, lane, {"do": "envelope_error"}]
        return [self.chance.choice(steps) for _ in range(60)]

    def _traffic(self, crash_at: str | None, most_seconds: float) -> list[Asked]:
        chance, name = self.chance, f"{self._rounds}-{self.chance.randrange(10**6)}"
        senders: list[Client] = [
            Sender(self.post, f"{name}-{n}", chance.randrange(2**32)) for n in range(SENDERS)
        ]
        if self.workshop is not None:
            senders += self.workshop.askers(name, [chance.randrange(2**32) for _ in range(ASKERS)])
        fetcher = Fetcher(self.post, chance.randrange(2**32))
        dropper = Dropper(self.post, name, chance.randrange(2**32), self.rough)
        others: list[threading.Thread] = [fetcher, dropper]
        if self.rough is not None and self.timetable is not None:
            senders += self.rough.senders(name, [chance.randrange(2**32) for _ in range(ROUGH_SENDERS)])
            others.append(self.timetable.planner(name, chance.randrange(2**32)))
        for thread in (*senders, *others):
            thread.start()
        self._death(crash_at, most_seconds)
        dropper.over.set()
        for thread in (*senders, *others):
            thread.join()
        for envelope in fetcher.claimed:
            self._is_claimed(envelope)
        self._acked |= fetcher.acked
        self._files |= dropper.files
        self._broken += dropper.broken
        return [asked for sender in senders for asked in sender.asked]

    def _death(self, crash_at: str | None, most_seconds: float) -> None:
        if crash_at is not None:
            try:
                return self._dies(self._died(), crash_at.partition(":")[0])
            except subprocess.TimeoutExpired:
                pass  # too little came by there
        time.sleep(self.chance.uniform(0, most_seconds))
        if self.chance.random() < 0.1:
            return self._stops()
        self._dies(self._killed(), "at random")

    def _died(self) -> Death:
        """Wait for a crash point. The platform reads what is on the way before the death is looked at."""
        self.post.wait_for_death(2)
        return self._what_is_left(killed=True)

    def _killed(self) -> Death:
        self.post.daemon.kill()
        return self._what_is_left(killed=True)

    def _what_is_left(self, *, killed: bool) -> Death:
        if self.rough is not None:
            self.rough.platform.daemon_ended()
        death = self.post.dead()
        if self.rough is not None:
            self.rough.daemon_ended(death, killed=killed)
        return death

    def _stops(self) -> None:
        """A clean end for once: nothing is in hand after it, and nothing comes twice for it."""
        status = self.post.daemon.stop()
        if status == -signal.SIGKILL:  # it came to its crash point after all, while it stopped
            return self._dies(self._what_is_left(killed=True), "stopping")
        death = self._what_is_left(killed=False)
        if status != 0:
            self.books.fault(f"a stop ended with {status}")
        self.books.stops += 1
        if death.held or death.window:
            self.books.fault(f"in hand after a clean stop: {death.held | death.window}")

    def _dies(self, death: Death, cause: str) -> None:
        self.deaths.append(death)
        self.books.death(death, cause)

    def _is_claimed(self, envelope: dict[str, Any]) -> None:
        if envelope["id"] in self._claimed and not envelope["redelivered"]:
            self.books.fault(f"{envelope['id']} came again and is not labelled so")
        self._claimed.add(envelope["id"])

    def _ask_again(self, asked: list[Asked]) -> None:
        """What was answered is there as it was answered; what was not can be asked again."""
        for one, again in zip(asked, ask_again(self.post.daemon, asked), strict=True):
            if "error" in again:
                self.books.fault(f"{one.key}: {again}")
            elif one.answer is not None:
                result = again["result"]
                if not result["duplicate"] or result["ids"] != one.answer["result"]["ids"]:
                    self.books.lose(f"{one.key} was answered {one.answer} and then {again}")
        self.books.accepted += len(asked)

    # --- looking -----------------------------------------------------------------------

    def _look(self, *, to_the_end: bool = False) -> None:
        self.books.close(self.post, self.deaths)
        if self.workshop is not None:
            for fault in self.workshop.faults(to_the_end=to_the_end):
                self.books.fault(fault)
            self.books.turns = self.workshop.turns
        self._look_at_rough()
        self._files_are_messages()
        self._deferred_is_not_early()
        acked = self.post.rows("SELECT 'e' || id AS id FROM envelope WHERE acked_at IS NOT NULL")
        if missing := self._acked - {row["id"] for row in acked}:
            self.books.fault(f"acknowledged, and forgotten: {missing}")
        doubles = self.post.rows(
            """
            SELECT text FROM message WHERE text <> '' AND run IS NULL AND text NOT LIKE 'tick %'
            GROUP BY text HAVING count(*) > 1
            """
        )
        self.books.doubled_messages([row["text"] for row in doubles if not row["text"].startswith(NOTICES)])

    def _look_at_rough(self) -> None:
        if self.rough is None or self.timetable is None:
            return
        self._note(self.rough.faults())
        self.books.figures = self.rough.figures()
        self.books.figures.update(self.timetable.figures())
        envelopes = self.post.rows("SELECT count(*) AS parked FROM envelope WHERE error_kind = 'crashed'")
        self.books.figures["parked-after-crashes"] = envelopes[0]["parked"]

    def _note(self, found: Iterable[tuple[str, str]]) -> None:
        """Enter into the books what nothing explains."""
        for kind, what in found:
            {"lost": self.books.lose, "double": self.books.double}.get(kind, self.books.fault)(what)

    def _files_are_messages(self) -> None:
        for address in ("folder:tray", "scripted:pigeon"):
            found = [
                row["text"] or json.loads(row["attachments"])[0]["name"]
                for row in self.post.received(address)
            ]
            self.books.files_of(address, sorted(found), {n for n, a in self._files.items() if a == address})
        aside = {one.name for one in (self.post.tray / "broken").iterdir()}
        wanted = {*self._broken, *(f"{name}.reason.txt" for name in self._broken)}
        if aside != wanted:
            self.books.fault(f"set aside: {sorted(aside ^ wanted)[:5]} too much or missing")

    def _deferred_is_not_early(self) -> None:
        early = self.post.rows("SELECT id FROM message WHERE deliver_at > arrived_at")
        if early:
            self.books.fault(f"arrived early: {early[:5]}")
