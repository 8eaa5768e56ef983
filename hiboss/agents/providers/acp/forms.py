"""The fields of a form that an agent wants to be filled in: each is a question to people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ....core.contracts.provider import MOST_OPTIONS, Choice, Question
from ....core.escaping import shows
from ...json_lines import Line
from .connection import BadRequest
from .questions import option

MOST_FIELDS = 20
ANSWER, SKIP = "answer", "skip"
CANCELLED: Line = {"action": "cancel"}
DECLINED: Line = {"action": "decline"}

Ask = Callable[[Question], Awaitable[Choice]]


def fill_in(given: Line, ask: Ask) -> Coroutine[Any, Any, Line]:
    """Ask for each field of a form (`elicitation/create`), and return the answer for the agent.

    A form that nobody answers is declined. Raises BadRequest at once.
    """
    found = given.get("requestedSchema")
    fields = found.get("properties") if isinstance(found, dict) else None
    if given.get("mode", "form") != "form" or not isinstance(fields, dict) or len(fields) > MOST_FIELDS:
        return _declined()
    message = given.get("message")
    required = _list(found, "required")  # type: ignore[arg-type]
    known = {name: one if isinstance(one, dict) else {} for name, one in fields.items()}
    options = {name: _options(field) for name, field in known.items()}
    return _ask_all(message if isinstance(message, str) else "", known, options, required, ask)


async def _declined() -> Line:
    return DECLINED


async def _ask_all(
    message: str, fields: dict[str, Line], values: dict[str, dict[str, Any]], required: list[Any], ask: Ask
) -> Line:
    content: Line = {}
    comment = ""  # of the field before: a free text beside it takes that
    for name, field in fields.items():
        options = values[name]
        if not options and name not in required:
            if comment and field.get("type") == "string":
                content[name] = comment
            continue
        choice = await ask(_field_question(message, field, options))
        comment = choice.text.strip() if choice.by is not None else ""
        if choice.by is None or (not options and (choice.option == SKIP or not comment)):
            return DECLINED
        content[name] = _value(field, options[choice.option] if options else comment)
    return {"action": "accept", "content": content}


def _field_question(message: str, field: Line, options: dict[str, Any]) -> Question:
    described = [field.get("title"), field.get("description")]
    more = [one for one in described if isinstance(one, str) and one.strip() and one not in message]
    text = "\n".join([message, *more]).strip()
    text = text if shows(text) else "It asks a question without a text."
    if options:
        return Question(text, tuple(options))
    return Question(f"{text}\n(write the answer as a comment of {ANSWER})", (ANSWER, SKIP), SKIP)


def _options(field: Line) -> dict[str, Any]:
    """Return the values of a field by what people read; empty for a free text or a number."""
    if field.get("type") == "boolean":
        return {"yes": True, "no": False}
    items = field.get("items") if field.get("type") == "array" else field
    source: Line = items if isinstance(items, dict) else {}
    titled = _list(source, "oneOf") or _list(source, "anyOf")
    pairs = [(one.get("title"), one.get("const")) for one in titled if isinstance(one, dict)]
    pairs = pairs or [(one, one) for one in _list(source, "enum")]
    found: dict[str, Any] = {}
    for title, value in pairs[:MOST_OPTIONS]:
        if name := option(str(value if title is None else title)):
            found.setdefault(name, value)
    return found


def _list(given: Line, name: str) -> list[Any]:
    found = given.get(name) or []
    if not isinstance(found, list):
        raise BadRequest(f"{name} is a list")
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
