"""The text of an answer that grows in a chat, and what the boss sees below it."""

from __future__ import annotations

import pytest

from hiboss.core.contracts.provider import Progress
from hiboss.routing.growing_answer import TOOL_CHARACTERS, GrowingAnswer


def grown(*parts: tuple[str, str]) -> GrowingAnswer:
    answer = GrowingAnswer()
    answer.add(Progress(*part) for part in parts)
    return answer


@pytest.mark.parametrize(
    ("parts", "others", "boss", "draft"),
    [
        ([], "", "", ""),
        ([("delta", "It is ")], "It is", "It is", "It is"),
        ([("tool", "Bash ls")], "", "", "⚙️ `Bash ls`"),
        ([("thinking", "hm")], "", "", "💭"),
        ([("delta", "I look."), ("tool", "Bash `ls`\n-l")], "I look.", *["I look.\n\n⚙️ `Bash 'ls' -l`"] * 2),
        ([("delta", "a"), ("tool", "ls"), ("tool_result", "x" * 999)], "a", *["a\n\n⚙️ `ls`"] * 2),
        ([("tool", "ls"), ("thinking", "hm"), ("delta", "b")], "b", "b", "b"),
        ([("delta", "b"), ("tool", "ls"), ("thinking", "hm")], "b", *["b\n\n💭"] * 2),
        ([("delta", "b"), ("steer", "hurry"), ("ask", "May I?"), ("tool", " \n")], "b", "b", "b"),
    ],
)
def test_only_the_boss_sees_what_the_agent_does_and_without_words_only_in_a_draft(
    parts: list[tuple[str, str]], others: str, boss: str, draft: str
) -> None:
    answer = grown(*parts)
    assert answer.shown(details=False, alone=True) == others
    assert answer.shown(details=True, alone=False) == boss and answer.shown(details=True, alone=True) == draft


def test_a_long_tool_line_is_shortened() -> None:
    shown = grown(("tool", "x" * 10_000)).shown(details=True, alone=True)
    assert len(shown) < TOOL_CHARACTERS + 10 and shown.endswith("…`")
