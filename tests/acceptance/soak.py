"""kill -9 under load, again and again: what was answered is there, and nothing is there twice.

Each round lets 32 clients send while the daemon dies, at a named crash point or at a random
moment; starts it again; and looks. `python -m tests.acceptance.soak --rounds 200` does it
for a long time and prints counts; the tests do a few rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hiboss.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP
from hiboss.testing import RunningDaemon, running_daemon

CLIENTS = 32
AGENTS = ("nex", "ada", "bob", "eve")
POINTS = (BEFORE_WRITE, IN_GROUP, AFTER_COMMIT)
MOST_REQUESTS = 3_000  # of one client in one round, in case the daemon does not die


@dataclass(kw_only=True)
class Asked:
    """One request to send, under its key, and the answer if it came."""

    key: str
    params: dict[str, Any]
    answer: dict[str, Any] | None = None


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


class Client(threading.Thread):
    """Sends one request after the other on one connection, until that breaks."""

    def __init__(self, daemon: RunningDaemon, name: str, seed: int) -> None:
        super().__init__(name=name)
        self.asked: list[Asked] = []
        self._daemon = daemon
        self._chance = random.Random(seed)
        self._agent = self._chance.choice(AGENTS)
        self._token = daemon.token(self._agent)

    def run(self) -> None:
        try:
            with self._daemon.connect() as connection, connection.makefile("rb") as answers:
                for number in range(MOST_REQUESTS):
                    asked = self._next(number)
                    self.asked.append(asked)
                    connection.sendall(request(asked))
                    line = answers.readline()
                    if not line.endswith(b"\n"):
                        return
                    asked.answer = json.loads(line)
        except OSError:
            pass  # the daemon has died; that is what this is about

    def _next(self, number: int) -> Asked:
        chance = self._chance
        key = f"{self.name}-{number}"
        text = f"{key} " + "x" * chance.choice((1, 100, 3_000))
        params: dict[str, Any] = {"token": self._token, "key": key, "text": text}
        mine = [one for one in self.asked[-5:] if one.answer and "result" in one.answer]
        kind = chance.randrange(10)
        if kind == 0 and mine:
            params["reply_to"] = chance.choice(mine).answer["result"]["ids"][0]  # type: ignore[index]
        elif kind == 1:
            params |= {"to": f"agent:{chance.choice(AGENTS)}", "deliver_at": "+1D"}
        elif kind == 2:
            params["to"] = ["user:boss", *(f"agent:{name}" for name in chance.sample(AGENTS, 3))]
        elif kind == 3:
            params["to"] = ["agent:nex", "agent:nobody"]  # refused, in the midst of a group
        else:
            params["to"] = f"agent:{chance.choice(AGENTS)}"
        return Asked(key=key, params=params)


def request(asked: Asked) -> bytes:
    document = {"jsonrpc": "2.0", "method": "envelope.send", "params": asked.params, "id": asked.key}
    return json.dumps(document).encode() + b"\n"


# --- one round -------------------------------------------------------------------------------------


class House:
    """A home through many deaths of its daemon."""

    def __init__(self, daemon: RunningDaemon, seed: int) -> None:
        self.daemon = daemon
        self.chance = random.Random(seed)
        self.counts = Counts()
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
        for one, again in zip(asked, self._ask_again(asked), strict=True):
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

    def _ask_again(self, asked: list[Asked]) -> Iterator[dict[str, Any]]:
        """The answers to every request made once more, on one connection, some at a time."""
        with self.daemon.connect() as connection, connection.makefile("rb") as answers:
            for start in range(0, len(asked), 100):
                some = asked[start : start + 100]
                sending = threading.Thread(target=_send_all, args=(connection, some))
                sending.start()
                for one in some:
                    answer = json.loads(answers.readline())
                    assert answer["id"] == one.key
                    yield answer
                sending.join()

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


def _send_all(connection: socket.socket, some: list[Asked]) -> None:
    connection.sendall(b"".join(request(one) for one in some))


def soak(rounds: int, seed: int) -> Counts:
    with tempfile.TemporaryDirectory(prefix="hiboss-soak-") as directory, running_daemon(directory) as daemon:
        house = House(daemon, seed)
        for number in range(rounds):
            point = [*POINTS, None][number % 4]
            # The first group of all is the daemon's own at its start: from the third on, clients are there.
            house.round(f"{point}:{house.chance.randrange(3, 60)}" if point else None)
            if (number + 1) % 10 == 0:
                sys.stdout.write(f"{number + 1} rounds, {house.counts.answered} answered\n")
                sys.stdout.flush()
        return house.counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    sys.stdout.write(f"seed: {options.seed}\n")
    sys.stdout.write(f"{soak(options.rounds, options.seed)}\n")


if __name__ == "__main__":
    main()
