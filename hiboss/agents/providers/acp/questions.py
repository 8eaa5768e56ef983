"""What an agent asks people: whether it may use a tool. (The fields of a form: forms.py.)

The answer to a permission is one of the agent's own options. It has no place for a reason: what the boss
writes with a `deny` does not reach the agent.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ....core.contracts.provider import MOST_OPTIONS, OPTION_CHARACTERS, TOOL_CHARACTERS, Choice, Question
from ....core.escaping import exposed, shows, visible
from ...json_lines import Line
from .connection import BadRequest
from .tool_calls import ToolCalls

ALLOW, DENY = "allow", "deny"
ALLOWS, REJECTS = ("allow_once", "allow_always"), ("reject_once", "reject_always")
TEXT_CHARACTERS = 300
CANCELLED: Line = {"outcome": {"outcome": "cancelled"}}


class Permission(NamedTuple):
    """What people are asked when an agent wants a permission, and which of its options each answer is."""

    question: Question  # its default is the denial
    options: dict[str, str]  # the agent's option by ours; an answer that is missing here cancels the tool
    is_plain: bool = False  # it is known which option allows it

    def denied(self, choice: Choice) -> str:
        """Return what the agent is told, if it stops at a denial."""
        what = _line(self.question.detail or self.question.text)
        return f"This was not allowed: {what}" + (f" ({_line(choice.text)})" if choice.text.strip() else "")

    def reply(self, option: str) -> Line:
        """Return the answer for the agent."""
        if option not in self.options:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": self.options[option]}}


def permission(given: Line, calls: ToolCalls, workspace: str) -> Permission:
    """Return what the agent wants to be allowed. Raises BadRequest."""
    offered = _offered(given.get("options"))
    found = given.get("toolCall")
    call = calls.whole(found if isinstance(found, dict) else {})
    title = call.get("title")
    tool, title, detail = _tool(call), title if isinstance(title, str) else "", _detail(call)
    asks = f"May it use {tool}?"
    text = asks + (f" {_line(title)}" if title.strip() and title != tool else "")
    allow, deny = _of_kind(offered, ALLOWS), _of_kind(offered, REJECTS)
    if allow is None:  # a choice of another kind
        return _choice(Question(text, tool=tool, detail=detail), offered, deny)
    if _same(title, detail):  # shown below the question already
        text = asks
    if allow["kind"] == "allow_always":
        text += f" (for good: the agent offers nothing but: {_line(str(allow.get('name')))})"
    question = Question(text, (ALLOW, DENY), DENY, tool, detail, _subject(call, workspace))
    named = ((ALLOW, allow), (DENY, deny))
    options = {word: one["optionId"] for word, one in named if one is not None}
    return Permission(question, options, is_plain=True)


def _offered(given: Any) -> list[Line]:
    """Return the options of a request."""
    found = [one for one in _rows(given) if isinstance(one.get("optionId"), str)]
    if not found:
        raise BadRequest("options is a list of at least one object with an optionId")
    return found


def _choice(asked: Question, offered: list[Line], deny: Line | None) -> Permission:
    """Return a question with the agent's own options.

    If nobody answers, the one counts that its kind calls a rejection. Without one there is a `deny` of ours,
    which cancels the tool: nothing is known of what the others do.
    """
    default = (_named(deny) or DENY) if deny is not None else DENY
    names: dict[str, str] = {}
    for number, one in enumerate((one for one in offered if one is not deny), 1):
        word = _named(one) or f"option {number}"
        while word.casefold() in (default.casefold(), *map(str.casefold, names)):
            word = f"{word[: OPTION_CHARACTERS - 10]} ({number})"
        names[word] = one["optionId"]
        if len(names) == MOST_OPTIONS - 1:
            break
    question = asked._replace(options=(*names, default), default=default)
    return Permission(question, names if deny is None else {**names, default: deny["optionId"]})


def _named(offered: Line) -> str:
    """Return the name of an option of the agent, or its id; empty if nothing of them can be shown."""
    found = [offered.get("name"), offered["optionId"]]
    return next((option(one) for one in found if isinstance(one, str) and shows(one)), "")


def _same(title: str, detail: str) -> bool:
    return _line(title.strip().strip("`")) == _line(detail)


def _of_kind(offered: list[Line], kinds: tuple[str, ...]) -> Line | None:
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
    raw, title, blocks = call.get("rawInput"), call.get("title"), _rows(call.get("content"))
    changes = [one for one in blocks if one.get("type") == "diff"]
    command = raw.get("command") if isinstance(raw, dict) else None
    if isinstance(command, str):
        return "\n".join([command, *map(_shown, changes)])
    parts = [title if isinstance(title, str) else "", *map(_shown, blocks)]
    told = {*_texts(raw), *(one.get("path") for one in changes if isinstance(one.get("path"), str))}
    places = [one.get("path") for one in _rows(call.get("locations"))]
    parts += dict.fromkeys(one for one in places if isinstance(one, str) and one not in told)
    if raw:
        parts.append(_canonical(raw))
    return "\n".join(filter(None, parts))


def _shown(block: Line) -> str:
    if block.get("type") == "diff":
        old = "".join(f"-{one}\n" for one in str(block.get("oldText") or "").splitlines())
        new = "".join(f"+{one}\n" for one in str(block.get("newText") or "").splitlines())
        meta = block.get("_meta")  # where codex-acp says what becomes of the file: add, delete
        how = meta.get("kind") if isinstance(meta, dict) else None
        return f"{block.get('path')}{f' ({how})' if isinstance(how, str) else ''}\n{old}{new}"
    content = block.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def _subject(call: Line, workspace: str) -> str:
    """Return what an answer may be remembered for: the whole input, what it changes, and where; or nothing.

    A title may be shortened: the same title need not be the same command. Without an input, changes count if
    there is nothing else; what they leave open would make a difference.
    """
    raw, content = call.get("rawInput"), call.get("content")
    blocks = _rows(content)
    changes = [one for one in blocks if one.get("type") == "diff"]
    if raw:
        told = set(_texts(raw))
        more = [one for one in changes if not {_text(one, "path"), _text(one, "newText")} <= told]
        return _canonical({"input": raw, "cwd": workspace, **({"changes": more} if more else {})})
    whole = content == changes and all(_text(one, "path") and "newText" in one for one in changes)
    return _canonical({"changes": changes, "cwd": workspace}) if changes and whole else ""


def _text(block: Line, name: str) -> str | None:
    found = block.get(name)
    return found if isinstance(found, str) else None


def _texts(given: Any) -> list[str]:
    """Return all texts that are somewhere in an input."""
    found, left = [], [given]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, (dict, list)):
            left.extend(one.values() if isinstance(one, dict) else one)
    return found


def _rows(given: Any) -> list[Line]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _canonical(given: Any) -> str:
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


def option(name: str) -> str:
    """Return a name as an option of ours: one line that shows something; empty if there is nothing."""
    line = visible(" ".join(name.split()))
    return (line if shows(line) else exposed(line))[:OPTION_CHARACTERS].strip()


def _line(text: str) -> str:
    line = "".join(one if one.isprintable() else " " for one in " ".join(text.split())).strip()
    return line if len(line) <= TEXT_CHARACTERS else line[: TEXT_CHARACTERS - 1] + "…"
