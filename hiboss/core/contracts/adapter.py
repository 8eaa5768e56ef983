"""The contract of an adapter: what it must do. The docstrings are the contract.

One contract test runs over every adapter (tests/channels/test_adapter_contract.py). To write your
own adapter, see docs/adapters.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol


class File(NamedTuple):
    """One attachment of a letter."""

    name: str  # as the sender named it
    path: str  # where to read it; do not change it
    mime: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """One envelope to be posted to a place on a platform."""

    id: str  # e81: the same at every attempt
    key: str  # for `chunk_key`: ids repeat in other homes, this does not
    place: str  # the chat, and the topic if there is one: the part after `channel:<adapter>:`
    text: str
    type: str  # text, markdown, json, html or event
    subject: str | None
    sender: str  # an address, like agent:nex
    sender_name: str | None
    files: tuple[File, ...]
    reply_to: str | None  # the platform's id of the message it replies to; None if it was never there

    def chunk_key(self, number: int) -> str:
        """Return the idempotency key of a chunk: the same at every attempt, and no other chunk has it."""
        return f"{self.key}.{number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inbound:
    """One message that came in from a platform."""

    update: str  # the platform's id of this update: the same id is stored only once
    place: str  # the chat, and the topic if there is one
    text: str = ""
    subject: str | None = None
    author: Mapping[str, str] = field(default_factory=dict)  # name, username, id
    group: str | None = None  # the title of the group chat; None for a private chat
    message: str | None = None  # the platform's id of the message
    reply_to: str | None = None  # the platform's id of the message it replies to
    files: Sequence[str] = ()  # absolute paths without links; they are copied before `receive` returns


Receive = Callable[[Inbound], Awaitable[bool]]  # see Adapter.listen


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The account that an adapter works for: one binding."""

    binding: int
    name: str  # the name of the account, as `bind` returned it
    settings: Mapping[str, Any]  # as `bind` returned them
    home: str  # the home directory of hiboss: no file may come from there or be written there


class Adapter(Protocol):
    """Code connected to a platform, for one account there. Each start makes a new instance.

    An adapter posts the letters it is given, passes on the messages that come in, and raises
    typed errors when something fails. It never retries by itself and never decides what is
    delivered: the daemon does both.
    """

    type: ClassVar[str]  # the name of the adapter, as in channel:<type>:<place>

    def __init__(self, account: Account) -> None:
        """Store the account. Do no I/O here."""

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        """Check the options of `hiboss agent bind` and return what the binding stores.

        `given` holds `path` (the option --path) and `home` (the home directory of hiboss).
        Return the name of the account, its settings (JSON), and the places it may post to.
        Raise Refused, with the reason, if this cannot work.
        """

    async def start(self) -> None:
        """Connect to the platform. Return when `post` can be called.

        Raise AccountError if the platform cannot be reached now or refuses the account. Any
        other exception is a crash and is logged. In both cases a new instance is started
        later, with growing pauses. The same happens when `start` takes longer than 60 seconds.
        """

    async def listen(self, receive: Receive) -> None:
        """Pass on every message that comes in, until cancelled.

        `await receive(inbound)` returns after COMMIT: True if the message was stored, False
        if this update was stored before. Only then advance the platform's offset or delete
        the original. It raises Refused for a message that can never be stored: skip that
        one. For any other error, pass the same update again later. If `listen` returns or
        raises, that is a crash, and a new instance is started.
        """

    async def stop(self) -> None:
        """Disconnect and free all resources, within 5 seconds.

        Called once for each instance, also when `start` failed.
        """

    def chunks(self, letter: Letter) -> list[str]:
        """Return the parts to post, one platform message each; at least one.

        Do no I/O, and return the same chunks for the same letter every time.
        """

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        """Post one chunk; return the platform's id of it after the platform has confirmed it.

        `number` is the index of the chunk, from 0. Raise LaneError if nothing can be posted
        there now, AccountError if nothing can be posted anywhere with this account, or
        EnvelopeError if this letter can never be posted; any other exception counts as a
        LaneError. Each chunk has `delivery.post_seconds`.

        The same chunk can come again: the platform took it, but the daemon died before that was
        stored, or its answer was lost or came too late. Give `letter.chunk_key(number)` to a
        platform that recognizes repeated posts: then nothing is doubled.
        """
