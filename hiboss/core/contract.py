"""What an adapter and a provider must do, and the errors they speak in. The docstrings are the contract.

One contract test runs over every adapter (tests/channels/test_adapter_contract.py) and one over every
provider (tests/agents/test_provider_contract.py); to write one of your own, see docs/adapters.md
and docs/providers.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol


class LaneError(Exception):
    """Nothing can be posted there now, by no envelope: network, 5xx, 429, account refused.

    The lane waits and keeps its order. `retry_after` seconds win over our own patience.
    """

    def __init__(self, kind: str, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after = retry_after


class EnvelopeError(Exception):
    """This one can never be posted: too big, malformed, unknown chat. The next one goes on."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Refused(Exception):
    """What came in cannot be taken and never will be; it says why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


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
    answers: str | None  # the platform's id of the message this replies to, if it is one of there


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
    answers: str | None = None  # the platform's id of the message it replies to
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


# --- providers: how an agent thinks --------------------------------------------------


class TurnError(Exception):
    """This turn did not go well: an exit status, an error it reported, a limit.

    Its envelopes come again, one at a time; one that never goes well fails, alone. What would
    stop every turn (program or workspace missing, network, account refused) is a LaneError.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Usage(NamedTuple):
    """What a turn has used up so far."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None  # in dollars


class Progress(NamedTuple):
    """Something a provider says while it thinks: shown live, kept by nobody but for its usage."""

    # delta (a piece of the answer), tool (what it does just now), usage, alive (nothing to show)
    kind: str
    text: str = ""
    usage: Usage | None = None  # the latest counts, however the turn ends


class Reminder(NamedTuple):
    """A message to send later to where the answer goes."""

    text: str
    deliver_at: int  # milliseconds UTC


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnInput:
    """One turn, as a provider gets it."""

    run: str  # r9
    delivery: str  # unlike any other on any machine
    agent: str
    text: str  # exactly what `turn.preview` showed
    envelopes: Sequence[Mapping[str, Any]]  # the same, in the form of the API
    due: int | str  # how much waited when it began
    now: int  # when it began; milliseconds UTC
    timezone: str  # the boss's
    workspace: str  # a directory; whether it is there is the provider's to see
    environment: Mapping[str, str]  # for a process: token, home, PATH with hiboss on it
    output_bytes: int  # no answer, with all that was said besides, may be longer


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came of a turn that went well. An empty text: nothing is to be said."""

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None  # in dollars
    later: tuple[Reminder, ...] = ()
    note: str | None = None  # a remark for the record of the run


OnProgress = Callable[[Progress], None]
OnStart = Callable[[int], Awaitable[None]]  # told the pid of a process before it is given its turn


class Provider(Protocol):
    """How an agent thinks. Made anew for each turn; it keeps nothing between two.

    It never retries and sends nothing itself: it says what came of the turn, or raises a
    TurnError or LaneError. Any other exception is a defect and counts as a TurnError. Time
    limits are not its business: whoever takes too long is cancelled. Cancelled, it ends
    whatever it has started, processes with all their children, and only then lets go.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]]  # what `configure` takes: command, url

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Of what the boss gave, the settings as they are kept. Raises Refused for what cannot work.

        Only what cannot change is checked: a program that is missing now may come later.
        """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Remember the settings (and `secret`, where one is kept). No I/O here."""

    async def take_turn(self, task: TurnInput, on_progress: OnProgress, started: OnStart) -> Answer:
        """Take the turn. `hear` may be called at any time; each call is a sign of life."""
