"""kill -9 of a daemon while updates of Telegram stream in: each is one message in the end, in its order.

`python -m tests.telegram.kill_soak --updates 1000 --seed 7` does it for minutes and prints figures;
test_kill_telegram.py does the same with a few kills.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    BEFORE_WRITE,
    COMMANDED,
    DIGESTED,
    IN_GROUP,
    MEDIA_COPIED,
    MEDIA_PLACED,
    TAKEN,
)
from tests.support.telegram_bots import TelegramDaemon, telegram_daemon
from tests.support.waits import wait_until
from tests.telegram.kill_traffic import Traffic

POINTS = (TAKEN, DIGESTED, COMMANDED, MEDIA_COPIED, MEDIA_PLACED, BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
IN_A_ROW = 3  # kills: after one more, an update that was digested at each of them is given up
BURST = 10  # steps of the traffic in one round, about


class Killing:
    """A daemon with traffic, killed in rounds. Between some of them it comes to rest."""

    def __init__(self, office: TelegramDaemon, directory: Path, chance: random.Random) -> None:
        self.office = office
        self.chance = chance
        self.traffic = Traffic(office, self.chance)
        self.causes: Counter[str] = Counter()
        self.slowest = 0.0  # seconds from a start until everything was read
        self._directory = directory
        self._in_a_row = 0

    @property
    def kills(self) -> int:
        return self.causes.total()

    def at_point(self, point: str, passes: int = 1) -> None:
        """Let the daemon die at a named point, while a bit of everything comes in."""
        self._rest_if_needed()
        armed = self._start(point, passes)
        for is_armed in (self.chance.random() < 0.5, True):
            if is_armed:
                armed.touch()
            steps = self.traffic.everything()
            self._stream(steps, len(steps))
        assert self.office.daemon.wait_for_death(30) == -9, f"it did not pass {point}"
        self._died(point)

    def at_random(self, burst: int = BURST) -> None:
        """Kill the daemon while updates stream in, maybe when it has hardly started."""
        self._rest_if_needed()
        polls = len(self.office.polls(self.traffic.bot))
        point = self.chance.choice((None, None, *POINTS))
        armed = self._start(point, self.chance.randint(1, 4))
        if self.chance.random() < 0.7:
            self._wait(lambda: len(self.office.polls(self.traffic.bot)) > polls)
        armed.touch()
        steps = [self.traffic.step] * self.chance.randint(burst // 2, 2 * burst)
        self._stream(steps, self.chance.randint(1, len(steps)))
        died = self.office.daemon.process is None or self.office.daemon.process.poll() is not None
        self.office.daemon.kill()
        self._died(point if died and point is not None else "at random")
        for step in steps[: self.chance.randint(0, 3)]:
            step()  # while nobody listens

    def rest(self) -> None:
        """Start it, and wait until everything that came in is read. Now and then the ids begin anew."""
        started = time.monotonic()
        self.office.start()
        self.office.settle(60)
        self.slowest = max(self.slowest, time.monotonic() - started)
        self._in_a_row = 0
        self.office.daemon.check()
        self.traffic.begin_new_ids()

    def finish(self) -> list[str]:
        """Bring it to rest with everybody approved; return what is wrong."""
        if self.office.daemon.process is None:
            self.rest()
        for _, chat in self.traffic.strangers:
            if chat.history:  # some have written nothing yet
                self.office.approve(chat)
        self.office.settle(60)
        self.office.daemon.check()
        return self.traffic.faults()

    def _rest_if_needed(self) -> None:
        if self._in_a_row >= IN_A_ROW:
            self.rest()

    def _start(self, point: str | None, passes: int) -> Path:
        """Start the daemon so that it dies at this point once a file is there; return the file."""
        armed = self._directory / f"armed-{self.kills}"
        self.office.daemon.kill()  # it is at rest, if it runs
        self.office.start(**({"HIBOSS_CRASH_AT": f"{point}:{passes}@{armed}"} if point else {}))
        return armed

    def _stream(self, steps: list[Callable[[], None]], upto: int) -> None:
        """Let steps happen at an uneven pace, so that polls bring one or many."""
        for step in steps[:upto]:
            step()
            time.sleep(self.chance.choice((0, 0, 0.002, 0.02)))

    def _wait(self, condition: Callable[[], bool]) -> None:
        process = self.office.daemon.process
        wait_until(lambda: condition() or process is None or process.poll() is not None)

    def _died(self, cause: str) -> None:
        self.causes[cause] += 1
        self._in_a_row += 1

    def __str__(self) -> str:
        traffic = self.traffic
        causes = ", ".join(f"{cause} {number}" for cause, number in sorted(self.causes.items()))
        messages = sum(map(len, traffic.expected.values()))
        return (
            f"updates: {traffic.updates}\nmessages: {messages} ({traffic.albums} albums) in "
            f"{len(traffic.expected)} chats\ncommands: {traffic.commands}\nnew-ids: {traffic.eras}\n"
            f"kills: {self.kills} ({causes})\nslowest-recovery: {self.slowest:.1f} s"
        )


def _soak(directory: Path, updates: int, seed: int) -> list[str]:
    with telegram_daemon(directory) as office:
        killing = Killing(office, directory, random.Random(seed))
        for point in POINTS:
            killing.at_point(point)
        while killing.traffic.updates < updates:
            killing.at_random()
        faults = killing.finish()
        sys.stdout.write(f"{killing}\nfaults: {len(faults)}\n")
        sys.stdout.write("".join(f"  {one}\n" for one in faults))
        return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    sys.stdout.write(f"seed: {given.seed}\n")
    with tempfile.TemporaryDirectory(prefix="hiboss-kill-") as made:
        faults = _soak(Path(made), given.updates, given.seed)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
