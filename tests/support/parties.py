"""Parties in the tests of operations: somebody with an address and a token, who calls, sends and reads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.support.daemons import answers, line

Envelope = dict[str, Any]

_numbers = itertools.count(1)


@contextmanager
def checked_daemon(directory: Path) -> Iterator[RunningDaemon]:
    """Start a daemon with boss and agent nex; check the invariants of its store at the end."""
    with running_daemon(directory) as daemon:
        yield daemon
        daemon.check()


class Party:
    """An address with a token, which calls over the socket."""

    def __init__(self, daemon: RunningDaemon, address: str, token: str) -> None:
        self.daemon = daemon
        self.address = address
        self.name = address.partition(":")[2]
        self.token = token

    def call(self, method: str, **params: Any) -> Any:
        return self.daemon.call(method, token=self.token, **params)

    def refusal(self, method: str, **params: Any) -> str:
        """Return the code of the error; the test fails here when there is none."""
        with pytest.raises(Answered) as caught:
            self.call(method, **params)
        return caught.value.stable_code

    def send(self, *to: Party | str, text: str = "hello", **params: Any) -> Any:
        """Send to parties or addresses; without any, give `reply_to`."""
        if to:
            params["to"] = [one.address if isinstance(one, Party) else one for one in to]
        return self.call("envelope.send", text=text, **params)

    def tell(self, *to: Party, **params: Any) -> str:
        """Send to one party and return the id of the envelope."""
        (number,) = self.send(*to, **params)["ids"]
        return str(number)

    def list(self, **params: Any) -> list[Envelope]:
        return list(self.call("envelope.list", **params)["envelopes"])

    def ids(self, **params: Any) -> list[str]:
        return [one["id"] for one in self.list(**params)]

    def get(self, number: str) -> Envelope:
        return self.call("envelope.get", id=number)["envelope"]

    def flood(self, to: Party, number: int, **params: Any) -> list[str]:
        """Send many over one connection, 200 at a time; return the ids in the order sent."""
        requests = [
            line("envelope.send", i, token=self.token, to=to.address, text=f"{i}", **params)
            for i in range(number)
        ]
        found: list[str] = []
        with self.daemon.connect() as connection:
            for start in range(0, number, 200):
                chunk = requests[start : start + 200]
                connection.sendall(b"".join(chunk))
                found += [one["result"]["ids"][0] for one in answers(connection, len(chunk))]
        return found

    def walk(self, **params: Any) -> list[list[str]]:
        """Return the ids of every page of a list, from the first page to the last."""
        pages, after = [], None
        while True:
            page = self.call("envelope.list", **params, **({"after": after} if after else {}))
            pages.append([one["id"] for one in page["envelopes"]])
            after = page["next"]
            if after is None:
                return pages


def boss(daemon: RunningDaemon) -> Party:
    return Party(daemon, "user:boss", daemon.token("boss"))


def agent(daemon: RunningDaemon, name: str | None = None, **fields: Any) -> Party:
    """Register a new agent, with a new name unless one is given."""
    name = name or f"agent-{next(_numbers)}"
    answer = daemon.call("agent.register", token=daemon.token("boss"), name=name, **fields)
    return Party(daemon, f"agent:{name}", answer["token"])


def person(daemon: RunningDaemon, name: str | None = None, **fields: Any) -> Party:
    """Register a person besides the boss, with a new name unless one is given."""
    name = name or f"person-{next(_numbers)}"
    return Party(daemon, f"user:{name}", boss(daemon).call("user.register", name=name, **fields)["token"])


def agents(daemon: RunningDaemon, number: int) -> list[Party]:
    return [agent(daemon) for _ in range(number)]


def club(owner: Party, *members: Party | str, name: str | None = None, **fields: Any) -> str:
    """Create a group with a name of its own; return its address."""
    name = name or f"club-of-{owner.name}"
    given = [one if isinstance(one, str) else one.address for one in members]
    owner.call("conversation.create", name=name, participants=given, **fields)
    return f"group:{name}"


def got(who: Party, text: str) -> list[Envelope]:
    return [one for one in who.list(page_size=100) if one["text"] == text]


def hears(text: str, *parties: Party) -> list[str]:
    """Return who of these got a text, by name."""
    return [one.name for one in parties if got(one, text)]


def stored(daemon: RunningDaemon) -> tuple[int, ...]:
    """Return how many rows each table has that a send writes to."""
    with daemon.database() as database:
        tables = ("message", "envelope", "conversation", "participant", "sent_key", "address")
        return tuple(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


def bring(daemon: RunningDaemon, sent: dict[str, Any]) -> None:
    """Let a deferred message arrive: its stored time passes, and the daemon looks what is due."""
    message, two_hours = int(sent["message"][1:]), 7_200_000
    with daemon.database() as database:
        database.execute("UPDATE message SET deliver_at = deliver_at - ? WHERE id = ?", (two_hours, message))
        database.execute(
            "UPDATE envelope SET wait_until = wait_until - ? WHERE message = ?", (two_hours, message)
        )
        database.commit()
    daemon.call("boss.set", token=daemon.token("boss"), timezone="UTC")  # then the scheduler looks


def flat(pages: Iterable[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(pages))


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Make all calls at the same time; return the result of each, or its error."""
    calls = list(calls)
    results: list[Any] = [None] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        gate.wait(30)
        try:
            results[place] = call()
        except Answered as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=one) for one in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results
