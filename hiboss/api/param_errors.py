"""Explains what is wrong with the parameters of a request, for the person who wrote it."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..core.quoting import nearest
from .operation import Operation

# What would be right, in JSON's words. Pydantic's own messages use Python's.
_WANTS = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


def explain(operation: Operation, given: dict[str, Any], error: ValidationError) -> str:
    """Return what is wrong with the parameters, and what would be right."""
    known = operation.param_names
    wrong: dict[str, list[str]] = {}  # by place; pydantic reports each type that would be right on its own
    # A value may be a secret, so no message repeats it.
    for problem in error.errors(include_url=False)[:20]:
        place = _place(problem["loc"], given)
        if problem["type"] == "extra_forbidden":
            listed = ", ".join(known) or "none"
            wrong[place] = [f" is not a parameter{nearest(place, known)}; there are: {listed}"]
        elif problem["type"] in _WANTS and place in wrong:
            wrong[place].append(f" or {_WANTS[problem['type']]}")
        else:
            wrong[place] = [_problem_text(problem)]
    # Report the wrong item of a list, not the list.
    places = [one for one in wrong if not any(other.startswith(f"{one}.") for other in wrong)]
    return f"{operation.name}: {'; '.join(one[:60] + ''.join(wrong[one]) for one in places[:5])}"


def _problem_text(problem: ErrorDetails) -> str:
    kind, facts = problem["type"], problem.get("ctx", {})
    if kind in _WANTS:
        return f" must be {_WANTS[kind]}"
    if kind == "missing":
        return " is missing"
    if kind == "literal_error":
        return f" must be {facts['expected']}{_near_word(problem)}"
    if kind == "string_too_short":
        return " is empty"
    if kind == "too_short":
        return f" must list at least {facts['min_length']}"
    if kind == "too_long":
        return f" can list at most {facts['max_length']}, not {facts['actual_length']}"
    if kind == "value_error":
        return f": {facts['error']}"
    return f": {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def _place(loc: tuple[int | str, ...], given: Any) -> str:
    """Return the place in the parameters as `to.0`, without the type names that pydantic adds."""
    parts: list[str] = []
    for part in loc:
        listed = isinstance(given, list) and isinstance(part, int)
        inside = listed or (isinstance(given, dict) and part in given)
        if inside or not parts:
            parts.append(str(part))
            given = given[part] if inside else None
    return ".".join(parts)


def _near_word(problem: ErrorDetails) -> str:
    """Return a hint at the allowed word that was probably meant."""
    known = re.findall(r"'([^']+)'", problem["ctx"]["expected"])
    given = problem["input"]
    return nearest(given, known) if isinstance(given, str) else ""
