"""In the place of a provider: gives a turn to an open session, and returns what that answered."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.contracts.provider import Answer, LiveRun, Provider, TurnInput
from ...store.agents import ATTACHED
from ...store.run_start import Turn
from .handing_over import HandingOver


class Attached(Provider):
    """The harness that is open in a terminal. Nobody can choose it with --provider."""

    name: ClassVar[str] = ATTACHED
    summary: ClassVar[str] = "the Claude Code or Codex that is open in a terminal"

    def __init__(self, settings: Any, turns: HandingOver, turn: Turn) -> None:
        super().__init__(settings)
        self._turns = turns
        self._turn = turn

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        """Wait until a session has dealt with the turn, however long that takes."""
        return Answer(text=await self._turns.work_on(self._turn, turn.text))
