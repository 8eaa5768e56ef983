"""What each harness does with its real program: a test for every cell, to inherit from.

    class TestClaude(HarnessContract):
        rig_class = ClaudeRig

What a provider does not declare as a capability must be refused, which is tested instead. Nothing is skipped.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from hiboss.core.contracts.failures import LaneError, SessionLost
from hiboss.core.contracts.provider import COST, SESSION, Choice
from hiboss.testing.model_server import Say
from tests.real.harness_control import ControlContract
from tests.real.harness_faults import FaultContract
from tests.real.harness_rig import HarnessRig, Turn
from tests.real.processes import words_of


class HarnessContract(ControlContract, FaultContract):
    """All cells."""

    rig_class: ClassVar[type[HarnessRig]]

    # --- answers -------------------------------------------------------------------------

    async def test_an_answer_is_heard_word_by_word(self, rig: HarnessRig) -> None:
        rig.server.script(Say("hello dear boss, ä€😀", tokens_in=120, cached=3000, tokens_out=9))
        turn = Turn(rig, "good morning", model=rig.model)
        answer = await turn.answer()
        assert answer.text == turn.run.shown == "hello dear boss, ä€😀"
        assert len(turn.run.texts("delta")) > 1
        assert "good morning" in rig.server.turns[-1].everything
        assert rig.server.turns[-1].model == rig.model
        assert turn.run.texts("model") == ([rig.model] if "model" in rig.tells else [])
        assert len(turn.run.pids) == 1

    async def test_the_usage_is_that_of_all_calls_of_the_turn(self, rig: HarnessRig) -> None:
        first = rig.shell("echo one")
        rig.server.script(first, Say("done", tokens_in=120, cached=3050, tokens_out=9))
        turn = Turn(rig, "count", autonomy="high")
        answer = await turn.answer()
        if "usage" in rig.tells:
            assert answer.tokens_in == first.tokens_in + first.cached + 120 + 3050
            assert answer.tokens_out == first.tokens_out + 9
        else:
            assert answer.tokens_in is answer.tokens_out is None
        assert answer.context == (120 + 3050 if "context" in rig.tells else None)
        assert (answer.cost is not None and answer.cost > 0) == (COST in turn.provider.capabilities)

    async def test_the_usage_of_a_second_turn_is_its_own(self, rig: HarnessRig) -> None:
        one = Turn(rig, "one")
        first = await one.answer()
        second = await Turn(rig, rig.turn("two", session=one.session)).answer()
        assert (second.tokens_in, second.tokens_out) == (first.tokens_in, first.tokens_out)
        assert (second.cost is None) == (first.cost is None)
        if first.cost is not None:
            assert second.cost == pytest.approx(first.cost)

    async def test_tools_are_shown_and_their_results_reach_the_model(self, rig: HarnessRig) -> None:
        rig.server.script(rig.shell("echo o''ne-and-two | tee made.txt"), Say("it is made"))
        turn = Turn(rig, "make it", autonomy="high")
        assert (await turn.answer()).text == "it is made"
        assert (rig.workspace / "made.txt").read_text() == "one-and-two\n"
        assert any("made.txt" in one for one in turn.run.texts("tool"))
        assert any("one-and-two" in one for one in turn.run.texts("tool_result"))
        assert "one-and-two" in "".join(rig.server.turns[-1].tool_results)
        assert not turn.run.questions

    async def test_a_file_is_written_without_a_question_with_medium_autonomy(self, rig: HarnessRig) -> None:
        rig.server.script(rig.edit(str(rig.workspace / "note.txt"), "a line\n"), Say("written"))
        turn = Turn(rig, "write it", ["allow"], autonomy="medium")
        assert (await turn.answer()).text == "written"
        assert (rig.workspace / "note.txt").read_text() == "a line\n"
        assert bool(turn.run.questions) == rig.asks_to_write

    async def test_thinking_is_shown_apart_from_the_answer(self, rig: HarnessRig) -> None:
        rig.server.script(Say("four", thinking="two and two is what?"))
        turn = Turn(rig, "how much", model=rig.model)
        assert (await turn.answer()).text == turn.run.shown == "four"
        shown = "two and two is what?" if "thinking" in rig.tells else ""
        assert "".join(turn.run.texts("thinking")).strip() == shown

    async def test_an_empty_answer_is_no_failure(self, rig: HarnessRig) -> None:
        rig.server.script(rig.shell("echo done > done.txt"), Say(""))
        turn = Turn(rig, "do it quietly", autonomy="high")
        assert (await turn.answer()).text == ""
        assert (rig.workspace / "done.txt").exists()

    async def test_the_instructions_reach_the_model(self, rig: HarnessRig) -> None:
        await Turn(rig, "who are you").answer()
        assert "Your word of honour is osprey." in rig.server.turns[-1].everything

    @pytest.mark.parametrize(
        "text", ["/clear", "/nosuch thing", "!echo hi", "-c x", "@/etc/hostname", "#memo"]
    )
    async def test_a_text_that_looks_like_a_command_is_a_turn(self, rig: HarnessRig, text: str) -> None:
        rig.server.script(Say("as you say"))
        assert (await Turn(rig, rig.turn(text, text=text)).answer()).text == "as you say"
        assert text in "\n".join(rig.server.turns[-1].texts)

    async def test_a_big_turn_arrives_whole(self, rig: HarnessRig) -> None:
        text = "\n".join(f"{number}: ä€😀 and some words more" for number in range(8000))  # 300 kB
        rig.server.script(Say("much"))
        assert (await Turn(rig, text).answer()).text == "much"
        assert text in "\n".join(rig.server.turns[-1].texts)

    async def test_the_key_stands_in_no_argument_and_in_no_output(self, rig: HarnessRig) -> None:
        rig.server.script(Say("slow words", hold=True))
        turn = Turn(rig, "hello")
        await turn.held()
        arguments = [words_of(one) for one in rig.left_behind()]
        rig.server.go_on()
        await turn.answer()
        assert arguments and rig.key not in repr(arguments)
        assert rig.key not in repr(turn.run.heard)
        assert rig.server.turns[-1].texts

    # --- questions -----------------------------------------------------------------------

    async def test_a_permission_is_asked_for_and_given(self, rig: HarnessRig) -> None:
        rig.server.script(rig.risky("touch asked.txt"), Say("after it"))
        turn = Turn(rig, "touch it", ["allow"], autonomy="low")
        assert (await turn.answer()).text == "after it"
        (question,) = turn.run.questions
        assert question.options == ("allow", "deny") and question.default == "deny"
        assert question.tool and "touch asked.txt" in question.detail
        assert "touch asked.txt" in question.subject
        assert (rig.workspace / "asked.txt").exists()

    @pytest.mark.parametrize(
        "choice", [[Choice("deny", "not on a Sunday", "user:boss")], []], ids=["denied", "unanswered"]
    )
    async def test_a_denied_permission_is_said_to_the_model_and_the_turn_goes_on(
        self, rig: HarnessRig, choice: list[Choice]
    ) -> None:
        rig.server.script(rig.risky("touch asked.txt"), Say("then not"))
        turn = Turn(rig, "touch it", choice, autonomy="low")
        assert (await turn.answer()).text == "then not"
        assert len(turn.run.questions) == 1
        assert not (rig.workspace / "asked.txt").exists()
        if "reason" in rig.tells:
            reason = choice[0].text if choice else "Nobody answered in time."
            assert reason in rig.server.turns[-1].everything

    async def test_the_model_asks_a_question_with_options_of_its_own(self, rig: HarnessRig) -> None:
        rig.server.script(rig.question("Which colour?", "red", "green"), Say("green it is"))
        turn = Turn(rig, "choose", ["green"])
        assert (await turn.answer()).text == "green it is"
        (question,) = turn.run.questions
        assert "Which colour?" in question.text
        assert {"red", "green"} <= set(question.options) and not question.tool
        assert "green" in "".join(rig.server.turns[-1].tool_results)

    # --- sessions ------------------------------------------------------------------------

    async def test_a_session_is_resumed_with_its_memory(self, rig: HarnessRig) -> None:
        first = Turn(rig, "my bird is the heron")
        await first.answer()
        assert first.run.sessions
        second = Turn(rig, rig.turn("which bird", session=first.session))
        await second.answer()
        assert "my bird is the heron" in "\n".join(rig.server.turns[-1].texts)
        fresh = Turn(rig, "which bird")
        await fresh.answer()
        assert "heron" not in rig.server.turns[-1].everything

    async def test_an_unknown_session_is_lost(self, rig: HarnessRig) -> None:
        unknown = "3f2b8c1e-5a7d-4c3b-9e6f-1a2b3c4d5e6f"
        turn = Turn(rig, rig.turn("hello", session=unknown))
        assert SESSION in turn.provider.capabilities
        await turn.fails(SessionLost)
        assert not rig.server.turns

    # --- the program ---------------------------------------------------------------------

    async def test_the_program_is_found_with_its_version(self, rig: HarnessRig) -> None:
        found = await rig.make().find(rig.environment(), str(rig.workspace))
        assert found is not None and found.found and not found.problem
        assert any(letter.isdigit() for letter in found.found)
        missing = await rig.missing().find(rig.environment(), str(rig.workspace))
        assert missing is not None and missing.problem and missing.help

    async def test_a_missing_program_stops_the_lane(self, rig: HarnessRig) -> None:
        provider = rig.missing()
        turn = Turn(rig, "hello")
        turn.task.cancel()
        await turn.end()
        with pytest.raises(LaneError) as raised:
            await turn.run.give(provider, turn.input)
        assert raised.value.kind == "no_program"
