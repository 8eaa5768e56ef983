"""kill -9 of a daemon while its agents post long texts in Telegram, and the server fails at random.

In the end everything is there, in its order; nothing that grew is left; and whatever is there twice was posted
by a call whose answer the daemon could not record: it never came, or the daemon died before it was stored.

`python -m tests.telegram.out_kill_soak --sends 500 --seed 7` does it for minutes and prints figures, half of it
with a server that has drafts and rich messages and half without; test_kill_telegram.py does the same with a few kills.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from hiboss.core.crashpoint import (
    CLAIMED,
    LIVE_BECAME,
    LIVE_BEGUN,
    LIVE_DELETED,
    LIVE_NOTED,
    LIVE_POSTED,
    POSTED,
    RUN_SETTLED,
    SETTLED,
)
from hiboss.core.errors import HibossError
from hiboss.testing.bot_api import BotApi
from hiboss.testing.bot_api.faults import RANDOM_KINDS, USUAL_KINDS
from hiboss.testing.bot_api.method_table import SENDING
from tests.support.python_agents import is_idle
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until
from tests.telegram.out_kill_audit import Audit, Life, OutTraffic

POINTS_OF_ALL = (CLAIMED, POSTED, SETTLED, RUN_SETTLED)
# Where answers grow in posts: also in private chats, if the server has no drafts.
POINTS = (*POINTS_OF_ALL, LIVE_BEGUN, LIVE_POSTED, LIVE_NOTED, LIVE_BECAME, LIVE_DELETED)
IN_A_ROW = 2  # kills: at one more, an envelope that was in hand at each of them is given up
RATE = 0.12  # of the calls that put something before people, or change it
OLD = "9.0"  # a server without drafts and rich messages
SETTINGS = {
    "HIBOSS_RUNS_FINISH_SECONDS": "0",
    "HIBOSS_RUNS_PARALLEL_RUNS": "8",
    "HIBOSS_DELIVERY_DRAIN_SECONDS": "1",
}
WITH_HANGS = {"HIBOSS_DELIVERY_POST_SECONDS": "2"}  # for calls that are never answered
_WAITING = """
SELECT DISTINCT a.kind || ':' || a.name AS address FROM lane l
JOIN place p ON p.binding = l.binding AND l.address IS NULL OR p.address = l.address
JOIN address a ON a.id = p.address
WHERE l.state = 'waiting' AND ifnull(l.not_before, 0) <= ?1 AND NOT EXISTS (
    SELECT 1 FROM lane o WHERE o.binding = l.binding AND o.address IS NULL AND ifnull(o.not_before, 0) > ?1)
"""
_LEFT = """
SELECT (SELECT count(*) FROM live_post) + (SELECT count(*) FROM envelope WHERE held_by IS NOT NULL) + (
    SELECT count(*) FROM envelope e JOIN address a ON a.id = e.recipient WHERE a.kind = 'channel' AND e.status = 0)
"""


class Killing:
    """A daemon whose agents post, killed in rounds. Between some of them it is stopped as usual."""

    def __init__(
        self, office: TelegramDaemon, directory: Path, chance: random.Random, *, hurry: bool = False
    ) -> None:
        self.office = office
        self.chance = chance
        self.traffic = OutTraffic(office, directory, self.chance, hurry=hurry)
        self._kinds = USUAL_KINDS if hurry else RANDOM_KINDS
        self.causes: Counter[str] = Counter()
        self.stops = 0
        self.faults: Counter[str] = Counter()
        self.lives = [Life(begun=0.0)]  # of the daemon
        self._directory = directory
        self._in_a_row = 0

    @property
    def multi_chunk(self) -> int:
        """Return how many envelopes have several chunks."""
        return int(self.office.rows("SELECT count(DISTINCT envelope) AS n FROM post WHERE chunk = 1")[0]["n"])

    def at_point(self, point: str) -> None:
        """Let the daemon die at a named point, while texts are sent and answers grow in a private chat."""
        if self._in_a_row >= IN_A_ROW:
            self._begin(None)
        self._begin(point).touch()
        for how in ("grow", "hush", "grow", "hush"):
            self.traffic.send(self.traffic.spots[0])
            self.traffic.ask(self.traffic.quiet[0], how, 4)
            self._stream(0, 8)
            if not self._lives():
                break
        assert not self._lives(), f"it did not pass {point}"
        self._died(point)

    def at_random(self, burst: int = 12, seconds: float | None = None) -> None:
        """Kill the daemon at a moment, or let it die at a point, while things are sent and calls fail.

        After two of these it is stopped as usual, in the same trouble.
        """
        stops = self._in_a_row >= IN_A_ROW
        chosen = None if stops else self.chance.choice((None, *POINTS))
        armed = self._begin(chosen, self.chance.randint(1, 4))
        lasts = seconds or self.chance.choice((0.3, 1.0, 2.0, 3.0, 6.0, 12.0))
        with self._failing_calls():
            with self._impatience():
                armed.touch()
                self._stream(self.chance.randint(burst // 2, 2 * burst), lasts)
            died = not self._lives()
            (self._stop if stops else self._kill)()
        if not stops:
            self._died(chosen if died and chosen is not None else "at random")
        for _ in range(self.chance.randint(0, 2)):
            self.traffic.ask_something()  # while nobody listens

    def finish(self) -> Audit:
        """Start it, without faults, wait until all is settled, and look."""
        self._begin(None)
        with self._impatience():
            wait_until(self.traffic.flush)
            wait_until(self._is_settled, 300)
        self.office.daemon.check()
        self.office.api.advance(31)  # drafts are shown for 30 seconds
        return Audit(self.office, self.traffic, self.lives)

    def _is_settled(self) -> bool:
        with self.office.daemon.database() as database:
            left = database.execute(_LEFT).fetchone()[0]
            return left == 0 and is_idle(database) and self.office.is_settled()

    # --- one life of the daemon --------------------------------------------------------------

    def _begin(self, point: str | None, passes: int = 1) -> Path:
        """Start the daemon so that it dies at this point once a file is there; return the file."""
        if self._lives():
            self._stop()
        armed = self._directory / f"armed-{len(self.lives)}"
        self.lives.append(Life(begun=time.time()))
        crash = {"HIBOSS_CRASH_AT": f"{point}:{passes}@{armed}"} if point else {}
        self.office.start(**crash)
        return armed

    def _stop(self) -> None:
        self.office.daemon.stop()
        self.lives[-1].ended = time.time()
        self.stops += 1
        self._in_a_row = 0

    def _kill(self) -> None:
        self.office.daemon.kill()
        self._lives()

    def _lives(self) -> bool:
        process, life = self.office.daemon.process, self.lives[-1]
        lives = process is not None and process.poll() is None
        if not lives and life.ended is None:
            life.ended, life.killed = time.time(), True
        return lives

    def _died(self, cause: str) -> None:
        self.causes[cause] += 1
        self._in_a_row += 1

    def _stream(self, steps: int, seconds: float) -> None:
        """Let things happen at an uneven pace, for so long or until the daemon dies."""
        end = time.monotonic() + seconds
        while self._lives() and time.monotonic() < end:
            if steps > 0:
                self.traffic.step()
                steps -= 1
            self.traffic.flush()
            time.sleep(self.chance.choice((0, 0.01, 0.1)) if steps else 0.01)

    @contextmanager
    def _failing_calls(self) -> Iterator[None]:
        """Let calls fail. What hangs goes on at the end: long after its caller has given up, or is dead."""
        source = self.office.api.random_faults(RATE, self.chance.randrange(10**6), SENDING, self._kinds)
        yield
        self.office.api.clear_faults()
        self.faults += source.hits

    @contextmanager
    def _impatience(self) -> Iterator[None]:
        """Retry lanes that wait, as somebody would who sees that the platform works again: waits are minutes.

        Not before a time that the platform has named.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._retry_lanes, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _retry_lanes(self, over: threading.Event) -> None:
        while not over.wait(0.2):
            for row in self.office.rows(_WAITING, int(time.time() * 1000)):
                with suppress(HibossError):  # it may be dead
                    self.office.boss.call("lane.retry", address=row["address"])

    def __str__(self) -> str:
        return (
            f"kills: {self.causes.total()} ({_counts(self.causes)})\nstops: {self.stops}\n"
            f"faults: {self.faults.total()} ({_counts(self.faults)})\n"
            f"asked: {_counts(self.traffic.asked)}"
        )


def _counts(found: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{what} {number}" for what, number in sorted(found.items()))


@contextmanager
def killing(
    directory: Path, chance: random.Random, version: str | None = None, *, hurry: bool = False
) -> Iterator[Killing]:
    """Return a daemon to be killed, with an old server or the newest. `hurry`: no call and no run takes long."""
    make = BotApi if version is None else partial(BotApi, version=version)
    settings = SETTINGS if hurry else {**SETTINGS, **WITH_HANGS}
    with telegram_daemon(directory, make, **settings) as office:
        yield Killing(office, directory, chance, hurry=hurry)


def _soak(sends: int, seed: int, kills: int, version: str | None) -> list[str]:
    """Kill until there were so many sends of several chunks, and so many kills; return what is wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="hiboss-out-") as made,
        killing(Path(made), random.Random(seed), version) as mortal,
    ):
        for point in POINTS if version == OLD else POINTS_OF_ALL:
            mortal.at_point(point)
        while mortal.multi_chunk < sends or mortal.causes.total() < kills:
            mortal.at_random()
        audit = mortal.finish()
        sys.stdout.write(f"server: {version or 'newest'}\n{mortal}\n{audit}\n")
        sys.stdout.write("".join(f"  {one}\n" for one in audit.wrong))
        sys.stdout.flush()
        return audit.wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sends", type=int, default=500, help="of several chunks, with both servers together"
    )
    parser.add_argument("--kills", type=int, default=0, help="at least so many, with both servers together")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    sys.stdout.write(f"seed: {given.seed}\n")
    wrong = [
        one
        for version in (None, OLD)
        for one in _soak((given.sends + 1) // 2, given.seed, (given.kills + 1) // 2, version)
    ]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
