"""What an agent asks people: whether it may use a tool, and the fields of a form.

The answer to a permission is one of the agent's own options. It has no place for a reason: what the boss
writes with a `deny` does not reach the agent.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ....core.contracts.provider import MOST_OPTIONS, OPTION_CHARACTERS, TOOL_CHARACTERS, Choice, Question
from ....core.escaping import visible
from ...json_lines import Line

ALLOW, DENY = "allow", "deny"
TEXT_CHARACTERS = 300
MOST_FIELDS = 20
ANSWER, SKIP = "answer", "skip"
CANCELLED: Line = {"outcome": {"outcome": "cancelled"}}

Ask = Callable[[Question], Awaitable[Choice]]


class Permission(NamedTuple):
    """What people are asked when an agent wants a permission, and which of its options each answer is."""

    question: Question
    options: dict[str, str]  # the agent's option by ours; an answer that is missing here cancels the tool

    def denied(self, choice: Choice) -> str:
        """Return what the agent is told, if it stops at a denial."""
        what = _line(self.question.detail or self.question.text)
        return f"This was not allowed: {what}" + (f" ({_line(choice.text)})" if choice.text.strip() else "")

    def reply(self, option: str) -> Line:
        """Return the answer for the agent."""
        if option not in self.options:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": self.options[option]}}


def permission(given: Line, workspace: str) -> Permission:
    """Return what the agent wants to be allowed."""
    found = given.get("toolCall")
    call: Line = found if isinstance(found, dict) else {}
    offered = [one for one in given.get("options") or () if isinstance(one, dict) and "optionId" in one]
    title = call.get("title")
    tool, title = _tool(call), title if isinstance(title, str) else ""
    text = f"May it use {tool}?" + (f" {_line(title)}" if title.strip() and title != tool else "")
    once = {
        ALLOW: _of_kind(offered, "allow_once", "allow_always"),
        DENY: _of_kind(offered, "reject_once", "reject_always"),
    }
    if once[ALLOW] is None:  # a choice of another kind
        return _choice(text, tool, call, offered)
    if once[ALLOW].get("kind") == "allow_always":
        text += f" (for good: the agent offers nothing but: {_line(str(once[ALLOW].get('name')))})"
    subject = _subject(call, workspace)
    question = Question(text, (ALLOW, DENY), DENY, tool, _detail(call), subject)
    return Permission(question, {word: str(one["optionId"]) for word, one in once.items() if one is not None})


def _choice(text: str, tool: str, call: Line, offered: list[Line]) -> Permission:
    """Return a question with the agent's own options. If nobody answers, the last one counts."""
    names: dict[str, str] = {}
    for one in offered[:MOST_OPTIONS]:
        if name := _option(str(one.get("name") or one["optionId"])):
            names.setdefault(name, str(one["optionId"]))
    if not names:
        return Permission(Question(text, (DENY,), DENY, tool, _detail(call)), {})
    return Permission(Question(text, tuple(names), "", tool, _detail(call)), names)


def _of_kind(offered: list[Line], *kinds: str) -> Any:
    """Return the first option of the first of these kinds."""
    return next((one for kind in kinds for one in offered if one.get("kind") == kind), None)


def _tool(call: Line) -> str:
    meta = call.get("_meta")
    of_claude = meta.get("claudeCode") if isinstance(meta, dict) else None
    named = of_claude.get("toolName") if isinstance(of_claude, dict) else None
    found = [call.get("name"), named, call.get("kind"), "tool"]
    return next(_line(one) for one in found if isinstance(one, str) and _line(one))[:TOOL_CHARACTERS]


def _detail(call: Line) -> str:
    """Return everything that the agent says about what the tool would do."""
    raw = call.get("rawInput")
    command = raw.get("command") if isinstance(raw, dict) else None
    if isinstance(command, str):
        return command
    title, content = call.get("title"), call.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    parts = [title if isinstance(title, str) else "", *map(_shown, blocks)]
    if raw:
        parts.append(_canonical(raw))
    return "\n".join(filter(None, parts))


def _shown(block: Line) -> str:
    if block.get("type") == "diff":
        old = "".join(f"-{one}\n" for one in str(block.get("oldText") or "").splitlines())
        new = "".join(f"+{one}\n" for one in str(block.get("newText") or "").splitlines())
        return f"{block.get('path')}\n{old}{new}"
    content = block.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def _subject(call: Line, workspace: str) -> str:
    """Return what an answer may be remembered for: the whole input and where; without an input nothing.

    A title may be shortened: the same title need not be the same command.
    """
    raw = call.get("rawInput")
    return _canonical({"input": raw, "cwd": workspace}) if raw else ""


def _canonical(given: Any) -> str:
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


# --- forms ---------------------------------------------------------------------------


async def fill_in(given: Line, ask: Ask) -> Line:
    """Ask for each field of a form (`elicitation/create`), and return the answer for the agent.

    A form that nobody answers is declined.
    """
    found = given.get("requestedSchema")
    fields = found.get("properties") if isinstance(found, dict) else None
    if given.get("mode", "form") != "form" or not isinstance(fields, dict) or len(fields) > MOST_FIELDS:
        return {"action": "decline"}
    message = str(given.get("message") or "")
    required = found.get("required") or ()  # type: ignore[union-attr]
    content: Line = {}
    comment = ""  # of the field before: a free text beside it takes that
    for name, one in fields.items():
        field = one if isinstance(one, dict) else {}
        options = _options(field)
        if not options and name not in required:
            if comment and field.get("type") == "string":
                content[name] = comment
            continue
        choice = await ask(_field_question(message, field, options))
        comment = choice.text.strip() if choice.by is not None else ""
        if choice.by is None or (not options and (choice.option == SKIP or not comment)):
            return {"action": "decline"}
        content[name] = _value(field, options[choice.option] if options else comment)
    return {"action": "accept", "content": content}


def _field_question(message: str, field: Line, options: dict[str, Any]) -> Question:
    described = [field.get("title"), field.get("description")]
    more = [one for one in described if isinstance(one, str) and one.strip() and one not in message]
    text = "\n".join([message, *more]).strip() or "It asks a question without a text."
    if options:
        return Question(text, tuple(options))
    return Question(f"{text}\n(write the answer as a comment of {ANSWER})", (ANSWER, SKIP), SKIP)


def _options(field: Line) -> dict[str, Any]:
    """Return the values of a field by what people read; empty for a free text or a number."""
    if field.get("type") == "boolean":
        return {"yes": True, "no": False}
    items = field.get("items") if field.get("type") == "array" else field
    source: Line = items if isinstance(items, dict) else {}
    titled = source.get("oneOf") or source.get("anyOf")
    pairs = [(one.get("title"), one.get("const")) for one in titled or () if isinstance(one, dict)]
    pairs = pairs or [(one, one) for one in source.get("enum") or ()]
    found: dict[str, Any] = {}
    for title, value in pairs[:MOST_OPTIONS]:
        if name := _option(str(value if title is None else title)):
            found.setdefault(name, value)
    return found


def _value(field: Line, given: Any) -> Any:
    """Return a value in the type of its field."""
    kind = field.get("type")
    if kind == "array":
        return [given]
    if kind in ("integer", "number") and isinstance(given, str):
        try:
            return int(given) if kind == "integer" else float(given)
        except ValueError:
            return given  # the agent refuses it with its own words
    return given


def _option(name: str) -> str:
    """Return a name as an option of ours: one line that shows something."""
    return visible(" ".join(name.split()))[:OPTION_CHARACTERS].strip()


def _line(text: str) -> str:
    line = "".join(one if one.isprintable() else " " for one in " ".join(text.split())).strip()
    return line if len(line) <= TEXT_CHARACTERS else line[: TEXT_CHARACTERS - 1] + "…"
