"""Those who write and get mail in the tests of operations: each a token and an address of its own."""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon, running_daemon
from tests.support.daemons import answers, line, set_up

Envelope = dict[str, Any]

_numbers = itertools.count(1)


@functools.cache
def _home_set_up() -> Path:
    """Made once for all tests of this process: set-up costs a process of its own each time."""
    directory = Path(tempfile.mkdtemp(prefix="hiboss-office-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(set_up(directory).path)


@contextmanager
def open_office(directory: Path) -> Iterator[RunningDaemon]:
    """A daemon with boss and agent nex, whose store is looked through at the end."""
    shutil.copytree(_home_set_up(), directory / "home")
    with running_daemon(directory, set_up=False) as daemon:
        yield daemon
        daemon.check()


class Party:
    """Somebody who calls over the socket with a token."""

    def __init__(self, daemon: RunningDaemon, address: str, token: str) -> None:
        self.daemon = daemon
        self.address = address
        self.name = address.partition(":")[2]
        self.token = token

    def call(self, method: str, **params: Any) -> Any:
        return self.daemon.call(method, token=self.token, **params)

    def refusal(self, method: str, **params: Any) -> str:
        """The stable code this is refused with; when it is not refused, the test fails here."""
        with pytest.raises(Answered) as caught:
            self.call(method, **params)
        return caught.value.stable_code

    def send(self, *to: Party | str, text: str = "hello", **params: Any) -> Any:
        """Send to parties; without any, `reply_to` says to whom."""
        if to:
            params["to"] = [one.address if isinstance(one, Party) else one for one in to]
        return self.call("envelope.send", text=text, **params)

    def tell(self, *to: Party, **params: Any) -> str:
        """Send to one, and the id of that envelope."""
        (number,) = self.send(*to, **params)["ids"]
        return str(number)

    def list(self, **params: Any) -> list[Envelope]:
        return list(self.call("envelope.list", **params)["envelopes"])

    def ids(self, **params: Any) -> list[str]:
        return [one["id"] for one in self.list(**params)]

    def get(self, number: str) -> Envelope:
        envelope: Envelope = self.call("envelope.get", id=number)["envelope"]
        return envelope

    def flood(self, to: Party, number: int, **params: Any) -> list[str]:
        """Many sends over one connection, many in flight; the ids in the order sent."""
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
        """The ids of every page of a list, from the first to the last."""
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
    """A new agent, with a name nobody else has unless one is given."""
    name = name or f"agent-{next(_numbers)}"
    answer = daemon.call("agent.register", token=daemon.token("boss"), name=name, **fields)
    return Party(daemon, f"agent:{name}", answer["token"])


def agents(daemon: RunningDaemon, number: int) -> list[Party]:
    return [agent(daemon) for _ in range(number)]


def stored(daemon: RunningDaemon) -> tuple[int, ...]:
    """How many rows there are of all that a send writes."""
    with daemon.database() as database:
        tables = ("message", "envelope", "conversation", "participant", "sent_key", "address")
        return tuple(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


def flat(pages: Iterable[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(pages))


def at_once(works: Iterable[Callable[[], Any]]) -> list[Any]:
    """Do all of this at the same time; what each gave back, or the error it was answered with."""
    works = list(works)
    results: list[Any] = [None] * len(works)
    gate = threading.Barrier(len(works))

    def run(place: int, work: Callable[[], Any]) -> None:
        gate.wait(30)
        try:
            results[place] = work()
        except Answered as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=one) for one in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results
