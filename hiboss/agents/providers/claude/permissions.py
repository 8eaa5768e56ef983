"""The questions of the program to people: whether a tool may be used, and those that the model asks itself.

Both come as a control request `can_use_tool`, and get a control response.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping
from typing import Any

from ....core.contracts.provider import TOOL_CHARACTERS, Choice, LiveRun, Question
from ..option_labels import distinct

ALLOW, DENY = "allow", "deny"
ASK_TOOL = "AskUserQuestion"
OTHER = "something else"
# Of the input of Bash: what makes no difference for what is done.
WITHOUT_EFFECT = frozenset(("command", "description", "timeout"))

Input = Mapping[str, Any]


async def answer(run: LiveRun, tool: str, given: Input, reason: str, workspace: str) -> dict[str, Any]:
    """Ask people, and return the answer in the form of the program."""
    if tool == ASK_TOOL and (questions := _questions(given)):
        return await _answers(run, given, questions)
    choice = await run.ask(permission(tool, given, reason, workspace))
    if choice.option == ALLOW:
        return allowed(given)
    return {"behavior": "deny", "message": _denial(choice)}


def allowed(given: Input) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": dict(given)}


def permission(tool: str, given: Input, reason: str, workspace: str) -> Question:
    """Return the question whether a tool may be used."""
    name = "".join(one if one.isprintable() else "_" for one in tool)[:TOOL_CHARACTERS] or "a tool"
    because = f" {reason.strip()}" if reason.strip() else ""
    return Question(
        f"May I use {name}?{because}",
        (ALLOW, DENY),
        DENY,
        name,
        detail(tool, given),
        subject(tool, given, workspace) if name == tool else "",
    )


def detail(tool: str, given: Input) -> str:
    """Return what the tool would do, in full, to read: a command, or one paragraph for each input."""
    if (
        tool == "Bash"
        and isinstance(given.get("command"), str)
        and given.keys() <= {"command", "description"}
    ):
        said = given.get("description")
        return f"{given['command']}\n\n({said})" if isinstance(said, str) and said else str(given["command"])
    return "\n".join(f"{name}: {_value(value)}" for name, value in given.items())


def subject(tool: str, given: Input, workspace: str) -> str:
    """Return all that makes a difference: the same tool, with the same input, in the same directory."""
    if tool == "Bash" and isinstance(given.get("command"), str) and given.keys() <= WITHOUT_EFFECT:
        return f"cd {shlex.quote(workspace)} && {given['command']}"
    return json.dumps(
        {"cwd": workspace, "input": dict(given)}, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f"\n{value}" if "\n" in value else value
    return json.dumps(value, ensure_ascii=False)


def _denial(choice: Choice) -> str:
    """Return the words of a denial for the model. It goes on with its turn."""
    if choice.by is None:
        why = choice.text or "nobody answered in time"
        return f"Not allowed: {why}. Go on without it, or say what you need it for."
    return "The boss does not allow this" + (f": {choice.text}" if choice.text else ".")


# --- questions of the model --------------------------------------------------------------


def _questions(given: Input) -> list[dict[str, Any]]:
    found = given.get("questions")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


async def _answers(run: LiveRun, given: Input, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask all questions of the model at once, and return their answers."""
    prepared = [own_question(one) for one in questions]
    choices = await asyncio.gather(*(run.ask(one) for one, _ in prepared))
    answers, notes, unanswered = {}, {}, []
    for about, (_, labels), choice in zip(questions, prepared, choices, strict=True):
        text = str(about.get("question", ""))
        if choice.by is None:
            unanswered.append(f"{text}: {choice.text or 'nobody answered in time'}")
            continue
        label = labels.get(choice.option)
        answers[text] = label if label is not None else choice.text or "None of these"
        if label is not None and choice.text:
            notes[text] = {"notes": choice.text}
    if not answers:
        said = "; ".join(unanswered)
        return {
            "behavior": "deny",
            "message": f"Nobody answered ({said}). Decide yourself what is safest, and say so.",
        }
    for about in questions:
        answers.setdefault(
            str(about.get("question", "")), "(nobody answered; decide yourself what is safest)"
        )
    return allowed({**given, "answers": answers, "annotations": notes})


def own_question(about: Input) -> tuple[Question, dict[str, str]]:
    """Return a question of the model, and its labels by the options that people see."""
    given = about.get("options")
    options = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    shown = distinct(((str(one.get("label", "")), one) for one in options), taken=(OTHER,))
    lines = [str(about.get("question") or "").strip() or "Which one?"]
    lines += [f"{label}: {one['description']}" for label, one in shown.items() if one.get("description")]
    if about.get("multiSelect") is True:
        lines.append("(Several can be right: choose one, and name the others in a comment.)")
    labels = {label: str(one["label"]) for label, one in shown.items()}
    return Question("\n".join(lines), (*labels, OTHER), OTHER), labels
