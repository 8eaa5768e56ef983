"""What each harness makes of faults: which of them stop the lane, and which only the turn."""

from __future__ import annotations

import pytest

from hiboss.core.contracts.failures import LaneError, Refused, TurnError
from hiboss.core.option_models import validate
from hiboss.testing.model_server import Cut, Fail, Say, StreamFail
from tests.real.harness_rig import HarnessRig, Turn

REQUESTS = 30  # retries of a harness are bounded: far fewer than this


def refuses_setting(rig: HarnessRig, name: str) -> None:
    """Check that somebody who gives a setting reads that the provider has none of this name."""
    settings = rig.make().settings.model_dump(exclude_none=True, exclude={"api_key"})
    with pytest.raises(Refused, match=f"--{name.replace('_', '-')}"):
        validate(type(rig.make()).Settings, {**settings, name: 1}, rig.name)


class FaultContract:
    """Cells of faults; part of HarnessContract."""

    async def _fails(
        self, rig: HarnessRig, kind: type[Exception], words: set[str], *, then_well: bool = True
    ) -> None:
        """Take a turn that must fail so; then, unless it is left out, one that succeeds: nothing stays broken."""
        turn = Turn(rig, "hello there")
        error = await turn.fails(kind)
        assert error.kind in words
        assert rig.key not in error.text and rig.key not in repr(turn.run.heard)
        assert len(rig.server.turns) < REQUESTS
        if then_well:
            rig.server.script(Say("well again"))
            assert (await Turn(rig, "and now").answer()).text == "well again"

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (401, {"refused", "not_logged_in"}),
            (403, {"refused", "not_logged_in"}),
            (429, {"rate_limited", "usage_limit"}),
            (500, {"overloaded"}),
            (503, {"overloaded"}),
            (529, {"overloaded"}),
        ],
    )
    async def test_a_refusal_of_all_turns_stops_the_lane(
        self, rig: HarnessRig, status: int, words: set[str]
    ) -> None:
        rig.server.script(Fail(status))
        await self._fails(rig, LaneError, words, then_well=status == 401)

    @pytest.mark.parametrize("status", [400, 413])
    async def test_a_refusal_of_this_turn_fails_it_alone(self, rig: HarnessRig, status: int) -> None:
        rig.server.script(Fail(status))
        await self._fails(rig, TurnError, {"rejected", "too_long"}, then_well=status == 400)

    async def test_a_wrong_key_stops_the_lane(self, rig: HarnessRig) -> None:
        rig.server.key = "another"
        turn = Turn(rig, "hello")
        error = await turn.fails(LaneError)
        assert error.kind in ("refused", "not_logged_in") and rig.key not in error.text
        assert not rig.server.turns

    async def test_who_is_not_logged_in_reads_what_helps(self, rig: HarnessRig) -> None:
        turn = Turn(rig, rig.turn("hello", environment=rig.logged_out()))
        error = await turn.fails(LaneError)
        assert error.kind == "not_logged_in" and rig.login in error.text
        assert not rig.server.turns

    async def test_a_stream_that_is_cut_once_is_repeated_by_the_harness(self, rig: HarnessRig) -> None:
        rig.server.script(Cut("some wo", times=1), Say("the whole answer"))
        assert (await Turn(rig, "hello").answer()).text == "the whole answer"

    async def test_a_stream_that_is_always_cut_stops_the_lane(self, rig: HarnessRig) -> None:
        rig.server.script(Cut("some words"))
        await self._fails(rig, LaneError, {"unreachable", "overloaded"})

    async def test_an_overload_in_the_middle_of_the_stream_stops_the_lane(self, rig: HarnessRig) -> None:
        kind = {"messages": "overloaded_error", "responses": "server_is_overloaded"}
        rig.server.script(Say("a first one"))
        await Turn(rig, "to see which API it is").answer()
        rig.server.script(StreamFail(kind[rig.server.turns[-1].api], "Overloaded", after="some"))
        await self._fails(rig, LaneError, {"overloaded", "rate_limited"})

    async def test_without_network_the_lane_stops_after_a_while(self, rig: HarnessRig) -> None:
        rig.server.unplug()
        turn = Turn(rig, "hello")
        error = await turn.fails(LaneError)
        assert error.kind == "unreachable"
        rig.server.plug()
        rig.server.script(Say("back"))
        assert (await Turn(rig, "and now").answer()).text == "back"

    async def test_a_turn_with_too_many_steps_fails(self, rig: HarnessRig) -> None:
        if "max_turns" not in type(rig.make()).Settings.model_fields:
            refuses_setting(rig, "max_turns")
            return
        rig.server.script(rig.shell("echo one"), rig.shell("echo two"), Say("too late"))
        turn = Turn(rig, "go on and on", autonomy="high", max_turns=1)
        error = await turn.fails(TurnError)
        assert error.kind == "max_turns" and error.repeat
        assert len(rig.server.turns) < 3

    async def test_a_turn_over_its_budget_fails_and_is_not_repeated(self, rig: HarnessRig) -> None:
        budget = rig.budget()
        if budget is None:
            refuses_setting(rig, "max_cost")
            refuses_setting(rig, "max_tokens")
            return
        steps = [rig.shell(f"echo {number}") for number in range(20)]
        queue = rig.server.script(*steps, Say("too late"))
        turn = Turn(rig, "go on and on", autonomy="high", **budget)
        error = await turn.fails(TurnError)
        assert error.kind == "over_budget" and not error.repeat
        assert queue.left, "it went on to the end"
        assert any(one.usage and one.usage.tokens_in for one in turn.run.heard)
