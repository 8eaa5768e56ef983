"""What providers cut of the words of their programs has no beginning of a secret at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hiboss.agents.child_process import ProcessResult
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
