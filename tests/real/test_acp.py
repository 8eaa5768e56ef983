"""The provider `acp` with real agents, against the scripted model server."""

from __future__ import annotations

import pytest

from hiboss.core.contracts.provider import COST
from hiboss.testing.model_server import Say
from tests.real.acp_rigs import ClaudeAcpRig, CodexAcpRig
from tests.real.harness_contract import HarnessContract
from tests.real.harness_rig import HarnessRig, Turn


class AcpContract(HarnessContract):
    """What differs by the protocol."""

    async def test_the_usage_is_that_of_all_calls_of_the_turn(self, rig: HarnessRig) -> None:
        """The context is what the session holds: also what was written last."""
        first = rig.shell("echo one")
        rig.server.script(first, Say("done", tokens_in=120, cached=3050, tokens_out=9))
        turn = Turn(rig, "count", autonomy="high")
        answer = await turn.answer()
        assert answer.tokens_in == first.tokens_in + first.cached + 120 + 3050
        assert answer.tokens_out == first.tokens_out + 9
        assert answer.context == 120 + 3050 + 9
        assert (answer.cost is not None and answer.cost > 0) == (COST in turn.provider.capabilities)

    async def test_the_usage_of_a_second_turn_is_its_own(self, rig: HarnessRig) -> None:
        """The cost is a difference to what the session has cost before, which hiboss knows."""
        one = Turn(rig, "one")
        first = await one.answer()
        given = rig.turn("two", session=one.session, session_cost=first.cost)
        second = await Turn(rig, given).answer()
        assert (second.tokens_in, second.tokens_out) == (first.tokens_in, first.tokens_out)
        if first.cost is None or second.cost is None:
            assert first.cost is second.cost
            return
        assert 0 < second.cost == pytest.approx(first.cost), [one.is_main for one in rig.server.requests]
        given = rig.turn("three", session=one.session, session_cost=first.cost + second.cost)
        assert (await Turn(rig, given).answer()).cost == pytest.approx(second.cost)

    async def test_a_session_that_is_open_elsewhere_goes_on_in_a_copy(self, rig: HarnessRig) -> None:
        first = Turn(rig, "my bird is the heron")
        await first.answer()
        rig.server.script(Say("still at it", hold=True), Say("in the copy"))
        other = Turn(rig, rig.turn("think long", session=first.session))
        await other.until(lambda: other.run.shown)
        beside = Turn(rig, rig.turn("which bird", session=first.session))
        await self._beside(rig, beside, first.session)
        rig.server.go_on()
        assert (await other.answer()).text == "still at it"
        await Turn(rig, rig.turn("and then", session=first.session)).answer()
        assert "think long" in rig.server.turns[-1].everything
        assert "which bird" not in rig.server.turns[-1].everything

    async def _beside(self, rig: HarnessRig, beside: Turn, session: str) -> None:
        answer = await beside.answer()
        assert answer.text == "in the copy" and "is open in" in (answer.note or "")
        assert beside.session != session and "heron" in rig.server.turns[-1].everything


class TestClaudeAgentAcp(AcpContract):
    rig_class = ClaudeAcpRig

    async def test_an_answer_is_heard_word_by_word(self, rig: HarnessRig) -> None:
        """The model is known by its short name first, and by its whole name from what it used."""
        rig.server.script(Say("hello dear boss, ä€😀"))
        turn = Turn(rig, "good morning", model=rig.model)
        answer = await turn.answer()
        assert answer.text == turn.run.shown == "hello dear boss, ä€😀"
        assert len(turn.run.texts("delta")) > 1
        assert rig.server.turns[-1].model == rig.model
        assert turn.run.texts("model") == ["sonnet", rig.model]

    async def test_an_empty_answer_is_no_failure(self, rig: HarnessRig) -> None:
        """Claude Code asks the model once more for something to show."""
        rig.server.script(rig.shell("echo done > done.txt"), Say(""), Say(""))
        assert (await Turn(rig, "do it quietly", autonomy="high").answer()).text == ""
        assert (rig.workspace / "done.txt").exists()


class TestCodexAcp(AcpContract):
    rig_class = CodexAcpRig
