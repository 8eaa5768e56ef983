"""What is shown live of a run, without secrets: pieces of the answer, tools, results, thoughts; and what is stored of its usage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.child_process import ProcessResult
from hiboss.agents.provider_reports import SHOWN_CHARACTERS
from hiboss.agents.providers.acp import failures as acp_failures
from hiboss.agents.providers.acp.connection import AgentError
from hiboss.agents.providers.acp.output import Output as AcpOutput
from hiboss.agents.providers.claude.output import Output as ClaudeOutput
from hiboss.agents.providers.claude.output import short_call
from hiboss.agents.providers.codex import failures as codex_failures
from hiboss.agents.providers.codex import items
from hiboss.agents.providers.option_labels import distinct
from hiboss.core.contracts.provider import Progress
from hiboss.core.quoting import hide
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.live_providers import staged
from tests.support.parties import Party, agent
from tests.support.shell_agents import Boss
from tests.support.waits import wait_until

MODULES = "tests.support.live_providers"


daemon = daemon_fixture(finish_seconds=0.1, provider_modules=MODULES)


@pytest.fixture
def kai(daemon: RunningDaemon, tmp_path: Path) -> Party:
    return agent(daemon, provider="staged", workspace=str(tmp_path))


def runs(ada: Boss, kai: Party) -> list[Any]:
    return list(reversed(ada.call("run.list", agent=kai.name)["runs"]))


def parts(ada: Boss, kai: Party, number: int) -> list[tuple[str, str]]:
    """Wait until a run of kai has so many parts of live output; return them."""
    wait_until(lambda: runs(ada, kai))
    run = runs(ada, kai)[-1]["id"]
    wait_until(lambda: len(ada.call("run.tail", id=run)["parts"]) >= number)
    return [(one["kind"], one["text"]) for one in ada.call("run.tail", id=run)["parts"]]


def ended(ada: Boss, kai: Party, number: int = 1) -> Any:
    wait_until(lambda: len(found := runs(ada, kai)) == number and found[-1]["status"] != "running")
    return runs(ada, kai)[-1]


def test_thoughts_and_tools_are_shown_and_are_no_part_of_the_answer(
    ada: Boss, kai: Party, tmp_path: Path
) -> None:
    shown = [("thinking", "first this"), ("tool", "Bash ls"), ("tool_result", "a\nb"), ("delta", "It is ")]
    staged(
        tmp_path, *shown, ("alive", "x"), ("model", "big-1"), ("delta", "b."), ("wait", "go"), ("final", "b")
    )
    number = ada.tell(kai)
    assert parts(ada, kai, 5) == [*shown, ("delta", "b.")]
    (tmp_path / "go").touch()
    assert ended(ada, kai)["text"] == "b"
    wait_until(lambda: ada.get(number)["status"] == "done")


def test_a_tool_is_one_line_a_result_is_cut_and_neither_shows_a_secret(
    ada: Boss, kai: Party, tmp_path: Path
) -> None:
    token = kai.token
    staged(
        tmp_path,
        ("tool", f"Bash export HIBOSS_TOKEN={token}\n  curl " + "x" * 5_000),
        ("tool_result", f"\n{token}\n" + "y\n" * 5_000),
        ("thinking", f"the token is {token}"),
        ("wait", "go"),
        ("final", "done"),
    )
    ada.tell(kai)
    found = dict(parts(ada, kai, 3))
    assert token not in str(found)
    assert found["tool"].startswith("Bash export HIBOSS_TOKEN=hba_… curl xxx") and "\n" not in found["tool"]
    assert [len(found[kind]) for kind in ("tool", "tool_result")] == [
        SHOWN_CHARACTERS[kind] + 1 for kind in ("tool", "tool_result")
    ]
    assert found["tool_result"].startswith("hba_…\ny\ny") and found["tool_result"].endswith("…")
    (tmp_path / "go").touch()
    ended(ada, kai)


def test_a_secret_that_comes_in_pieces_of_a_thought_is_not_shown(
    ada: Boss, kai: Party, tmp_path: Path
) -> None:
    token = kai.token
    thoughts = [("thinking", one) for one in ("It is h", token[1:9], token[9:14], token[14:], " I think, h")]
    more = (("usage", {"tokens_in": 1}), ("thinking", "m"), ("tool", "Bash ls"), ("thinking", "last wh"))
    staged(tmp_path, *thoughts, *more, ("delta", token[:12]), ("wait", "go"), ("final", "done"))
    ada.tell(kai)
    wait_until(lambda: runs(ada, kai))
    wait_until(lambda: any(kind == "delta" for kind, _ in parts(ada, kai, 1)))
    found = parts(ada, kai, 1)
    tool = [kind for kind, _ in found].index("tool")
    assert "".join(text for _, text in found[:tool]) == "It is hba_… I think, hm"
    assert "".join(text for kind, text in found[tool:] if kind == "thinking") == "last wh"
    assert found[-1] == ("delta", token[:12])  # the answer is what the agent wants to say
    (tmp_path / "go").touch()
    ended(ada, kai)


def test_what_a_person_said_to_a_session_that_is_lost_is_said_again_in_the_new_one(
    ada: Boss, kai: Party, tmp_path: Path
) -> None:
    staged(tmp_path, ("session", "s-1"), ("final", "well"))
    ada.tell(kai)
    ended(ada, kai)
    staged(tmp_path, ("wait", "go"), ("lose",), ("final", "again"))
    ada.tell(kai, text="once more")
    wait_until(lambda: len((tmp_path / "turns").read_text().splitlines()) == 2)
    assert ada.call("run.steer", id=runs(ada, kai)[-1]["id"], text="and hurry")["taken"]
    (tmp_path / "go").touch()
    assert ended(ada, kai, 2)["text"] == "again"
    assert "and hurry" in (tmp_path / "turns").read_text().splitlines()[2]


# --- usage -------------------------------------------------------------------------------


def used(ada: Boss, kai: Party, tmp_path: Path, *steps: Any) -> tuple[Any, ...]:
    staged(tmp_path, *steps)
    ada.tell(kai)
    run = ended(ada, kai)
    with kai.daemon.database() as database:
        row = database.execute(
            "SELECT tokens_in, tokens_out, cost, context, usage_estimated FROM run WHERE id = ?",
            (int(run["id"][1:]),),
        ).fetchone()
    return tuple(row)


SO_FAR = {"tokens_in": 10, "tokens_out": 2, "cost": 0.5, "context": 9}
FAILS = ("fail", "rejected", "no", False)


def test_the_usage_of_a_turn_that_ends_with_an_answer_is_not_estimated(
    ada: Boss, kai: Party, tmp_path: Path
) -> None:
    steps = (("usage", SO_FAR), ("final", "done", {"tokens_out": 7}))
    assert used(ada, kai, tmp_path, *steps) == (10, 7, 0.5, 9, 0)


def test_the_usage_of_a_turn_that_fails_is_estimated(ada: Boss, kai: Party, tmp_path: Path) -> None:
    assert used(ada, kai, tmp_path, ("usage", SO_FAR), FAILS) == (10, 2, 0.5, 9, 1)


def test_final_numbers_of_a_turn_that_fails_are_not_estimated(ada: Boss, kai: Party, tmp_path: Path) -> None:
    final = SO_FAR | {"tokens_in": 12, "exact": True}
    assert used(ada, kai, tmp_path, ("usage", SO_FAR), ("usage", final), FAILS) == (12, 2, 0.5, 9, 0)


def test_a_turn_that_fails_without_any_usage_is_not_estimated(ada: Boss, kai: Party, tmp_path: Path) -> None:
    assert used(ada, kai, tmp_path, FAILS) == (None, None, None, None, 0)


def test_a_cancelled_turn_keeps_the_usage_so_far_as_estimated(ada: Boss, kai: Party, tmp_path: Path) -> None:
    staged(tmp_path, ("usage", SO_FAR), ("tool", "waits"), ("wait", "never"))
    ada.tell(kai)
    parts(ada, kai, 1)
    ada.call("run.cancel", id=runs(ada, kai)[-1]["id"])
    run = ended(ada, kai)
    assert (run["status"], run["tokens_in"], run["tokens_out"]) == ("cancelled", 10, 2)
    with kai.daemon.database() as database:
        row = database.execute(
            "SELECT usage_estimated FROM run WHERE id = ?", (int(run["id"][1:]),)
        ).fetchone()
    assert row[0] == 1


# --- no beginning of a secret where a text is cut -------------------------------------


SECRET = "cut-secret-CutCutCutCutCut-0123456789"
AGENT = acp_failures.Agent(("agent",))
hide([SECRET])


class Heard:
    def __init__(self) -> None:
        self.parts: list[Progress] = []

    def progress(self, part: Progress) -> None:
        self.parts.append(part)


def claude_result(text: str) -> str:
    heard = Heard()
    block = {"type": "tool_result", "tool_use_id": "t", "content": text}
    ClaudeOutput(heard.progress).take({"type": "user", "message": {"content": [block]}})
    return heard.parts[0].text


def acp_tool(text: str) -> str:
    heard = Heard()
    output = AcpOutput(heard, 1_000)  # type: ignore[arg-type]
    output.begin()
    output.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": text, "status": "in_progress"})
    return heard.parts[0].text


def acp_printed(text: str) -> str:
    """Let a tool print a text in pieces."""
    heard = Heard()
    output = AcpOutput(heard, 1_000)  # type: ignore[arg-type]
    output.begin()
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "1"}
    for at in range(0, len(text), 50):
        output.update({**call, "_meta": {"terminal_output_delta": {"data": text[at : at + 50]}}})
    output.update({**call, "status": "completed"})
    return heard.parts[-1].text


CUTS: dict[str, tuple[int, Callable[[str], str]]] = {
    "a tool of claude": (200 - len("Bash "), lambda text: short_call("Bash", {"command": text})),
    "a result of claude": (400, claude_result),
    "a command of codex": (200, lambda text: items.call({"type": "commandExecution", "command": text})),
    "a result of codex": (
        400,
        lambda text: items.result({"type": "commandExecution", "aggregatedOutput": text}),
    ),
    "an error of codex": (500, lambda text: codex_failures.of_thread(text, None).text),
    "a tool of ACP": (300, acp_tool),
    "what an ACP agent prints": (300, acp_printed),
    "an error of ACP": (500, lambda text: acp_failures.of_error(AgentError(1, text, None), AGENT).text),
    "the end of an ACP agent": (
        500,
        lambda text: (
            acp_failures.of_end(
                ProcessResult(status=1, stderr_tail=text, too_much_output=False), AGENT, began=True
            ).text
        ),
    ),
    "a label": (200, lambda text: next(iter(distinct([(text, 0)])))),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_secret_is_taken_out_before_a_text_is_cut(name: str) -> None:
    limit, show = CUTS[name]
    for kept in (8, 20, len(SECRET) - 1):
        shown = show("x" * (limit - kept) + SECRET + "y" * 3_000)
        assert "xxxxx" in shown and "cut-" not in shown
