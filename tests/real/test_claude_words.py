"""Words of people to the real Claude Code, at any moment of a turn; and turns that are cut or interrupted."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.contracts.failures import TurnError
from hiboss.testing.model_server import Cut, Hold, Say
from tests.real.claude_rig import ClaudeRig
from tests.real.harness_rig import Turn

rig_class = ClaudeRig


async def test_words_that_look_like_a_command_are_words(rig: ClaudeRig) -> None:
    rig.server.script(Say("a long story", hold=True), Say("as you say"))
    turn = Turn(rig, "tell me a story")
    await turn.until(lambda: turn.run.shown)
    assert await turn.provider.steer("/clear")
    assert (await turn.answer()).text == "as you say"
    assert "/clear" in "\n".join(rig.server.turns[-1].texts)


async def started(turn: Turn) -> None:
    await turn.until(lambda: turn.run.pids)


async def asked(turn: Turn) -> None:
    """The model is asked, and says nothing yet. It answers when this is over."""
    await turn.held()
    turn.rig.server.go_on()


async def written(turn: Turn) -> None:
    """The first words of the answer have come, and the others are on their way."""
    await turn.until(lambda: turn.run.shown)
    turn.rig.server.go_on()


async def ended(turn: Turn) -> None:
    await turn.answer()


@pytest.mark.parametrize(
    ("step", "moment"),
    [(None, started), (Hold(), asked), (Say("You said: hello", hold=True), written), (None, ended)],
    ids=["started", "asked", "written", "ended"],
)
async def test_words_that_were_taken_always_reach_the_model(
    rig: ClaudeRig, step: Hold | Say | None, moment: Callable[[Turn], Awaitable[None]]
) -> None:
    rig.server.script(*filter(None, [step]))
    turn = Turn(rig, "hello")
    await moment(turn)
    word = f"w-{uuid.uuid4().hex}"
    taken = await turn.provider.steer(word)
    answer = await turn.answer()
    hearing = [one for one in rig.server.turns if word in one.everything]
    assert bool(hearing) == taken
    # The last of all calls knows the words, and what the model said then is the end of the answer.
    assert not taken or hearing[-1] is rig.server.turns[-1]
    said = rig.server.turns[-1].last_user.strip().splitlines()[-1]
    assert answer.text.endswith(f"You said: {said}")


async def test_words_that_look_like_a_command_join_a_turn_during_a_tool(rig: ClaudeRig) -> None:
    rig.server.script(rig.shell("touch begun; until [ -e go ]; do sleep 0.05; done"), Say("heard you"))
    turn = Turn(rig, "take your time", autonomy="high")
    await turn.until((rig.workspace / "begun").exists)
    assert await turn.provider.steer("/clear the table")
    (rig.workspace / "go").touch()
    assert (await turn.answer()).text == "heard you"
    assert len(rig.server.turns) == 2 and "/clear the table" in rig.server.turns[-1].everything


def waiting_at_its_end(rig: ClaudeRig) -> Path:
    """Let claude wait after its text, before its result, as a hook of the user may do; return what it makes."""
    begun = rig.workspace / "stopping"
    command = f"touch {begun}; until [ -e {rig.workspace}/go ]; do sleep 0.05; done"
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    (rig.workspace / ".claude").mkdir()
    (rig.workspace / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    return begun


async def test_words_after_a_whole_text_have_a_result_of_their_own_and_both_are_the_answer(
    rig: ClaudeRig,
) -> None:
    begun = waiting_at_its_end(rig)
    rig.server.script(Say("a whole answer"), Say("and another"))
    turn = Turn(rig, "hello")
    await turn.until(begun.exists)
    assert await turn.provider.steer("one thing more")
    (rig.workspace / "go").touch()
    assert (await turn.answer()).text == "a whole answer\n\nand another"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_program_that_dies_before_it_answered_words_fails_the_turn(
    rig: ClaudeRig, how: signal.Signals
) -> None:
    begun = waiting_at_its_end(rig)
    rig.server.script(Say("a whole answer"), Hold())
    turn = Turn(rig, "hello")
    await turn.until(begun.exists)
    assert await turn.provider.steer("one thing more")
    (rig.workspace / "go").touch()
    await turn.held()
    os.kill(turn.run.pids[0], how)
    error = await turn.fails(TurnError)
    # Claude Code answers a SIGINT itself, but under load it may end before it has said so.
    assert error.kind in (("interrupted", "no_result") if how == signal.SIGINT else ("no_result",))


async def test_words_that_wait_are_forgotten_by_an_interrupt(rig: ClaudeRig) -> None:
    rig.server.script(rig.shell("touch begun; until [ -e go ]; do sleep 0.05; done"))
    turn = Turn(rig, "take your time", autonomy="high")
    await turn.until((rig.workspace / "begun").exists)
    assert await turn.provider.steer("and then this")
    await turn.provider.interrupt()
    assert (await turn.answer()).text == ""
    assert len(rig.server.turns) == 1
    rig.server.script(Say("here I am"))
    assert (await Turn(rig, rig.turn("back?", session=turn.session)).answer()).text == "here I am"


async def test_a_stream_that_was_cut_leaves_an_estimated_usage(rig: ClaudeRig) -> None:
    rig.server.script(Cut("some wo", times=1), Say("whole"))
    turn = Turn(rig, "hello")
    await turn.answer()
    assert not [one.usage for one in turn.run.heard if one.usage is not None][-1].exact


async def test_an_interrupted_turn_has_an_estimated_usage(rig: ClaudeRig) -> None:
    rig.server.script(Say("a long story", tokens_in=100, cached=3000, hold=True))
    turn = Turn(rig, "tell me a story")
    await turn.until(lambda: turn.run.shown)
    await turn.provider.interrupt()
    await turn.answer()
    usage: Any = [one.usage for one in turn.run.heard if one.usage is not None][-1]
    assert usage.tokens_in == 3100 and not usage.exact
