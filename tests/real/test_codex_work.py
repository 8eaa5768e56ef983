"""What only Codex does, with the real program: its sandbox and tools, its questions, its threads, its tokens."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import textwrap

import pytest

from hiboss.core.contracts.failures import SessionLost
from hiboss.core.contracts.provider import COST, Choice, Usage
from hiboss.testing.model_server import Say, UseTool
from tests.real.codex_rig import OUTSIDE, CodexRig
from tests.real.harness_rig import Turn

rig_class = CodexRig

BIRDS = """
    import json, sys
    for line in sys.stdin:
        call = json.loads(line)
        about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        about["serverInfo"] = {"name": "birds", "version": "1"}
        schema = {"type": "object", "properties": {"bird": {"type": "string"}}}
        results = {
            "initialize": about,
            "tools/list": {"tools": [{"name": "feed", "description": "feed a bird", "inputSchema": schema}]},
            "tools/call": {"content": [{"type": "text", "text": "fed it"}]},
        }
        if "id" in call:
            result = results.get(call["method"], {})
            print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"""


def usages(turn: Turn) -> list[Usage]:
    return [one.usage for one in turn.run.heard if one.usage is not None]


# --- tools and the sandbox -------------------------------------------------------------


async def test_a_profile_that_sets_path_anew_does_not_hide_hiboss(rig: CodexRig) -> None:
    (rig.directory / ".bash_profile").write_text("export PATH=/usr/bin:/bin\n")
    (rig.directory / ".profile").write_text("export PATH=/usr/bin:/bin\n")
    rig.server.script(rig.shell('echo "path: $PATH"; echo "token: $HIBOSS_TOKEN"'), Say("done"))
    environment = {**rig.environment(), "PATH": f"/opt/of-hiboss:{rig.programs.path}"}
    environment["HIBOSS_TOKEN"] = "hbt-7"
    await Turn(rig, rig.turn("look", environment=environment)).answer()
    seen = "".join(rig.server.turns[-1].tool_results)
    assert "/opt/of-hiboss:" in seen and "token: hbt-7" in seen


@pytest.mark.parametrize("autonomy", ["medium", "high"])
async def test_tools_reach_the_socket_of_the_daemon(rig: CodexRig, autonomy: str) -> None:
    path = str(rig.directory / "daemon.sock")
    heard = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set()
        writer.close()

    program = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
    rig.server.script(rig.shell(shlex.join([sys.executable, "-c", program])), Say("done"))
    async with await asyncio.start_unix_server(take, path):
        turn = Turn(rig, "call it", autonomy=autonomy)
        await turn.answer()
    assert heard.is_set(), rig.server.turns[-1].tool_results


async def test_medium_autonomy_writes_in_the_workspace_only_and_asks_for_more(rig: CodexRig) -> None:
    outside = rig.directory / "made-by-codex"  # not below /tmp, where codex may write
    ask = UseTool("exec_command", {"cmd": f"touch {outside}", **OUTSIDE})
    rig.server.script(rig.shell(f"touch inside.txt; touch {outside}; ls {outside}"), ask, Say("done"))
    turn = Turn(rig, "write", ["deny"], autonomy="medium")
    await turn.answer()
    assert (rig.workspace / "inside.txt").exists() and not outside.exists()
    (question,) = turn.run.questions
    assert "It is outside of the sandbox." in question.text and question.detail == f"touch {outside}"


async def test_low_autonomy_reads_and_changes_nothing_without_a_question(rig: CodexRig) -> None:
    (rig.workspace / "note.txt").write_text("a heron")
    command = UseTool("exec_command", {"cmd": "cat note.txt; touch made.txt", "tty": False})
    turn = Turn(rig, "look", autonomy="low")
    rig.server.script(command, Say("done"))  # after it was made: this model asks nobody
    await turn.answer()
    assert "a heron" in "".join(rig.server.turns[-1].tool_results)
    assert not (rig.workspace / "made.txt").exists() and not turn.run.questions


async def test_the_model_that_codex_chooses_works_with_scripts_whose_commands_are_shown(
    rig: CodexRig,
) -> None:
    script = (
        "const r = await tools.exec_command({cmd: \"echo o''ne > made.txt; cat made.txt\"}); text(r.output);"
    )
    rig.server.script(UseTool("exec", script), Say("made"))
    turn = Turn(rig, "make it", model=None)
    assert (await turn.answer()).text == "made"
    assert (rig.workspace / "made.txt").read_text() == "one\n"
    assert any("made.txt" in one for one in turn.run.texts("tool"))
    assert turn.run.texts("tool_result") == ["one"]


async def test_a_tool_of_an_mcp_server_is_asked_for_and_given(rig: CodexRig) -> None:
    program = rig.directory / "birds.py"
    program.write_text(textwrap.dedent(BIRDS))
    table = f'mcp_servers.birds={{command="{sys.executable}", args=["{program}"]}}'
    arguments = f"{rig.arguments()} {shlex.join(['-c', table])}"
    script = 'const r = await tools.mcp__birds__feed({bird: "heron"}); text(JSON.stringify(r));'
    rig.server.script(UseTool("exec", script), Say("fed"))
    turn = Turn(rig, "feed it", ["allow"], arguments=arguments, model=None)
    assert (await turn.answer()).text == "fed"
    assert "fed it" in "".join(rig.server.turns[-1].tool_results)
    (question,) = turn.run.questions
    assert question.tool == "mcp birds" and "feed" in question.text
    assert any("birds.feed" in one and "heron" in one for one in turn.run.texts("tool"))


# --- questions -------------------------------------------------------------------------


async def test_a_change_of_files_is_asked_for_with_its_diff(rig: CodexRig) -> None:
    patch = "*** Begin Patch\n*** Update File: note.txt\n@@\n-old\n+new\n*** End Patch"
    for choice, content in (
        (Choice("deny", "not this week", "user:boss"), "old\n"),
        (Choice("allow"), "new\n"),
    ):
        (rig.workspace / "note.txt").write_text("old\n")
        rig.server.script(UseTool("apply_patch", patch), Say("done"))
        turn = Turn(rig, "change it", [choice], autonomy="low")
        assert (await turn.answer()).text == "done"
        (question,) = turn.run.questions
        assert question.tool == "apply_patch" and question.default == "deny"
        assert f"update {rig.workspace / 'note.txt'}" in question.detail
        assert "-old\n+new" in question.detail
        assert json.loads(question.subject)["changes"]
        assert (rig.workspace / "note.txt").read_text() == content
        assert ("not this week" in rig.server.turns[-1].everything) == (choice.option == "deny")


async def test_several_questions_at_once_get_their_answers_with_what_was_added(rig: CodexRig) -> None:
    options = [
        {"label": "Red (Recommended)", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ]
    asked = [
        {"id": name, "header": name, "question": f"Which {name}?", "options": options}
        for name in ("hat", "coat")
    ]
    rig.server.script(UseTool("request_user_input", {"questions": asked}), Say("bought"))
    turn = Turn(rig, "buy", [Choice("Blue", "but dark", "user:boss")])
    assert (await turn.answer()).text == "bought"
    assert [one.options for one in turn.run.questions] == [("Red (Recommended)", "Blue")] * 2
    answers = json.loads(rig.server.turns[-1].tool_results[-1])["answers"]
    assert answers["hat"]["answers"] == ["Blue", "user_note: but dark"]
    assert answers["coat"]["answers"] == ["Red (Recommended)", "user_note: Nobody answered in time."]


# --- threads ---------------------------------------------------------------------------


async def test_a_thread_that_another_program_has_open_goes_on_in_a_copy(rig: CodexRig) -> None:
    first = Turn(rig, "my bird is the heron")
    await first.answer()
    rig.server.script(Say("a long story", hold=True))
    other = Turn(rig, rig.turn("tell", session=first.session))
    await other.until(lambda: other.run.shown)
    rig.server.script(Say("the heron", tokens_in=50, cached=0, tokens_out=3))
    copy = Turn(rig, rig.turn("which bird", session=first.session))
    answer = await copy.answer()
    rig.server.go_on()
    await other.answer()
    assert answer.text == "the heron" and "copy" in (answer.note or "")
    assert copy.session != first.session == other.session
    assert "my bird is the heron" in "\n".join(rig.server.turns[-1].texts)
    assert (answer.tokens_in, answer.tokens_out, answer.context) == (50, 3, 50)
    again = Turn(rig, rig.turn("and now", session=copy.session))
    assert (await again.answer()).note is None


async def test_instructions_that_changed_reach_a_resumed_thread_once(rig: CodexRig) -> None:
    first = Turn(rig, "hello")
    await first.answer()
    for text in ("one", "two"):
        changed = "You are nex. Your word of honour is kestrel."
        await Turn(rig, rig.turn(text, session=first.session, instructions=changed)).answer()
        system = rig.server.turns[-1].system
        assert system.count("kestrel") == 1 and system.index("osprey") < system.index("kestrel")


async def test_a_session_of_another_kind_is_lost_and_the_program_not_even_started(rig: CodexRig) -> None:
    turn = Turn(rig, rig.turn("hello", session="nex-1"))
    assert "nex-1" in (await turn.fails(SessionLost)).text
    assert not turn.run.pids


async def test_a_turn_that_is_interrupted_at_once_reaches_no_model(rig: CodexRig) -> None:
    turn = Turn(rig, "hello")
    await turn.until(lambda: turn.run.pids)
    await turn.provider.interrupt()
    assert (await turn.answer()).text == ""
    assert not rig.server.turns


async def test_words_that_come_before_the_turn_has_begun_are_taken(rig: CodexRig) -> None:
    rig.server.script(Say("a long story", hold=True), Say("hello kai"))
    turn = Turn(rig, "tell me a story")
    await turn.until(lambda: turn.run.pids)
    steering = asyncio.create_task(turn.provider.steer("and greet kai"))
    await turn.until(lambda: turn.run.shown)
    assert await steering
    rig.server.go_on()
    await turn.answer()
    assert "and greet kai" in rig.server.turns[-1].everything


# --- tokens ----------------------------------------------------------------------------


async def test_codex_names_no_costs_and_tells_its_tokens_while_it_works(rig: CodexRig) -> None:
    rig.server.script(rig.shell("echo one"), Say("done"))
    turn = Turn(rig, "count", autonomy="high")
    answer = await turn.answer()
    assert COST not in turn.provider.capabilities and answer.cost is None
    assert [one.tokens_in for one in usages(turn)][:2] == [3100, 6200]
    assert usages(turn)[-1] == Usage(6200, 14, None, 3100, exact=True)


async def test_an_interrupted_turn_has_no_exact_usage(rig: CodexRig) -> None:
    rig.server.script(rig.shell("echo one"), Say("a long story", hold=True))
    turn = Turn(rig, "count", autonomy="high")
    await turn.until(lambda: turn.run.shown)
    await turn.provider.interrupt()
    await turn.end()
    assert usages(turn)[-1].tokens_in == 3100 and not usages(turn)[-1].exact


async def test_an_answer_that_is_whole_counts_though_it_was_over_the_budget(rig: CodexRig) -> None:
    rig.server.script(Say("done already"))
    answer = await Turn(rig, "hello", max_tokens=3000).answer()
    assert answer.text == "done already" and "--max-tokens" in (answer.note or "")


async def test_an_answer_that_is_whole_when_somebody_speaks_stays_in_the_answer(rig: CodexRig) -> None:
    rig.server.script(Say("a whole answer", hold_end=True), Say("and another"))
    turn = Turn(rig, "hello")
    await turn.until(lambda: turn.run.shown == "a whole answer")
    assert await turn.provider.steer("one thing more")
    rig.server.go_on()
    assert (await turn.answer()).text == "a whole answer\n\nand another"
    assert "one thing more" in rig.server.turns[-1].everything
