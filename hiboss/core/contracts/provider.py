"""What a provider must do. The docstrings are the contract.

One contract test runs over every provider (tests/agents/test_provider_contract.py); to write one
of your own, see docs/providers.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol


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

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        """Take the turn. `hear` may be called at any time; each call is a sign of life."""
