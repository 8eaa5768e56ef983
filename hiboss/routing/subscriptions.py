"""Who follows facts, and which ones: the interest of a subscription, and how far its reader has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import orjson

from ..core.events import TOPICS, AgentChanged, ChatRenamed, Fact, UserChanged
from ..store.fact_parties import Concerned


class Reader(Protocol):
    """Where notifications are written to: a client that is connected."""

    subscriptions: list[Subscription]

    @property
    def peer_pid(self) -> int | None:
        """The process that connected; None if that is not known."""

    @property
    def ready(self) -> bool:
        """Whether it has taken what was written before."""

    def notify(self, lines: bytes) -> None:
        """Write lines to it; the last one without its end."""


class Source(Protocol):
    """Where facts come from (routing/facts.py)."""

    boot: int

    def wait(self, one: Subscription) -> None: ...

    def unsubscribe(self, one: Subscription) -> None: ...


class Entry:
    """A fact in the ring; what was found out about it is kept."""

    __slots__ = ("concerned", "fact", "number", "written")

    def __init__(self, number: int, fact: Fact) -> None:
        self.number = number
        self.fact = fact
        self.concerned: Concerned | None = None
        self.written: bytes | None = None


class Interest:
    """Which facts a subscription is about. Nothing named: everything that its caller may see."""

    __slots__ = ("addresses", "conversations", "present", "sees", "topics")

    def __init__(
        self,
        sees: int | None,
        topics: Iterable[str] = (),
        addresses: Iterable[int] = (),
        conversations: Iterable[int] = (),
        present: Iterable[int] = (),
    ) -> None:
        self.sees = sees  # the address id that must be a party; None: the caller is the boss
        self.topics = frozenset(topics)
        self.addresses = frozenset(addresses)
        self.conversations = frozenset(conversations)
        self.present = frozenset(present)  # whose presence belongs to those conversations

    @property
    def everything(self) -> bool:
        return not self.addresses and not self.conversations

    def includes(self, fact: Fact, concerned: Concerned) -> bool:
        if isinstance(fact, ChatRenamed):  # whatever its topics are
            return self._includes_chat(fact)
        if self.topics and TOPICS[type(fact)] not in self.topics:
            return False
        if isinstance(fact, AgentChanged):  # whoever may call agent.status sees the state of any agent
            return self._includes_presence(fact.agent)
        if isinstance(fact, UserChanged):  # and user.list that of any person
            return self._includes_presence(fact.user)
        if self.sees is not None and self.sees not in concerned.parties:
            return False
        if self.everything or concerned.conversation in self.conversations:
            return True
        return not self.addresses.isdisjoint(concerned.parties)

    def _includes_presence(self, address: int) -> bool:
        return self.everything or address in self.addresses or address in self.present

    def follow(self, fact: ChatRenamed) -> None:
        """Go on with what addresses and conversations became. The old ones stay: of them are older facts."""
        self.addresses |= {now for gone, now in fact.became.items() if gone in self.addresses}
        self.conversations |= {now for gone, now in fact.merged.items() if gone in self.conversations}

    def _includes_chat(self, fact: ChatRenamed) -> bool:
        if self.sees is not None and self.sees not in fact.parties:
            return False
        concerns = self.addresses.intersection(fact.parties) or self.conversations.intersection(
            fact.conversations
        )
        return self.everything or bool(concerns)


class Holder(NamedTuple):
    """Who follows."""

    address: int
    is_person: bool


class Subscription:
    """One follower: its interest, and how far it has read."""

    __slots__ = (
        *(
            "_source",
            "before",
            "behind",
            "check",
            "fresh",
            "holder",
            "interest",
            "number",
            "offered",
            "reader",
        ),
    )

    def __init__(
        self,
        source: Source,
        number: int,
        interest: Interest,
        reader: Reader,
        check: Callable[[], None],
        holder: Holder | None = None,
    ) -> None:
        self._source = source
        self.number = number  # within its connection
        self.interest = interest
        self.reader = reader
        self.check = check  # raises when its caller has lost the right
        self.holder = holder  # whose presence it shows; None: nobody's
        self.fresh: list[Entry] = []  # what concerns it and was published since it was last written to
        self.offered = 0  # the number of the last fact that it was asked about
        self.behind: int | None = None  # the number of the next fact to look at; None: it has seen all
        self.before = b'{"jsonrpc":"2.0","method":"event","params":{"subscription":%d,"boot":%d,' % (
            number,
            source.boot,
        )

    def resume(self) -> None:
        """Go on: the reader has taken what was written."""
        if self.behind is not None:
            self._source.wait(self)

    def end(self) -> None:
        self._source.unsubscribe(self)

    def fall_behind(self, number: int) -> None:
        """Go on by position, from this fact on."""
        if self.behind is None:
            self.behind = self.fresh[0].number if self.fresh else number
            self.fresh.clear()

    def special(self, topic: str, number: int, **fields: Any) -> bytes:
        """Return a notification that is about the subscription itself."""
        return (
            self.before + orjson.dumps({"topic": topic, "number": number, **fields}, default=str)[1:] + b"}"
        )
