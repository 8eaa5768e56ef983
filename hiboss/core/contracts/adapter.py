"""What an adapter must do. The docstrings are the contract.

One contract test runs over every adapter (tests/channels/test_adapter_contract.py); to write one
of your own, see docs/adapters.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol


class File(NamedTuple):
    name: str
    path: str
    mime: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """One envelope on its way to a place on a platform."""

    id: str  # e81: the same at every attempt
    place: str  # the chat, and topic if any: what follows `channel:<adapter>:`
    text: str
    type: str
    subject: str | None
    sender: str  # the address
    sender_name: str | None
    files: tuple[File, ...]
    reply_to: str | None  # the platform's id of the message this replies to, if it is one of there


@dataclass(frozen=True, kw_only=True, slots=True)
class Inbound:
    """One message that came from a platform."""

    update: str  # the platform's id of this update: the same one is taken once
    place: str
    text: str = ""
    subject: str | None = None
    author: Mapping[str, str] = field(default_factory=dict)  # name, username, id
    group: str | None = None  # the title, when said in a group chat
    message: str | None = None  # the platform's id of the message
    reply_to: str | None = None  # the platform's id of the message it replies to
    files: Sequence[str] = ()  # paths, copied before the callback returns


Receive = Callable[[Inbound], Awaitable[bool]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """What an adapter is made of: one binding."""

    binding: int
    name: str  # the account's own name on the platform
    settings: Mapping[str, Any]


class Adapter(Protocol):
    """Code connected to a platform, for one account there. Made anew for each start.

    It never retries by itself and never decides what is delivered: it posts what it is
    given, hands over what comes in, and says in typed errors what went wrong.
    """

    type: ClassVar[str]  # as in channel:<type>:<place>

    def __init__(self, account: Account) -> None:
        """Remember the account. No I/O here."""

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
        """Of what the boss gave (`path`, and `home`, hiboss's own): the account's name, its settings
        as they are kept, and the places it may post to. Raises Refused for what cannot work."""

    async def start(self) -> None:
        """Connect. Returns when `post` can be called; raises LaneError when it cannot be done now.

        An exception of any other type is a crash: it is logged, and the start is repeated
        with growing pauses.
        """

    async def listen(self, receive: Receive) -> None:
        """Hand over what comes in, until cancelled.

        `await receive(arrival)` returns after COMMIT: True when it was stored, False when
        this update was stored before. Only then may the platform's offset advance or the
        original be taken away. It raises Refused for what can never be taken, and other
        errors for what should be tried again. Returning or raising is a crash.
        """

    async def stop(self) -> None:
        """Let go of everything. Called once after `start` was, also after it failed."""

    def chunks(self, letter: Letter) -> list[str]:
        """What will be posted, one platform message each; pure, and the same every time."""

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        """Post one chunk and return the platform's id of it, once the platform has confirmed it.

        Raises LaneError or EnvelopeError; any other exception counts as a LaneError. The
        same chunk may come again when a crash lay between your answer and our note of it.
        """
