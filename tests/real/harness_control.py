"""What each harness does while a turn runs: words of people, an interruption, a kill, a cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.core.contracts.provider import INTERRUPT, STEER
from hiboss.testing.model_server import Hold, Say, UseTool
from tests.real.harness_rig import HarnessRig, Turn

WAIT = "touch begun; until [ -e go ]; do sleep 0.05; done"  # a tool that ends when the test lets it


class ControlContract:
    """Cells of a running turn; part of HarnessContract."""

    # --- steering ------------------------------------------------------------------------

    async def test_words_during_a_tool_reach_the_model_in_the_same_turn(self, rig: HarnessRig) -> None:
        rig.server.script(rig.shell(WAIT), Say("heard you"))
        turn = Turn(rig, "take your time", autonomy="high")
        await turn.until((rig.workspace / "begun").exists)
        taken = await turn.provider.steer("and greet kai")
        (rig.workspace / "go").touch()
        answer = await turn.answer()
        assert taken == (STEER in turn.provider.capabilities)
        assert answer.text == "heard you" or taken
        assert ("and greet kai" in rig.server.turns[-1].everything) == taken

    async def test_words_while_it_writes_are_answered_and_a_cut_text_is_left_out(
        self, rig: HarnessRig
    ) -> None:
        rig.server.script(Say("a long story", hold=True), Say("hello kai"))
        turn = Turn(rig, "tell me a story")
        await turn.until(lambda: turn.run.shown)
        taken = await turn.provider.steer("greet kai instead")
        assert taken == (STEER in turn.provider.capabilities)
        if not taken:  # else it breaks the text off, which the model holds
            rig.server.go_on()
        answer = await turn.answer()
        assert answer.text == ("hello kai" if taken else "a long story")
        assert ("greet kai instead" in rig.server.turns[-1].everything) == taken

    async def test_words_after_the_end_are_refused(self, rig: HarnessRig) -> None:
        turn = Turn(rig, "hello")
        await turn.answer()
        assert not await turn.provider.steer("too late")

    # --- interruption --------------------------------------------------------------------

    async def test_an_interrupted_text_leaves_a_session_that_goes_on(self, rig: HarnessRig) -> None:
        rig.server.script(Say("a long story", hold=True))
        turn = Turn(rig, "my bird is the heron")
        await turn.until(lambda: turn.run.shown)
        await self._interrupt(rig, turn)

    async def test_an_interrupted_tool_leaves_a_session_that_goes_on(self, rig: HarnessRig) -> None:
        rig.server.script(rig.shell(WAIT))
        turn = Turn(rig, "my bird is the heron", autonomy="high")
        await turn.until((rig.workspace / "begun").exists)
        await self._interrupt(rig, turn)

    async def _interrupt(self, rig: HarnessRig, turn: Turn) -> None:
        """Interrupt a turn without letting the model go on, and take another one in its session."""
        assert INTERRUPT in turn.provider.capabilities
        await turn.provider.interrupt()
        await turn.end()
        assert isinstance(turn.task.exception(), TurnError | None), turn.task.exception()
        assert not rig.left_behind()
        rig.server.script(Say("the heron"))
        again = Turn(rig, rig.turn("which bird", session=turn.session))
        assert (await again.answer()).text == "the heron"
        assert "my bird is the heron" in "\n".join(rig.server.turns[-1].texts)

    # --- kills and cancellations ---------------------------------------------------------

    async def test_a_killed_first_turn_is_resumed_with_its_memory(self, rig: HarnessRig) -> None:
        await self._killed(rig, Turn(rig, "my bird is the heron"))

    async def test_a_killed_later_turn_is_resumed_with_its_memory(self, rig: HarnessRig) -> None:
        first = Turn(rig, "my bird is the heron")
        await first.answer()
        await self._killed(rig, Turn(rig, rig.turn("and more", session=first.session)))

    async def _killed(self, rig: HarnessRig, turn: Turn) -> None:
        rig.server.script(Say("a long story", hold=True))
        await turn.until(lambda: turn.run.shown)
        os.kill(turn.run.pids[0], signal.SIGKILL)
        await turn.end()
        error = turn.task.exception()
        assert isinstance(error, TurnError | LaneError) and not isinstance(error, SessionLost), repr(error)
        assert not rig.left_behind()
        rig.server.script(Say("the heron"))
        again = Turn(rig, rig.turn("which bird", session=turn.session))
        assert (await again.answer()).text == "the heron"
        assert "my bird is the heron" in "\n".join(rig.server.turns[-1].texts)

    @pytest.mark.parametrize("moment", ["at once", "started", "asked", "writing", "tool", "question"])
    async def test_a_cancelled_turn_leaves_no_process(self, rig: HarnessRig, moment: str) -> None:
        turn = await self._until_moment(rig, moment)
        turn.task.cancel()
        await turn.end()
        assert turn.task.cancelled()
        assert not rig.left_behind()

    async def _until_moment(self, rig: HarnessRig, moment: str) -> Turn:
        """Take a turn until this moment."""
        begun = (rig.workspace / "begun").exists
        moments: dict[str, tuple[Hold | Say | UseTool, str, Callable[[Turn], Awaitable[None]]]] = {
            "at once": (Hold(), "high", lambda turn: asyncio.sleep(0)),
            "started": (Hold(), "high", lambda turn: turn.until(lambda: turn.run.pids)),
            "asked": (Hold(), "high", lambda turn: turn.held()),
            "writing": (Say("a story", hold=True), "high", lambda turn: turn.until(lambda: turn.run.shown)),
            "tool": (rig.shell(WAIT), "high", lambda turn: turn.until(begun)),
            "question": (rig.risky(WAIT), "low", lambda turn: turn.until(lambda: turn.run.questions)),
        }
        step, autonomy, reached = moments[moment]
        rig.server.script(step)
        turn = Turn(rig, "hello", autonomy=autonomy, waits=moment == "question")
        await reached(turn)
        return turn
