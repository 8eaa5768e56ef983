"""Errors of model servers, as programs pass them on: often as JSON, and one inside another."""

from __future__ import annotations

import json

DEEPEST = 3


def readable(said: str) -> str:
    """Return the message inside an error that is JSON; another text as it is."""
    for _ in range(DEEPEST):
        try:
            found = json.loads(said)
        except (ValueError, RecursionError):
            break
        message = _message(found) if isinstance(found, dict) else None
        if not isinstance(message, str) or not message.strip():
            break
        said = message
    return said


def _message(found: dict[str, object]) -> object:
    error = found.get("error")
    return error.get("message") if isinstance(error, dict) else error or found.get("detail")
