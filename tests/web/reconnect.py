"""Clients that follow while the daemon is killed and started again: each ends with exactly its own mail.

A WebSocket client does what docs/events.md says: it subscribes after the fact that it saw last, and reads
the lists where there is a gap. A client of server-sent events comes again with the id that it saw last.
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections import Counter
from typing import Any

from websockets.exceptions import WebSocketException

from hiboss.cli.client import is_away
from hiboss.core.errors import HibossError, HungUp
from tests.support.parties import Party
from tests.support.waits import wait_until
from tests.support.web_clients import EventReader, WebSocketClient, open_events, open_websocket
from tests.support.web_daemons import WebDaemon

LOST = (OSError, EOFError, http.client.HTTPException, WebSocketException)  # the connection, or no daemon
PAUSE = 0.05  # before the next attempt to connect


class Follower(threading.Thread):
    """Follows the mail of one party until the daemon is stopped at the end."""

    def __init__(self, daemon: WebDaemon, party: Party) -> None:
        super().__init__(daemon=True)
        self._url = daemon.url
        self.party = party
        self.mail: Counter[str] = Counter()  # how often each envelope was told of
        self.begun = threading.Event()  # it follows: what is sent from now on must come
        self.ends = threading.Event()
        self.connections = 0
        self.gaps = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ends.is_set():
                try:
                    self.follow()
                except LOST:
                    time.sleep(PAUSE)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def follow(self) -> None:
        raise NotImplementedError

    def note(self, fact: dict[str, Any]) -> None:
        self.mail.update(one["id"] for one in fact["envelopes"] if one["to"] == self.party.address)


class WebSocketFollower(Follower):
    def __init__(self, daemon: WebDaemon, party: Party) -> None:
        super().__init__(daemon, party)
        self._place: dict[str, int] = {}  # boot and number of the fact seen last
        self._read: set[str] = set()  # from the lists

    def follow(self) -> None:
        client = open_websocket(self._url, self.party.token)
        try:
            begun = client.call("event.subscribe", topics=["envelope.arrived"], **self._place)
            self.connections += 1
            if begun["gap"] or not self._place:
                self._read_lists(client, {"boot": begun["boot"], "after": begun["number"]})
            self.begun.set()
            while True:
                fact = client.kept.pop(0) if client.kept else client.receive(600)["params"]
                place = {"boot": fact["boot"], "after": fact["number"]}
                if fact["topic"] == "gap":
                    self._read_lists(client, place)
                else:
                    self.note(fact)
                    self._place = place
        finally:
            client.close()

    def _read_lists(self, client: WebSocketClient, place: dict[str, int]) -> None:
        """Read all that is in the box. Only then is the place another one."""
        self.gaps += 1
        after: dict[str, str] = {}
        while True:
            page = client.call("envelope.list", page_size=100, **after)
            self._read.update(one["id"] for one in page["envelopes"])
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        self._place = place

    @property
    def known(self) -> set[str]:
        return self._read | set(self.mail)


class EventFollower(Follower):
    def __init__(self, daemon: WebDaemon, party: Party) -> None:
        super().__init__(daemon, party)
        self._last: str | None = None

    def follow(self) -> None:
        events: EventReader = open_events(self._url, self.party.token, self._last)
        self.connections += 1
        try:
            while True:
                event = events.next()
                self.gaps += event.name == "gap"
                if event.name == "new-message":
                    self.note(event.data)
                self._last = events.last
                self.begun.set()
        finally:
            events.close()

    @property
    def known(self) -> set[str]:
        return set(self.mail)


class Sender(threading.Thread):
    """Sends all the time, to one and to several; what was not answered is sent again with the same key."""

    def __init__(self, sender: Party, parties: list[Party]) -> None:
        super().__init__(daemon=True)
        self._sender = sender
        self._parties = parties
        self.sent: dict[str, set[str]] = {one.address: set() for one in parties}
        self.number = 0
        self.ends = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            for number in itertools.count():
                if self.ends.is_set():
                    return
                to = [self._parties[number % len(self._parties)]]
                if number % 5 == 0:
                    to = self._parties
                self._send(number, to)
                time.sleep(0.002)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def _send(self, number: int, to: list[Party]) -> None:
        while True:
            try:
                ids = self._sender.send(*to, text=f"{number}", key=f"k{number}")["ids"]
            except HibossError as error:
                if not (is_away(error) or isinstance(error, HungUp)):
                    raise
                time.sleep(PAUSE)
                continue
            for party, envelope in zip(to, ids, strict=True):
                self.sent[party.address].add(envelope)
            self.number = number + 1
            return


def reconnect(daemon: WebDaemon, sender: Party, parties: list[Party], clients: int, kills: int) -> str:
    """Let so many clients follow while the daemon is killed so often; return what happened, in words."""
    kinds = itertools.cycle((WebSocketFollower, EventFollower))
    owners = [party for party in parties for _ in range(2)]  # each has both kinds
    followers = [
        kind(daemon, owner) for kind, owner, _ in zip(kinds, itertools.cycle(owners), range(clients))
    ]
    for one in followers:
        one.start()
    wait_until(lambda: all(one.begun.is_set() for one in followers), seconds=60)
    traffic = Sender(sender, parties)
    traffic.start()
    for _ in range(kills):
        wanted = traffic.number + 40
        wait_until(lambda: traffic.number >= wanted or traffic.failure, seconds=120)  # noqa: B023
        daemon.kill()
        daemon.start()
    wanted = traffic.number + 40
    wait_until(lambda: traffic.number >= wanted or traffic.failure, seconds=120)
    traffic.ends.set()
    traffic.join(60)
    check(daemon, followers, traffic)
    gaps, connections = (sum(getattr(one, name) for one in followers) for name in ("gaps", "connections"))
    return f"{traffic.number} messages, {kills} kills, {connections} connections, {gaps} gaps"


def check(daemon: WebDaemon, followers: list[Any], traffic: Sender) -> None:
    """Wait until everybody has its mail; then nobody has anything else, or anything twice."""

    def complete() -> bool:
        found = [one for one in followers if one.failure is not None]
        assert not found and traffic.failure is None, (found and found[0].failure, traffic.failure)
        return all(one.known >= traffic.sent[one.party.address] for one in followers)

    wait_until(complete, seconds=120)
    for one in followers:
        one.ends.set()
    daemon.stop()
    for one in followers:
        one.join(60)
        assert one.failure is None and one.known == traffic.sent[one.party.address]
        twice = [envelope for envelope, times in one.mail.items() if times > 1]
        assert not twice, f"{type(one).__name__} of {one.party.address} was told twice of {twice[:5]}"
    daemon.start()
    daemon.check()
