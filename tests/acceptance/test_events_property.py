"""A client that follows by event.subscribe has exactly what the store has, whatever happens to it and the daemon.

Random traffic of agents, the boss and two channels (lane errors, retries, forwards, edits), kills of the daemon and of
the client, and a client that reads nothing for a while. The client is written from docs/events.md alone
(event_client.py). By hand: EVENT_SEEDS="4 5 6" tries other seeds.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.acceptance.event_client import EventClient, Kept
from tests.support.daemons import answers, line, set_up, variables
from tests.support.failures import seeded
from tests.support.parties import Party
from tests.support.python_agents import wait_until_idle
from tests.support.scripted_channels import SCRIPTED, Place, envelope_error, lane_error
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

KEPT_FACTS = 60  # few, so that a client which reads nothing for a round has a gap
NAMES = ("nex", "ada", "bob")
WORKER = "demo-agent"
SEEDS = [int(one) for one in os.environ.get("EVENT_SEEDS", "3").split()]
ENVIRONMENT = {**SCRIPTED, **variables({"kept_facts": KEPT_FACTS})}


class Traffic:
    """Random requests of agents and the boss; most are right, some come too late."""

    def __init__(self, daemon: RunningDaemon, chance: random.Random, places: list[Place]) -> None:
        self._daemon = daemon
        self._chance = chance
        self.channels = Channels(daemon, chance, places)
        self._sent: dict[str, list[str]] = {name: [] for name in NAMES}  # by recipient

    def some(self, number: int) -> None:
        for _ in range(number):
            with suppress(Answered):  # it was acknowledged or cancelled before
                if self._chance.random() < 0.7:
                    self._one()
                else:
                    self.channels.one()

    def flood(self) -> None:
        """Send more than fits into the buffers between the daemon and a client that does not read."""
        one = line("envelope.send", token=self._daemon.token("nex"), to="agent:bob", text="hello")
        with self._daemon.connect() as connection:
            connection.sendall(one * 1_500)
            answers(connection, 1_500)

    def _one(self) -> None:
        chance, call = self._chance, self._daemon.call
        name, other = chance.sample(NAMES, 2)
        token, mail = self._daemon.token(name), self._sent[name]
        what = chance.choices(
            ["send", "defer", "many", "work", "boss", "read", "ack", "claim", "release", "move", "cancel"],
            [30, 3, 5, 2, 4, 12, 12, 8, 6, 8, 8],
        )[0]
        if what in ("send", "defer"):
            later = {"deliver_at": "+1h"} if what == "defer" else {}
            sent = call("envelope.send", token=token, to=f"agent:{other}", text="hello", **later)
            self._sent[other] += sent["ids"]
        elif what == "many":
            to = [f"agent:{other}", "user:boss", f"agent:{name}"]
            call("envelope.send", token=token, to=to, text="to all")
        elif what == "work":
            call("envelope.send", token=token, to=f"agent:{WORKER}", text="repeat this")
        elif what == "boss":
            boss = self._daemon.token("boss")
            self._sent[name] += call("envelope.send", token=boss, to=f"agent:{name}", text="and?")["ids"]
        elif what == "claim":
            call("envelope.claim", token=token, limit=2)
        elif mail:
            number = chance.choice(mail[-20:])
            if what == "cancel":
                call("envelope.cancel", token=self._daemon.token("boss"), ids=[number])
            elif what == "move":
                verb = chance.choice(["archive", "trash", "restore"])
                call(f"envelope.{verb}", token=token, ids=[number])
            else:
                call(f"envelope.{what}", token=token, ids=[number])


class Channels:
    """Random traffic of agents, people and platforms in channels."""

    def __init__(self, daemon: RunningDaemon, chance: random.Random, places: list[Place]) -> None:
        self._daemon = daemon
        self._chance = chance
        self._places = places
        self._posted: list[str] = []
        self._updates = 0

    def begin(self) -> None:
        """Let mail be forwarded, a post fail, and a message be edited, at least once each."""
        first, second = self._places
        self._daemon.call("boss.set", token=self._daemon.token("boss"), reach=first.address, forward="all")
        second.owner.send("user:boss", text="news")
        second.script(envelope_error())
        second.wait_for_status(second.send("a post"), "failed")
        second.comes_in("first", text="teh first", message="first")
        second.comes_in("edit", kind="edit", text="the first", message="first")

    def one(self) -> None:
        place, boss = self._chance.choice(self._places), Party(self._daemon, "", self._daemon.token("boss"))
        what = self._chance.choices([self._agent, self._platform, self._boss, self._unbind], [20, 20, 8, 1])[
            0
        ]
        what(place, boss)

    def _agent(self, place: Place, boss: Party) -> None:
        what = self._chance.choice(["post", "post", "later", "mail", "mail"])
        if what == "mail":
            place.owner.send("user:boss", text="news", priority=self._chance.choice(["normal", "high"]))
        else:
            later = {"deliver_at": "+1h"} if what == "later" else {}
            self._posted.append(place.send("a post", **later))

    def _platform(self, place: Place, boss: Party) -> None:
        """Somebody writes there, or edits what was written; or the next post meets an error."""
        if self._chance.random() < 0.3:
            place.script(self._chance.choice([lane_error(retry_after=0.01), envelope_error(), {"do": "ok"}]))
            return
        self._updates += 1
        number = self._chance.randrange(self._updates) + 1
        edits = number < self._updates
        about = {"kind": "edit" if edits else "message", "text": f"{self._updates}", "message": f"m{number}"}
        place.put_in_inbox(f"u{self._updates}", **about)

    def _boss(self, place: Place, boss: Party) -> None:
        what = self._chance.choice(["retry", "retry", "reach", "forward", "pause", "resume"])
        if what == "retry" and self._posted:
            boss.call("envelope.retry", ids=[self._chance.choice(self._posted)])
        elif what == "reach":
            boss.call("boss.set", reach=self._chance.choice(["", *(one.address for one in self._places)]))
        elif what == "forward":
            boss.call("boss.set", forward=self._chance.choice(["all", "important", "off"]))
        elif what in ("pause", "resume"):
            boss.call(f"lane.{what}", address=place.address)

    def _unbind(self, place: Place, boss: Party) -> None:
        place.unbind()
        place.bind(place.owner)

    def end(self) -> None:
        """Let the channels come to rest."""
        boss = self._daemon.token("boss")
        for place in self._places:
            place.script()
            self._daemon.call("lane.resume", token=boss, address=place.address)
        wait_until(self._is_at_rest)

    def _is_at_rest(self) -> bool:
        with self._daemon.database() as database:
            waiting = database.execute(
                "SELECT 1 FROM envelopes WHERE \"to\" LIKE 'channel:%' AND status = 'pending' AND waits IS NOT 'deferred'"
            ).fetchone()
            undigested = database.execute("SELECT 1 FROM platform_update WHERE outcome IS NULL").fetchone()
        left = [file for place in self._places for file in place.root.glob("inbox/*.json")]
        return not waiting and not undigested and not left


class Followed:
    """One client through all its lives."""

    def __init__(self, daemon: RunningDaemon, name: str) -> None:
        self._daemon = daemon
        self._name = name
        self._kept: str | None = None  # as it would be in a file
        self.alive: EventClient | None = None
        self.deaths = 0

    def live(self) -> EventClient:
        if self.alive is None:
            kept = Kept() if self._kept is None else Kept(**json.loads(self._kept))
            token = self._daemon.token(self._name)
            self.alive = EventClient(self._daemon.home.socket, token, kept, is_boss=self._name == "boss")
        return self.alive

    def die(self) -> None:
        if self.alive is not None:
            self._kept = json.dumps(vars(self.alive.kept))
            self.alive.close()
            self.alive, self.deaths = None, self.deaths + 1


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    running = RunningDaemon(set_up(tmp_path))
    running.start(**ENVIRONMENT)
    try:
        for name in NAMES[1:]:
            running.register(name)
        running.register(WORKER, provider="demo")
        yield running
    finally:
        running.stop()


def stored(daemon: RunningDaemon, name: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the store has: of one agent, or of all."""
    # Where the boss has mail forwarded to is for its sender only if he named that chat.
    sent = f"sender = 'agent:{name}' AND NOT hidden"
    mine = "1" if name is None else f"({sent} OR \"to\" = 'agent:{name}' AND arrived IS NOT NULL)"
    with daemon.database() as database:
        envelopes = database.execute(
            f"""
            WITH concealed AS (SELECT 'e' || id FROM envelope WHERE forwards IS NOT NULL AND NOT addressed),
                 changed AS (SELECT 'm' || id FROM message WHERE edited_at IS NOT NULL),
                 listed AS (SELECT *, id IN concealed AS hidden, message IN changed AS edited FROM envelopes)
            SELECT * FROM listed WHERE {mine}
            """
        ).fetchall()
        runs = database.execute("SELECT id, status FROM runs").fetchall() if name is None else []
    found = {
        row["id"]: {
            "message": row["message"],
            "status": row["status"],
            "waits": row["waits"],
            "box": row["box"],
            "read": row["read_at"] is not None,
            "acked": row["acked_at"] is not None,
            "edited": bool(row["edited"]),
        }
        for row in envelopes
    }
    return found, {row["id"]: row["status"] for row in runs}


def restart(daemon: RunningDaemon) -> None:
    daemon.kill()
    daemon.start(**ENVIRONMENT)


@pytest.mark.parametrize("seed", SEEDS)
def test_who_follows_has_what_the_store_has_after_kills_gaps_and_slow_reading(
    daemon: RunningDaemon, tmp_path: Path, seed: int
) -> None:
    chance = seeded(seed)
    own, every = Followed(daemon, "ada"), Followed(daemon, "boss")
    owners = [Party(daemon, f"agent:{name}", daemon.token(name)) for name in ("nex", "ada")]
    traffic = Traffic(daemon, chance, [Place(tmp_path).bound(daemon, owner) for owner in owners])
    traffic.channels.begin()
    fates = ["follow"] * 5 + ["slow"] * 2 + ["die"] * 3 + ["daemon dies"] * 2
    chance.shuffle(fates)
    for fate in fates:
        for one in (own, every):
            one.live()
        traffic.some(25)
        if fate == "slow":
            traffic.flood()
        elif fate == "die":
            chance.choice([own, every]).die()
            traffic.some(chance.choice([5, 60]))
        elif fate == "daemon dies":
            restart(daemon)
            own.die()
            every.die()
            traffic.some(5)
        for one in (own, every):
            if fate != "slow" or chance.random() < 0.5:
                last = daemon.call("envelope.send", token=daemon.token("ada"), to="agent:ada", text="so far")
                one.live().follow_until(last["message"])
    traffic.channels.end()
    wait_until_idle(daemon)
    last = daemon.call("envelope.send", token=daemon.token("ada"), to="agent:ada", text="the end")
    for one, name in ((own, "ada"), (every, None)):
        client = one.live()
        client.follow_until(last["message"])
        envelopes, runs = stored(daemon, name)
        assert client.kept.envelopes == envelopes
        assert name is not None or client.kept.runs == runs
    with daemon.database() as database:
        (forwards,) = database.execute("SELECT count(*) FROM envelope WHERE forwards IS NOT NULL").fetchone()
    known = every.live().kept.envelopes.values()
    assert (
        forwards and any(one["edited"] for one in known) and any(one["status"] == "failed" for one in known)
    )
    assert own.deaths + every.deaths > 2
    assert every.live().kept.gaps > 0 and every.live().kept.told_gaps > 0
    for one in (own, every):
        one.die()
    daemon.check()
