"""The contract of a provider: what it must do. The docstrings are the contract.

One contract test runs over every provider (tests/agents/test_provider_contract.py). To write your
own provider, see docs/providers.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol


class Usage(NamedTuple):
    """The tokens and the cost of a turn so far; None where unknown."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None  # in dollars


class Progress(NamedTuple):
    """Live output of a turn. It is shown and not stored; only the last usage is stored."""

    # delta (a piece of the answer), tool (what the agent does now), usage, alive (nothing to show)
    kind: str
    text: str = ""
    usage: Usage | None = None  # the totals so far; the last ones count, however the turn ends


class Reminder(NamedTuple):
    """A message to send later, to the conversation of the answer."""

    text: str
    deliver_at: int  # milliseconds UTC


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnInput:
    """The input of one turn."""

    run: str  # the id of the run, like r9
    delivery: str  # a name for this run that is unique over all machines
    agent: str  # the name of the agent
    text: str  # the turn as text, exactly as `turn.preview` shows it
    envelopes: Sequence[Mapping[str, Any]]  # the same envelopes, in the JSON form of the API
    due: int | str  # how many envelopes were due when the turn began; '1000+' for more
    now: int  # when the turn began; milliseconds UTC
    timezone: str  # the boss's time zone, an IANA name
    workspace: str  # a directory; it may be missing, the provider must check
    environment: Mapping[str, str]  # for a process: token, home, PATH with hiboss on it
    output_bytes: int  # the limit for everything the provider reads: answer and live output together


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of a successful turn. With an empty text no answer is sent."""

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None  # in dollars
    later: tuple[Reminder, ...] = ()
    note: str | None = None  # a remark stored with the run


OnProgress = Callable[[Progress], None]
OnStart = Callable[[int], Awaitable[None]]  # called with the pid of a process, before it gets its turn


class Provider(Protocol):
    """Produces an agent's answers. Each turn makes a new instance; nothing is kept between turns.

    A provider returns the answer or raises TurnError or LaneError. Any other exception is a
    defect and counts as a TurnError. It never retries and sends no messages itself. It need
    not measure time: the daemon cancels a turn that takes too long. When cancelled, it ends
    everything it started, processes with all their children, and only then returns.
    """

    name: ClassVar[str]  # as in --provider <name>
    options: ClassVar[tuple[str, ...]]  # the options that `configure` accepts: command, url

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check the options of `hiboss agent set` and return the settings to store (JSON).

        Raise Refused, with the reason, if this can never work. Check only what cannot change:
        a program that is missing now may be installed later.
        """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Store the settings (with `secret` in them, if the provider has one). Do no I/O here."""

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        """Take one turn and return its answer.

        Call `on_progress` for live output; each call shows that the turn is still alive
        (`runs.idle_seconds`). If the turn starts a process, await `on_start(pid)` before the
        process gets its input: the daemon can then end it after a crash.
        """
