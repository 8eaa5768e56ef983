"""kill -9 under load, again and again: what was answered is there, and nothing is there twice.

Each round lets 32 clients send while the daemon dies, at a named crash point or at a random
moment; starts it again; and looks. `make soak ARGS="--rounds 200"` does it for a long time,
most rounds with deliveries, claims, files and agents at work under way too (soak_traffic.py,
soak_turns.py), and prints counts; the tests do a few rounds.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from hiboss.core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP
from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.acceptance.soak_books import Books
from tests.acceptance.soak_clients import AGENTS, Asked, Client, ask_again
from tests.acceptance.soak_traffic import MOST_PASSES, OF_RUNS, Office
from tests.support.waits import wait_until

CLIENTS = 32
POINTS = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
CHAPTER = 20  # rounds in one home: what is looked through after each stays small


@dataclass(kw_only=True)
class Counts:
    rounds: int = 0
    asked: int = 0
    answered: int = 0
    stored_unanswered: int = 0
    sent_again: int = 0
    by_cause: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        causes = ", ".join(f"{cause} {number}" for cause, number in sorted(self.by_cause.items()))
        return (
            f"rounds: {self.rounds} ({causes})\nasked: {self.asked}\nanswered: {self.answered}\n"
            f"stored-though-unanswered: {self.stored_unanswered}\nsent-again: {self.sent_again}\n"
            "lost: 0\ndoubled: 0\ninvariants-broken: 0"
        )


# --- one round -------------------------------------------------------------------------------------


class House:
    """A home through many deaths of its daemon."""

    def __init__(self, daemon: RunningDaemon, seed: int, counts: Counts | None = None) -> None:
        self.daemon = daemon
        self.chance = random.Random(seed)
        self.counts = counts or Counts()
        for name in AGENTS[1:]:
            daemon.register(name)

    def round(self, crash_at: str | None = None, *, most_seconds: float = 0.4) -> None:
        """Let it die under load (at a crash point, or at a random moment), start it again, and look."""
        self.daemon.stop()
        self.daemon.start(**({"HIBOSS_CRASH_AT": crash_at} if crash_at else {}))
        asked = self._send_until_death(crash_at, most_seconds)
        self.daemon.start()
        self.daemon.check()
        stored = self._stored()
        self._answered_is_there(asked, stored)
        self._repeats_double_nothing(asked, stored)
        self.daemon.check()
        self._count(crash_at, asked, stored)

    def _send_until_death(self, crash_at: str | None, most_seconds: float) -> list[Asked]:
        start = f"{self.counts.rounds}-{self.chance.randrange(10**6)}"
        clients = [Client(self.daemon, f"{start}-{n}", self.chance.randrange(2**32)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        if crash_at is None:
            wait_until(lambda: any(one.answer for client in clients for one in client.asked[:1]))
            time.sleep(self.chance.uniform(0, most_seconds))
            self.daemon.kill()
        else:
            status = self.daemon.wait_for_death()
            assert status == -9, f"the daemon ended with {status}, not at {crash_at}"
        for client in clients:
            client.join()
        return [asked for client in clients for asked in client.asked]

    def _stored(self) -> dict[str, tuple[str, list[str]]]:
        """Text and envelopes of every key in the database."""
        with self.daemon.database() as connection:
            rows = connection.execute(
                """
                SELECT k.key, m.text, group_concat('e' || e.id) AS ids FROM sent_key k
                JOIN message m ON m.id = k.message JOIN envelope e ON e.message = m.id GROUP BY m.id
                """
            ).fetchall()
        return {row["key"]: (row["text"], sorted(row["ids"].split(","))) for row in rows}

    def _answered_is_there(self, asked: list[Asked], stored: dict[str, tuple[str, list[str]]]) -> None:
        for one in asked:
            if one.answer is None:
                continue
            if "error" in one.answer:
                assert one.answer["error"]["data"]["code"] == "unknown_recipient", one.answer
                assert one.key not in stored, f"{one.key} was refused and is stored"
                continue
            expected = (one.params["text"], sorted(one.answer["result"]["ids"]))
            assert stored.get(one.key) == expected, f"{one.key} was answered {expected[1]} and is not there"

    def _repeats_double_nothing(self, asked: list[Asked], stored: dict[str, tuple[str, list[str]]]) -> None:
        for one, again in zip(asked, ask_again(self.daemon, asked), strict=True):
            if "error" in again:
                assert "agent:nobody" in one.params["to"], again
                continue
            result = again["result"]
            assert result["duplicate"] is (one.key in stored), f"{one.key}: {result}"
            if one.key in stored:
                assert sorted(result["ids"]) == stored[one.key][1]
        with self.daemon.database() as connection:
            doubles = connection.execute(
                "SELECT text FROM message GROUP BY text HAVING count(*) > 1"
            ).fetchall()
        assert not doubles, f"{len(doubles)} messages are there twice"
        missing = [one.key for one in asked if "nobody" not in str(one.params.get("to"))]
        assert set(missing) <= set(self._stored())

    def _count(
        self, crash_at: str | None, asked: list[Asked], stored: dict[str, tuple[str, list[str]]]
    ) -> None:
        counts = self.counts
        answered = [one for one in asked if one.answer is not None]
        counts.rounds += 1
        counts.asked += len(asked)
        counts.answered += len(answered)
        counts.stored_unanswered += sum(one.answer is None and one.key in stored for one in asked)
        counts.sent_again += len(asked)
        cause = crash_at.partition(":")[0] if crash_at else "at random"
        counts.by_cause[cause] = counts.by_cause.get(cause, 0) + 1


def soak(rounds: int, seed: int) -> tuple[Counts, Books]:
    """Many deaths, in a new home after every twenty: a fifth under 32 senders, the rest under all sorts."""
    chance = random.Random(seed)
    counts, books = Counts(), Books()
    for done in range(0, rounds, CHAPTER):
        number = min(CHAPTER, rounds - done)
        with tempfile.TemporaryDirectory(prefix="hiboss-soak-") as directory:
            _accepting(Path(directory, "a"), number // 5, chance, counts)
            _delivering(Path(directory, "d"), number - number // 5, chance, books)
        sys.stdout.write(
            f"{done + number} rounds: {counts.answered + books.accepted} accepted, {books.posts} posts, "
            f"{books.turns.answered_once} answered by agents, {books.doubled_in_window} doubled in the window, "
            f"{len(books.faults)} faults\n"
        )
        sys.stdout.flush()
    return counts, books


def _accepting(directory: Path, rounds: int, chance: random.Random, counts: Counts) -> None:
    with running_daemon(directory) as daemon:
        house = House(daemon, chance.randrange(2**32), counts)
        for _ in range(rounds):
            point = chance.choice([*POINTS, None])
            # The first groups are the daemon's own at its start.
            house.round(f"{point}:{chance.randrange(15, 70)}" if point else None)


def _delivering(directory: Path, rounds: int, chance: random.Random, books: Books) -> None:
    office = Office(directory, chance.randrange(2**32), at_work=True, rough=True)
    most = {**MOST_PASSES, **OF_RUNS}
    try:
        for _ in range(rounds):
            point = chance.choice([*most, *[None] * 5])
            passes = chance.randrange(1, most[point] + 1) if point else 0
            office.round(f"{point}:{passes}" if point else None)
        office.finish()
    finally:
        office.close()
        books.add(office.books)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    sys.stdout.write(f"seed: {options.seed}\n")
    counts, books = soak(options.rounds, options.seed)
    sys.stdout.write(f"\n32 senders\n{counts}\n\neverything at once\n{books}\n")
    return 1 if books.faults else 0


if __name__ == "__main__":
    sys.exit(main())
