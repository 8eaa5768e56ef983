"""A rig: it brings a provider of yours into the situations that hiboss/testing/provider_contract.py tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from ..core.contracts.provider import Provider, TurnInput
from .recorded_run import sample_turn


class ProviderRig(ABC):
    """One provider and its surroundings. Every test makes a rig, and uses it inside `async with rig`.

    A method that tells the provider what to do (`answers`, `hangs`, …) holds for all turns that begin
    after it, until another one is called. Before the first one, a turn ends at once with any answer.
    The methods without a test in the contracts you inherit from need not be written.
    """

    # No error may contain one of these: the secrets and tokens that the rig gives its provider.
    secrets: tuple[str, ...] = ()

    def __init__(self, directory: Path) -> None:
        """Remember the directory, which is empty and belongs to this test. `make` works from here on."""
        self.directory = directory

    async def __aenter__(self) -> Any:
        """Start what it needs, like a server."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        return None

    # --- for ProviderContract ----------------------------------------------------------

    @abstractmethod
    def good(self) -> dict[str, Any]:
        """Return valid settings, as the boss gives them: JSON, without secrets."""

    @abstractmethod
    def make(self) -> Provider:
        """Return a new provider with the settings of `good`, as it is made for every turn."""

    def task(self, **facts: Any) -> TurnInput:
        """Return a turn; `facts` replace fields of it. The tests rely on the limit of the answer here."""
        known = {"workspace": str(self.directory), "answer_bytes": 100_000, "output_bytes": 10_000_000}
        return sample_turn("what is new, ä€😀?", **{**known, **facts})

    @abstractmethod
    def answers(self, text: str) -> None:
        """Let it answer with this text (up to 10,000 characters, several lines, any letters).

        All `delta` of the turn together must be the answer. For ProviderContract alone the text always
        begins with "You said: ".
        """

    @abstractmethod
    def says_nothing(self) -> None:
        """Let it return `Answer()`, without usage and without a note."""

    @abstractmethod
    def hangs(self) -> None:
        """Let it never answer. What it starts for a turn (processes, connections) stays until its end."""

    @abstractmethod
    def under_way(self) -> bool:
        """Return whether a turn that hangs has started everything. The test waits for it up to 30 seconds."""

    @abstractmethod
    def left_behind(self) -> list[Any]:
        """Return what there is now of what turns started: processes, connections. Empty after each turn."""

    # --- for OutsideContract -------------------------------------------------------------

    def bad(self) -> list[dict[str, Any]]:
        """Return settings that must be refused, with a ValueError of a validator or by their type."""
        raise NotImplementedError

    def turns(self) -> int:
        """Return how many turns reached the program or server."""
        raise NotImplementedError

    def given(self) -> str:
        """Return `text` of the last turn, as it reached the program or server."""
        raise NotImplementedError

    def answers_bytes(self, answer: bytes) -> None:
        """Let the program or server answer with these bytes, which may be no UTF-8 and contain a NUL.

        Decode them with `errors="replace"`.
        """
        raise NotImplementedError

    def answers_for(self, text: str, **usage: Any) -> None:
        """Let it answer with this usage: `tokens_in`, `tokens_out`, `cost`, also of nonsense types.

        For a provider that reports no usage: call `pytest.skip`.
        """
        raise NotImplementedError

    def floods(self) -> None:
        """Let it answer without end. The turn must fail: TurnError of the kind `too_long`."""
        raise NotImplementedError

    def refuses_this_one(self) -> None:
        """Let this turn fail, and only this one: TurnError, without secrets. It counts in `turns`."""
        raise NotImplementedError

    def is_away(self) -> None:
        """Let the program be missing, or the server not listen: LaneError. No turn reaches it."""
        raise NotImplementedError

    # --- for SessionContract -------------------------------------------------------------

    def answers_in(self, session: str) -> None:
        """Let it await `run.session(session)` and answer with any text. The id may be a bad one."""
        raise NotImplementedError

    def given_session(self) -> str | None:
        """Return the session that the last turn was given (`turn.session`)."""
        raise NotImplementedError

    # --- for SteerContract, InterruptContract, AskContract ----------------------------------

    def waits_for_words(self) -> None:
        """Let it report `Progress("tool", …)` when it is ready, wait for one `steer`, and answer its text."""
        raise NotImplementedError

    def waits_for_interrupt(self) -> None:
        """Let it report `Progress("tool", …)` when it is ready, and return any answer after `interrupt`."""
        raise NotImplementedError

    def asks(self, *questions: str) -> None:
        """Let it ask all these at once, each with the options yes and no.

        When all are answered, it answers with `question=option` of each, in this order, with spaces between.
        """
        raise NotImplementedError

    def asks_for_tool(self, tool: str, detail: str, subject: str) -> None:
        """Let it ask whether this tool may be used, with the options allow and deny, and answer the option.

        For a provider that asks for no tools: call `pytest.skip`.
        """
        raise NotImplementedError
