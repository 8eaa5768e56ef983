"""Facts for whoever follows: numbered within a boot, the last ones kept, read by position.

A subscription has no queue of its own. While its reader keeps up it gets what concerns it, a few
milliseconds later and in one piece. A reader that does not is at a position of the ring, and goes on
from there when it has read; if the ring has passed that position, it is told of a gap once, and goes
on with what comes. So a slow reader costs nobody anything. All of this is on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from ..core.errors import Busy, HibossError
from ..core.events import AgentChanged, ChatRenamed, EnvelopesArrived, Fact, RunProgress, UserChanged
from ..core.settings import Settings
from ..store import fact_parties
from ..store.fact_parties import Concerned
from ..store.store import Store
from .fact_json import State, arrived, shown
from .subscriptions import Entry, Subscription

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.005  # between two times that something is written to readers
TURN_SECONDS = 0.005  # for writing to readers; then others have their turn
SHARE = 0.1  # of the time may go into writing to readers: many of them must not slow those down who send
AT_ONCE = 256  # facts that one subscription gets at once
LOOKED_AT_ONCE = 2_000  # facts that are looked through for one subscription at once
WRITTEN_AT_ONCE = 64 * 1024  # bytes
TEXT_KEPT = 16 * 1024 * 1024  # characters of output of runs in the ring
NAMES = 50_000  # addresses whose names are kept in memory
BOOT_BYTES = 6  # of the number of a start: exact in the JSON of every language


class Facts:
    """The ring of the last facts, and who follows them."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._size = settings.kept_facts
        self._ring: list[Fact | Entry | None] = [None] * self._size  # an entry once somebody looked at it
        # Which start of the daemon the numbers belong to. Not the store's count of starts: a copy of the
        # store that is put back counts on from an earlier start, and has other facts by the same numbers.
        self.boot = int.from_bytes(os.urandom(BOOT_BYTES)) + 1
        self.number = 0  # of the last fact
        self._oldest = 1  # the first number that is kept
        self._text = 0  # characters of output of runs that are kept
        self._outputs: deque[tuple[int, int]] = deque()  # the facts that have it: number, characters
        self._names: dict[int, str] = {}
        self._subscriptions: dict[Subscription, None] = {}  # in the order they came
        self._held: Counter[int | None] = Counter()  # how many each caller has; None: the boss
        self._everything: dict[Subscription, None] = {}  # of those, whose interest is in no index
        self._by_address: dict[int, dict[Subscription, None]] = {}
        self._by_conversation: dict[int, dict[Subscription, None]] = {}
        self._waiting: dict[Subscription, None] = {}  # to be written to
        self._timer: asyncio.TimerHandle | None = None
        self._rests_until = 0.0  # nothing is written to readers before
        self._closed = False
        # Set in hiboss/daemon.
        self.state: State = lambda agent: (None, "offline")
        self.opened: Callable[[Subscription], None] = lambda one: None  # somebody follows
        self.closed: Callable[[Subscription], None] = lambda one: None

    # --- publishing ------------------------------------------------------------------

    def publish(self, facts: Sequence[Fact]) -> None:
        """Number facts and keep them. Those who are concerned are written to a little later."""
        number, ring, size = self.number, self._ring, self._size
        for fact in facts:  # every send comes through here, so it does nothing more
            number += 1
            ring[number % size] = fact
            if self._subscriptions:
                self.number = number
                self._spread(self._entry(number))
                if type(fact) is ChatRenamed:
                    self._follow(fact)
        self.number = number
        self._oldest = max(self._oldest, number - size + 1)

    def tell(self, fact: Fact) -> None:
        """Publish a fact that comes from no transaction."""
        self.publish([fact])
        if type(fact) is RunProgress:
            self._outputs.append((self.number, len(fact.text)))
            self._text += len(fact.text)
            self._bound_text()

    def _bound_text(self) -> None:
        """Drop the oldest facts while the output of runs among them is too long."""
        while self._outputs and (self._outputs[0][0] < self._oldest or self._text > TEXT_KEPT):
            number, characters = self._outputs.popleft()
            self._text -= characters
            for one in range(self._oldest, number + 1):
                self._ring[one % self._size] = None
            self._oldest = max(self._oldest, number + 1)

    def _entry(self, number: int) -> Entry:
        """Return a fact that is kept, with what was found out about it."""
        kept = self._ring[number % self._size]
        assert kept is not None
        if type(kept) is not Entry:
            kept = self._ring[number % self._size] = Entry(number, kept)  # type: ignore[arg-type]
        return kept

    def _spread(self, entry: Entry) -> None:
        """Give a fact to the subscriptions that it concerns."""
        fact = entry.fact
        try:
            concerned = self._concerned(entry)
        except HibossError as error:
            log.error("Followers missed a fact: %s", error, extra={"action": "follow"})
            for one in self._subscriptions:
                one.fall_behind(entry.number)  # it is looked up again when they are written to
                self.wait(one)
            return
        for found in self._interested(fact, concerned):
            for one in found:
                if one.offered == entry.number:
                    continue  # it was found by another party
                one.offered = entry.number
                if one.behind is None and one.interest.includes(fact, concerned):
                    one.fresh.append(entry)
                    if len(one.fresh) > AT_ONCE:
                        one.fall_behind(entry.number)
                    self.wait(one)

    def _follow(self, fact: ChatRenamed) -> None:
        """Let those who named an address or a conversation follow what it has become."""
        for one in self._subscriptions:
            one.interest.follow(fact)
            self._index(one)

    def _interested(self, fact: Fact, concerned: Concerned) -> Iterator[Iterable[Subscription]]:
        """Find the subscriptions that a fact may be for, without a look at the others."""
        if type(fact) in (AgentChanged, UserChanged, ChatRenamed):  # everybody may see that; and this is rare
            yield self._subscriptions
            return
        yield self._everything
        for party in concerned.parties:
            if found := self._by_address.get(party):
                yield found
        if concerned.conversation is not None and (
            found := self._by_conversation.get(concerned.conversation)
        ):
            yield found

    def _concerned(self, entry: Entry) -> Concerned:
        if entry.concerned is None:
            fact = entry.fact
            if type(fact) is EnvelopesArrived:  # nearly all facts; nothing is looked up for them
                entry.concerned = fact_parties.of_arrival(fact)
            else:
                entry.concerned = self._store.read(lambda c: fact_parties.concerned(c, fact))
        return entry.concerned

    # --- following -------------------------------------------------------------------

    def subscribe(self, one: Subscription, boot: int | None, after: int | None) -> bool:
        """Let a subscription follow from now on, or after a fact of this boot. Return whether there is a gap.

        A gap: not everything after that fact is kept any more, so it follows from now on.
        """
        self._check_limits(one.interest.sees)
        self.opened(one)  # before it follows: that it came is told to others
        gap = False
        if after is not None or boot is not None:
            given = self.number if after is None else after
            gap = boot != self.boot or not self._oldest - 1 <= given <= self.number
            if not gap and given < self.number:
                one.behind = given + 1
        self._subscriptions[one] = None
        self._held[one.interest.sees] += 1
        self._index(one)
        if one.interest.everything and one.interest.sees is None:
            self._everything[one] = None
        if one.behind is not None:
            self.wait(one)
        return gap

    def _index(self, one: Subscription) -> None:
        for index, key in self._places(one):
            index.setdefault(key, {})[one] = None

    def _check_limits(self, caller: int | None) -> None:
        """Raise Busy if a caller can have no more. The boss's are counted apart: nobody can keep him out."""
        limit, share = self._settings.subscriptions, self._settings.subscriptions_per_caller
        own = self._held[caller]
        if caller is not None and own >= share:
            raise Busy(what=f"this caller has {share} subscriptions, end one first")
        if (own if caller is None else len(self._subscriptions) - self._held[None]) >= limit:
            raise Busy(what=f"{limit} subscriptions are open, try again in a moment")

    def _places(self, one: Subscription) -> list[tuple[dict[int, dict[Subscription, None]], int]]:
        """Return where a subscription is found: the indexes and its keys there."""
        interest = one.interest
        if interest.everything:
            return [] if interest.sees is None else [(self._by_address, interest.sees)]
        return [
            *((self._by_address, key) for key in interest.addresses),
            *((self._by_conversation, key) for key in interest.conversations),
        ]

    def unsubscribe(self, one: Subscription) -> None:
        """End a subscription; nothing more is written for it."""
        if self._subscriptions.pop(one, self) is self:
            return
        self._held[one.interest.sees] -= 1
        if not self._held[one.interest.sees]:
            del self._held[one.interest.sees]
        self._everything.pop(one, None)
        self._waiting.pop(one, None)
        for index, key in self._places(one):
            others = index[key]
            del others[one]
            if not others:
                del index[key]
        if one in one.reader.subscriptions:
            one.reader.subscriptions.remove(one)
        self.closed(one)

    def recheck(self) -> None:
        """End the subscriptions whose caller has lost the right: tokens, levels or the policy changed."""
        for one in list(self._subscriptions):
            self._may_read(one)

    def _may_read(self, one: Subscription) -> bool:
        try:
            one.check()
        except HibossError as error:
            shown = {"code": error.rpc, "message": error.message, "data": error.payload()}
            one.reader.notify(one.special("closed", self.number, error=shown))
            self.unsubscribe(one)
            return False
        return True

    @property
    def followers(self) -> int:
        return len(self._subscriptions)

    # --- writing ---------------------------------------------------------------------

    def wait(self, one: Subscription) -> None:
        """Write to a subscription soon."""
        self._waiting[one] = None
        if self._timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._rests_until), self._write)

    def _write(self) -> None:
        """Write to those who wait for it; not for too long without a pause."""
        loop = asyncio.get_running_loop()
        self._timer = None
        begin = loop.time()
        waiting, self._waiting = self._waiting, {}
        try:
            while waiting and loop.time() <= begin + TURN_SECONDS:
                one = next(iter(waiting))
                del waiting[one]
                if one in self._subscriptions:
                    self._write_to(one)
        finally:
            now = loop.time()
            self._rests_until = now + max(PAUSE_SECONDS, (now - begin) * (1 / SHARE - 1))
            for one in (*waiting, *self._waiting):  # who had no turn comes first
                self.wait(one)

    def _write_to(self, one: Subscription) -> None:
        if not one.reader.ready:
            one.fall_behind(self.number + 1)
            return  # its connection calls `resume`
        if not self._may_read(one):
            return
        try:
            if one.behind is not None:
                lines = self._catch_up(one)
            else:
                lines = [self._line(one, entry) for entry in one.fresh]
        except HibossError as error:  # names or states could not be read
            log.error("A follower is told of a gap: %s", error, extra={"action": "follow"})
            lines, one.behind = [one.special("gap", self.number)], None
        one.fresh.clear()
        if lines:
            one.reader.notify(b"\n".join(lines))
        if one.behind is not None:
            self.wait(one)

    def _catch_up(self, one: Subscription) -> list[bytes]:
        """Return what concerns a subscription from its position on, some of it at once; move the position."""
        assert one.behind is not None
        if one.behind < self._oldest:
            one.behind = None
            return [one.special("gap", self.number)]
        found: list[bytes] = []
        size, number, last = 0, one.behind, min(self.number, one.behind + LOOKED_AT_ONCE)
        while number <= last and len(found) < AT_ONCE and size < WRITTEN_AT_ONCE:
            entry = self._entry(number)
            if one.interest.includes(entry.fact, self._concerned(entry)):
                found.append(self._line(one, entry))
                size += len(found[-1])
            number += 1
        one.behind = None if number > self.number else number
        return found

    def _line(self, one: Subscription, entry: Entry) -> bytes:
        """Return a notification. What is the same for all who get it is made once."""
        fact, sees = entry.fact, one.interest.sees
        if type(fact) is EnvelopesArrived and len(fact.numbers) > 1 and sees not in (None, fact.sender):
            # A recipient does not see the envelopes of the others.
            own = [arrival for arrival in fact.envelopes if arrival.recipient == sees]
            return one.before + _end(entry, arrived(fact, self._name, own))
        if type(fact) is ChatRenamed:
            became = {
                f"c{gone}": f"c{now}"
                for gone, now in fact.merged.items()
                if gone in one.interest.conversations
            }
            return one.special("gap", entry.number, **({"became": became} if became else {}))
        if entry.written is None:
            entry.written = _end(entry, shown(fact, self._concerned(entry), self._name, self.state))
        return one.before + entry.written

    def _name(self, address: int) -> str:
        name = self._names.get(address)
        if name is None:
            name = self._store.read(lambda c: fact_parties.address_name(c, address))
            if not name.startswith("channel:"):  # a chat may be renamed
                if len(self._names) >= NAMES:
                    self._names.clear()
                self._names[address] = name
        return name

    def close(self) -> None:
        """Write nothing more: the daemon stops."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for one in list(self._subscriptions):
            self.unsubscribe(one)


def _end(entry: Entry, fact: dict[str, Any]) -> bytes:
    """Return the end of a notification, which is the same for all who get it."""
    return orjson.dumps({"number": entry.number, **fact})[1:] + b"}"
