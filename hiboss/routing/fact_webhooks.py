"""Facts for webhooks: what a webhook has chosen becomes envelopes for it, which its lane posts.

Facts are in memory, and a webhook is to get each of them although its server is down for an hour. So each
is stored as soon as it is published: a webhook follows the facts like a client (subscriptions.py), whose
reader writes to the store. While the store is slow it falls behind, and goes on by its position. What it
misses (a restart, or more facts than are kept) is made good: arrivals are found in the store by their
arrival number, and of everything else a fact `gap` says that it may be missing.

No fact that the webhooks themselves cause is sent, so that none causes the next one: nothing about their
envelopes, lanes and accounts, and nothing about notices, since one is sent when a server does not answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from ..core import bounded_calls, clock
from ..core.crashpoint import FACTS_STORED, crashpoint
from ..core.envelope import Lane
from ..core.events import TOPICS, EnvelopesArrived, Fact, RunProgress, TypingChanged
from ..store import counters, fact_parties
from ..store import webhook_subscriptions as stored
from ..store.connection import Connection, Row
from ..store.fact_parties import Concerned
from ..store.store import Store
from ..store.webhook_subscriptions import Missed, Own
from .facts import Facts
from .subscriptions import Interest, Subscription

log = logging.getLogger(__name__)
ARRIVED = TOPICS[EnvelopesArrived]
# Those that a webhook can choose. What grows or lasts a moment is for those who watch.
SENT = tuple(dict.fromkeys(word for kind, word in TOPICS.items() if kind not in (RunProgress, TypingChanged)))
AT_ONCE = 100  # facts in one transaction
WINDOW = 1_000  # arrival numbers that are looked through at once
NOTE_EVERY = 1_000  # arrivals that were for others, until the position is stored
STOP_SECONDS = 5.0
RETRY_SECONDS = 5.0


class WebhookInterest(Interest):
    """Which facts a webhook sends: those that it has chosen, but none that webhooks cause."""

    __slots__ = ("own",)

    def __init__(self, topics: Sequence[str], addresses: Sequence[int], own: Callable[[], Own]) -> None:
        super().__init__(None, topics or SENT, addresses)
        self.own = own

    def includes(self, fact: Fact, concerned: Concerned) -> bool:
        return super().includes(fact, concerned) and not self._is_own(fact, concerned)

    def _is_own(self, fact: Fact, concerned: Concerned) -> bool:
        own = self.own()
        if own.system is not None and own.system in (concerned.sender, *concerned.parties):
            return True
        if getattr(fact, "binding", None) in own.bindings or concerned.recipient in own.addresses:
            return True
        others = set(concerned.parties) - {concerned.sender}
        return bool(others) and others <= own.addresses


class Follower:
    """One webhook: the reader of its subscription, which stores what it reads."""

    def __init__(self, row: Row, store: Store, facts: Facts, wake: Callable[[Lane], None]) -> None:
        self.binding = int(row["binding"])
        self.subscriptions: list[Subscription] = []
        self.peer_pid: int | None = None
        self.arrived = self.noted = int(row["arrived"])  # how far it is, and what of that is stored
        self._lane = Lane(row["address"], self.binding)
        self._store = store
        self._facts = facts
        self._wake = wake
        self._waiting: list[dict[str, Any]] = []
        self._task: asyncio.Task[None] | None = None

    # --- as a reader of facts ----------------------------------------------------------

    @property
    def ready(self) -> bool:
        return self._task is None

    def notify(self, lines: bytes) -> None:
        self._waiting += [orjson.loads(line)["params"] for line in lines.split(b"\n")]
        self._begin()

    # --- as a webhook ------------------------------------------------------------------

    def follow(self, interest: WebhookInterest, *, restarted: bool) -> None:
        """Follow from now on, or go on with another interest; `restarted`: what was before may be missed."""
        one = Subscription(self._facts, 1, interest, self, lambda: None)
        after = None
        if self.subscriptions:
            before = self.subscriptions[0]
            after = _position(before, self._facts.number)
            self._facts.unsubscribe(before)
        gap = self._facts.subscribe(one, None if after is None else self._facts.boot, after)
        self.subscriptions.append(one)
        if after is None or gap:
            self._waiting.insert(0, {"topic": "gap", "silent": after is None and not restarted})
            self._begin()

    @property
    def idle(self) -> bool:
        """Whether it has stored everything that was published and that it has chosen."""
        return self.ready and all(one.behind is None and not one.fresh for one in self.subscriptions)

    async def end(self) -> None:
        """Follow no more; what it has read is stored before, if that does not take long."""
        for one in list(self.subscriptions):
            self._facts.unsubscribe(one)
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=STOP_SECONDS)
            await bounded_calls.end([task], "A webhook that stores facts")

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._store_all())

    async def _store_all(self) -> None:
        try:
            while self._waiting:
                try:
                    await self._store_some()
                except Exception:  # the store cannot be read, or a defect of ours: what it lost is made good
                    log.exception("A webhook is told of a gap.", extra={"action": "webhook"})
                    self._waiting.insert(0, {"topic": "gap"})
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._task = None
            for one in self.subscriptions:
                one.resume()

    async def _store_some(self) -> None:
        """Store the first facts that wait, up to the first gap."""
        if self._waiting[0]["topic"] == "gap":
            await self._fill_gap(self._waiting.pop(0))
            return
        some: list[dict[str, Any]] = []
        while self._waiting and self._waiting[0]["topic"] != "gap" and len(some) < AT_ONCE:
            some.append(self._waiting.pop(0))
        await self._insert([one for one in some if not self._is_known(one)])

    def _is_known(self, fact: dict[str, Any]) -> bool:
        """Whether an arrival was found in the store before its fact came."""
        return fact["topic"] == ARRIVED and bool(_last(fact) <= self.arrived)

    async def _insert(self, facts: Sequence[dict[str, Any]]) -> None:
        if not facts:
            return
        texts = [_text(one) for one in facts]
        arrived = max(self.arrived, *map(_last, facts))
        binding = self.binding
        await self._store.timed_write_until_done(
            lambda tx, now: stored.insert(tx, binding, texts, arrived, now)
        )
        crashpoint(FACTS_STORED)
        self.arrived = self.noted = arrived
        self._wake(self._lane)

    # --- what was missed ---------------------------------------------------------------

    async def _fill_gap(self, gap: dict[str, Any]) -> None:
        """Send the arrivals that were missed; of other facts, that they may be missing."""
        interest = self.subscriptions[0].interest if self.subscriptions else None
        if interest is None:
            return  # it has ended meanwhile
        if ARRIVED in interest.topics:
            await self._catch_up(interest)
        if interest.topics <= {ARRIVED} or gap.get("silent"):
            return
        now = clock.iso(clock.now())
        fact = {"topic": "gap", "at": now} | {key: gap[key] for key in ("became",) if key in gap}
        text, parties, binding = _text(fact), interest.addresses, self.binding
        await self._store.timed_write_until_done(
            lambda tx, now: stored.insert_gap(tx, binding, text, parties, now)
        )
        self._wake(self._lane)

    async def _catch_up(self, interest: Interest) -> None:
        """Store what arrived behind the position and is in the store now."""
        last = self._store.read(counters.last_arrived)
        while self.arrived < last:
            after, upto = self.arrived, min(last, self.arrived + WINDOW)
            found = await self._store.read_in_thread(lambda c: _found(c, after, upto))  # noqa: B023
            chosen = [
                shown
                for one, shown in found
                if interest.everything or not interest.addresses.isdisjoint(one.parties)
            ]
            for start in range(0, len(chosen), AT_ONCE):
                await self._insert(chosen[start : start + AT_ONCE])
            self.arrived = upto


class FactWebhooks:
    """All webhooks that send facts. Use it on the event loop's thread only."""

    def __init__(self, store: Store, facts: Facts, wake: Callable[[list[Lane]], None]) -> None:
        self._store = store
        self._facts = facts
        # Look what is due in lanes; not eagerly, so a server that is down is tried at its times only.
        self._wake = wake
        self._followers: dict[int, Follower] = {}  # by binding
        self._chosen: dict[int, tuple[str, str]] = {}  # what each follows, as it is stored
        self._own = Own(None, frozenset(), frozenset())
        self._closed = False

    def start(self) -> None:
        """Follow for all webhooks of the store; what they missed is made good."""
        self._look(restarted=True)

    async def look(self) -> None:
        """Follow for those that are new or changed, and no more for those that have ended."""
        if not self._closed:
            await asyncio.gather(*(one.end() for one in self._look(restarted=False)))

    def _look(self, *, restarted: bool) -> list[Follower]:
        rows, self._own = self._store.read(lambda c: (stored.list_all(c), stored.own(c)))
        ended = [
            self._followers.pop(one) for one in self._followers.keys() - {row["binding"] for row in rows}
        ]
        for row in rows:
            chosen = (row["topics"], row["parties"])
            known = self._followers.get(row["binding"])
            if known is None:
                known = Follower(row, self._store, self._facts, lambda lane: self._wake([lane]))
                self._followers[known.binding] = known
            elif self._chosen[known.binding] == chosen:
                continue
            topics, parties = json.loads(row["topics"]), json.loads(row["parties"])
            known.follow(WebhookInterest(topics, parties, lambda: self._own), restarted=restarted)
            self._chosen[known.binding] = chosen
        return ended

    async def note_positions(self) -> None:
        """Store how far webhooks are for which nothing came for long; at each heartbeat.

        Else the next start would look through all that arrived for others.
        """
        last = self._store.read(counters.last_arrived)
        if self._closed or all(last - one.noted < NOTE_EVERY for one in self._followers.values()):
            return
        await self._store.write(lambda tx: None)  # all facts about what had arrived are published after this
        for one in list(self._followers.values()):  # webhooks may be added and deleted meanwhile
            if one.idle and last > one.noted:
                binding = one.binding
                await self._store.write(lambda tx: stored.note_arrived(tx, binding, last))  # noqa: B023
                one.arrived, one.noted = max(one.arrived, last), max(one.noted, last)

    async def close(self) -> None:
        """Store what was read; the rest is made good after the next start."""
        self._closed = True
        await asyncio.gather(*(one.end() for one in self._followers.values()))


def _position(one: Subscription, number: int) -> int:
    """Return the number of the last fact that a subscription was written."""
    if one.behind is not None:
        return one.behind - 1
    return one.fresh[0].number - 1 if one.fresh else number


def _last(fact: dict[str, Any]) -> int:
    """Return the last arrival number in a fact; 0 if it is about something else."""
    return max((one["arrived"] for one in fact["envelopes"]), default=0) if fact["topic"] == ARRIVED else 0


def _text(fact: dict[str, Any]) -> str:
    """Return a fact as it is posted: in the form that the Standard Webhooks specification recommends."""
    told = {key: value for key, value in fact.items() if key not in ("subscription", "boot", "number")}
    return json.dumps({"type": fact["topic"], "timestamp": fact["at"], "data": told}, ensure_ascii=False)


def _found(connection: Connection, after: int, upto: int) -> list[tuple[Missed, dict[str, Any]]]:
    """Return what arrived, as a fact about it is shown."""
    names: dict[int, str] = {}

    def name(address: int) -> str:
        if address not in names:
            names[address] = fact_parties.address_name(connection, address)
        return names[address]

    return [(one, _shown(one, name)) for one in stored.missed(connection, after, upto)]


def _shown(one: Missed, name: Callable[[int], str]) -> dict[str, Any]:
    return {
        "topic": ARRIVED,
        "at": clock.iso(one.at),
        "message": f"m{one.message}",
        "conversation": f"c{one.conversation}",
        "seq": one.seq,
        "from": name(one.sender),
        "envelopes": [
            {"id": f"e{each.envelope}", "to": name(each.recipient), "arrived": each.arrived}
            for each in one.envelopes
        ],
    }
